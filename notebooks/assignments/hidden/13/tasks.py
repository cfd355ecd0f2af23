"""Assignment 13, Masked autoencoders: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_13.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def grey(draw: Draw, *, flat: bool = False, strip: bool = False) -> tuple[Tensor, int, int]:
    """Grey images, the side of a patch and a number of bins; a strip is one patch high.

    With `flat` there is no gradient in the first patch.
    """
    B, rows, columns, K = draw.sizes(4, 2, 5)
    p = draw.integers(2, 5, 1).item()
    image = 1 + 2 * draw(B, (1 if strip else rows) * p, columns * p)
    if flat:
        image[:, : p + 1, : p + 1] = 0.5
    return image, p, K + 2


HOG = replace(
    SHOWN["hog_target"],
    cases=(
        Case("the histogram of each patch", grey, 8),
        Case("a patch without any gradient", lambda draw: grey(draw, flat=True), 3),
        Case("images that are one patch high", lambda draw: grey(draw, strip=True), 4),
    ),
)


def predicted(draw: Draw, *, channels: int | None = None, strip: bool = False) -> tuple[Tensor, Tensor, Tensor, int]:
    """Images, predictions, which patches are hidden, and the side of a patch; a strip is one patch high."""
    B, columns, C, rows = draw.sizes(4, 2, 5)
    p, C, rows = draw.integers(2, 4, 1).item(), channels or C, 1 if strip else rows
    image = 1 + 2 * draw(B, C, rows * p, columns * p)
    return image, draw(B, rows * columns, p * p * C), ~draw.mask(B, rows * columns), p


RECONSTRUCTED = replace(
    SHOWN["reconstruct"],
    cases=(
        Case("hidden patches are reconstructed, visible ones stay", predicted, 9),
        Case("images with a single channel", lambda draw: predicted(draw, channels=1), 4),
        Case("images that are one patch high", lambda draw: predicted(draw, strip=True), 3),
    ),
)


def features_and_labels(draw: Draw, *, few: bool = False, constant: bool = False) -> tuple:
    """Features of labelled images, their labels, features of others, the number of classes, and a penalty."""
    M, C, D, more = draw.sizes(4, 3, 7)
    N = D - 1 if few else 2 * D + more
    scale, shift = draw(D).abs() + 0.5, draw(D)
    features, new = shift + scale * draw(N, D), shift + 0.5 + 2 * scale * draw(M, D)
    if constant:
        features[:, 0], new[:, 0] = 0.5, 0.5
    return features, draw.integers(0, C, N), new, C, 1.5 + draw(1).abs().item()


PROBE = replace(
    SHOWN["probe_scores"],
    cases=(
        Case("the scores of ridge regression on standardised features", features_and_labels, 10),
        Case("fewer images than features", lambda draw: features_and_labels(draw, few=True), 4),
        Case("a constant feature", lambda draw: features_and_labels(draw, constant=True), 3),
    ),
)


ASSIGNMENT = Assignment(
    "13",
    notebook="mae",
    title="Masked autoencoders",
    tasks=(HOG, RECONSTRUCTED, PROBE, SHOWN["train"]),
    seconds={"train": 90},
)
