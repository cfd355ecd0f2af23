"""Attention as plain functions of tensors, and its masks: each formula once as in its paper and, where it pays, once
fused.

Masks say who may look at whom: boolean tensors, True = may attend, that broadcast to (B, H, T_q, T_k).

Bahdanau, Cho & Bengio, "Neural machine translation by jointly learning to align and translate", ICLR 2015,
arXiv 1409.0473. Luong, Pham & Manning, "Effective approaches to attention-based neural machine translation",
EMNLP 2015, arXiv 1508.04025. Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv 1706.03762.
"""

from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.func import debug_unwrap
from torch.nn.attention import SDPBackend, sdpa_kernel


def valid_positions(lengths: Int[Tensor, " B"], size: int) -> Bool[Tensor, "B T"]:
    """True at the first `lengths[b]` of `size` positions: the real tokens of a padded batch.

    Raises ValueError if a length is negative or larger than `size`.
    """
    if lengths.numel() and not 0 <= int(lengths.min()) <= int(lengths.max()) <= size:
        raise ValueError(f"lengths must lie between 0 and size={size}, got {lengths.tolist()}")
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def padding_mask(lengths: Int[Tensor, " B"], size: int) -> Bool[Tensor, "B 1 1 T"]:
    """The mask that hides padding from every query of every head; see `valid_positions`."""
    return valid_positions(lengths, size)[:, None, None, :]


def key_mask(valid: Bool[Tensor, "B T"] | None) -> Bool[Tensor, "B 1 1 T"] | None:
    """The same from `valid`, True at real tokens; None: all are."""
    return None if valid is None else valid[:, None, None, :]


def relative_distance(
    num_queries: int, num_keys: int | None = None, *, device: torch.device | str | None = None
) -> Int[Tensor, "T_q T_k"]:
    """Position of the key minus position of the query, the last query standing at the last key.

    With fewer queries than keys the missing ones lie in the past: that is how a cache is used.
    """
    num_keys = num_queries if num_keys is None else num_keys
    queries = torch.arange(num_queries, device=device) + (num_keys - num_queries)
    return torch.arange(num_keys, device=device) - queries[:, None]


def causal_mask(
    num_queries: int, num_keys: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "T_q T_k"]:
    """True where the key is not later than the query (Vaswani et al. 2017, section 3.2.3)."""
    return relative_distance(num_queries, num_keys, device=device) <= 0


def local_mask(
    num_queries: int, num_keys: int | None = None, *, window: int, device: torch.device | str | None = None
) -> Bool[Tensor, "T_q T_k"]:
    """True where the key is at most `window` positions away, on either side of the query.

    Vaswani et al. 2017, section 4, call this restricted self-attention with a neighbourhood of r = 2 window + 1.
    Raises ValueError if `window` is negative.
    """
    if window < 0:
        raise ValueError(f"window counts the positions seen on either side: it must be 0 or more, got {window}")
    return relative_distance(num_queries, num_keys, device=device).abs() <= window


def combine_masks(*masks: Bool[Tensor, "..."] | None) -> Bool[Tensor, "..."] | None:
    """True where every given mask is True; None stands for "everything may be seen".

    Raises ValueError if the shapes of the masks do not broadcast together.
    """
    given = [mask for mask in masks if mask is not None]
    if not given:
        return None
    try:
        torch.broadcast_shapes(*(mask.shape for mask in given))
    except RuntimeError:
        shapes = ", ".join(str(tuple(mask.shape)) for mask in given)
        raise ValueError(f"masks of shapes {shapes} do not broadcast together") from None
    combined = given[0]
    for mask in given[1:]:
        combined = combined & mask
    return combined


def check_mask(mask: Tensor | None, scores_shape: tuple[int, ...], *, bias: Tensor | None = None) -> None:
    """Raises ValueError for a mask that is not boolean, and for a mask or bias that does not broadcast."""
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(
            f"mask must be boolean (True = may attend), got {mask.dtype}; "
            "pass terms that are added to the scores as a bias"
        )
    for name, term in (("mask", mask), ("bias", bias)):
        if term is not None and not _broadcasts(tuple(term.shape), tuple(scores_shape)):
            raise ValueError(
                f"{name} of shape {tuple(term.shape)} does not broadcast to the scores' shape {tuple(scores_shape)}"
                ", whose last two axes are queries and keys"
            )


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(size in (1, wanted) for size, wanted in pairs)


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
    check_shapes(q, k)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ k.transpose(-2, -1) * scale
    check_mask(mask, scores.shape, bias=bias)
    if bias is not None:
        scores, mask = scores + bias, combine_masks(mask, bias > float("-inf"))
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
    check_shapes(q, k, v)
    if causal:
        check_mask(mask, scores_shape(q, k))
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
    check_shapes(q, k, v)
    check_mask(mask, scores_shape(q, k), bias=bias)
    num_queries, num_keys = q.shape[-2], k.shape[-2]
    # PyTorch aligns its own causal mask with the first key, and takes no other mask beside it.
    fused_causal = causal and mask is None and bias is None and num_queries == num_keys
    if causal and not fused_causal and num_queries > 1:
        mask = combine_masks(mask, causal_mask(num_queries, num_keys, device=q.device))
    if bias is not None:
        mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
    return fused_attention(q, k, v, attn_mask=mask, is_causal=fused_causal, scale=scale, dropout_p=dropout)


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


def scores_shape(q: Tensor, k: Tensor) -> tuple[int, ...]:
    """The shape of the scores of these queries and keys."""
    return (*q.shape[:-1], k.shape[-2])


def check_shapes(q: Tensor, k: Tensor, v: Tensor | None = None) -> None:
    """Raises ValueError for queries, keys and values that do not fit together."""
    fits = q.shape[:-2] == k.shape[:-2] and q.shape[-1] == k.shape[-1]
    if not fits or (v is not None and v.shape[:-1] != k.shape[:-1]):
        given = {"q": q, "k": k} | ({} if v is None else {"v": v})
        shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in given.items())
        raise ValueError(f"q and k must agree in width and batch axes, and v must have a row per key; got {shapes}")


# what only compilers and torch.func need -----------------------------------------------------------------


def fused_attention(q: Tensor, k: Tensor, v: Tensor, **arguments: Any) -> Tensor:
    """PyTorch's own, whose fastest kernels lack derivatives that torch.func asks for: there by plain products."""
    with sdpa_kernel(SDPBackend.MATH) if is_transformed(q, k, v) else nullcontext():
        return F.scaled_dot_product_attention(q, k, v, **arguments)


def is_transformed(*tensors: Tensor) -> bool:
    """Whether one of the tensors stands inside of torch.func's grad, vmap, jvp or their kin."""
    return not torch.compiler.is_compiling() and any(debug_unwrap(t, recurse=False) is not t for t in tensors)
