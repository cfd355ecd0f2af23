"""Linear attention: without the softmax, attention is a sum that can be carried along, as a recurrent network does.

Katharopoulos, Vyas, Pappas & Fleuret, "Transformers are RNNs: fast autoregressive Transformers with linear attention",
ICML 2020, arXiv 2006.16236. The same numbers three ways: by a table of weights, by sums over the keys, step by step.
Attention to neighbours alone, the other cheap kind, is `local_attention`.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor

from course_lib.functional.attention import causal_mask, check_mask, combine_masks

BLOCK = 32  # queries whose own keys are compared one by one; the sums are taken from block to block


class LinearState(NamedTuple):
    """All that is remembered of the past, whatever its length: eqs. (16) and (17)."""

    s: Float[Tensor, "*B d_k d_v"]  # sum_j phi(k_j) v_j^T
    z: Float[Tensor, "*B d_k"]  # sum_j phi(k_j)


def elu_features(x: Float[Tensor, "*B d"]) -> Float[Tensor, "*B d"]:
    """phi(x) = elu(x) + 1, eq. (7): x + 1 above 0 and exp(x) below, which is how it stays positive when rounded."""
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def readable_linear_attention(
    q: Float[Tensor, "*B T_q d_k"],
    k: Float[Tensor, "*B T_k d_k"],
    v: Float[Tensor, "*B T_k d_v"],
    *,
    mask: Shaped[Tensor, "..."] | None = None,
    causal: bool = False,
) -> tuple[Float[Tensor, "*B T_q d_v"], Float[Tensor, "*B T_q T_k"]]:
    """V'_i = sum_j phi(q_i)^T phi(k_j) v_j / sum_j phi(q_i)^T phi(k_j), eq. (4), and the weights, all T_q x T_k.

    The textbook twin of `linear_attention`, which takes any boolean mask. A query with no visible key gets zeros.
    Raises ValueError for a mask that is not boolean or does not broadcast.
    """
    similarity = elu_features(q) @ elu_features(k).mT
    check_mask(mask, similarity.shape)
    if causal:
        mask = combine_masks(mask, causal_mask(q.shape[-2], k.shape[-2], device=q.device))
    if mask is not None:
        similarity = similarity.masked_fill(~mask, 0.0)
    weights = similarity / nonzero(similarity.sum(dim=-1, keepdim=True))
    return weights @ v, weights


def linear_attention(
    q: Float[Tensor, "*B T_q d_k"],
    k: Float[Tensor, "*B T_k d_k"],
    v: Float[Tensor, "*B T_k d_v"],
    *,
    mask: Shaped[Tensor, "..."] | None = None,
    bias: Shaped[Tensor, "..."] | None = None,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
    block: int = BLOCK,
) -> Float[Tensor, "*B T_q d_v"]:
    """phi(q_i)^T S / phi(q_i)^T z with S = sum_j phi(k_j) v_j^T, eq. (5); causal: the sums up to i, eqs. (9)-(12).

    Takes what `attention` takes, so that `MultiHeadAttention(attend=linear_attention)` is all that changes. `mask` says
    which keys are there, one row for all queries. Differs from the paper's algorithm 1 in that the causal sums go from
    block to block, and compare a block's own queries and keys directly (`block=1` is the paper's): the cost stays
    O(T d_k d_v). A query with no visible key gets zeros.
    Raises ValueError for what a sum over keys cannot do: a mask that differs between queries, a bias, a scale, dropout
    of weights.
    """
    if bias is not None or scale is not None or dropout:
        raise ValueError(f"linear attention has no scores to take bias={bias}, scale={scale}, dropout={dropout}")
    if block < 1:
        raise ValueError(f"block counts the queries taken together: it must be 1 or more, got {block}")
    check_mask(mask, (*q.shape[:-1], k.shape[-2]))
    if mask is not None and mask.ndim > 1 and mask.shape[-2] != 1:
        raise ValueError(f"the same keys must be hidden from all queries, got a mask of shape {tuple(mask.shape)}")
    q, k = elu_features(q), elu_features(k)
    if mask is not None:
        k = k.masked_fill(~mask.mT if mask.ndim > 1 else ~mask[:, None], 0.0)
    v = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)  # of the ones the same sums are the denominator
    sums = causal_sums(q, k, v, block) if causal else q @ (k.mT @ v)
    return sums[..., :-1] / nonzero(sums[..., -1:])


def causal_sums(
    q: Float[Tensor, "*B T_q d_k"], k: Float[Tensor, "*B T_k d_k"], v: Float[Tensor, "*B T_k d_v"], block: int
) -> Float[Tensor, "*B T_q d_v"]:
    """sum_{j <= i} (q_i^T k_j) v_j, where the last query stands at the last key."""
    length, unasked = k.shape[-2], k.shape[-2] - q.shape[-2]
    block = max(1, min(block, length))
    missing = -length % block
    q = F.pad(q, (0, 0, unasked, missing)).unflatten(-2, (-1, block))  # (*B, n, block, d_k)
    keys, values = (F.pad(each, (0, 0, 0, missing)).unflatten(-2, (-1, block)) for each in (k, v))
    own = keys.mT @ values  # (*B, n, d_k, d_v)
    before = F.pad(own.cumsum(dim=-3), (0, 0, 0, 0, 1, -1))  # of the blocks before: subtracting `own` loses digits
    sums = q @ before + (q @ keys.mT).tril() @ values
    return sums.flatten(-3, -2)[..., unasked:length, :]


def first_state(k: Float[Tensor, "*B d_k"], v: Float[Tensor, "*B d_v"]) -> LinearState:
    """Before the first step nothing is remembered, eqs. (16) and (17): zeros, of sizes that fit a key and a value."""
    return LinearState(torch.zeros_like(k[..., :, None] * v[..., None, :]), torch.zeros_like(k))


def linear_step(
    q: Float[Tensor, "*B d_k"], k: Float[Tensor, "*B d_k"], v: Float[Tensor, "*B d_v"], state: LinearState
) -> tuple[Float[Tensor, "*B d_v"], LinearState]:
    """One step of the recurrent network that causal linear attention is: eqs. (18)-(20), without the layer around it.

    s_i = s_{i-1} + phi(k_i) v_i^T, z_i = z_{i-1} + phi(k_i), and the output is phi(q_i)^T s_i / phi(q_i)^T z_i.
    """
    q, k = elu_features(q), elu_features(k)
    s, z = state.s + k[..., :, None] * v[..., None, :], state.z + k
    output = (q[..., None, :] @ s)[..., 0, :] / nonzero((q * z).sum(dim=-1, keepdim=True))
    return output, LinearState(s, z)


def nonzero(denominator: Tensor) -> Tensor:
    """1 in place of 0, where the numerator is 0, too."""
    return denominator.masked_fill(denominator == 0, 1.0)
