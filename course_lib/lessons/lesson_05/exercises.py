"""Lesson 05, Attention: the tables of its exercises; each formula has a knob for every mistake that learners make."""

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw, Task, gradients, mistakes
from course_lib.tasks.attention import (
    ATTENTION_MISTAKES,
    FORMULA,
    HEADS_MISTAKES,
    READS_HIDDEN,
    SOFTMAX_MISTAKES,
    TORCHS_SOFTMAX,
    attention,
    softmax,
    split_heads,
)

# softmax ----------------------------------------------------------------------------------------------------


def rows_apart(draw: Draw) -> tuple[Tensor]:
    """In each row about -1000, 0 and 1000, in some order; and one row far above, another far below the rest."""
    rows = torch.stack([torch.tensor([-1000.0, 0.0, 1000.0])[draw(3).argsort()] for _ in range(6)]).view(2, 3, 3)
    return (rows + torch.tensor([-1e4, 0.0, 1e4])[draw(2, 3).argsort()][..., None] + draw(2, 3, 3),)


OVERFLOWS, LOST, FOREIGN, NOT_THE_LARGEST = mistakes(r"""
softmax overflows for large inputs: shift='none'
    Inputs around 1000 give NaN: their exponential is infinite.
    > Subtracting one number from a whole row changes nothing in exact arithmetic. Which number makes it safe?
large inputs lose their differences:
    Adding 1000 to all scores changes the result, though only their differences should count.
    > A limit such as `clamp` forgets which of the large scores is the largest. Subtract from each row its own maximum.
maximum not taken row by row: shift='all' | 0 | 1
    A row far below the others comes out wrong: what was subtracted from it is not its own maximum.
    > Subtract from each row its own maximum: `x.amax(dim=-1, keepdim=True)`.
another number than the maximum subtracted: shift='mean' | 'least' | 'first'
    A row that holds -1000, 0 and 1000 comes out wrong: what was subtracted is not the row's maximum.
    > After the right subtraction no number of the row is greater than 0; otherwise its exponential may be infinite.
""")

SOFTMAX = Task(
    name="softmax",
    title="Softmax, from exp and sum",
    asks="x",
    reference=softmax,
    cases=(
        FORMULA,
        Case("large numbers do no harm", lambda draw: (1000 + draw(*draw.sizes(3)),), otherwise=LOST.finding),
        Case("numbers far apart do no harm", rows_apart, otherwise=NOT_THE_LARGEST.finding),
    ),
    mistakes=(*SOFTMAX_MISTAKES, OVERFLOWS, FOREIGN, NOT_THE_LARGEST),
    also=(gradients,),
    forbids=TORCHS_SOFTMAX,
    minutes=5,
    text="Turn scores into shares: $\\mathrm{softmax}(x)_i = \\exp x_i \\,/\\, \\sum_j \\exp x_j$, along the last axis "
    "of `x`. The result has the shape of `x`. Write it with `exp` and `sum`, without PyTorch's own.",
    hints=(
        "Two steps: the exponential of each number, then a division by the sum. Over which axis, in which shape?",
        "`powers.sum(dim=-1, keepdim=True)` keeps the axis, so that the division fits each row.",
        "The exponential of 1000 is infinite. The result stays the same if one number is subtracted from all scores of "
        "a row: take its largest, `x.amax(dim=-1, keepdim=True)`.",
    ),
    solution="""
def my_softmax(x):
    largest = x.amax(dim=-1, keepdim=True)
    powers = (x - largest).exp()
    return powers / powers.sum(dim=-1, keepdim=True)
""",
)

# attention --------------------------------------------------------------------------------------------------


def qkv(draw: Draw, *, blind: bool | None = None) -> tuple[Tensor, ...]:
    """Queries, keys and values of drawn sizes; unless `blind` is None a mask, under which one query may see nothing."""
    T_q, T_k, d, d_v = draw.sizes(4)
    B = draw.integers(1, 4, 1).item()
    given = draw(B, T_q, d), draw(B, T_k, d), draw(B, T_k, d_v)
    return given if blind is None else (*given, draw.mask(B, T_q, T_k, blind=blind))


ATTENTION = Task(
    name="attention",
    title="Scaled dot-product attention",
    asks="q, k, v, mask=None",
    reference=attention,
    cases=(
        Case("the values' average, weighted by how well each key fits", qkv),
        Case("hidden keys get no weight", lambda draw: qkv(draw, blind=False)),
        Case("a query that sees nothing gets zeros", lambda draw: qkv(draw, blind=True), otherwise=READS_HIDDEN),
        Case("more axes in front", lambda draw: (draw(2, 3, 4, 5), draw(2, 3, 6, 5), draw(2, 3, 6, 2))),
    ),
    mistakes=ATTENTION_MISTAKES,
    also=(gradients,),
    forbids=("scaled_dot_product_attention", "MultiheadAttention", "multi_head_attention_forward"),
    minutes=15,
    text="Write $\\mathrm{softmax}(QK^\\top / \\sqrt{d_k})\\,V$. `q` is `(B, T_q, d)`, `k` is `(B, T_k, d)`, `v` is "
    "`(B, T_k, d_v)`; there may be more axes in front. `mask` is boolean and broadcasts to `(B, T_q, T_k)`; `True` "
    "means that this query may look at this key. A query that may look nowhere gets zeros; torch's softmax is allowed.",
    hints=(
        "Three steps: scores, weights, average. Write it without the mask first; `k.transpose(-2, -1)` turns the keys.",
        "The scores are divided by the root of the last size of `q`, before a softmax over `dim=-1`.",
        "A mask acts on the scores: set the hidden ones to minus infinity with `masked_fill`, then take the softmax. A "
        "row in which nothing is visible becomes NaN there: fill zeros in afterwards.",
    ),
    solution="""
def my_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is None:
        return scores.softmax(dim=-1) @ v
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights.masked_fill(~mask, 0.0) @ v
""",
)

# split_heads ------------------------------------------------------------------------------------------------


def words_and_heads(draw: Draw) -> tuple[Tensor, int]:
    """Words whose width is a multiple of the number of heads."""
    B, T, H, d = draw.sizes(4)
    return draw(B, T, H * d), H


SPLIT_HEADS = Task(
    name="split_heads",
    title="Split the heads",
    asks="x, num_heads",
    reference=split_heads,
    cases=(Case("head h holds features h d to (h+1) d", words_and_heads),),
    mistakes=HEADS_MISTAKES
    + mistakes(r"""
head axis behind the time axis: way='time first'
    The result is (B, T, H, d).
    > Each head works on a sequence of its own: the head axis goes before the time axis, `transpose(1, 2)`.
number of heads and width of a head swapped: way='width'
    The number of heads was used as the width of a head.
    > There are `num_heads` heads, each D / num_heads wide.
"""),
    minutes=8,
    text="Cut the width of each word into heads: `x` of shape `(B, T, D)` becomes `(B, num_heads, T, D / num_heads)`. "
    "The first head takes the first numbers of each word, the second head the next, and so on.",
    hints=(
        "The numbers of one word lie side by side in the last axis: cut that axis, and no other.",
        "First `(B, T, H, D/H)`, by `reshape` or `view`. Which two axes must then change places?",
        "`x.reshape(B, T, H, D // H).transpose(1, 2)`.",
    ),
    solution="""
def my_split_heads(x, num_heads):
    B, T, D = x.shape
    x = x.reshape(B, T, num_heads, D // num_heads)
    return x.transpose(1, 2)
""",
)

# positions --------------------------------------------------------------------------------------------------


def positions(length: int, dim: int, *, layout: str = "by turns", pace: str = "2i/D", start: int = 0) -> Tensor:
    """sin and cos of pos / 10000^(2i/D)."""
    pair = torch.arange(dim // 2, dtype=torch.float64)
    sine = {"i/D": pair, "4i/D": 4 * pair, "2i/(D-2)": 2 * pair * dim / max(dim - 2, 1), "2c/D": 4 * pair}
    sine = {"2i/D": 2 * pair, "c/D": 2 * pair, "-2i/D": -2 * pair} | sine
    cosine = sine | {"c/D": 2 * pair + 1, "2c/D": 4 * pair + 2}
    place = torch.arange(start, start + length, dtype=torch.float64)[:, None]
    waves = [(place / 10_000 ** (sine[pace] / dim)).sin(), (place / 10_000 ** (cosine[pace] / dim)).cos()]
    waves = waves[::-1] if "cosine first" in layout else waves
    return (torch.cat(waves, dim=-1) if "halves" in layout else torch.stack(waves, dim=-1).flatten(1)).float()


def length_and_width(draw: Draw) -> tuple[int, int]:
    """A length, and an even width."""
    length, pairs = draw.sizes(2, 4, 9)
    return length, 2 * pairs


POSITIONS = Task(
    name="positions",
    title="Sinusoidal position codes",
    asks="length, dim",
    reference=positions,
    cases=(Case("PE(pos, 2i) and PE(pos, 2i+1)", length_and_width, tolerance=1e-3),),
    mistakes=mistakes(r"""
sines and cosines in halves: layout='halves'
    All sines come first, then all cosines.
    > PE(pos, 2i) is a sine and PE(pos, 2i+1) a cosine: they alternate, `codes[:, 0::2]` and `codes[:, 1::2]`.
sine and cosine swapped: layout='cosine first' | 'halves, cosine first'
    Cosines stand where sines belong.
    > Even columns are sines: position 0 starts with a 0.
wrong exponent: pace='i/D' | '4i/D' | '2i/(D-2)'
    The frequencies fall at another pace than 10000^(-2i/D).
    > i counts pairs from 0 to D/2 - 1, so the exponent 2i/D runs from 0 up to, but not including, 1.
cosine with a frequency of its own: pace='c/D' | '2c/D'
    Sine and cosine of a pair differ in frequency.
    > Columns 2i and 2i+1 share the exponent 2i/D: it is a pair that turns together.
frequencies grow instead of fall: pace='-2i/D'
    The position is multiplied by 10000^(2i/D).
    > Divide: the later the column, the slower the wave.
positions counted from 1: start=1
    The first row belongs to position 1.
    > Positions count from 0: the first row is 0, 1, 0, 1, ...
"""),
    minutes=12,
    stretch=True,
    text="Write the codes of the paper, a tensor of shape `(length, dim)` for an even `dim`: "
    "$PE(pos, 2i) = \\sin(pos / 10000^{2i/D})$ and $PE(pos, 2i+1) = \\cos(pos / 10000^{2i/D})$.",
    hints=(
        "Make a column of positions and a row of pair numbers $i = 0, 1, ...$; broadcasting gives all their angles.",
        "The angle of pair $i$ is $pos / 10000^{2i/D}$: `torch.arange(0, dim, 2)` are the numbers $2i$.",
        "Sines go to the even columns and cosines to the odd ones: `codes[:, 0::2]` and `codes[:, 1::2]`.",
    ),
    solution="""
def my_positions(length, dim):
    pos = torch.arange(length)[:, None]
    two_i = torch.arange(0, dim, 2)
    angles = pos / 10_000 ** (two_i / dim)
    codes = torch.empty(length, dim)
    codes[:, 0::2] = angles.sin()
    codes[:, 1::2] = angles.cos()
    return codes
""",
)

TASKS = {task.name: task for task in (SOFTMAX, ATTENTION, SPLIT_HEADS, POSITIONS)}
