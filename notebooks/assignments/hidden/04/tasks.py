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


def one_minimal_step(draw: Draw) -> tuple[Tensor, ...]:
    """An input, a hidden state and the weights of one step."""
    B, D, H = draw.sizes(3)
    return draw(B, D), 2 * draw(B, H), draw(2 * H, D), draw(2 * H, H), draw(2 * H)


MINIMAL = replace(SHOWN["minimal_step"], cases=(Case("the new hidden state", one_minimal_step, 12),))


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


def candidates_and_gates(draw: Draw, *, closed: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Candidates, forget gates and output gates; `closed`: some forget gates are closed."""
    (f,) = gates(draw, closed=closed)
    return draw(*f.shape), f, draw(*f.shape).sigmoid()


POOLED = replace(
    SHOWN["fo_pool"],
    cases=(
        Case("the states of all steps", candidates_and_gates, 8),
        Case("a gate that is closed lets nothing through", lambda draw: candidates_and_gates(draw, closed=True), 3),
    ),
)


def rows_and_weights(draw: Draw, *, full: bool = False, padding: float = 3.0, joined: int = 0) -> tuple[Tensor, ...]:
    """Padded rows, their lengths, and the weights of two readings; the second reads `joined` states, or the inputs."""
    B, T, D, H = draw.sizes(4, 3, 8)
    lengths = torch.full((B,), T) if full else draw.integers(1, T, B)
    x = draw(B, T, D)
    x[0, -1] = draw(D) if full else padding
    return x, lengths, draw(H, D), draw(H, H) / H**0.5, draw(H, joined * H or D), draw(H, H) / H**0.5


INFINITE = Finding(
    "infinity in the padding has an effect",
    "Where the padding holds infinity, the result is not right.",
    "A product with 0 does not remove infinity: inf · 0 is NaN. Replace the padding before it is used, with "
    "`masked_fill` or `torch.where`, or do not read it at all.",
)


def two_readings(what: str, joined: int) -> tuple[Case, ...]:
    """The cases of a task in which two networks read padded rows."""
    return (
        Case(what, lambda draw: rows_and_weights(draw, joined=joined), 10),
        Case("rows without padding", lambda draw: rows_and_weights(draw, full=True, joined=joined), 4),
        Case(
            "padding may hold anything, infinity, too",
            lambda draw: rows_and_weights(draw, padding=math.inf, joined=joined),
            2,
            default_finding=INFINITE,
        ),
    )


BOTH_WAYS = replace(
    SHOWN["both_ways"], cases=two_readings("the states of both readings, for rows of all lengths", joined=0)
)
PYRAMID = replace(SHOWN["pyramid"], cases=two_readings("the upper states, for rows of all lengths", joined=2))


ASSIGNMENT = Assignment(
    "04",
    notebook="lstm_and_gru",
    title="LSTM and GRU",
    tasks=(COUPLED, MINIMAL, HIGHWAY, POOLED, BOTH_WAYS, PYRAMID, SHOWN["train"]),
)
