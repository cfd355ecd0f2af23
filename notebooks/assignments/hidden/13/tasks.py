"""Assignment 13, Masked autoencoders: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
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


def student_and_teacher(draw: Draw, *, masks: int | None = None, K: int | None = None, equal: bool = False) -> tuple:
    """Outputs of a teacher's blocks, predictions, which patches are hidden, and how many blocks are used.

    With `equal` all patches of the last block but one are the same.
    """
    B, M, N, D, L = draw.sizes(5, 3, 8)
    M, K = masks or M, K or draw.integers(2, L, 1).item()
    blocks = draw(L, 1, 1, D) + (1 + draw(L, B, 1, D).abs()) * draw(L, B, N, D)
    if equal:
        blocks[-2] = 0.5
    return blocks, draw(B, M, N, D), draw.mask(B, M + 1, N)[:, :M], K


TEACHER = replace(
    SHOWN["teacher_loss"],
    cases=(
        Case("several masks for each image", student_and_teacher, 8),
        Case("a single mask for each image", lambda draw: student_and_teacher(draw, masks=1), 2),
        Case("the last block alone", lambda draw: student_and_teacher(draw, K=1), 2),
        Case("a block in which all patches are equal", lambda draw: student_and_teacher(draw, equal=True), 3),
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


def two_images(
    draw: Draw, radius: float, *, low: bool = True, power: bool = False
) -> tuple[Tensor, Tensor, float, bool]:
    """Images, reconstructions, the border of the low frequencies, and whether these are visible.

    With `power` the sides are powers of two, so that any formula for the frequencies is exact.
    """
    B, C, H, W = draw.sizes(4, 2, 7)
    H, W = ([4, 8] if power else [H + 3, W + 3])[:: 1 - 2 * draw.integers(0, 2, 1).item()]
    return draw(B, C, H, W), draw(B, C, H, W), radius, low


def border(draw: Draw) -> float:
    """A border that no frequency lies on."""
    return draw.integers(2, 4, 1).item() + 0.5


def at_the_border(draw: Draw) -> tuple[Tensor, Tensor, float, bool]:
    """A border that frequencies lie on."""
    return two_images(draw, float(draw.integers(3, 5, 1).item()), low=bool(draw.integers(0, 2, 1)), power=True)


FREQUENCIES = replace(
    SHOWN["frequency_loss"],
    cases=(
        Case("low frequencies are visible", lambda draw: two_images(draw, border(draw)), 7),
        Case("high frequencies are visible", lambda draw: two_images(draw, border(draw), low=False), 4),
        Case("frequencies at the border", at_the_border, 3),
        Case("no frequency is hidden", lambda draw: two_images(draw, 30.5), 2),
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


def features_of_classes(draw: Draw, *, few: bool = False, full: bool = False) -> tuple:
    """Features of labelled images, their labels, features of others, the number of classes, and the shrinkage."""
    M, C, D, more = draw.sizes(4, 3, 8)
    C, D = sorted((C, D))
    N = C + 1 if few else 2 * (C + D) + more
    labels = torch.cat([torch.arange(C), draw.integers(0, C, N - C)])[draw(N).argsort()]
    scale, middle = draw(D).abs() + 0.5, draw(C, D)
    mixed = torch.eye(D) + 0.5 * draw(D, D)
    features, new = middle[labels] + scale * (draw(N, D) @ mixed), 0.5 + 2 * scale * draw(M, D)
    return features, labels, new, C, 1.0 if full else 0.2 + 0.6 * torch.rand(1, generator=draw.generator).item()


DISCRIMINANT = replace(
    SHOWN["discriminant_scores"],
    cases=(
        Case("the scores of all classes", features_of_classes, 10),
        Case("hardly more images than classes", lambda draw: features_of_classes(draw, few=True), 4),
        Case("a covariance matrix that is shrunk completely", lambda draw: features_of_classes(draw, full=True), 3),
    ),
)


ASSIGNMENT = Assignment(
    "13",
    notebook="mae",
    title="Masked autoencoders",
    tasks=(HOG, TEACHER, RECONSTRUCTED, FREQUENCIES, PROBE, DISCRIMINANT, SHOWN["train"]),
)
