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


def three_terms(draw: Draw, *, constant: bool = False) -> tuple[Tensor, Tensor, float, float, float]:
    """Projections of two views, some features with a standard deviation below 1, some above it; three weights."""
    count, width = draw.sizes(2, 4)
    count += width  # more rows than columns, so that they cannot be confused
    scales = 0.3 + 1.4 * torch.arange(width) / (width - 1)
    first = (draw(count, width) + 0.5 * draw(count, 1)) * scales + draw(width)
    second = first + 0.3 * draw(count, width) * scales
    if constant:
        first[:, -1], second[:, 0] = 0.7, -0.4
    return first, second, *(0.5 + 2 * torch.rand(3, generator=draw.generator)).tolist()


VARIED = replace(
    SHOWN["vicreg_loss"],
    cases=(
        Case("all three terms", three_terms, 14),
        Case("a feature is constant over the batch", lambda draw: three_terms(draw, constant=True), 6),
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


def told_apart(cosines: Tensor) -> bool:
    """Whether no two numbers in a row are so close that rounding could exchange them."""
    return cosines.sort(dim=1).values.diff(dim=1).min().item() > 1e-5


def to_sort(draw: Draw, *, pairs: bool = False) -> tuple[Tensor, Tensor]:
    """Rows of very unequal lengths around the directions of their classes, which are of unequal sizes or pairs."""
    kinds, width = (9, 5) if pairs else draw.sizes(3, 4, 6)[1:]
    labels = torch.arange(kinds).repeat(2)
    labels = labels if pairs else torch.cat([labels, draw.integers(0, kinds, 12), draw.integers(0, 2, 4)])
    while True:
        around = draw(kinds, width)[labels] + (0.6 if pairs else 0.9) * draw(len(labels), width)
        turn = draw(len(labels)).argsort()
        if told_apart(torch.cosine_similarity(around[:, None], around, dim=2)):
            lengths = 0.2 + 3 * torch.rand(len(labels), 1, generator=draw.generator)
            return (around * lengths)[turn], labels[turn]


ORDERED = replace(
    SHOWN["map_at_r"],
    cases=(
        Case("classes of unequal sizes", to_sort, 11, tolerance=1e-4),
        Case("classes of two images", lambda draw: to_sort(draw, pairs=True), 5, tolerance=1e-4),
    ),
)


def some_classes(draw: Draw) -> tuple[Tensor, Tensor, Tensor, int]:
    """Stored rows of very unequal lengths, unequally many of each class, and rows to be asked."""
    kinds, width, asked = draw.sizes(3, 3)
    labels = torch.cat([torch.arange(kinds), torch.arange(kinds), draw.integers(0, kinds, 2 * kinds)])
    features = draw(len(labels), width) * (0.2 + 3 * torch.rand(len(labels), 1, generator=draw.generator))
    return features, labels, 3 * draw(asked + 8, width), kinds


NEAREST = replace(SHOWN["nearest_mean"], cases=(Case("a cosine with each class's mean direction", some_classes, 17),))


def voters(draw: Draw, *, cold: bool = False) -> tuple[Tensor, Tensor, Tensor, int, int, float]:
    """Labelled rows and rows to be asked, of very unequal lengths, how many vote, and a temperature."""
    while True:
        features, labels, asked, kinds = some_classes(draw)
        if told_apart(torch.cosine_similarity(asked[:, None], features, dim=2)):
            break
    k = draw.integers(4, len(labels) - 3, 1).item()
    temperature = (0.008 if cold else 0.3) * (1 + draw.integers(0, 4, 1).item() / 20)
    return features, labels, asked, kinds, k, temperature


VOTES = replace(
    SHOWN["neighbour_votes"],
    cases=(
        Case("the fractions of the votes", voters, 12),
        Case("a small temperature", lambda draw: voters(draw, cold=True), 5),
    ),
)


ASSIGNMENT = Assignment(
    "02",
    notebook="representation_learning",
    title="Representation learning",
    tasks=(TWINS, VARIED, RECALL, ORDERED, NEAREST, VOTES, SHOWN["train"]),
)
