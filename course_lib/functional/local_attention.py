"""Restricted self-attention, which sees only near positions and computes only their scores.

Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv 1706.03762, section 4.
"""

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from course_lib.functional.attention import (
    attention,
    check_mask,
    check_shapes,
    combine_masks,
    fused_attention,
    local_mask,
    scores_shape,
)


def local_attention(
    q: Float[Tensor, "*B T_q d_k"],
    k: Float[Tensor, "*B T_k d_k"],
    v: Float[Tensor, "*B T_k d_v"],
    *,
    window: int,
    mask: Shaped[Tensor, "..."] | None = None,
    bias: Shaped[Tensor, "..."] | None = None,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "*B T_q d_v"]:
    """Attention to the `window` positions on either side, at O(n r d) for r = 2 window + 1.

    Restricted self-attention, Vaswani et al. 2017, section 4. Equal to `attention` under `local_mask`, but the scores
    outside the band are never computed: the queries are cut into blocks, and a block sees only its own keys and
    `window` more at each end. With a mask, a bias, or fewer queries than keys, as behind a cache, all of them are.
    Raises ValueError if `window` is negative, and as `attention` does.
    """
    check_shapes(q, k, v)
    length, batch = q.shape[-2], q.shape[:-2]
    if window < 0:
        raise ValueError(f"window counts the positions seen on either side: it must be 0 or more, got {window}")
    if mask is not None or bias is not None or k.shape[-2] != length:
        check_mask(mask, scores_shape(q, k))
        mask = combine_masks(mask, local_mask(length, k.shape[-2], window=window, device=q.device))
        return attention(q, k, v, mask=mask, bias=bias, causal=causal, scale=scale, dropout=dropout)
    block = max(window, 1)
    num_blocks = -(-length // block)
    reach = block + 2 * window

    missing = num_blocks * block - length
    queries = F.pad(q, (0, 0, 0, missing)).reshape(-1, num_blocks, block, q.shape[-1])
    keys, values = (
        rearrange(F.pad(t, (0, 0, window, window + missing)).unfold(-2, reach, block), "... n d r -> (...) n r d")
        for t in (k, v)
    )
    outputs = fused_attention(
        queries,
        keys,
        values,
        attn_mask=_block_mask(length, num_blocks, block, window, causal, q.device),
        scale=scale,
        dropout_p=dropout,
    )
    return outputs.reshape(*batch, num_blocks * block, v.shape[-1])[..., :length, :]


def _block_mask(
    length: int, num_blocks: int, block: int, window: int, causal: bool, device: torch.device
) -> Bool[Tensor, "n block reach"]:
    starts = torch.arange(num_blocks, device=device)[:, None, None] * block
    queries = starts + torch.arange(block, device=device)[:, None]
    keys = starts - window + torch.arange(block + 2 * window, device=device)
    mask = ((keys - queries).abs() <= window) & (keys >= 0) & (keys < length)
    return mask & (keys <= queries) if causal else mask
