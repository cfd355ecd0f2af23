"""Assignment 02, Representation learning: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_02.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def twins(draw: Draw, low: float, high: float) -> tuple[Tensor, Tensor, float]:
    """Projections of two views, correlated, with features of very unequal means and scales, and a weight."""
    count, width = draw.sizes(2, 4)
    count += width  # more rows than columns, so that they cannot be confused
    first = draw(count, width)
    second = first + 0.7 * draw(count, width) + 0.3 * first.roll(1, dims=1)
    weight = low + (high - low) * torch.rand(1, generator=draw.generator).item()

    def scaled(z: Tensor) -> Tensor:
        return z * (0.5 + torch.arange(width) / width) + draw(width)

    return scaled(first), scaled(second), weight


TWINS = replace(
    SHOWN["twin_loss"],
    cases=(
        Case("both terms, a small weight", lambda draw: twins(draw, 0.05, 0.2), 12),
        Case("both terms, a large weight", lambda draw: twins(draw, 1.5, 3.5), 8),
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
    tasks=(TWINS, RECALL, NEAREST, SHOWN["train"]),
    seconds={"train": 120},
)
