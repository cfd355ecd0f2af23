"""Assignment 02, Representation learning: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_02.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def pictures_and_corners(draw: Draw, *, where: str = "inside") -> tuple[Tensor, Tensor, Tensor, int]:
    """Squares inside of the pictures, hanging over a rim, or wholly outside, above or to the left."""
    (B,), (H, W) = draw.sizes(1, 4, 7), draw.sizes(2, 10, 14)
    side = draw.integers(3, 6, 1).item()
    corners = [1 + draw.integers(0, size - side - 1, B) for size in (H, W)]
    if where == "rim":
        over = draw.integers(1, side, 2, B)
        corners = [torch.where(draw(B) > 0, -part, size - side + part) for size, part in zip((H, W), over, strict=True)]
    if where == "outside":
        above, beyond = draw(B) > 0, -side - draw.integers(1, 4, B)
        corners = [torch.where(above, beyond, corners[0]), torch.where(above, corners[1], beyond)]
    return draw(B, H, W), *corners, side


ERASE = replace(
    SHOWN["erase"],
    cases=(
        Case("a square inside of each picture", pictures_and_corners, 7),
        Case("of a square at the rim only what is inside", lambda draw: pictures_and_corners(draw, where="rim"), 4),
        Case(
            "a square outside of the picture erases nothing",
            lambda draw: pictures_and_corners(draw, where="outside"),
            2,
        ),
    ),
)


def matching(draw: Draw, low: float, high: float) -> tuple[Tensor, Tensor, float]:
    """Vectors of unequal lengths, those in one row alike, and a temperature from `low` to `high`."""
    count, width = draw.sizes(2, 3)
    first = draw(count, width)
    lengths = 0.5 + torch.arange(count)[:, None] / count
    temperature = low + (high - low) * torch.rand(1, generator=draw.generator).item()
    return first, lengths * (first + draw(count, width)), temperature


MATCH = replace(
    SHOWN["match_loss"],
    cases=(
        Case("both questions, a low temperature", lambda draw: matching(draw, 0.2, 0.5), 12),
        Case("both questions, a high temperature", lambda draw: matching(draw, 1.5, 3.5), 8),
    ),
)


def hard_pairs(draw: Draw, *, most: int = 1) -> tuple[Tensor, Tensor, int]:
    """Many pairs, so unlike that about half are found, of very unequal lengths, and k up to `most`.

    All keys lean the same way, so that it matters who asks whom.
    """
    count, width = 150 + draw.sizes(1, 0, 50)[0], draw.sizes(1, 5, 8)[0]
    queries = draw(count, width)
    lengths = 0.2 + 3 * torch.rand(count, 1, generator=draw.generator)
    keys = (queries + 0.25 * draw(count, width) + 0.5 * draw(width)) * lengths
    return queries, keys, 1 if most == 1 else draw.integers(2, most + 1, 1).item()


RECALL = replace(
    SHOWN["recall_at"],
    cases=(
        Case("the most similar one alone", hard_pairs, 6, 1e-6),
        Case("one of the first few", lambda draw: hard_pairs(draw, most=4), 10, tolerance=1e-6),
    ),
)


def some_classes(draw: Draw) -> tuple[Tensor, Tensor, Tensor, int]:
    """Stored rows of very unequal lengths, unequally many of each class, and rows to be asked."""
    kinds, width, asked = draw.sizes(3, 3)
    labels = torch.cat([torch.arange(kinds), torch.arange(kinds), draw.integers(0, kinds, 2 * kinds)])
    features = draw(len(labels), width) * (0.2 + 3 * torch.rand(len(labels), 1, generator=draw.generator))
    return features, labels, 3 * draw(asked + 8, width), kinds


NEAREST = replace(SHOWN["nearest_mean"], cases=(Case("a cosine with each class's mean direction", some_classes, 17),))


ASSIGNMENT = Assignment(
    "02",
    notebook="representation_learning",
    title="Representation learning",
    tasks=(ERASE, MATCH, RECALL, NEAREST, SHOWN["train"]),
    seconds={"train": 120},
)
