"""Assignment 15, Transformers everywhere: what the grader asks of each task; tasks.md lists the known mistakes."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_15.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def a_walk(draw: Draw, *, steps: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    B, T, D = draw.sizes(3)
    T = steps or T
    return draw(B, T, D), draw(B, T, D), draw(B, T, D)


INTERLEAVE = replace(
    SHOWN["interleave"],
    cases=(
        Case("return, state and action of each step, one after the other", a_walk, 9),
        Case("a walk of a single step", lambda draw: a_walk(draw, steps=1), 3),
    ),
)


def a_machine(draw: Draw, lift: float = 1.0, hidden: int | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    B, V, H = draw.sizes(3, low=3)
    H = hidden or H
    return (draw(B, V) > 0).float(), lift * draw(V, H), draw(V), draw(H)


FREE_ENERGY = replace(
    SHOWN["free_energy"],
    cases=(
        Case("the free energy of each picture", a_machine, 9),
        Case("a single hidden unit", lambda draw: a_machine(draw, hidden=1), 4),
        Case("large weights", lambda draw: a_machine(draw, 60.0), 3),
    ),
)


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
    cases=(
        Case("which token may look at which picture", a_page, 12, tolerance=1e-6),
        Case("texts with one picture at most", lambda draw: a_page(draw, pictures=1), 6, tolerance=1e-6),
    ),
)


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
    cases=(
        Case("the bucket of each distance", some_distances, 12, tolerance=1e-6),
        Case("near ones alone", lambda draw: some_distances(draw, far=False), 4, tolerance=1e-6),
        Case("distances in a matrix", lambda draw: some_distances(draw, axes=2), 4, tolerance=1e-6),
    ),
)

ASSIGNMENT = Assignment(
    "15",
    notebook="everywhere",
    title="Transformers everywhere",
    tasks=(INTERLEAVE, FREE_ENERGY, LAST_PICTURE, BUCKETS, SHOWN["train"]),
    seconds={"train": 120},
)
