"""Checks of a learner's own attention: softmax, scaled dot products, additive scores, heads, positions, alignment,
look-up.

Each list of checks belongs to one function, whose signature stands above it. Tensors are batch first; masks are
boolean, True = may attend.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from course_lib.functional.metrics import alignment_error_rate
from course_lib.functional.positions import sinusoidal_positions
from course_lib.tasks.core import Check, Fault, Finding, ModuleProbe, Probe, explain, unexplained

WRONG_AXIS = "softmax over the wrong axis"
WHOLE_TENSOR = "softmax over the whole tensor"
NO_EXPONENTIAL = "no exponential in the softmax"
OVERFLOW = "softmax overflows for large inputs"
LARGE_INPUTS_LOST = "large inputs lose their differences"
FOREIGN_MAXIMUM = "maximum not taken row by row"
NOT_THE_MAXIMUM = "another number than the maximum subtracted"
MISSING_SCALE = "missing scale"
SCALED_BY_D = "divided by d instead of its square root"
MULTIPLIED = "multiplied by the square root of d"
WRONG_SIZE = "scaled by the wrong size"
NOT_TRANSPOSED = "keys not transposed"
RESHAPED_KEYS = "keys reshaped instead of transposed"
KEYS_FOR_VALUES = "keys used as values"
QUERIES_FOR_VALUES = "queries used as values"
MASK_IGNORED = "mask ignored"
MASK_INVERTED = "mask inverted"
MASK_AFTER_SOFTMAX = "mask after the softmax"
MASK_ZEROES_SCORES = "hidden scores set to zero"
LARGE_SCORES = "large scores break the softmax"
SEES_NOTHING = "NaN for a query that sees nothing"
EQUAL_WEIGHTS = "equal weights for a query that sees nothing"
READS_HIDDEN = "a query that sees nothing still reads something"
NO_TANH = "missing tanh"
TANH_OUTSIDE = "tanh outside of the sum"
TANH_OF_PARTS = "tanh of each part alone"
OTHER_ACTIVATION = "another function in place of tanh"
PRODUCT_FOR_SUM = "product in place of the sum"
MATRICES_SWAPPED = "W and U swapped"
NO_W_TRANSPOSE = "projection with the transposed matrix"
SOFTMAX_INCLUDED = "softmax already applied"
ROWS_ARE_KEYS = "rows and columns swapped"
OWN_KEY_ONLY = "each query meets only one key"
HEADS_MIXED = "heads mixed up by a reshape"
HEADS_INTERLEAVED = "features of the heads interleaved"
TIME_BEFORE_HEADS = "head axis behind the time axis"
WIDTH_FOR_HEADS = "number of heads and width of a head swapped"
SCALED_BY_WIDTH = "scaled by the width of all heads"
ONE_HEAD = "one head, however many are asked for"
HEADS_AMONG_THEMSELVES = "heads attend to each other"
MAPS_SWAPPED = "maps of queries, keys and values mixed up"
OUTPUT_NOT_MAPPED = "no map behind the heads"
NOT_NORMALISED = "no softmax"
PROJECTED_VALUES = "projected annotations used as values"
NOT_LEARNED = "answers without looking"
LEARNED_BY_HEART = "learned by heart"
ONE_LENGTH = "only dictionaries of one length"
RULE_BUILT_IN = "rule not learned from the data"
HALVES = "sines and cosines in halves"
SINE_COSINE_SWAPPED = "sine and cosine swapped"
OWN_FREQUENCY = "cosine with a frequency of its own"
WRONG_EXPONENT = "wrong exponent"
GROWING_FREQUENCY = "frequencies grow instead of fall"
OFF_BY_ONE = "positions counted from 1"
AGREEMENT = "agreement in place of error"
POSSIBLE_IGNORED = "possible links ignored"
SENTENCE_AVERAGE = "average over sentences"
UNION_SIZE = "wrong denominator"
SURE_NOT_POSSIBLE = "sure links not counted as possible"

EXPLANATIONS: dict[str, tuple[str, str]] = {
    WRONG_AXIS: (
        "The shares do not sum to one along the last axis, but along another.",
        "Each row of scores is to become shares that sum to one. Along which axis does a row run? Use `dim=-1`.",
    ),
    WHOLE_TENSOR: (
        "All entries together sum to one, instead of each row by itself.",
        "Sum over the last axis only, and keep it, so that each row is divided by its own sum.",
    ),
    NO_EXPONENTIAL: (
        "The result is each number divided by the sum, without the exponential.",
        "softmax(x)_i = exp(x_i) / sum_j exp(x_j).",
    ),
    OVERFLOW: (
        "Inputs around 1000 give NaN: their exponential is infinite.",
        "Subtracting one number from a whole row changes nothing in exact arithmetic. Which number makes it safe?",
    ),
    LARGE_INPUTS_LOST: (
        "Adding 1000 to all scores changes the result, though only their differences should count.",
        "A limit such as `clamp`, or a repair of NaN afterwards, forgets which of the large scores is the largest. "
        "Subtract from each row its own maximum instead: that keeps all differences.",
    ),
    FOREIGN_MAXIMUM: (
        "A row far below the others comes out wrong: what was subtracted from it is not its own maximum.",
        "Subtract from each row its own maximum: `x.amax(dim=-1, keepdim=True)`.",
    ),
    NOT_THE_MAXIMUM: (
        "A row that holds -1000, 0 and 1000 comes out wrong: what was subtracted is not the row's maximum.",
        "The mean, the smallest and the first number leave others that are far larger, and their exponential is "
        "infinite. After the right subtraction no number of the row is greater than 0.",
    ),
    MISSING_SCALE: (
        "The dot products go into the softmax as they are.",
        "What is the variance of q·k for d_k independent terms of variance 1? Divide by its square root.",
    ),
    SCALED_BY_D: (
        "The dot products are divided by d_k.",
        "The variance of q·k is d_k: what brings the standard deviation back to 1?",
    ),
    MULTIPLIED: (
        "The dot products are multiplied by the square root of d_k.",
        "Scaling is to make the scores smaller: divide.",
    ),
    WRONG_SIZE: (
        "The dot products are divided by the square root of another size than the width of the keys.",
        "d_k is the number of terms in the sum q·k: the last axis of `q`, not the length and not the width of `v`.",
    ),
    NOT_TRANSPOSED: (
        "The scores are built from the keys as they lie, not from their transpose.",
        "Entry (i, j) is the dot product of query i and key j: `q @ k.transpose(-2, -1)`.",
    ),
    RESHAPED_KEYS: (
        "The keys have the shape of the transpose, but their numbers have been shuffled.",
        "`reshape` and `view` keep the order in memory; `transpose(-2, -1)` exchanges axes.",
    ),
    KEYS_FOR_VALUES: (
        "The output is a weighted sum of the keys.",
        "Keys decide where to look; what is then read there are the values.",
    ),
    QUERIES_FOR_VALUES: (
        "The output is a weighted sum of the queries.",
        "Queries ask, keys answer how well they fit; what is then read are the values.",
    ),
    MASK_IGNORED: (
        "The output is the same with and without the mask.",
        "Fill the scores of hidden keys with -inf before the softmax.",
    ),
    MASK_INVERTED: (
        "Exactly the hidden keys are attended to.",
        "True means: may attend. `masked_fill` fills where its mask is True: fill where ours is False, `~mask`.",
    ),
    MASK_AFTER_SOFTMAX: (
        "Hidden keys get no weight, but the weights of the others no longer sum to one.",
        "Hide the keys before the softmax, so that it shares out the whole among those that are left.",
    ),
    MASK_ZEROES_SCORES: (
        "Hidden keys still get weight: their score is 0, and exp(0) = 1.",
        "Which score has the exponential 0?",
    ),
    LARGE_SCORES: (
        "With small scores the result is right, with scores of some thousands it is not.",
        "The exponential of 1000 is infinite: subtract from each row of scores its maximum, or call `torch.softmax`.",
    ),
    SEES_NOTHING: (
        "A query whose keys are all hidden gets NaN.",
        "softmax of nothing but -inf is 0/0: set those weights to zero afterwards.",
    ),
    EQUAL_WEIGHTS: (
        "A query whose keys are all hidden gets the mean of all values, hidden as they are, instead of zeros.",
        "A large negative number such as -1e9 in every place is the same score everywhere: equal weights. "
        "Fill with -inf, and set the weights of hidden keys to zero afterwards.",
    ),
    READS_HIDDEN: (
        "A query whose keys are all hidden gets something that is not zero.",
        "Set the weights of hidden keys to zero after the softmax, too.",
    ),
    NO_TANH: (
        "There is no tanh between the sum and v.",
        "Without it the score is v·Wq + v·Uk, and the query cannot change which key wins.",
    ),
    TANH_OUTSIDE: (
        "The tanh is applied to the finished score.",
        "It belongs between the sum W q + U k and the product with v.",
    ),
    TANH_OF_PARTS: (
        "The tanh is applied to W q and to U k one by one, and the results are added.",
        "Then the query cannot change which key wins. Add first: tanh(W q + U k).",
    ),
    OTHER_ACTIVATION: ("Another function stands where the paper has tanh.", "Use `torch.tanh`."),
    PRODUCT_FOR_SUM: ("W q and U k are multiplied.", "Additive attention adds them."),
    MATRICES_SWAPPED: ("The queries are multiplied with U, the keys with W.", "W belongs to q, U to k."),
    NO_W_TRANSPOSE: (
        "The vectors are multiplied with the transposed matrices.",
        "Row vectors come first here: W q, for all rows of a tensor at once, is `q @ W.T`.",
    ),
    SOFTMAX_INCLUDED: (
        "The result is already normalised.",
        "Scores are what goes into the softmax: leave it to the next step.",
    ),
    ROWS_ARE_KEYS: (
        "Rows belong to keys and columns to queries.",
        "The result has one row per query: shape (B, T_q, T_k).",
    ),
    OWN_KEY_ONLY: (
        "Query i is compared with key i only.",
        "Every query meets every key: give q and k an axis of length 1 each, and let them broadcast.",
    ),
    HEADS_MIXED: (
        "The shape is right, but numbers of different positions ended up in one head.",
        "`reshape` cannot exchange axes: split or join the width first, and move the head axis with `transpose(1, 2)`.",
    ),
    HEADS_INTERLEAVED: (
        "Head 0 holds every H-th feature.",
        "Head 0 takes the first D/H features, head 1 the next: (h d), not (d h).",
    ),
    TIME_BEFORE_HEADS: (
        "The result is (B, T, H, d).",
        "Each head works on a sequence of its own: the head axis goes before the time axis, `transpose(1, 2)`.",
    ),
    WIDTH_FOR_HEADS: (
        "The number of heads was used as the width of a head.",
        "There are `num_heads` heads, each D / num_heads wide.",
    ),
    SCALED_BY_WIDTH: (
        "The dot products are divided by the square root of D, the width of all heads together.",
        "A head's dot product is a sum of D / H terms, its own width.",
    ),
    ONE_HEAD: (
        "The whole width is one head: there is one set of weights for all numbers.",
        "Each of the `num_heads` heads is D / num_heads wide and has weights of its own: split the width first.",
    ),
    HEADS_AMONG_THEMSELVES: (
        "Within each position, the heads attend to each other; no position sees another.",
        "The last two axes must be positions and width: move the head axis before the time axis, `transpose(1, 2)`.",
    ),
    MAPS_SWAPPED: (
        "Queries, keys and values do not come from the maps of their names.",
        "Queries come from `q_proj`, keys from `k_proj`, values from `v_proj`.",
    ),
    OUTPUT_NOT_MAPPED: (
        "The heads' outputs are returned as they stand side by side.",
        "One map is still to come: `o_proj` mixes what the heads have found.",
    ),
    NOT_NORMALISED: (
        "The annotations are added up with the scores themselves as weights.",
        "Scores become weights through a softmax over the annotations.",
    ),
    PROJECTED_VALUES: (
        "The output is a weighted sum of U h.",
        "U h is only for the scores; what is read are the annotations h themselves.",
    ),
    NOT_LEARNED: (
        "Even the examples of the training are answered about as well as by picking one of the values blindly.",
        "Does the loss fall from step to step? Compare the question with the keys, and only then read the values; "
        "`zero_grad`, `backward` and `step` must all be there.",
    ),
    LEARNED_BY_HEART: (
        "The examples of the training are answered much better than new ones.",
        "A large layer over all rows can remember examples. Let each entry be treated by the same maps, and let a "
        "product of question and key decide which value counts.",
    ),
    ONE_LENGTH: (
        "Dictionaries of the length of the training are answered well, longer ones are not.",
        "Nothing in the module may depend on the number of entries or on their places.",
    ),
    RULE_BUILT_IN: (
        "When the questions are in a secret code, the answers are wrong.",
        "Give the question a table of vectors of its own, apart from that of the keys, so that training can find out "
        "which question belongs to which key.",
    ),
    HALVES: (
        "All sines come first, then all cosines.",
        "PE(pos, 2i) is a sine and PE(pos, 2i+1) a cosine: they alternate, `code[:, 0::2]` and `code[:, 1::2]`.",
    ),
    SINE_COSINE_SWAPPED: ("Cosines stand where sines belong.", "Even columns are sines: position 0 starts with a 0."),
    OWN_FREQUENCY: (
        "Sine and cosine of a pair differ in frequency.",
        "Columns 2i and 2i+1 share the exponent 2i/D: it is a pair that turns together.",
    ),
    WRONG_EXPONENT: (
        "The frequencies fall at another pace than 10000^(-2i/D).",
        "i counts pairs from 0 to D/2 - 1, so the exponent 2i/D runs from 0 up to, but not including, 1.",
    ),
    GROWING_FREQUENCY: (
        "The position is multiplied by 10000^(2i/D).",
        "Divide: the later the column, the slower the wave.",
    ),
    OFF_BY_ONE: ("The first row belongs to position 1.", "Positions count from 0: the first row is 0, 1, 0, 1, ..."),
    AGREEMENT: ("The result is one minus the error rate.", "A perfect alignment has error rate 0."),
    POSSIBLE_IGNORED: (
        "Possible links make no difference.",
        "A predicted link that is only possible is no mistake: |A & P| counts it.",
    ),
    SENTENCE_AVERAGE: (
        "The result is the mean of the sentences' rates.",
        "Add up the numbers of links over all sentences, and divide once.",
    ),
    UNION_SIZE: ("The denominator is not |A| + |S|.", "Sizes are added, not the sets united; P does not enter there."),
    SURE_NOT_POSSIBLE: (
        "A predicted sure link counts only once if it is not also listed as possible.",
        "Every sure link is possible: P contains S.",
    ),
}


def _findings(misconceptions: Iterable[str]) -> list[Finding]:
    return [
        Finding(misconception=name, message=EXPLANATIONS[name][0], hint=EXPLANATIONS[name][1])
        for name in misconceptions
    ]


def _names(options: Mapping[str, Mapping[Any, str | None]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in options.values() for name in part.values() if name))


def _compare(actual: Tensor, wanted: Tensor, mistakes: list[str] | None) -> list[Finding]:
    return [unexplained(actual, wanted)] if mistakes is None else _findings(mistakes)


# softmax(x): over the last axis -----------------------------------------------------------------------------

_SOFTMAX_OPTIONS = {
    "axis": {(-1,): None, (-2,): WRONG_AXIS, (0,): WRONG_AXIS, (0, 1, 2): WHOLE_TENSOR},
    "exponential": {True: None, False: NO_EXPONENTIAL},
    "maximum": {None: None, 0: FOREIGN_MAXIMUM, 1: FOREIGN_MAXIMUM},
}


def _softmax(x: Tensor, *, axis: tuple[int, ...], exponential: bool, maximum: int | None) -> Tensor:
    """Softmax with the mistakes that learners make; the maximum of another axis than the last is no harmless shift."""
    if maximum is not None:
        x = x - x.amax(dim=maximum, keepdim=True)
    numerators = x.exp() if exponential else x
    return numerators / numerators.sum(dim=axis, keepdim=True)


def _check_softmax(probe: Probe) -> list[Finding]:
    x = probe.random(2, 3, 5)
    actual = probe.tensor(x, shape=x.shape)
    mistakes = explain(actual, lambda **choice: _softmax(x, **choice), _SOFTMAX_OPTIONS)
    return _compare(actual, x.softmax(dim=-1), mistakes)


def _check_softmax_is_stable(probe: Probe) -> list[Finding]:
    x = probe.random(2, 3, 5)
    # A mistake that shows with small inputs has its own name: then only NaN and infinity are news.
    known = not _is_softmax(probe.tensor(x, shape=x.shape, finite=False), x)
    large = probe.tensor(1000 + x, shape=x.shape, finite=False)
    if not large.isfinite().all():
        return _findings([OVERFLOW])
    if not (known or _is_softmax(large, 1000 + x)):
        return _findings([LARGE_INPUTS_LOST])
    rows = torch.tensor([-1000.0, 0.0, 1000.0])[:, None]
    for apart in (rows + x, rows[:, None] + probe.random(3, 3, 5)):  # rows far apart along axis 1, along axis 0
        actual = probe.tensor(apart, shape=apart.shape, finite=False)
        if not actual.isfinite().all() or not (known or _is_softmax(actual, apart)):
            return _findings([FOREIGN_MAXIMUM])
    mixed = _mixed_rows(probe)
    actual = probe.tensor(mixed, shape=mixed.shape, finite=False)
    if not actual.isfinite().all() or not (known or _is_softmax(actual, mixed)):
        return _findings([NOT_THE_MAXIMUM])
    return []


def _mixed_rows(probe: Probe) -> Tensor:
    """Rows of -1000, 0 and 1000 twice each, about; in every column there is each of them in some row."""
    places = torch.tensor([-1000.0, 0.0, 1000.0]).repeat(2)[probe.random(6).argsort()]
    rows = torch.stack([places.roll(steps) for steps in range(6)])
    return rows.view(2, 3, 6) + probe.random(2, 3, 6)


def _is_softmax(actual: Tensor, x: Tensor) -> bool:
    return torch.allclose(actual, x.softmax(dim=-1), atol=1e-4)


SOFTMAX = [
    Check(name="shares sum to one along the last axis", detects=_names(_SOFTMAX_OPTIONS), run=_check_softmax),
    Check(
        name="large inputs do no harm",
        detects=(OVERFLOW, LARGE_INPUTS_LOST, FOREIGN_MAXIMUM, NOT_THE_MAXIMUM),
        run=_check_softmax_is_stable,
    ),
]


# scaled_dot_product_attention(q, k, v, mask=None): the output alone -----------------------------------------

_SCORES_OPTIONS = {"scores": {"q k^T": None, "q k": NOT_TRANSPOSED, "reshaped": RESHAPED_KEYS}}
_ATTENTION_OPTIONS = _SCORES_OPTIONS | {
    "scale": {
        "sqrt d": None,
        "none": MISSING_SCALE,
        "d": SCALED_BY_D,
        "inverse": MULTIPLIED,
        "sqrt T_k": WRONG_SIZE,
        "sqrt T_q": WRONG_SIZE,
        "sqrt d_v": WRONG_SIZE,
    },
    "axis": {-1: None, -2: WRONG_AXIS, 0: WRONG_AXIS},
    "read": {"v": None, "k": KEYS_FOR_VALUES, "q": QUERIES_FOR_VALUES},
}
_MASK_OPTIONS = {
    "masking": {
        "before": None,
        "ignored": MASK_IGNORED,
        "inverted": MASK_INVERTED,
        "after": MASK_AFTER_SOFTMAX,
        "inverted after": MASK_INVERTED,
        "zeroed": MASK_ZEROES_SCORES,
    }
}


def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    scores: str = "q k^T",
    scale: str = "sqrt d",
    axis: int = -1,
    read: str = "v",
    masking: str = "before",
) -> Tensor:
    """Attention with the mistakes that learners make."""
    d, num_keys = q.shape[-1], k.shape[-2]
    right = {"q k^T": k.transpose(-2, -1), "q k": k, "reshaped": k.reshape(*k.shape[:-2], d, num_keys)}[scores]
    divisor = {
        "sqrt d": d**0.5,
        "none": 1.0,
        "d": float(d),
        "inverse": d**-0.5,
        "sqrt T_k": num_keys**0.5,
        "sqrt T_q": q.shape[-2] ** 0.5,
        "sqrt d_v": v.shape[-1] ** 0.5,
    }[scale]
    return _weights(q @ right / divisor, mask, masking, axis) @ {"v": v, "k": k, "q": q}[read]


def _weights(scores: Tensor, mask: Tensor | None, masking: str, axis: int | None) -> Tensor:
    """Scores to weights, with the mistakes that learners make; without an axis there is no softmax."""
    if mask is not None and masking in ("before", "inverted"):
        scores = scores.masked_fill(mask if masking == "inverted" else ~mask, float("-inf"))
    if mask is not None and masking == "zeroed":
        scores = scores.masked_fill(~mask, 0.0)
    weights = scores if axis is None else scores.softmax(dim=axis)
    if mask is not None and masking in ("after", "inverted after"):
        weights = weights.masked_fill(mask if masking == "inverted after" else ~mask, 0.0)
    return weights


def _check_attention(probe: Probe) -> list[Finding]:
    q, k, v = probe.random(2, 4, 6), probe.random(2, 5, 6), probe.random(2, 5, 3)
    try:
        actual = probe.tensor(q, k, v)
        mistakes = explain(actual, lambda **choice: _attention(q, k, v, **choice), _ATTENTION_OPTIONS)
        if mistakes is None:
            actual = probe.tensor(q, k, v, shape=(2, 4, 3))
    except Fault:
        # Some mistakes need square matrices to show themselves as what they are.
        square = _explain_square_attention(probe)
        if square:
            return _findings(square)
        raise
    return _compare(actual, _attention(q, k, v), mistakes)


def _explain_square_attention(probe: Probe) -> list[str] | None:
    q, k, v = (probe.random(2, 6, 6) for _ in range(3))
    try:
        actual = probe.tensor(q, k, v, shape=q.shape)
    except Fault:
        return None
    return explain(actual, lambda **choice: _attention(q, k, v, **choice), _ATTENTION_OPTIONS)


_MASK = torch.tensor([[1, 1, 1, 0, 0], [1, 0, 1, 0, 1], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]], dtype=torch.bool)


def _check_attention_mask(probe: Probe) -> list[Finding]:
    q, k, v = probe.random(2, 4, 6), probe.random(2, 5, 6), probe.random(2, 5, 3)
    actual = probe.tensor(q, k, v, mask=_MASK, shape=(2, 4, 3))
    options = _MASK_OPTIONS | _ATTENTION_OPTIONS
    mistakes = explain(actual, lambda **choice: _attention(q, k, v, _MASK, **choice), options)
    return _compare(actual, _attention(q, k, v, _MASK), mistakes)


def _check_large_scores(probe: Probe) -> list[Finding]:
    q, k, v = probe.random(2, 4, 6), probe.random(2, 5, 6), probe.random(2, 5, 3)
    small = probe.tensor(q, k, v, shape=(2, 4, 3), finite=False)
    large = probe.tensor(1000 * q, k, v, shape=(2, 4, 3), finite=False)
    # 32 bits know scores of some thousands to about 0.001, and the weights of two that are almost the same no better
    right = torch.allclose(large, _attention(1000 * q, k, v), atol=1e-2)
    known = not torch.allclose(small, _attention(q, k, v), atol=1e-4)  # then only NaN and infinity are news
    return [] if right or (known and large.isfinite().all()) else _findings([LARGE_SCORES])


def _check_query_that_sees_nothing(probe: Probe) -> list[Finding]:
    q, k, v = probe.random(2, 4, 6), probe.random(2, 5, 6), probe.random(2, 5, 3)
    actual = probe.tensor(q, k, v, mask=_blind(4, 5), shape=(2, 4, 3), finite=False)
    return _blind_findings(actual[:, 1], nothing=torch.zeros(3), everything=v.mean(dim=1))


def _blind(num_queries: int, num_keys: int) -> Tensor:
    """A mask that hides everything from the second query, and from the others nothing."""
    return (torch.arange(num_queries) != 1)[:, None].expand(num_queries, num_keys).clone()


def _blind_findings(blind: Tensor, *, nothing: Tensor, everything: Tensor) -> list[Finding]:
    """What is wrong with the result of a query that sees nothing; `everything` is the result of equal weights."""
    if not blind.isfinite().all():
        return _findings([SEES_NOTHING])
    if torch.allclose(blind, nothing.expand_as(blind), atol=1e-6):
        return []
    return _findings([EQUAL_WEIGHTS if torch.allclose(blind, everything, atol=1e-4) else READS_HIDDEN])


SCALED_DOT_PRODUCT_ATTENTION = [
    Check(
        name="weights softmax(q k^T / sqrt(d)) on the values",
        detects=_names(_ATTENTION_OPTIONS),
        run=_check_attention,
        gate=True,
    ),
    Check(name="hidden keys get no weight", detects=_names(_MASK_OPTIONS), run=_check_attention_mask),
]
LARGE_SCORES_OF_ATTENTION = [Check(name="large scores do no harm", detects=(LARGE_SCORES,), run=_check_large_scores)]
QUERY_THAT_SEES_NOTHING = [
    Check(
        name="a query that sees nothing gets zeros",
        detects=(SEES_NOTHING, EQUAL_WEIGHTS, READS_HIDDEN),
        run=_check_query_that_sees_nothing,
    )
]


# additive_scores(q, k, W, U, v) -----------------------------------------------------------------------------

_ADDITIVE_OPTIONS = {
    "activation": {
        "tanh": None,
        "none": NO_TANH,
        "outside": TANH_OUTSIDE,
        "of parts": TANH_OF_PARTS,
        "sigmoid": OTHER_ACTIVATION,
        "relu": OTHER_ACTIVATION,
    },
    "joined": {"sum": None, "product": PRODUCT_FOR_SUM},
    "normalised": {False: None, True: SOFTMAX_INCLUDED},
    "layout": {"q k": None, "k q": ROWS_ARE_KEYS, "diagonal": OWN_KEY_ONLY},
    "swapped": {False: None, True: MATRICES_SWAPPED},
    "transposed": {False: None, True: NO_W_TRANSPOSE},
}


def _additive(
    q: Tensor,
    k: Tensor,
    W: Tensor,
    U: Tensor,
    v: Tensor,
    *,
    activation: str = "tanh",
    joined: str = "sum",
    normalised: bool = False,
    layout: str = "q k",
    swapped: bool = False,
    transposed: bool = False,
) -> Tensor:
    """Additive scores with the mistakes that learners make."""
    W, U = (U, W) if swapped else (W, U)
    Wq, Uk = (q @ W, k @ U) if transposed else (q @ W.T, k @ U.T)
    if activation == "of parts":
        Wq, Uk = Wq.tanh(), Uk.tanh()
    if layout == "diagonal":
        joint = Wq + Uk if joined == "sum" else Wq * Uk
    else:
        Wq, Uk = Wq[:, :, None], Uk[:, None]
        joint = Wq + Uk if joined == "sum" else Wq * Uk
    inner = {"tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu}.get(activation, lambda x: x)
    scores = inner(joint) @ v
    if activation == "outside":
        scores = scores.tanh()
    if normalised:
        scores = scores.softmax(dim=-1)
    return scores.transpose(1, 2) if layout == "k q" else scores


def _check_additive_scores(probe: Probe) -> list[Finding]:
    sizes = [(2, 4, 3), (2, 5, 6), (7, 3), (7, 6), (7,)]
    inputs = [probe.random(*size) for size in sizes]
    try:
        actual = probe.tensor(*inputs)
        mistakes = explain(actual, lambda **choice: _additive(*inputs, **choice), _ADDITIVE_OPTIONS)
        if mistakes is None:
            actual = probe.tensor(*inputs, shape=(2, 4, 5))
    except Fault:
        square = [probe.random(*size) for size in [(2, 6, 6), (2, 6, 6), (6, 6), (6, 6), (6,)]]
        try:
            actual = probe.tensor(*square)
        except Fault:
            actual = None
        mistakes = None
        if actual is not None:
            mistakes = explain(actual, lambda **choice: _additive(*square, **choice), _ADDITIVE_OPTIONS)
        if not mistakes:
            raise
        return _findings(mistakes)
    return _compare(actual, _additive(*inputs), mistakes)


ADDITIVE_SCORES = [
    Check(
        name="scores v^T tanh(W q + U k) for each query and key",
        detects=_names(_ADDITIVE_OPTIONS),
        run=_check_additive_scores,
    )
]


# additive_attention(q, h, W, U, v, mask=None): the contexts; h are keys and values in one ---------------------

_CONTEXT_OPTIONS = {part: _ADDITIVE_OPTIONS[part] for part in ("activation", "joined", "swapped", "transposed")} | {
    "axis": {-1: None, -2: WRONG_AXIS, None: NOT_NORMALISED},
    "read": {"h": None, "U h": PROJECTED_VALUES},
}


def _context(
    q: Tensor,
    h: Tensor,
    W: Tensor,
    U: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    axis: int | None = -1,
    read: str = "h",
    masking: str = "before",
    **scoring: Any,
) -> Tensor:
    """Additive attention with the mistakes that learners make."""
    scores = _additive(q, h, W, U, v, **scoring)
    return _weights(scores, mask, masking, axis) @ (h if read == "h" else h @ U.T)


_ADDITIVE_SIZES = [(2, 4, 3), (2, 5, 6), (7, 3), (7, 6), (7,)]
_SQUARE_SIZES = [(2, 6, 6), (2, 6, 6), (6, 6), (6, 6), (6,)]


def _check_context(probe: Probe) -> list[Finding]:
    inputs = [probe.random(*size) for size in _ADDITIVE_SIZES]
    try:
        actual = probe.tensor(*inputs)
        mistakes = explain(actual, lambda **choice: _context(*inputs, **choice), _CONTEXT_OPTIONS)
        if mistakes is None:
            actual = probe.tensor(*inputs, shape=(2, 4, 6))
    except Fault:
        # Some mistakes need square matrices to show themselves as what they are.
        square = _explain_square_context(probe)
        if square:
            return _findings(square)
        raise
    return _compare(actual, _context(*inputs), mistakes)


def _explain_square_context(probe: Probe) -> list[str] | None:
    inputs = [probe.random(*size) for size in _SQUARE_SIZES]
    try:
        actual = probe.tensor(*inputs, shape=(2, 6, 6))
    except Fault:
        return None
    return explain(actual, lambda **choice: _context(*inputs, **choice), _CONTEXT_OPTIONS)


def _check_context_mask(probe: Probe) -> list[Finding]:
    inputs = [probe.random(*size) for size in _ADDITIVE_SIZES]
    actual = probe.tensor(*inputs, mask=_MASK, shape=(2, 4, 6))
    mistakes = explain(actual, lambda masking: _context(*inputs, _MASK, masking=masking), _MASK_OPTIONS)
    return _compare(actual, _context(*inputs, _MASK), mistakes)


def _check_context_of_nothing(probe: Probe) -> list[Finding]:
    inputs = [probe.random(*size) for size in _ADDITIVE_SIZES]
    actual = probe.tensor(*inputs, mask=_blind(4, 5), shape=(2, 4, 6), finite=False)
    return _blind_findings(actual[:, 1], nothing=torch.zeros(6), everything=inputs[1].mean(dim=1))


ADDITIVE_ATTENTION = [
    Check(
        name="contexts: annotations weighted by softmax(v^T tanh(W q + U h))",
        detects=_names(_CONTEXT_OPTIONS),
        run=_check_context,
        gate=True,
    ),
    Check(name="hidden annotations get no weight", detects=_names(_MASK_OPTIONS), run=_check_context_mask),
    Check(
        name="a query that sees nothing gets zeros",
        detects=(SEES_NOTHING, EQUAL_WEIGHTS, READS_HIDDEN),
        run=_check_context_of_nothing,
    ),
]


# split_heads(x, num_heads): (B, T, D) to (B, H, T, d); merge_heads(x): back ---------------------------------

_SPLIT_OPTIONS = {
    "way": {
        "right": None,
        "reshape": HEADS_MIXED,
        "interleaved": HEADS_INTERLEAVED,
        "time first": TIME_BEFORE_HEADS,
        "width": WIDTH_FOR_HEADS,
    }
}
_MERGE_OPTIONS = {"way": {"right": None, "reshape": HEADS_MIXED, "interleaved": HEADS_INTERLEAVED}}


def _split(x: Tensor, num_heads: int, way: str = "right") -> Tensor:
    if way == "reshape":
        return x.reshape(x.shape[0], num_heads, x.shape[1], -1)
    pattern, size = {
        "right": ("b t (h d) -> b h t d", {"h": num_heads}),
        "interleaved": ("b t (d h) -> b h t d", {"h": num_heads}),
        "time first": ("b t (h d) -> b t h d", {"h": num_heads}),
        "width": ("b t (h d) -> b h t d", {"d": num_heads}),
    }[way]
    return rearrange(x, pattern, **size)


def _merge(x: Tensor, way: str = "right") -> Tensor:
    if way == "reshape":
        return x.reshape(x.shape[0], x.shape[2], -1)
    return rearrange(x, "b h t d -> b t (h d)" if way == "right" else "b h t d -> b t (d h)")


def _check_split_heads(probe: Probe) -> list[Finding]:
    x, num_heads = probe.random(2, 5, 12), 3
    actual = probe.tensor(x, num_heads)
    mistakes = explain(actual, lambda way: _split(x, num_heads, way), _SPLIT_OPTIONS)
    if mistakes is None:
        actual = probe.tensor(x, num_heads, shape=(2, 3, 5, 4))
    return _compare(actual, _split(x, num_heads), mistakes)


def _check_merge_heads(probe: Probe) -> list[Finding]:
    x = probe.random(2, 3, 5, 4)
    actual = probe.tensor(x, shape=(2, 5, 12))
    return _compare(actual, _merge(x), explain(actual, lambda way: _merge(x, way), _MERGE_OPTIONS))


SPLIT_HEADS = [
    Check(name="head h holds features h d to (h+1) d", detects=_names(_SPLIT_OPTIONS), run=_check_split_heads)
]
MERGE_HEADS = [Check(name="the heads stand side by side again", detects=_names(_MERGE_OPTIONS), run=_check_merge_heads)]


# MultiHeadAttention(dim, num_heads): a module with q_proj, k_proj, v_proj, o_proj; forward(x, mask=None) ------

_HEADS_OPTIONS = {
    "heads": {
        "right": None,
        "reshape": HEADS_MIXED,
        "split by reshape": HEADS_MIXED,
        "joined by reshape": HEADS_MIXED,
        "interleaved": HEADS_INTERLEAVED,
        "split interleaved": HEADS_INTERLEAVED,
        "joined interleaved": HEADS_INTERLEAVED,
        "among themselves": HEADS_AMONG_THEMSELVES,
        "one": ONE_HEAD,
    },
    "scale": {"sqrt d": None, "none": MISSING_SCALE, "sqrt D": SCALED_BY_WIDTH, "d": SCALED_BY_D},
    "axis": {-1: None, -2: WRONG_AXIS},
    "maps": {"qkv": None, "kqv": MAPS_SWAPPED, "qvk": MAPS_SWAPPED, "vkq": MAPS_SWAPPED, "qqq": MAPS_SWAPPED},
    "mapped": {True: None, False: OUTPUT_NOT_MAPPED},
}
_WIDTH, _NUM_HEADS = 12, 3


def projections(probe: Probe, dim: int) -> dict[str, Tensor]:
    """Random weights and biases of the four maps of a layer of this width, by parameter name."""
    shapes = {f"{letter}_proj.{part}": (dim, dim)[:size] for letter in "qkvo" for part, size in _PARTS.items()}
    return {name: dim**-0.5 * probe.random(*shape) for name, shape in shapes.items()}


_PARTS = {"weight": 2, "bias": 1}


def _multi_head(
    x: Tensor,
    parameters: Mapping[str, Tensor],
    num_heads: int,
    mask: Tensor | None = None,
    *,
    heads: str = "right",
    scale: str = "sqrt d",
    axis: int = -1,
    maps: str = "qkv",
    mapped: bool = True,
    masking: str = "before",
) -> Tensor:
    """Multi-head attention with the mistakes that learners make."""

    def mapping(letter: str, x: Tensor) -> Tensor:
        return F.linear(x, parameters[f"{letter}_proj.weight"], parameters[f"{letter}_proj.bias"])

    way = {"reshape": "reshape", "split by reshape": "reshape", "among themselves": "time first"}.get(heads, "right")
    way = "interleaved" if heads in ("interleaved", "split interleaved") else way
    q, k, v = (_split(mapping(letter, x), 1 if heads == "one" else num_heads, way) for letter in maps)
    width, dim = q.shape[-1], x.shape[-1]
    divisor = {"sqrt d": width**0.5, "none": 1.0, "sqrt D": dim**0.5, "d": float(width)}[scale]
    found = _weights(q @ k.transpose(-2, -1) / divisor, mask, masking, axis) @ v
    if heads == "among themselves":
        joined = found.flatten(2)
    else:
        way = "reshape" if heads in ("reshape", "joined by reshape") else "right"
        joined = _merge(found, "interleaved" if heads in ("interleaved", "joined interleaved") else way)
    return mapping("o", joined) if mapped else joined


def _make_layer(probe: Probe) -> tuple[ModuleProbe, dict[str, Tensor], Tensor]:
    layer = probe.make("MultiHeadAttention", _WIDTH, _NUM_HEADS)
    parameters = projections(probe, _WIDTH)
    layer.set_parameters(parameters)
    return layer, parameters, probe.random(2, 5, _WIDTH)


def _check_heads(probe: Probe) -> list[Finding]:
    layer, parameters, x = _make_layer(probe)
    actual = layer.tensor(x, shape=x.shape)

    def build(**choice: Any) -> Tensor:
        return _multi_head(x, parameters, _NUM_HEADS, **choice)

    mistakes = explain(actual, build, _HEADS_OPTIONS, at_most=2)  # trying all would take a second
    return _compare(actual, _multi_head(x, parameters, _NUM_HEADS), mistakes)


def _check_heads_mask(probe: Probe) -> list[Finding]:
    layer, parameters, x = _make_layer(probe)
    mask = torch.eye(5, dtype=torch.bool) | (torch.arange(25).view(5, 5) % 3 == 0)
    actual = layer.tensor(x, mask=mask, shape=x.shape)

    def build(masking: str = "before") -> Tensor:
        return _multi_head(x, parameters, _NUM_HEADS, mask, masking=masking)

    return _compare(actual, build(), explain(actual, build, _MASK_OPTIONS))


def _check_heads_that_see_nothing(probe: Probe) -> list[Finding]:
    layer, parameters, x = _make_layer(probe)
    actual = layer.tensor(x, mask=_blind(5, 5), shape=x.shape, finite=False)
    values = F.linear(x.mean(dim=1), parameters["v_proj.weight"], parameters["v_proj.bias"])
    everything = F.linear(values, parameters["o_proj.weight"], parameters["o_proj.bias"])
    return _blind_findings(actual[:, 1], nothing=parameters["o_proj.bias"], everything=everything)


MULTI_HEAD_ATTENTION = [
    Check(
        name="each head attends in its own slice of the width",
        detects=_names(_HEADS_OPTIONS),
        run=_check_heads,
        gate=True,
    ),
    Check(name="hidden words get no weight, in any head", detects=_names(_MASK_OPTIONS), run=_check_heads_mask),
    Check(
        name="a word that sees nothing gets zeros from every head",
        detects=(SEES_NOTHING, EQUAL_WEIGHTS, READS_HIDDEN),
        run=_check_heads_that_see_nothing,
    ),
]


# sinusoidal_positions(length, dim) --------------------------------------------------------------------------

_POSITION_OPTIONS = {
    "layout": {
        "alternating": None,
        "halves": HALVES,
        "cosine first": SINE_COSINE_SWAPPED,
        "cosine half first": SINE_COSINE_SWAPPED,
    },
    "exponent": {
        "2i/D": None,
        "i/D": WRONG_EXPONENT,
        "4i/D": WRONG_EXPONENT,
        "2i/(D-2)": WRONG_EXPONENT,
        "column/D": OWN_FREQUENCY,
        "2 column/D": OWN_FREQUENCY,
        "-2i/D": GROWING_FREQUENCY,
    },
    "start": {0: None, 1: OFF_BY_ONE},
}


def _positions(length: int, dim: int, *, layout: str, exponent: str, start: int) -> Tensor:
    """Sinusoids with the mistakes that learners make."""
    pair = torch.arange(dim // 2, dtype=torch.float64)
    sine, cosine = {
        "2i/D": (2 * pair / dim, 2 * pair / dim),
        "i/D": (pair / dim, pair / dim),
        "4i/D": (4 * pair / dim, 4 * pair / dim),
        "2i/(D-2)": (2 * pair / (dim - 2), 2 * pair / (dim - 2)),
        "column/D": (2 * pair / dim, (2 * pair + 1) / dim),
        "2 column/D": (4 * pair / dim, 2 * (2 * pair + 1) / dim),
        "-2i/D": (-2 * pair / dim, -2 * pair / dim),
    }[exponent]
    position = torch.arange(start, start + length, dtype=torch.float64)[:, None]
    waves = [(position * 10_000.0**-sine).sin(), (position * 10_000.0**-cosine).cos()]
    if layout.startswith("cosine"):
        waves.reverse()
    together = torch.cat(waves, dim=-1) if "hal" in layout else torch.stack(waves, dim=-1).flatten(1)
    return together.float()


def _check_positions(probe: Probe) -> list[Finding]:
    length, dim = 7, 12
    actual = probe.tensor(length, dim, shape=(length, dim))
    wanted = sinusoidal_positions(length, dim)
    if torch.allclose(actual, wanted, atol=1e-4):
        return []
    # float32 knows the sine of a large angle, which growing frequencies bring, to about three digits
    mistakes = explain(actual, lambda **choice: _positions(length, dim, **choice), _POSITION_OPTIONS, tolerance=2e-3)
    return _compare(actual, wanted, mistakes or None)


SINUSOIDAL_POSITIONS = [
    Check(name="PE(pos, 2i) and PE(pos, 2i+1)", detects=_names(_POSITION_OPTIONS), run=_check_positions)
]


# alignment_error_rate(predicted, sure, possible): three lists with one set of links per sentence -------------------

_ALIGNMENTS = (
    [{(0, 0), (1, 2), (2, 1), (3, 3)}, {(0, 0), (1, 1)}, {(0, 1), (1, 0), (2, 2)}],
    [{(0, 0), (1, 2), (3, 3)}, {(0, 0)}, {(0, 0), (1, 0), (2, 2), (3, 3), (4, 4)}],
    [{(2, 1), (2, 2)}, {(1, 1), (0, 0)}, {(2, 2), (4, 3)}],
)
_RATE_OPTIONS = {
    "possible": {"with sure": None, "as given": SURE_NOT_POSSIBLE, "ignored": POSSIBLE_IGNORED},
    "size": {"sum": None, "union": UNION_SIZE, "with possible": UNION_SIZE},
    "agreement": {False: None, True: AGREEMENT},
    "averaged": {False: None, True: SENTENCE_AVERAGE},
}


def _rate(*, possible: str, size: str, agreement: bool, averaged: bool) -> Tensor:
    """The alignment error rate with the mistakes that learners make."""
    counts = [list(_counts(*sentence, possible, size)) for sentence in zip(*_ALIGNMENTS, strict=True)]
    if not averaged:
        counts = [[sum(column) for column in zip(*counts, strict=True)]]
    agreed = torch.tensor([agreed / size for agreed, size in counts]).mean()
    return agreed if agreement else 1 - agreed


def _counts(predicted: set, sure: set, listed: set, possible: str, size: str) -> Iterator[int]:
    allowed = {"with sure": listed | sure, "as given": listed, "ignored": sure}[possible]
    yield len(predicted & sure) + len(predicted & allowed)
    yield {
        "sum": len(predicted) + len(sure),
        "union": len(predicted | sure),
        "with possible": len(predicted) + len(allowed),
    }[size]


def _check_alignment_error_rate(probe: Probe) -> list[Finding]:
    predicted, sure, possible = ([set(links) for links in part] for part in _ALIGNMENTS)
    actual = torch.tensor(probe.number(predicted, sure, possible))
    wanted = torch.tensor(alignment_error_rate(*_ALIGNMENTS))
    return _compare(actual, wanted, explain(actual, _rate, _RATE_OPTIONS))


ALIGNMENT_ERROR_RATE = [
    Check(name="1 - (|A & S| + |A & P|) / (|A| + |S|)", detects=_names(_RATE_OPTIONS), run=_check_alignment_error_rate)
]


# train(inputs, targets): a module that looks up answers in small dictionaries -------------------------------

SYMBOLS = 8
_ENTRIES, _EXAMPLES, _QUESTIONS = 5, 300, 500


def dictionaries(
    probe: Probe, count: int, entries: int = _ENTRIES, *, code: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Dictionaries with a question, (count, 1 + entries, 2), and their answers, (count,).

    Row 0 holds the question and an 8, the other rows a key and its value. Keys of one dictionary differ; `code` maps
    each key to the symbol that asks for it, itself if left out.
    """
    keys = probe.random(count, SYMBOLS).argsort(dim=1)[:, :entries]
    values = probe.integers(0, SYMBOLS, count, entries)
    asked = probe.integers(0, entries, count, 1)
    questions = keys.gather(1, asked)
    questions = questions if code is None else code[questions]
    head = torch.stack([questions, torch.full_like(questions, SYMBOLS)], dim=2)
    return torch.cat([head, torch.stack([keys, values], dim=2)], dim=1), values.gather(1, asked)[:, 0]


def secret_code(probe: Probe) -> Tensor:
    """For each key the symbol that asks for it, never the key itself."""
    ring = probe.random(SYMBOLS).argsort()
    return torch.empty_like(ring).scatter(0, ring, ring.roll(1))


def share_right(model: ModuleProbe, inputs: Tensor, targets: Tensor) -> float:
    """The share of examples whose largest score stands at the target, from 0 to 1; a Fault for no such scores."""
    scores = model.tensor(inputs, shape=(len(inputs), SYMBOLS))
    return (scores.argmax(dim=1) == targets).float().mean().item()


def _check_look_up(probe: Probe) -> list[Finding]:
    examples = dictionaries(probe, _EXAMPLES)
    model = probe.make("train", *examples)
    new = share_right(model, *dictionaries(probe, _QUESTIONS))
    if new < 0.95:
        known = share_right(model, *examples)
        return _findings([LEARNED_BY_HEART if known > new + 0.2 else NOT_LEARNED])
    try:
        longer = share_right(model, *dictionaries(probe, _QUESTIONS, SYMBOLS))
    except Fault:
        longer = 0.0
    return _findings([ONE_LENGTH] if longer < 0.9 else [])


def _check_rule_is_learned(probe: Probe) -> list[Finding]:
    code = secret_code(probe)
    model = probe.make("train", *dictionaries(probe, _EXAMPLES, code=code))
    new = share_right(model, *dictionaries(probe, _QUESTIONS, code=code))
    return _findings([RULE_BUILT_IN] if new < 0.95 else [])


LOOK_UP = [
    Check(
        name="new dictionaries are answered, longer ones too",
        detects=(NOT_LEARNED, LEARNED_BY_HEART, ONE_LENGTH),
        run=_check_look_up,
        gate=True,
    ),
    Check(name="the rule comes from the data", detects=(RULE_BUILT_IN,), run=_check_rule_is_learned),
]
