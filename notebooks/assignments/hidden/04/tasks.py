"""Assignment 04, LSTM and GRU: what the grader asks of each task; tasks.md lists the known mistakes."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_04.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, Finding


def one_step(draw: Draw) -> tuple[Tensor, ...]:
    """An input, a state and the weights of one step."""
    B, D, H = draw.sizes(3)
    return draw(B, D), draw(B, H), 2 * draw(B, H), draw(3 * H, D), draw(3 * H, H), draw(3 * H)


COUPLED = replace(SHOWN["coupled_step"], cases=(Case("the new hidden state and the new cell state", one_step, 12),))


def gates(draw: Draw, *, closed: bool = False) -> tuple[Tensor]:
    """Forget gates of drawn sizes; `closed`: some of them are closed."""
    B, T, H = draw.sizes(3, 3, 8)
    f = draw(B, T, H).sigmoid()
    return (torch.where(draw(B, T, H) > 1, 0.0, f) if closed else f,)


HIGHWAY = replace(
    SHOWN["highway"],
    cases=(
        Case("the product of the gates after each step", gates, 8),
        Case("a gate that is closed lets nothing through", lambda draw: gates(draw, closed=True), 3),
    ),
)


def rows_and_weights(draw: Draw, *, full: bool = False, padding: float = 3.0) -> tuple[Tensor, ...]:
    """Padded rows, their lengths, and the weights of two readings."""
    B, T, D, H = draw.sizes(4, 3, 8)
    lengths = torch.full((B,), T) if full else draw.integers(1, T, B)
    x = draw(B, T, D)
    x[0, -1] = draw(D) if full else padding
    return x, lengths, draw(H, D), draw(H, H) / H**0.5, draw(H, D), draw(H, H) / H**0.5


INFINITE = Finding(
    "infinity in the padding has an effect",
    "Where the padding holds infinity, the result is not right.",
    "A product with 0 does not remove infinity: inf · 0 is NaN. Replace the padding before it is used, with "
    "`masked_fill` or `torch.where`, or do not read it at all.",
)
BOTH_WAYS = replace(
    SHOWN["both_ways"],
    cases=(
        Case("the states of both readings, for rows of all lengths", rows_and_weights, 10),
        Case("rows without padding", lambda draw: rows_and_weights(draw, full=True), 4),
        Case(
            "padding may hold anything, infinity, too",
            lambda draw: rows_and_weights(draw, padding=math.inf),
            2,
            default_finding=INFINITE,
        ),
    ),
)


ASSIGNMENT = Assignment(
    "04",
    notebook="lstm_and_gru",
    title="LSTM and GRU",
    tasks=(COUPLED, HIGHWAY, BOTH_WAYS, SHOWN["train"]),
    seconds={"train": 60},
)
