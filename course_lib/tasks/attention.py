"""Formulas that the tasks of several lessons share, with a knob for every mistake that learners make in them."""

import math

import torch
from torch import Tensor

from course_lib.tasks.findings import Finding
from course_lib.tasks.table import Case, mistakes


def softmax(x: Tensor, *, axis: int | tuple = -1, powers: bool = True, shift: str | int = "row") -> Tensor:
    """exp(x - max x) / sum exp(x - max x), along the last axis."""
    shifts = {"none": 0.0, "all": x.max(), "mean": x.mean(-1, True), "least": x.amin(-1, True), "first": x[..., :1]}
    x = x - (shifts[shift] if shift in shifts else x.amax(axis if shift == "row" else shift, keepdim=True))
    shares = x.exp() if powers else x
    return shares / shares.sum(dim=axis, keepdim=True)


TORCHS_SOFTMAX = ("softmax", "log_softmax", "Softmax", "softmin", "logsumexp", "scaled_dot_product_attention")
FORMULA = Case("shares sum to one along the last axis", lambda draw: (draw(*draw.sizes(3)),))
SOFTMAX_MISTAKES = mistakes(r"""
softmax over the wrong axis: axis=-2 | 0
    The shares do not sum to one along the last axis, but along another.
    > Each row of scores is to become shares that sum to one. Along which axis does a row run? Use `dim=-1`.
softmax over the whole tensor: axis=(0, 1, 2)
    All entries together sum to one, instead of each row by itself.
    > Sum over the last axis only, and keep it, so that each row is divided by its own sum.
no exponential in the softmax: powers=False; shift='none'
    The result is each number divided by the sum, without the exponential.
    > softmax(x)_i = exp(x_i) / sum_j exp(x_j).
""")


def weights(
    scores: Tensor,
    mask: Tensor | None,
    *,
    axis: int | None = -1,
    masking: str = "before",
    blind: str = "zeros",
    stable: bool = True,
) -> Tensor:
    """Scores to weights, under a mask; without an axis there is no softmax."""
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None or masking == "ignored" else mask
    mask = ~mask if "inverted" in masking else mask
    if "after" not in masking:
        hidden = 0.0 if masking == "zeroed" else -1e9 if blind == "equal" else -math.inf
        scores = scores.masked_fill(~mask, hidden)
    if axis is None:
        shares = scores
    else:
        shares = scores.softmax(axis) if stable else scores.exp() / scores.exp().sum(axis, keepdim=True)
    after = blind == "zeros" or "after" in masking
    return shares.masked_fill(~mask, 0.0) if after and masking != "zeroed" else shares


SCALE_MISTAKES = mistakes(r"""
missing scale: scale='none'
    The dot products go into the softmax as they are.
    > Divide by the root of the width, as in the formula.
divided by d instead of its square root: scale='d'
    The dot products are divided by the width itself.
    > The formula divides by its square root: `** 0.5`.
""")
WRONG_AXIS = mistakes(r"""
softmax over the wrong axis: axis=-2 | 0
    The weights of a query do not sum to one: the softmax runs along another axis than that of the keys.
    > Row i of the scores belongs to query i. Its weights over the keys sum to one: `dim=-1`.
""")
MASK_MISTAKES = mistakes(r"""
mask ignored: masking='ignored'
    The output is the same with and without the mask.
    > Fill the scores of hidden keys with -inf before the softmax.
mask inverted: masking='inverted' | 'inverted after'; blind='zeros' | 'nan' | 'equal'
    Exactly the hidden keys are attended to.
    > True means: may attend. `masked_fill` fills where its mask is True: fill where ours is False, `~mask`.
mask after the softmax: masking='after'
    Hidden keys get no weight, but the weights of the others no longer sum to one.
    > Hide the keys before the softmax, so that it shares out the whole among those that are left.
hidden scores set to zero: masking='zeroed'
    Hidden keys still get weight: their score is 0, and exp(0) = 1.
    > Which score has the exponential 0?
NaN for a query that sees nothing: blind='nan'
    A query whose keys are all hidden gets NaN.
    > softmax of nothing but -inf is 0/0: set those weights to zero afterwards.
equal weights for a query that sees nothing: blind='equal'
    A query whose keys are all hidden gets the mean of all values, hidden as they are, instead of zeros.
    > -1e9 in every place is the same score everywhere: fill with -inf, and set hidden weights to zero afterwards.
""")
LARGE_SCORES = mistakes(r"""
large scores break the softmax: stable=False
    With small scores the result is right, with scores of some thousands it is not.
    > The exponential of 1000 is infinite: subtract from each row of scores its maximum, or call `torch.softmax`.
""")
HEADS_MISTAKES = mistakes(r"""
heads mixed up by a reshape: way='reshaped'
    The shape is right, but numbers of different positions ended up in one head.
    > `reshape` cannot exchange axes: split or join the width first, and move the head axis with `transpose(1, 2)`.
features of the heads interleaved: way='interleaved'
    Head 0 holds every H-th feature.
    > Head 0 takes the first D/H features, head 1 the next: (h d), not (d h).
""")
READS_HIDDEN = Finding(
    "a query that sees nothing still reads something",
    "A query whose keys are all hidden gets something that is not zero.",
    "Set the weights of hidden keys to zero after the softmax, too.",
)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    keys: str = "turned",
    scale: str = "sqrt d",
    read: str = "v",
    **weighing,
) -> Tensor:
    """softmax(q k^T / sqrt(d)) v."""
    d, T_k = q.shape[-1], k.shape[-2]
    turned = {"turned": k.mT, "as they lie": k, "reshaped": k.reshape(*k.shape[:-2], d, T_k)}[keys]
    roots = {"sqrt d": d, "sqrt T_k": T_k, "sqrt T_q": q.shape[-2], "sqrt d_v": v.shape[-1]}
    divisor = roots[scale] ** 0.5 if scale in roots else {"none": 1, "d": d, "inverse": d**-0.5, "after": 1}[scale]
    shares = weights(q @ turned / divisor, mask, **weighing)
    return (shares / d**0.5 if scale == "after" else shares) @ {"v": v, "k": k, "q": q}[read]


ATTENTION_MISTAKES = (
    SCALE_MISTAKES
    + WRONG_AXIS
    + mistakes(r"""
multiplied by the square root of d: scale='inverse'
    The dot products are multiplied by the square root of the width.
    > Scaling is to make the scores smaller: divide.
divided after the softmax: scale='after'
    The weights are divided by the square root of the width, not the scores.
    > The scores are too large, and the weights are to sum to one: divide before the softmax.
scaled by the wrong size: scale='sqrt T_k' | 'sqrt T_q' | 'sqrt d_v'
    The dot products are divided by the square root of another size than the width of the keys.
    > d_k is the number of terms in the sum q·k: the last axis of `q`, not the length and not the width of `v`.
keys not transposed: keys='as they lie'
    The scores are built from the keys as they lie, not from their transpose.
    > Entry (i, j) is the dot product of query i and key j: `q @ k.transpose(-2, -1)`.
keys reshaped instead of transposed: keys='reshaped'
    The keys have the shape of the transpose, but their numbers have been shuffled.
    > `reshape` and `view` keep the order in memory; `transpose(-2, -1)` exchanges axes.
keys used as values: read='k'
    The output is a weighted sum of the keys.
    > Keys decide where to look; what is then read there are the values.
queries used as values: read='q'
    The output is a weighted sum of the queries.
    > Queries ask, keys answer how well they fit; what is then read are the values.
""")
    + MASK_MISTAKES
)


def split_heads(x: Tensor, num_heads: int, *, way: str = "right") -> Tensor:
    """(B, T, H d) to (B, H, T, d)."""
    B, T, D = x.shape
    if way == "reshaped":
        return x.reshape(B, num_heads, T, -1)
    if way in ("interleaved", "width"):
        x = x.reshape(B, T, D // num_heads, num_heads)
        return x.permute(0, 3, 1, 2) if way == "interleaved" else x.transpose(1, 2)
    x = x.reshape(B, T, num_heads, -1)
    return x if way == "time first" else x.transpose(1, 2)
