"""Assignment 15, Transformers everywhere: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_15.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, mistakes


def interleave(
    returns: Tensor, states: Tensor, actions: Tensor, *, order: str = "R s a", how: str = "step by step"
) -> Tensor:
    """R_1, s_1, a_1, R_2, ...: Chen et al. 2021, section 3."""
    kinds = {"R s a": (returns, states, actions), "s a R": (states, actions, returns),
             "a first": (actions, returns, states), "s R a": (states, returns, actions)}[order]  # fmt: skip
    B, T, D = returns.shape
    if how == "step by step":
        return torch.stack(kinds, dim=2).reshape(B, 3 * T, D)
    if how == "one kind after another":
        return torch.cat(kinds, dim=1)
    return torch.stack(kinds, dim=1).transpose(2, 3).reshape(B, 3 * T, D)  # cut wrongly


def a_walk(draw: Draw, *, steps: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    B, T, D = draw.sizes(3)
    T = steps or T
    return draw(B, T, D), draw(B, T, D), draw(B, T, D)


INTERLEAVE = replace(
    SHOWN["interleave"],
    reference=interleave,
    cases=(
        Case("return, state and action of each step, one after the other", a_walk, 9),
        Case("a walk of a single step", lambda draw: a_walk(draw, steps=1), 3),
    ),
    mistakes=mistakes(r"""
one kind after another: how='one kind after another'
    First all returns come, then all states, then all actions.
    > Step by step: R, s, a of step 1, then those of step 2. `stack` them on a new axis *behind* that of the steps.
numbers of one token torn apart: how='cut wrongly'
    The numbers of a token are torn apart.
    > `torch.stack(..., dim=2)` is `(B, T, 3, D)`, and can be reshaped to `(B, 3 T, D)`.
another order: order='s a R' | 'a first' | 's R a'
    The three kinds are in another order.
    > Return to go, state, action: what is wanted stands before what is done.
"""),
    wrong={"one kind after another": ("torch.stack([returns, states, actions], dim=2).reshape(B, 3 * T, D)",
                                      "torch.cat([returns, states, actions], dim=1)")},
)  # fmt: skip


def free_energy(
    v: Tensor, W: Tensor, b: Tensor, c: Tensor, *, sign: float = -1.0, hidden: str = "softplus", visible: bool = True,
    bias: bool = True, reduce: str = "sum",
) -> Tensor:  # fmt: skip
    """F(v) = -b v - sum_j softplus(c_j + v W_j): Hinton 2012, eq. (16)."""
    x = v @ W + (c if bias else 0)
    units = {"softplus": F.softplus, "relu": F.relu, "sigmoid": torch.sigmoid, "exp": torch.exp, "linear": lambda u: u}
    units["overflows"] = lambda u: u.exp().log1p()
    made = units[hidden](x)
    made = made.sum(dim=1) if reduce == "sum" else made.mean(dim=1)
    return sign * ((v @ b if visible else 0) + made)


def a_machine(draw: Draw, lift: float = 1.0, hidden: int | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    B, V, H = draw.sizes(3, low=3)
    H = hidden or H
    return (draw(B, V) > 0).float(), lift * draw(V, H), draw(V), draw(H)


FREE_ENERGY = replace(
    SHOWN["free_energy"],
    reference=free_energy,
    cases=(
        Case("the free energy of each picture", a_machine, 9),
        Case("a single hidden unit", lambda draw: a_machine(draw, hidden=1), 4),
        Case("large weights", lambda draw: a_machine(draw, 60.0), 3),
    ),
    mistakes=mistakes(r"""
sign: sign=1.0
    The sign is wrong: what a machine likes has a *low* energy.
    > $F(v) = -b \cdot v - \sum_j \ldots$
visible biases forgotten: visible=False
    The biases of the visible units are missing.
    > $-b \cdot v$.
hidden biases forgotten: bias=False
    The biases of the hidden units are missing.
    > $c_j + v W_j$.
hidden units switched, not summed over: hidden='relu'
    Each hidden unit was put to its better state; it has two, and both count.
    > $\ln (1 + e^x)$ is the softplus.
sigmoid in place of softplus: hidden='sigmoid'
    That is the probability of a hidden unit, not its part of the energy.
    > $\ln (1 + e^x)$.
logarithm forgotten: hidden='exp'
    The logarithm is missing.
    > $\ln (1 + e^x)$.
exponential of a large number: hidden='overflows'
    With large weights the exponential is infinite, and so is its logarithm.
    > `F.softplus` computes $\ln (1 + e^x)$ without it.
linear: hidden='linear'
    That is the energy with all hidden units on.
    > Both states count: $\ln (1 + e^x)$.
mean over hidden units: reduce='mean'
    The hidden units were averaged.
    > Their sum.
"""),
    wrong={
        "hidden biases forgotten": ("v @ W + c", "v @ W"),
        "exponential of a large number": ("F.softplus(v @ W + c)", "(v @ W + c).exp().log1p()"),
    },
)


def last_picture(
    tokens: Tensor, picture_token: int, count: int, *, which: str = "last", itself: bool = True, shift: int = 0
) -> Tensor:
    """Token t sees picture p if p is the last one at t or before it: Alayrac et al. 2022, section 2.4."""
    marks = (tokens == picture_token).long()
    seen = marks.cumsum(dim=1) - (0 if itself else marks) + shift
    numbers = torch.arange(1, count + 1)
    if which == "next":
        seen = seen + 1
    if which == "all before":
        return numbers <= seen[..., None]
    if which == "first":
        return (numbers == 1) & (seen[..., None] >= 1)
    return numbers == seen[..., None]


def a_page(draw: Draw, *, pictures: int | None = None) -> tuple[Tensor, int, int]:
    """Texts with some pictures, as many as there is room for or fewer; the mark is any number."""
    B, T = draw.sizes(2, low=6)
    mark, count = draw.integers(0, 30, 1).item(), pictures or draw.integers(2, 6, 1).item()
    tokens = draw.integers(0, 30, B, T)
    tokens[tokens == mark] = mark + 1
    for number, row in enumerate(tokens):  # the first text has them all, the next one fewer, and so on
        row[torch.randperm(T, generator=draw.generator)[: max(0, count - number)]] = mark
    return tokens, mark, count


LAST_PICTURE = replace(
    SHOWN["last_picture"],
    reference=last_picture,
    cases=(
        Case("which token may look at which picture", a_page, 12, tolerance=1e-6),
        Case("texts with one picture at most", lambda draw: a_page(draw, pictures=1), 6, tolerance=1e-6),
    ),
    mistakes=mistakes(r"""
all pictures before it: which='all before'
    A token sees all pictures before it.
    > Only the *last* one: a caption belongs to its own picture.
the first picture: which='first'
    Each token sees the first picture.
    > The last one at it or before it.
the next picture: which='next'
    Each token sees the picture that is still to come.
    > Count the picture tokens up to here: `cumsum`.
the mark does not see its picture: itself=False
    The token that stands for a picture does not see it.
    > At t or before it.
"""),
    wrong={"all pictures before it": ("seen[..., None] == numbers", "numbers <= seen[..., None]")},
)


def buckets(
    distance: Tensor, num_buckets: int, max_distance: int, *, exact: str = "half", grows: str = "log",
    capped: bool = True, over: str = "max / exact", begins: bool = True,
) -> Tensor:  # fmt: skip
    """T5's buckets of one direction: Raffel et al. 2020, section 2.1, and their released code."""
    half = {"half": num_buckets // 2, "all": num_buckets, "quarter": num_buckets // 4}[exact]
    near = distance.clamp(max=half - 1) if grows == "none" else distance
    span = {"max / exact": math.log(max_distance / half) if max_distance > half else 1.0,
            "max": math.log(max_distance)}[over]  # fmt: skip
    share = torch.log(distance.clamp(min=half).float() / half) / span
    if grows == "line":
        share = (distance.float() - half) / (max_distance - half)
    far = (half if begins else 0) + (share * (num_buckets - half)).long()
    far = far.clamp(max=num_buckets - 1) if capped else far
    return torch.where(distance < half, near, far) if grows != "none" else near


def some_distances(draw: Draw, *, far: bool = True, axes: int = 1) -> tuple[Tensor, int, int]:
    """Near and far distances, or near ones only, in a row or a square; none lies on the edge of two buckets."""
    exact, doublings = draw.integers(3, 9, 1).item(), draw.integers(2, 5, 1).item()
    number, largest = 2 * exact, exact * 2**doublings + draw.integers(0, exact, 1).item()
    distance = torch.arange(3 * largest)
    share = (distance.clamp(min=exact).double() / exact).log() / math.log(largest / exact) * exact
    inside = (share % 1 > 0.02) & (share % 1 < 0.98)
    some = distance[(distance > exact) & (inside | (distance > largest))]
    some = some[draw(len(some)).argsort()]
    some, beyond = some[some < largest], some[some > largest]
    kept = torch.cat([torch.arange(exact + 1), some[:12], beyond[:4]]) if far else torch.arange(exact)
    kept = kept[draw.integers(0, len(kept), 36)] if axes == 2 else kept[draw(len(kept)).argsort()]
    return kept.view(4, 9) if axes == 2 else kept, number, largest


BUCKETS = replace(
    SHOWN["buckets"],
    reference=buckets,
    cases=(
        Case("the bucket of each distance", some_distances, 12, tolerance=1e-6),
        Case("near ones alone", lambda draw: some_distances(draw, far=False), 4, tolerance=1e-6),
        Case("distances in a matrix", lambda draw: some_distances(draw, axes=2), 4, ("grows", "exact"), tolerance=1e-6),
    ),
    mistakes=mistakes(r"""
all of them exact: grows='none'
    All far distances are in one bucket.
    > Half of the buckets are for one distance each; the others share what is farther, wider and wider.
straight, not logarithmic: grows='line'
    The far buckets are all equally wide.
    > They grow with the logarithm of the distance.
a quarter exact: exact='quarter'
    Too few buckets hold one distance each.
    > Half of them: `num_buckets // 2`.
not capped: capped=False
    What is farther than `max_distance` falls out of the buckets.
    > All of it belongs to the last one: `clamp(max=num_buckets - 1)`.
logarithm of another quotient: over='max'
    The last bucket is not full at `max_distance`.
    > Divide by $\ln (max / exact)$: at `max_distance` the share is 1.
far buckets begin at 0: begins=False
    Far distances share buckets with near ones.
    > The far buckets come behind the exact ones: add `exact`.
"""),
    wrong={"not capped": (".clamp(max=num_buckets - 1)", "")},
)

TRAIN = replace(
    SHOWN["train"],
    wrong={
        "only blanks": (
            "    optimizer =",
            "    model.head.bias.data[0] = 1000.0\n    return model.eval()\n    optimizer =",
        ),
        "not learned": ("range(700)", "range(1)"),
        "stopped with an error": ("torch.manual_seed(0)", "torch.manual_seed(frames)"),
    },
)

ASSIGNMENT = Assignment(
    "15",
    notebook="everywhere",
    title="Transformers everywhere",
    tasks=(INTERLEAVE, FREE_ENERGY, LAST_PICTURE, BUCKETS, TRAIN),
    seconds={"train": 120},  # for the training, and all questions
)
