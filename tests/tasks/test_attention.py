import math

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange

from course_lib.functional.attention import additive_scores, attention, readable_attention
from course_lib.functional.metrics import alignment_error_rate
from course_lib.functional.positions import sinusoidal_positions
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.tasks import attention as checks
from course_lib.tasks import run_checks
from course_lib.tasks.core import (
    NOT_FINITE,
    OTHER_PARAMETERS,
    STOPPED,
    UNEXPLAINED,
    WRONG_SHAPE,
    WRONG_TYPE,
    Probe,
)

INF = float("inf")
SEEDS = range(3)


def misconceptions(function, given, seed=0):
    return sorted(run_checks(function, given, seed=seed).misconceptions)


# softmax ------------------------------------------------------------------------------------------


def naive(x, dim=-1):
    return x.exp() / x.exp().sum(dim=dim, keepdim=True)


def shifted(x, maximum):
    numerators = (x - maximum).exp()
    return numerators / numerators.sum(-1, keepdim=True)


SOFTMAXES = [
    (lambda x: F.softmax(x, dim=-1), []),
    (lambda x: shifted(x, x.amax(-1, keepdim=True)), []),
    (lambda x: x.softmax(dim=1), [checks.WRONG_AXIS]),
    (lambda x: x.softmax(dim=0), [checks.WRONG_AXIS]),
    (lambda x: x.flatten().softmax(0).view_as(x), [checks.WHOLE_TENSOR]),
    (lambda x: x / x.sum(-1, keepdim=True), [checks.NO_EXPONENTIAL]),
    (naive, [checks.OVERFLOW]),
    (lambda x: naive(x, 1), [checks.OVERFLOW, checks.WRONG_AXIS]),
    (lambda x: naive(x.clamp(max=80)), [checks.LARGE_INPUTS_LOST]),
    (lambda x: naive(x).nan_to_num(), [checks.LARGE_INPUTS_LOST]),
    (lambda x: x.clamp(max=80).softmax(dim=1), [checks.WRONG_AXIS]),
    (lambda x: shifted(x, x.max()).nan_to_num(), [checks.FOREIGN_MAXIMUM]),
    (lambda x: shifted(x, x.max()), [checks.FOREIGN_MAXIMUM]),
    (lambda x: shifted(x, x.amax(0)), [checks.FOREIGN_MAXIMUM]),
    (lambda x: shifted(x, x.amax(1, keepdim=True)), [checks.FOREIGN_MAXIMUM]),
    (lambda x: shifted(x, x.mean(-1, keepdim=True)), [checks.NOT_THE_MAXIMUM]),
    (lambda x: shifted(x, x.amin(-1, keepdim=True)), [checks.NOT_THE_MAXIMUM]),
    (lambda x: shifted(x, x[..., :1]), [checks.NOT_THE_MAXIMUM]),
    (lambda x: shifted(x, x[..., -1:]), [checks.NOT_THE_MAXIMUM]),
    (lambda x: shifted(x, x.mean(-1, keepdim=True)).nan_to_num(), [checks.NOT_THE_MAXIMUM]),
    (lambda x: x.log_softmax(-1), [UNEXPLAINED]),
    (lambda x: x.softmax(-1).sum(-1), [WRONG_SHAPE]),
    (lambda x: (x.softmax(-1), x), [WRONG_TYPE]),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("function", "wanted"), SOFTMAXES)
def test_softmax(function, wanted, seed):
    assert misconceptions(function, checks.SOFTMAX, seed) == sorted(wanted)


def test_what_the_checks_of_softmax_say_needs_no_attention():
    for name in {name for check in checks.SOFTMAX for name in check.detects}:
        words = " ".join((name, *checks.EXPLANATIONS[name])).lower()
        assert not any(word in words for word in ("quer", "key", "value", "attention")), words


# scaled dot-product attention ---------------------------------------------------------------------


def learner(
    *,
    scale=lambda q, k, v: q.shape[-1] ** 0.5,
    scores=lambda q, k: q @ k.transpose(-2, -1),
    axis=-1,
    hide=lambda scores, mask: scores.masked_fill(~mask, -INF),
    hide_weights=lambda weights, mask: weights,
    read=lambda q, k, v: v,
):
    """An attention as a learner writes it; each part can be replaced by a mistake."""

    def scaled_dot_product_attention(q, k, v, mask=None):
        s = scores(q, k) / scale(q, k, v)
        if mask is not None:
            s = hide(s, mask)
        weights = s.softmax(dim=axis)
        if mask is not None:
            weights = hide_weights(weights, mask)
        return weights @ read(q, k, v)

    return scaled_dot_product_attention


def no_hiding(scores, mask):
    return scores


def zero_hidden(weights, mask):
    return weights * mask


ATTENTIONS = [
    (learner(), []),
    (attention, []),
    (lambda *tensors, **mask: readable_attention(*tensors, **mask)[0], []),
    (readable_attention, [WRONG_TYPE]),
    (learner(hide=lambda s, m: s.masked_fill(m == 0, -1e9)), []),
    (learner(hide=lambda s, m: s + torch.where(m, 0.0, -INF)), []),
    (learner(scale=lambda q, k, v: 1), [checks.MISSING_SCALE]),
    (learner(scale=lambda q, k, v: q.shape[-1]), [checks.SCALED_BY_D]),
    (learner(scale=lambda q, k, v: q.shape[-1] ** -0.5), [checks.MULTIPLIED]),
    (learner(scale=lambda q, k, v: k.shape[1] ** 0.5), [checks.WRONG_SIZE]),
    (learner(scale=lambda q, k, v: v.shape[-1] ** 0.5), [checks.WRONG_SIZE]),
    (learner(axis=-2), [checks.WRONG_AXIS]),
    (learner(axis=0), [checks.WRONG_AXIS]),
    (learner(scores=lambda q, k: q @ k), [checks.NOT_TRANSPOSED]),
    (learner(scores=lambda q, k: torch.einsum("bij,bjk->bik", q, k)), [checks.NOT_TRANSPOSED]),
    (
        learner(scores=lambda q, k: q @ k.reshape(k.shape[0], k.shape[2], k.shape[1])),
        [checks.RESHAPED_KEYS],
    ),
    (learner(read=lambda q, k, v: k), [checks.KEYS_FOR_VALUES]),
    (learner(read=lambda q, k, v: q), [checks.QUERIES_FOR_VALUES]),
    (learner(hide=no_hiding), [checks.MASK_IGNORED]),
    (learner(hide=lambda s, m: s.masked_fill(m, -INF)), [checks.MASK_INVERTED]),
    (learner(hide=no_hiding, hide_weights=zero_hidden), [checks.MASK_AFTER_SOFTMAX]),
    (learner(hide=no_hiding, hide_weights=lambda w, m: w.masked_fill(m, 0)), [checks.MASK_INVERTED]),
    (learner(hide=lambda s, m: s * m), [checks.MASK_ZEROES_SCORES]),
    (learner(hide=no_hiding, hide_weights=lambda w, m: w.masked_fill(~m, -INF)), [NOT_FINITE]),
    (lambda q, k, v: attention(q, k, v), [STOPPED]),
    (learner(scores=lambda q, k: q @ k.permute(2, 1, 0)), [STOPPED]),
    (lambda q, k, v, mask=None: v, [WRONG_SHAPE]),
    (lambda q, k, v, mask=None: 2 * attention(q, k, v, mask=mask), [UNEXPLAINED]),
    # two mistakes, two names
    (learner(axis=-2, scale=lambda q, k, v: 1), [checks.MISSING_SCALE, checks.WRONG_AXIS]),
    (learner(scores=lambda q, k: q @ k, scale=lambda q, k, v: 1), [checks.MISSING_SCALE, checks.NOT_TRANSPOSED]),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("function", "wanted"), ATTENTIONS)
def test_scaled_dot_product_attention(function, wanted, seed):
    assert misconceptions(function, checks.SCALED_DOT_PRODUCT_ATTENTION, seed) == sorted(wanted)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (attention, []),
        (lambda *tensors, **mask: readable_attention(*tensors, **mask)[0], []),
        (readable_attention, [WRONG_TYPE]),
        (learner(hide_weights=lambda w, m: w.masked_fill(~m, 0)), []),
        (learner(), [checks.SEES_NOTHING]),
        (learner(hide=lambda s, m: s.masked_fill(~m, -1e9)), [checks.EQUAL_WEIGHTS]),
        (learner(hide=lambda s, m: s + torch.where(m, 0.0, -100.0)), [checks.READS_HIDDEN]),
    ],
)
def test_query_that_sees_nothing(function, wanted):
    assert misconceptions(function, checks.QUERY_THAT_SEES_NOTHING) == wanted


def attention_with(softmax):
    return lambda q, k, v, mask=None: softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5) @ v


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (attention, []),
        (attention_with(naive), [checks.LARGE_SCORES]),
        (attention_with(lambda s: shifted(s, s.mean(-1, keepdim=True))), [checks.LARGE_SCORES]),
        (attention_with(lambda s: naive(s.clamp(max=80))), [checks.LARGE_SCORES]),
        (learner(axis=-2), []),  # that mistake has its own name
        (lambda q, k, v, mask=None: naive(q @ k.transpose(-2, -1)) @ v, [checks.LARGE_SCORES]),
    ],
)
def test_large_scores(function, wanted, seed):
    assert misconceptions(function, checks.LARGE_SCORES_OF_ATTENTION, seed) == wanted


# additive scores ----------------------------------------------------------------------------------


def joint(q, k, W, U):
    return (q @ W.T)[:, :, None] + (k @ U.T)[:, None]


ADDITIVE = [
    (additive_scores, []),
    (lambda q, k, W, U, v: joint(q, k, W, U) @ v, [checks.NO_TANH]),
    (lambda q, k, W, U, v: (joint(q, k, W, U) @ v).tanh(), [checks.TANH_OUTSIDE]),
    (lambda q, k, W, U, v: ((q @ W.T).tanh()[:, :, None] + (k @ U.T).tanh()[:, None]) @ v, [checks.TANH_OF_PARTS]),
    (lambda q, k, W, U, v: joint(q, k, W, U).sigmoid() @ v, [checks.OTHER_ACTIVATION]),
    (lambda q, k, W, U, v: joint(q, k, W, U).relu() @ v, [checks.OTHER_ACTIVATION]),
    (lambda q, k, W, U, v: ((q @ W.T)[:, :, None] * (k @ U.T)[:, None]).tanh() @ v, [checks.PRODUCT_FOR_SUM]),
    (lambda q, k, W, U, v: additive_scores(q, k, W, U, v).softmax(-1), [checks.SOFTMAX_INCLUDED]),
    (lambda q, k, W, U, v: additive_scores(q, k, W, U, v).transpose(1, 2), [checks.ROWS_ARE_KEYS]),
    (lambda q, k, W, U, v: (q @ W.T + k @ U.T).tanh() @ v, [checks.OWN_KEY_ONLY]),
    (lambda q, k, W, U, v: joint(q, k, U, W).tanh() @ v, [checks.MATRICES_SWAPPED]),
    (lambda q, k, W, U, v: joint(q, k, W.T, U.T).tanh() @ v, [checks.NO_W_TRANSPOSE]),
    (lambda q, k, W, U, v: joint(q, k, W, U).tanh(), [WRONG_SHAPE]),
    (lambda q, k, W, U, v: q @ k, [STOPPED]),
    (lambda q, k, W, U, v: (additive_scores(q, k, W, U, v), v), [WRONG_TYPE]),
    (lambda q, k, W, U, v: joint(q, k, W, U).sin() @ v, [UNEXPLAINED]),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("function", "wanted"), ADDITIVE)
def test_additive_scores(function, wanted, seed):
    assert misconceptions(function, checks.ADDITIVE_SCORES, seed) == wanted


# additive attention -------------------------------------------------------------------------------


def contexts(*, score=lambda joint, v: joint.tanh() @ v, axis=-1, hide=None, hide_weights=None, read=lambda h, Uh: h):
    """An additive attention as a learner writes it; each part can be replaced by a mistake."""
    hide = hide or (lambda scores, mask: scores.masked_fill(~mask, -INF))
    hide_weights = hide_weights or (lambda weights, mask: weights.masked_fill(~mask, 0))

    def additive_attention(q, h, W, U, v, mask=None):
        scores = score(joint(q, h, W, U), v)
        if mask is not None:
            scores = hide(scores, mask)
        weights = scores.softmax(dim=axis) if axis is not None else scores
        if mask is not None:
            weights = hide_weights(weights, mask)
        return weights @ read(h, h @ U.T)

    return additive_attention


def keep(weights, mask):
    return weights


def no_blind(weights, mask):
    """Zeros for queries that see nothing, and for nobody else."""
    return weights * mask.any(dim=-1, keepdim=True)


CONTEXTS = [
    (contexts(), []),
    (contexts(hide=lambda s, m: s.masked_fill(~m, -1e9)), []),
    (contexts(score=lambda joint, v: joint @ v), [checks.NO_TANH]),
    (contexts(score=lambda joint, v: (joint @ v).tanh()), [checks.TANH_OUTSIDE]),
    (
        lambda q, h, W, U, v, mask=None: (
            (((q @ W.T).tanh()[:, :, None] + (h @ U.T).tanh()[:, None]) @ v).softmax(dim=-1) @ h
        ),
        [checks.TANH_OF_PARTS],
    ),
    (contexts(score=lambda joint, v: joint.sigmoid() @ v), [checks.OTHER_ACTIVATION]),
    (
        lambda q, h, W, U, v, mask=None: (((q @ W.T)[:, :, None] * (h @ U.T)[:, None]).tanh() @ v).softmax(dim=-1) @ h,
        [checks.PRODUCT_FOR_SUM],
    ),
    (lambda q, h, W, U, v, mask=None: contexts()(q, h, U, W, v, mask), [checks.MATRICES_SWAPPED]),
    (lambda q, h, W, U, v, mask=None: contexts()(q, h, W.T, U.T, v, mask), [checks.NO_W_TRANSPOSE]),
    (contexts(axis=-2), [checks.WRONG_AXIS]),
    (contexts(axis=None), [checks.NOT_NORMALISED]),
    (contexts(read=lambda h, Uh: Uh), [checks.PROJECTED_VALUES]),
    (contexts(hide=keep, hide_weights=keep), [checks.READS_HIDDEN, checks.MASK_IGNORED]),
    (contexts(hide=keep, hide_weights=no_blind), [checks.MASK_IGNORED]),
    (contexts(hide=lambda s, m: s.masked_fill(m, -INF), hide_weights=no_blind), [checks.MASK_INVERTED]),
    (contexts(hide=keep), [checks.MASK_AFTER_SOFTMAX]),
    (contexts(hide=lambda s, m: s * m, hide_weights=no_blind), [checks.MASK_ZEROES_SCORES]),
    (contexts(hide_weights=keep), [checks.SEES_NOTHING]),
    (contexts(hide=lambda s, m: s.masked_fill(~m, -1e9), hide_weights=keep), [checks.EQUAL_WEIGHTS]),
    (contexts(hide=lambda s, m: s + torch.where(m, 0.0, -100.0), hide_weights=keep), [checks.READS_HIDDEN]),
    (lambda q, h, W, U, v, mask=None: additive_scores(q, h, W, U, v), [WRONG_SHAPE]),
    (lambda q, h, W, U, v, mask=None: 2 * contexts()(q, h, W, U, v, mask), [UNEXPLAINED]),
    (lambda q, h, W, U, v: contexts()(q, h, W, U, v), [STOPPED]),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("function", "wanted"), CONTEXTS)
def test_additive_attention(function, wanted, seed):
    assert misconceptions(function, checks.ADDITIVE_ATTENTION, seed) == sorted(wanted)


# heads --------------------------------------------------------------------------------------------

SPLITS = [
    (lambda x, h: x.reshape(*x.shape[:2], h, -1).transpose(1, 2), []),
    (lambda x, h: rearrange(x, "b t (h d) -> b h t d", h=h), []),
    (lambda x, h: x.reshape(x.shape[0], h, x.shape[1], -1), [checks.HEADS_MIXED]),
    (lambda x, h: rearrange(x, "b t (d h) -> b h t d", h=h), [checks.HEADS_INTERLEAVED]),
    (lambda x, h: x.reshape(*x.shape[:2], h, -1), [checks.TIME_BEFORE_HEADS]),
    (lambda x, h: rearrange(x, "b t (h d) -> b h t d", d=h), [checks.WIDTH_FOR_HEADS]),
    (lambda x, h: x, [WRONG_SHAPE]),
    (lambda x, h: x.view(x.shape[0], h, 7, -1), [STOPPED]),
    (lambda x, h: rearrange(x, "b t (h d) -> b h t d", h=h).flip(1), [UNEXPLAINED]),
]
MERGES = [
    (lambda x: x.transpose(1, 2).flatten(2), []),
    (lambda x: x.reshape(x.shape[0], x.shape[2], -1), [checks.HEADS_MIXED]),
    (lambda x: rearrange(x, "b h t d -> b t (d h)"), [checks.HEADS_INTERLEAVED]),
    (lambda x: x.transpose(1, 2).view(x.shape[0], x.shape[2], -1), [STOPPED]),
    (lambda x: x.transpose(1, 2), [WRONG_SHAPE]),
    (lambda x: x.transpose(1, 2).flatten(2).flip(1), [UNEXPLAINED]),
]


@pytest.mark.parametrize(("function", "wanted"), SPLITS)
def test_split_heads(function, wanted):
    assert misconceptions(function, checks.SPLIT_HEADS) == wanted


@pytest.mark.parametrize(("function", "wanted"), MERGES)
def test_merge_heads(function, wanted):
    assert misconceptions(function, checks.MERGE_HEADS) == wanted


# a multi-head module ------------------------------------------------------------------------------


class Heads(MultiHeadAttention):
    """Multi-head attention as a learner writes it; each part can be replaced by a mistake."""

    split = "b t (h d) -> b h t d"
    joined = "b h t d -> b t (h d)"
    maps = "qkv"

    def forward(self, x, mask=None):
        q, k, v = (self.to_heads(getattr(self, f"{letter}_proj")(x)) for letter in self.maps)
        scores = q @ k.mT / self.root(x.shape[-1], q.shape[-1])
        if mask is not None:
            scores = self.hide(scores, mask)
        weights = self.normalise(scores)
        if mask is not None:
            weights = self.hide_weights(weights, mask)
        return self.output(self.from_heads(weights @ v))

    def to_heads(self, x):
        return rearrange(x, self.split, h=self.num_heads)

    def from_heads(self, x):
        return rearrange(x, self.joined)

    def root(self, width, head_width):
        return head_width**0.5

    def normalise(self, scores):
        return scores.softmax(dim=-1)

    def hide(self, scores, mask):
        return scores.masked_fill(~mask, -INF)

    def hide_weights(self, weights, mask):
        return weights.masked_fill(~mask, 0)

    def output(self, x):
        return self.o_proj(x)


def heads(**parts):
    """A class of heads with these parts replaced."""
    return type("Heads", (Heads,), parts)


def unsplit(self, x):
    return x.reshape(x.shape[0], self.num_heads, x.shape[1], -1)


def unjoin(self, x):
    return x.reshape(x.shape[0], x.shape[2], -1)


def unhidden(self, scores, mask):
    return scores


def kept(self, weights, mask):
    return weights


INTERLEAVED, BACK = "b t (d h) -> b h t d", "b h t d -> b t (d h)"
LAYERS = [
    (MultiHeadAttention, []),
    (Heads, []),
    (heads(hide=lambda self, s, m: s + torch.where(m, 0.0, -1e9)), []),
    (heads(to_heads=unsplit, from_heads=unjoin), [checks.HEADS_MIXED]),
    (heads(to_heads=unsplit), [checks.HEADS_MIXED]),
    (heads(from_heads=unjoin), [checks.HEADS_MIXED]),
    (heads(split=INTERLEAVED, joined=BACK), [checks.HEADS_INTERLEAVED]),
    (heads(split=INTERLEAVED), [checks.HEADS_INTERLEAVED]),
    (heads(joined=BACK), [checks.HEADS_INTERLEAVED]),
    (heads(split="b t (h d) -> b t h d", joined="b t h d -> b t (h d)"), [checks.HEADS_AMONG_THEMSELVES]),
    (heads(split="b t (h d) -> b 1 t (h d)"), [checks.ONE_HEAD]),
    (heads(root=lambda self, width, head_width: 1), [checks.MISSING_SCALE]),
    (heads(root=lambda self, width, head_width: width**0.5), [checks.SCALED_BY_WIDTH]),
    (heads(root=lambda self, width, head_width: head_width), [checks.SCALED_BY_D]),
    (heads(normalise=lambda self, scores: scores.softmax(dim=-2)), [checks.WRONG_AXIS]),
    (heads(maps="kqv"), [checks.MAPS_SWAPPED]),
    (heads(maps="qvk"), [checks.MAPS_SWAPPED]),
    (heads(maps="qqq"), [checks.MAPS_SWAPPED]),
    (heads(output=lambda self, x: x), [checks.OUTPUT_NOT_MAPPED]),
    (heads(hide=unhidden, hide_weights=kept), [checks.MASK_IGNORED, checks.READS_HIDDEN]),
    (heads(hide=unhidden, hide_weights=lambda self, w, m: no_blind(w, m)), [checks.MASK_IGNORED]),
    (
        heads(hide=lambda self, s, m: s.masked_fill(m, -INF), hide_weights=lambda self, w, m: no_blind(w, m)),
        [checks.MASK_INVERTED],
    ),
    (heads(hide=unhidden), [checks.MASK_AFTER_SOFTMAX]),
    (heads(hide=lambda self, s, m: s * m, hide_weights=lambda self, w, m: no_blind(w, m)), [checks.MASK_ZEROES_SCORES]),
    (heads(hide_weights=kept), [checks.SEES_NOTHING]),
    (heads(hide=lambda self, s, m: s.masked_fill(~m, -1e9), hide_weights=kept), [checks.EQUAL_WEIGHTS]),
    (heads(hide=lambda self, s, m: s + torch.where(m, 0.0, -100.0), hide_weights=kept), [checks.READS_HIDDEN]),
    (heads(output=lambda self, x: 2 * self.o_proj(x)), [UNEXPLAINED]),
    (lambda dim, num_heads: MultiHeadAttention(dim, num_heads, bias=False), [OTHER_PARAMETERS]),
    (lambda dim, num_heads: torch.nn.MultiheadAttention(dim, num_heads), [OTHER_PARAMETERS]),
    (lambda dim, num_heads: MultiHeadAttention(num_heads, dim), [STOPPED]),
    (lambda dim, num_heads: None, [WRONG_TYPE]),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("layer", "wanted"), LAYERS)
def test_multi_head_attention(layer, wanted, seed):
    assert misconceptions(layer, checks.MULTI_HEAD_ATTENTION, seed) == sorted(wanted)


# positions ----------------------------------------------------------------------------------------


def positions(*, start=0, exponent=lambda column, dim: (column - column % 2) / dim, even=math.sin, odd=math.cos):
    """Sinusoids written as two loops; each part can be replaced by a mistake."""

    def sinusoidal(length, dim):
        table = torch.zeros(length, dim)
        for row in range(length):
            for column in range(dim):
                angle = (row + start) / 10_000 ** exponent(column, dim)
                table[row, column] = even(angle) if column % 2 == 0 else odd(angle)
        return table

    return sinusoidal


def halves(length, dim):
    table = sinusoidal_positions(length, dim)
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


def in_float32(length, dim):
    angle = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, dim, 2) / dim)
    table = torch.zeros(length, dim)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


POSITIONS = [
    (sinusoidal_positions, []),
    (positions(), []),
    (in_float32, []),
    (halves, [checks.HALVES]),
    (positions(even=math.cos, odd=math.sin), [checks.SINE_COSINE_SWAPPED]),
    (lambda n, d: halves(n, d).roll(d // 2, 1), [checks.SINE_COSINE_SWAPPED]),
    (positions(exponent=lambda column, dim: column / dim), [checks.OWN_FREQUENCY]),
    (positions(exponent=lambda column, dim: 2 * column / dim), [checks.OWN_FREQUENCY]),
    (positions(exponent=lambda column, dim: column // 2 / dim), [checks.WRONG_EXPONENT]),
    (positions(exponent=lambda column, dim: column // 2 * 4 / dim), [checks.WRONG_EXPONENT]),
    (positions(exponent=lambda column, dim: column // 2 * 2 / (dim - 2)), [checks.WRONG_EXPONENT]),
    (positions(exponent=lambda column, dim: -(column // 2) * 2 / dim), [checks.GROWING_FREQUENCY]),
    (positions(start=1), [checks.OFF_BY_ONE]),
    (lambda n, d: halves(n + 1, d)[1:], [checks.HALVES, checks.OFF_BY_ONE]),
    (lambda n, d: sinusoidal_positions(n, d).T, [WRONG_SHAPE]),
    (lambda n, d: sinusoidal_positions(n, d) * 2, [UNEXPLAINED]),
    (lambda n: None, [STOPPED]),
]


@pytest.mark.parametrize(("function", "wanted"), POSITIONS)
def test_sinusoidal_positions(function, wanted):
    assert misconceptions(function, checks.SINUSOIDAL_POSITIONS) == sorted(wanted)


# look-up ------------------------------------------------------------------------------------------


class LookUp(torch.nn.Module):
    """Finds the question among the keys; each part can be replaced by a mistake."""

    def __init__(self):
        super().__init__()
        self.queries, self.keys, self.values = (torch.nn.Embedding(8, 16) for _ in range(3))
        self.head = torch.nn.Linear(16, 8)

    def forward(self, inputs):
        weights = (self.queries(inputs[:, :1, 0]) @ self.look_at(inputs).mT / 4).softmax(dim=-1)
        return self.head(weights @ self.values(inputs[:, 1:, 1]))[:, 0]

    def look_at(self, inputs):
        return self.keys(inputs[:, 1:, 0])


class WithPlaces(LookUp):
    def __init__(self):
        super().__init__()
        self.places = torch.nn.Parameter(torch.zeros(5, 16))

    def look_at(self, inputs):
        return super().look_at(inputs) + self.places


class LosesItself(LookUp):
    """Longer dictionaries are taken, and answered wrong."""

    def look_at(self, inputs):
        return super().look_at(inputs) * (inputs.shape[1] == 6)


class Average(LookUp):
    def look_at(self, inputs):
        return 0 * super().look_at(inputs)


class ByHeart(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(108, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))

    def forward(self, inputs):
        return super().forward(F.one_hot(inputs, 9).float().flatten(1))


class BuiltIn(torch.nn.Module):
    def forward(self, inputs):
        fits = inputs[:, 1:, 0] == inputs[:, :1, 0]
        return (F.one_hot(inputs[:, 1:, 1], 8) * fits[:, :, None]).sum(dim=1).float()


def trains(build, *, steps=40, learning_rate=0.1, give=lambda model: model):
    def train(inputs, targets):
        torch.manual_seed(0)
        model = build()
        optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate) if steps else None
        for _ in range(steps):
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return give(model)

    return train


LOOK_UPS = [
    (trains(LookUp), []),
    (trains(LookUp, steps=0), [checks.NOT_LEARNED]),
    (trains(Average), [checks.NOT_LEARNED]),
    (trains(ByHeart, learning_rate=0.01), [checks.LEARNED_BY_HEART]),
    (trains(WithPlaces), [checks.ONE_LENGTH]),
    (trains(LosesItself), [checks.ONE_LENGTH]),
    (trains(BuiltIn, steps=0), [checks.RULE_BUILT_IN]),
    (trains(LookUp, give=lambda model: model.state_dict()), [WRONG_TYPE]),
    (trains(LookUp, give=lambda model: torch.nn.Sequential(model, torch.nn.Linear(8, 9))), [WRONG_SHAPE]),
    (lambda inputs: None, [STOPPED]),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("function", "wanted"), LOOK_UPS)
def test_look_up(function, wanted, seed):
    assert misconceptions(function, checks.LOOK_UP, seed) == wanted


def test_dictionaries_hold_the_answer_and_a_secret_code_moves_every_symbol():
    probe = Probe(None, seed=3)
    code = checks.secret_code(probe)
    assert sorted(code.tolist()) == list(range(8)) and (code != torch.arange(8)).all()
    inputs, answers = checks.dictionaries(probe, 50, 7, code=code)
    assert inputs.shape == (50, 8, 2)
    for (question, unknown), *entries in inputs.tolist():
        values = dict(entries)
        assert len(values) == 7 and unknown == 8 and question in code[list(values)]
    inputs[:, 0, 0] = code.argsort()[inputs[:, 0, 0]]
    assert BuiltIn()(inputs).argmax(dim=1).equal(answers)


# alignment error rate -----------------------------------------------------------------------------


def sizes(a, s, p):
    return len(a & s) + len(a & p), len(a) + len(s)


def corpus_rate(predicted, sure, possible, *, count=lambda a, s, p: sizes(a, s, p | s)):
    counts = [count(*links) for links in zip(predicted, sure, possible, strict=True)]
    return 1 - sum(agreed for agreed, _ in counts) / sum(size for _, size in counts)


def sentence_rate(predicted, sure, possible):
    rates = [alignment_error_rate([a], [s], [p]) for a, s, p in zip(predicted, sure, possible, strict=True)]
    return sum(rates) / len(rates)


RATES = [
    (alignment_error_rate, []),
    (corpus_rate, []),
    (lambda *links: 1 - corpus_rate(*links), [checks.AGREEMENT]),
    (lambda a, s, p: alignment_error_rate(a, s), [checks.POSSIBLE_IGNORED]),
    (lambda a, s, p: corpus_rate(a, s, p, count=sizes), [checks.SURE_NOT_POSSIBLE]),
    (sentence_rate, [checks.SENTENCE_AVERAGE]),
    (
        lambda *links: corpus_rate(*links, count=lambda a, s, p: (sizes(a, s, p | s)[0], len(a | s))),
        [checks.UNION_SIZE],
    ),
    (
        lambda *links: corpus_rate(*links, count=lambda a, s, p: (sizes(a, s, p | s)[0], len(a) + len(s | p))),
        [checks.UNION_SIZE],
    ),
    (lambda a, s, p: 0.123, [UNEXPLAINED]),
    (lambda a, s: 0.0, [STOPPED]),
]


@pytest.mark.parametrize(("function", "wanted"), RATES)
def test_alignment_error_rate(function, wanted):
    assert misconceptions(function, checks.ALIGNMENT_ERROR_RATE) == wanted


# all of them --------------------------------------------------------------------------------------

LISTS = [
    (checks.SOFTMAX, SOFTMAXES),
    (checks.SCALED_DOT_PRODUCT_ATTENTION, ATTENTIONS),
    (checks.ADDITIVE_SCORES, ADDITIVE),
    (checks.ADDITIVE_ATTENTION, CONTEXTS),
    (checks.SPLIT_HEADS, SPLITS),
    (checks.MERGE_HEADS, MERGES),
    (checks.MULTI_HEAD_ATTENTION, LAYERS),
    (checks.SINUSOIDAL_POSITIONS, POSITIONS),
    (checks.LOOK_UP, LOOK_UPS),
    (checks.ALIGNMENT_ERROR_RATE, RATES),
]


def test_every_misconception_that_a_check_promises_to_detect_is_tested_alone():
    for given, cases in LISTS:
        promised = {name for check in given for name in check.detects}
        assert promised == {name for _, wanted in cases for name in wanted if len(wanted) == 1} & promised


def test_every_misconception_comes_with_a_message_and_a_hint():
    promised = {name for given, _ in LISTS for check in given for name in check.detects}
    more = [*checks.LARGE_SCORES_OF_ATTENTION, *checks.QUERY_THAT_SEES_NOTHING]
    promised |= {name for check in more for name in check.detects}
    assert promised == set(checks.EXPLANATIONS)
    for message, hint in checks.EXPLANATIONS.values():
        assert message.endswith(".") and hint


@pytest.mark.parametrize(
    "nonsense",
    [lambda *a, **k: None, lambda *a, **k: 1 / 0, lambda *a, **k: torch.nan, lambda *a, **k: torch.full((2, 3), INF)],
)
def test_nonsense_is_never_passed_and_never_raises(nonsense):
    for given in [*(given for given, _ in LISTS), checks.LARGE_SCORES_OF_ATTENTION, checks.QUERY_THAT_SEES_NOTHING]:
        assert not run_checks(nonsense, given).passed
