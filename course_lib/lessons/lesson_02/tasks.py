"""Lesson 02, Representation learning: what its exercises are tried with; tasks.md has their text and mistakes."""

from pathlib import Path

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw
from course_lib.tasks.markdown import read_tasks


def two_sets(draw: Draw) -> tuple[Tensor, Tensor]:
    """Rows of unequal length, so that no scaling can be missed."""
    n, m, d = draw.sizes(3, low=3)
    return draw(n, d) * (1 + draw.sizes(1)[0]), 3 * draw(m, d)


def pairs(draw: Draw, temperature: float | None = None) -> tuple[Tensor, Tensor, float]:
    """Two views each, alike but not equal, of unequal lengths."""
    count, width = draw.sizes(2, low=3)
    first = draw(count, width)
    lengths = 0.5 + torch.arange(count)[:, None] / count
    drawn = 0.2 + 0.1 * int(draw.integers(0, 5, 1))
    return first, lengths * (first + draw(count, width)), drawn if temperature is None else temperature


def clouds(draw: Draw, k: int = 5) -> tuple[Tensor, Tensor, Tensor, int]:
    """Stored rows in four directions, of very different lengths; a third of the labels are wrong, so that one
    neighbour is not to be trusted.
    """
    width, per_class = 6, 9
    centres = 4 * draw(4, width)
    labels = torch.arange(4).repeat(per_class)
    stored = centres[labels] + draw(len(labels), width)
    stored = stored * (0.2 + 3 * draw(len(labels), 1).abs())
    wrong = torch.arange(len(labels)) % 3 == 2
    asked = centres[torch.arange(12) % 4] + draw(12, width)
    return asked, stored, torch.where(wrong, (labels + 1) % 4, labels) + 3, k


def a_probe(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A probe whose bias matters, right about two thirds of the rows."""
    weight, bias, features = draw(5, 8), 3 * draw(5), draw(30, 8)
    chosen = (features @ weight.T + bias).argmax(dim=1)
    wrong = torch.arange(30) % 3 == 0
    return features, torch.where(wrong, (chosen + 1) % 5, chosen), weight, bias


def some_views(draw: Draw) -> tuple[Tensor, Tensor]:
    """Views that are alike, not of length 1."""
    count, width = draw.sizes(2, low=4)
    first = 0.7 * draw(count, width) + 0.6
    return first, 1.7 * (first + 0.4 * draw(count, width))


CASES = {
    "cosine_matrix": (
        Case("each row of a with each row of b", two_sets),
        Case("a set with itself has ones on the diagonal", lambda draw: (two_sets(draw)[0],) * 2),
    ),
    "other_view": (
        Case("all first views, then all second ones", lambda draw: (int(draw.integers(3, 9, 1)),), tolerance=1e-6),
    ),
    "nt_xent": (
        Case("mean over all views of -ln of the share that its positive has", pairs),
        Case("a high temperature", lambda draw: pairs(draw, 3.0)),
    ),
    "knn_vote": (
        Case("the commonest label among the five most alike", clouds, tolerance=1e-6),
        Case("one neighbour decides alone", lambda draw: clouds(draw, 1), tolerance=1e-6),
    ),
    "top1": (Case("the share of rows that it names right", a_probe, tolerance=1e-6),),
    "spread_out": (Case("alignment and uniformity of directions", some_views),),
}
EXAMPLES = {
    "cosine_matrix": ((([[3.0, 4.0], [0.0, 2.0]], [[0.0, 5.0], [1.0, 0.0]]), [[0.8, 0.6], [1.0, 0.0]]),),
    "other_view": (((3,), [3, 4, 5, 0, 1, 2]),),
    "nt_xent": ((([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]], 1.0), 0.5514),),
    "knn_vote": (
        (
            (
                [[1.0, 0.0]],
                [[2.0, 0.1], [9.0, 9.0], [1.0, 0.2], [3.0, -0.9], [0.0, 4.0]],
                torch.tensor([7, 3, 4, 4, 3]),
                3,
            ),
            [4],
        ),
    ),
    "top1": ((([[1.0, 0.0], [0.0, 1.0]], torch.tensor([0, 0]), [[2.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), 0.5),),
}
TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"), CASES, **{name: {"example": example} for name, example in EXAMPLES.items()}
)
