"""Lesson 15, Transformers everywhere: what its exercises are tried with; tasks.md has their text and mistakes."""

from pathlib import Path

import torch
from torch import Tensor

from course_lib.functional.linear_attention import elu_features
from course_lib.tasks import Case, Draw
from course_lib.tasks.markdown import read_tasks


def a_text(draw: Draw) -> tuple[list[int], list[tuple[int, int]], int]:
    """A text with two spans, none of which touches the other or an edge."""
    length = int(draw.integers(12, 16, 1))
    first, second = int(draw.integers(1, 3, 1)), int(draw.integers(7, 9, 1))
    spans = [(first, first + int(draw.integers(1, 4, 1))), (second, second + int(draw.integers(2, 4, 1)))]
    return draw.integers(1, 50, length).tolist(), spans, 99


def edges(draw: Draw) -> tuple[list[int], list[tuple[int, int]], int]:
    """Spans at both ends of a text."""
    length = int(draw.integers(8, 12, 1))
    return draw.integers(1, 50, length).tolist(), [(0, 2), (length - 3, length)], 80


def a_path(draw: Draw) -> tuple[list[int]]:
    """Frames with repetitions, equal symbols with a blank between them, and one that comes back."""
    a, b = draw.integers(1, 5, 1).item(), draw.integers(5, 8, 1).item()
    times = draw.integers(2, 4, 4).tolist()
    return ([0] * times[0] + [a] * times[1] + [0] + [a] * times[2] + [b] * times[3] + [a, 0],)


def some_rewards(draw: Draw) -> tuple[Tensor]:
    return (draw(*draw.sizes(2, low=3)),)


def stream_and_picture(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    B, T, D = draw.sizes(3)
    return draw(B, T, D), draw(B, T, D), 0.7 + draw(1)[0].abs()


def a_step(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """A query, key and value, and what some earlier ones have left."""
    K, V = draw.sizes(2)
    k, v = elu_features(draw(3, K)), draw(3, V)
    return draw(K), draw(K), draw(V), k.mT @ v, k.sum(dim=0)


def far_below(q: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    return q - 30, *others


def a_lattice(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """States of a text with two equal symbols in it."""
    a, b = draw.integers(1, 4, 1).item(), draw.integers(4, 7, 1).item()
    states = torch.tensor([0, b, 0, a, 0, a, 0, b, 0])
    return draw(9).abs(), draw(7).softmax(dim=0), states


CASES = {
    "corrupt": (Case("two spans inside a text", a_text), Case("spans at both ends", edges)),
    "collapse": (
        Case("a path with blanks and repetitions", a_path),
        Case("another blank", lambda draw: ([9 if s == 0 else s % 5 for s in a_path(draw)[0]], 9)),
    ),
    "to_go": (Case("what is still to come at each step", some_rewards),),
    "gated": (
        Case("the stream, and what was seen, through the gate", stream_and_picture),
        Case("alpha 0: the stream as it was", lambda draw: (*stream_and_picture(draw)[:2], torch.tensor(0.0))),
    ),
    "linear_step": (
        Case("one step, after some others", a_step),
        Case("a query far below 0", lambda draw: far_below(*a_step(draw))),
    ),
    "forward_step": (Case("a text with two equal symbols", a_lattice),),
}
TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"),
    CASES,
    to_go={"example": ((([[-1.0, -1.0, 0.0, 5.0]],), [[3.0, 4.0, 5.0, 5.0]]),)},
    gated={"example": ((([[[1.0, 2.0]]], [[[10.0, -10.0]]], torch.tensor(0.0)), [[[1.0, 2.0]]]),)},
)
