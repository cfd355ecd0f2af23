"""Attention as plain functions of tensors: each formula once as in its paper and, where it pays, once fused.

Bahdanau, Cho & Bengio, "Neural machine translation by jointly learning to align and translate", ICLR 2015,
arXiv 1409.0473. Luong, Pham & Manning, "Effective approaches to attention-based neural machine translation",
EMNLP 2015, arXiv 1508.04025. Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv 1706.03762.
"""

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from course_lib.functional.masking import causal_mask, check_mask, combine_masks


def masked_softmax(
    scores: Float[Tensor, "*B T_q T_k"], mask: Shaped[Tensor, "..."] | None = None
) -> Float[Tensor, "*B T_q T_k"]:
    """Softmax over the keys that the boolean `mask` leaves visible; a query that sees no key gets zeros, not NaN.

    Raises ValueError if the mask is not boolean or does not broadcast to the scores.
    """
    check_mask(mask, scores.shape)
    if mask is None:
        return scores.softmax(dim=-1)
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return weights.masked_fill(~mask, 0.0)


def attention_weights(
    q: Float[Tensor, "*B T_q d_k"],
    k: Float[Tensor, "*B T_k d_k"],
    *,
    mask: Shaped[Tensor, "..."] | None = None,
    bias: Shaped[Tensor, "..."] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "*B T_q T_k"]:
    """softmax(Q K^T / sqrt(d_k) + bias): the weights of Vaswani et al. 2017, eq. (1).

    `mask` is boolean, True = may attend; `scale` replaces 1/sqrt(d_k). A query with no visible key gets zeros.
    Raises ValueError if the mask is not boolean, or a shape does not fit.
    """
    _check_shapes(q, k)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ k.transpose(-2, -1) * scale
    check_mask(mask, scores.shape, bias=bias)
    if bias is not None:
        scores = scores + bias
    return masked_softmax(scores, mask)


def readable_attention(
    q: Float[Tensor, "*B T_q d_k"],
    k: Float[Tensor, "*B T_k d_k"],
    v: Float[Tensor, "*B T_k d_v"],
    *,
    mask: Shaped[Tensor, "..."] | None = None,
    bias: Shaped[Tensor, "..."] | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[Float[Tensor, "*B T_q d_v"], Float[Tensor, "*B T_q T_k"]]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V and its weights, Vaswani et al. 2017, eq. (1).

    The textbook twin of `attention`: it builds the whole (T_q, T_k) matrix. Raises ValueError as `attention` does.
    """
    _check_shapes(q, k, v)
    if causal:
        check_mask(mask, _scores_shape(q, k))
        mask = combine_masks(mask, causal_mask(q.shape[-2], k.shape[-2], device=q.device))
    weights = attention_weights(q, k, mask=mask, bias=bias, scale=scale)
    return weights @ v, weights


def attention(
    q: Float[Tensor, "*B T_q d_k"],
    k: Float[Tensor, "*B T_k d_k"],
    v: Float[Tensor, "*B T_k d_v"],
    *,
    mask: Shaped[Tensor, "..."] | None = None,
    bias: Shaped[Tensor, "..."] | None = None,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "*B T_q d_v"]:
    """softmax(Q K^T / sqrt(d_k) + bias) V, Vaswani et al. 2017, eq. (1), in one fused call.

    `mask` is boolean, True = may attend; mask and bias broadcast to (*B, T_q, T_k). `causal` places the last query
    at the last key, so that it also holds with a cache. A query with no visible key gets zeros. `dropout` is the
    probability with which a weight is dropped, and is applied whenever it is not 0.
    Raises ValueError if the mask is not boolean, or a shape does not fit.
    """
    _check_shapes(q, k, v)
    check_mask(mask, _scores_shape(q, k), bias=bias)
    num_queries, num_keys = q.shape[-2], k.shape[-2]
    # PyTorch aligns its own causal mask with the first key, and takes no other mask beside it.
    fused_causal = causal and mask is None and bias is None and num_queries == num_keys
    if causal and not fused_causal and num_queries > 1:
        mask = combine_masks(mask, causal_mask(num_queries, num_keys, device=q.device))
    if bias is not None:
        mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=fused_causal, scale=scale, dropout_p=dropout
    )


def local_attention(
    q: Float[Tensor, "*B T d_k"],
    k: Float[Tensor, "*B T d_k"],
    v: Float[Tensor, "*B T d_v"],
    *,
    window: int,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "*B T d_v"]:
    """Attention to the `window` positions on either side, at O(n r d) for r = 2 window + 1.

    Restricted self-attention, Vaswani et al. 2017, section 4. Equal to `attention` under `local_mask`, but the scores
    outside the band are never computed: the queries are cut into blocks, and a block sees only its own keys and
    `window` more at each end.
    Raises ValueError if `window` is negative or the lengths of q, k and v differ.
    """
    _check_shapes(q, k, v)
    length, batch = q.shape[-2], q.shape[:-2]
    if window < 0 or k.shape[-2] != length:
        raise ValueError(
            "local attention needs a window of 0 or more and as many queries as keys, "
            f"got window={window}, {length} queries, {k.shape[-2]} keys"
        )
    block = max(window, 1)
    num_blocks = -(-length // block)
    reach = block + 2 * window

    missing = num_blocks * block - length
    queries = F.pad(q, (0, 0, 0, missing)).reshape(-1, num_blocks, block, q.shape[-1])
    keys, values = (
        rearrange(F.pad(t, (0, 0, window, window + missing)).unfold(-2, reach, block), "... n d r -> (...) n r d")
        for t in (k, v)
    )
    outputs = F.scaled_dot_product_attention(
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


def additive_scores(
    q: Float[Tensor, "*B T_q D_q"],
    k: Float[Tensor, "*B T_k D_k"],
    W: Float[Tensor, "A D_q"],
    U: Float[Tensor, "A D_k"],
    v: Float[Tensor, " A"],
) -> Float[Tensor, "*B T_q T_k"]:
    """e_ij = v^T tanh(W q_i + U k_j): how well query i fits key j, Bahdanau et al. 2015, appendix A.1.2."""
    return projected_additive_scores(q @ W.T, k @ U.T, v)


def projected_additive_scores(
    projected_q: Float[Tensor, "*B T_q A"], projected_k: Float[Tensor, "*B T_k A"], v: Float[Tensor, " A"]
) -> Float[Tensor, "*B T_q T_k"]:
    """`additive_scores` from W q and U k: a decoder computes U k once per sentence, not once per word."""
    return (projected_q[..., :, None, :] + projected_k[..., None, :, :]).tanh() @ v


def luong_scores(
    q: Float[Tensor, "*B T_q D_q"], k: Float[Tensor, "*B T_k D_k"], W: Float[Tensor, "D_q D_k"] | None = None
) -> Float[Tensor, "*B T_q T_k"]:
    """q_i^T k_j ("dot"), or q_i^T W k_j ("general") when W is given: Luong et al. 2015, eq. (8).

    Differs from eq. (1) of Vaswani et al. in that nothing is divided by sqrt(d).
    Raises ValueError if the widths of q and k differ and no W is given.
    """
    if W is None and q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"dot scores need queries and keys of one width, got {q.shape[-1]} and {k.shape[-1]}: give W for 'general'"
        )
    return (q if W is None else q @ W) @ k.transpose(-2, -1)


def _scores_shape(q: Tensor, k: Tensor) -> tuple[int, ...]:
    return (*q.shape[:-1], k.shape[-2])


def _check_shapes(q: Tensor, k: Tensor, v: Tensor | None = None) -> None:
    fits = q.shape[:-2] == k.shape[:-2] and q.shape[-1] == k.shape[-1]
    if not fits or (v is not None and v.shape[:-1] != k.shape[:-1]):
        given = {"q": q, "k": k} | ({} if v is None else {"v": v})
        shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in given.items())
        raise ValueError(f"q and k must agree in width and batch axes, and v must have a row per key; got {shapes}")
