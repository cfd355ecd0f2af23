"""Assignment 04, LSTM and GRU: what the grader asks of each task; tasks.md lists the known mistakes."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_04.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def one_step(draw: Draw) -> tuple[Tensor, ...]:
    """An input, a state and the weights of one step."""
    B, D, H = draw.sizes(3)
    return draw(B, D), draw(B, H), 2 * draw(B, H), draw(3 * H, D), draw(3 * H, H), draw(3 * H)


COUPLED = replace(SHOWN["coupled_step"], cases=(Case("the new output and the new cell", one_step, 16),))


def gates(draw: Draw, *, closed: bool = False) -> tuple[Tensor]:
    """Forget gates of drawn sizes; `closed`: some of them are shut."""
    B, T, H = draw.sizes(3, 3, 8)
    f = draw(B, T, H).sigmoid()
    return (torch.where(draw(B, T, H) > 1, 0.0, f) if closed else f,)


HIGHWAY = replace(
    SHOWN["highway"],
    cases=(
        Case("the product of the gates behind each step", gates, 11),
        Case("a gate that is shut lets nothing through", lambda draw: gates(draw, closed=True), 5),
    ),
)


def rows_and_weights(draw: Draw, *, full: bool = False, padding: float = 3.0) -> tuple[Tensor, ...]:
    """Padded rows, their lengths, and the weights of two readings."""
    B, T, D, H = draw.sizes(4, 3, 8)
    lengths = torch.full((B,), T) if full else draw.integers(1, T, B)
    x = draw(B, T, D)
    x[0, -1] = draw(D) if full else padding
    return x, lengths, draw(H, D), draw(H, H) / H**0.5, draw(H, D), draw(H, H) / H**0.5


BOTH_WAYS = replace(
    SHOWN["both_ways"],
    cases=(
        Case("the states of both readings, for rows of all lengths", rows_and_weights, 15),
        Case("rows without padding", lambda draw: rows_and_weights(draw, full=True), 5),
        Case("padding may hold anything, infinity, too", lambda draw: rows_and_weights(draw, padding=math.inf), 2),
    ),
)


def a_layer(draw: Draw, *, layers: bool = False, both: bool = False) -> tuple[str, int, int, int, bool]:
    """The sizes of a recurrent network of one layer or of several, which reads one way or both."""
    D, H = draw.sizes(2, 2, 40)
    cell = ("lstm", "gru", "rnn")[draw.integers(0, 3, 1).item()]
    return cell, D, H, draw.integers(2, 6, 1).item() if layers else 1, both


COUNT = replace(
    SHOWN["count_parameters"],
    cases=(
        Case("one layer that reads one way", a_layer, 3, 1e-6),
        Case("one layer that reads both ways", lambda draw: a_layer(draw, both=True), 1, 1e-6),
        Case("layers on layers, one way", lambda draw: a_layer(draw, layers=True), 2, 1e-6),
        Case("layers on layers, both ways", lambda draw: a_layer(draw, layers=True, both=True), 4, 1e-6),
    ),
)


ASSIGNMENT = Assignment(
    "04",
    notebook="lstm_and_gru",
    title="LSTM and GRU",
    tasks=(COUPLED, HIGHWAY, BOTH_WAYS, COUNT, SHOWN["train"]),
    seconds={"train": 60},
)
