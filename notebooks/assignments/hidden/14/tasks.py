"""Assignment 14, Image to image: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_14.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def maps_and_factor(draw: Draw, *, odd: bool) -> tuple[Tensor, int]:
    """Feature maps of drawn sizes, and how many times as large they become."""
    return draw(*draw.sizes(4, high=6)), 2 * draw.integers(1, 3, 1).item() + odd


UPSAMPLE = replace(
    SHOWN["upsample"],
    cases=(
        Case("an even factor", lambda draw: maps_and_factor(draw, odd=False), 8),
        Case("an odd factor", lambda draw: maps_and_factor(draw, odd=True), 3),
        Case("with the factor 1 nothing changes", lambda draw: (draw(*draw.sizes(4, high=6)), 1), 2),
    ),
)


def map_and_boxes(draw: Draw, *, corners: bool = False, size: int | None = None) -> tuple[Tensor, Tensor, int, int]:
    """A feature map and boxes, all around the centre of the image, or near two of its corners and beyond them."""
    N, C, h, w = draw.sizes(4, 3, 8)
    stride, size = 2 * draw.integers(2, 6, 1).item(), size or draw.integers(2, 5, 1).item()
    height, width = stride * h, stride * w

    def side(length: int) -> tuple[Tensor, Tensor]:
        return draw.integers(stride // 2, length // 2, N), draw.integers(length // 2 + 1, length - stride // 2 + 1, N)

    (left, right), (top, bottom) = side(width), side(height)
    boxes = torch.stack([left, top, right, bottom], dim=1)
    if corners:
        near = draw.integers(-2, 2, N, 2).repeat(1, 2)
        near[:, 2:] += draw.integers(stride // 2, stride + 1, N, 2)
        far = torch.tensor([width, height, width, height]) - near[:, [2, 3, 0, 1]]
        boxes = torch.where(torch.arange(N)[:, None] % 2 == 0, near, far)
    return draw(C, h, w), boxes, stride, size


ROI_ALIGN = replace(
    SHOWN["roi_align"],
    cases=(
        Case("boxes inside the image", map_and_boxes, 7),
        Case("boxes at the corners of the image", lambda draw: map_and_boxes(draw, corners=True), 4),
        Case("a single bin for each box", lambda draw: map_and_boxes(draw, size=1), 2),
    ),
)


def noisy_and_steps(draw: Draw, *, to: str = "any") -> tuple[Tensor, Tensor, int, int, Tensor]:
    """Noisy images, the predicted noise, a step, an earlier one, and what is left of the image after each."""
    B, C, H, W = draw.sizes(4, high=6)
    T = draw.integers(12, 20, 1).item()
    alpha_bars = (0.98 - 0.1 * torch.rand(T, generator=draw.generator)).cumprod(dim=0)
    t = draw.integers(5, T - 1, 1).item()
    any_step = draw.integers(1, t - 2, 1).item()
    before = {"any": any_step, "neighbour": t - 1, "first": 0, "clean": -1}[to]
    return 1 + 2 * draw(B, C, H, W), draw(B, C, H, W), t, before, alpha_bars


DDIM = replace(
    SHOWN["ddim_step"],
    cases=(
        Case("from step t to an earlier one", noisy_and_steps, 5),
        Case("to the step just before", lambda draw: noisy_and_steps(draw, to="neighbour"), 2),
        Case("to step 0", lambda draw: noisy_and_steps(draw, to="first"), 2),
        Case("to clean images", lambda draw: noisy_and_steps(draw, to="clean"), 4),
    ),
)


def rectangles(draw: Draw, *, counts: tuple[int, ...] = (3, 4)) -> tuple[Tensor, float, float]:
    """Images with so many objects, which have any numbers, w0 and sigma."""
    objects = torch.zeros(len(counts), *draw.integers(11, 15, 2).tolist(), dtype=torch.int64)
    for image, count in zip(objects, counts, strict=True):
        numbers, corners = 1 + draw(9).argsort(), torch.tensor([(0, 0), (0, 6), (6, 0), (6, 6)])[draw(4).argsort()]
        for number, (row, column) in zip(numbers, corners[:count].tolist(), strict=False):
            top, left, height, width = (*draw.integers(0, 2, 2).tolist(), *draw.integers(2, 5, 2).tolist())
            image[row + top : row + top + height, column + left : column + left + width] = number
    return objects, 5 + draw.integers(0, 50, 1).item() / 10, 2 + draw.integers(0, 20, 1).item() / 10


WEIGHTS = replace(
    SHOWN["border_weights"],
    cases=(
        Case("background between objects has a larger weight", rectangles, 8),
        Case("a batch of one image", lambda draw: rectangles(draw, counts=(3,)), 3),
        Case("an image with a single object", lambda draw: rectangles(draw, counts=(3, 1)), 3),
        Case("an image without objects", lambda draw: rectangles(draw, counts=(0, 2)), 2),
    ),
)


def probs_and_labels(draw: Draw, *, absent: bool = False, ignored: bool = False) -> tuple[Tensor, Tensor]:
    """Probabilities and labels, among which every class occurs; or one is absent, or some pixels are ignored."""
    B, K, H, W = draw.sizes(4, 3, 7)
    labels = torch.cat([torch.arange(K), draw.integers(0, K, B * H * W - K)])[draw(B * H * W).argsort()]
    if absent:
        gone = draw.integers(1, K, 1).item()
        labels = torch.where(labels == gone, 0, labels)
    if ignored:
        labels = torch.where(torch.rand(len(labels), generator=draw.generator) < 0.3, 255, labels)
    return (2 * draw(B, K, H, W)).softmax(dim=1), labels.view(B, H, W)


LOVASZ = replace(
    SHOWN["lovasz_softmax"],
    cases=(
        Case("all classes occur", probs_and_labels, 8),
        Case("a class that does not occur", lambda draw: probs_and_labels(draw, absent=True), 3),
        Case("ignored pixels", lambda draw: probs_and_labels(draw, ignored=True), 4),
    ),
)


def strips(count: int, first: int, end: int | Tensor) -> Tensor:
    """Masks of a row of pixels, in the i-th of which those from 16 i + first to 16 i + end are True."""
    pixel, begin = torch.arange(16 * count + 8), 16 * torch.arange(count)[:, None]
    return (pixel >= begin + first) & (pixel < begin + end)


def predictions(draw: Draw, *, kinds: str = "all") -> tuple[Tensor, Tensor, Tensor, float]:
    """Predictions for objects in a row: good ones, doubles, ones that are too large or match nothing; with scores.

    Those in `wider` have an IoU between 0.4 and 0.8 each, so that the threshold decides how many of them are correct.
    """
    M = draw.integers(5, 8, 1).item()
    threshold = draw.integers(42, 62, 1).item() / 100 + 0.003  # which no IoU is exactly
    close, near, far, large, wide = (strips(M, *ends) for ends in ((0, 8), (1, 9), (3, 11), (0, 11), (-8, 17)))
    wider = strips(M, 0, 8 + draw.integers(2, 12, M, 1))
    true = torch.cat([close, strips(M, 3, 10)[:1]])  # the last is a second choice beside the first
    some = [near[:-1], far[1:-1], close[:2], wide, large[:2], wider]
    masks = torch.cat(some if kinds == "all" else [near, close, large, wider])
    masks = masks[draw(len(masks)).argsort()]
    scores = 0.05 + 0.9 * draw(len(masks)).argsort() / len(masks)
    return masks[:, None], scores, true[:, None], threshold


def one_for_each(draw: Draw) -> tuple[Tensor, Tensor, Tensor, float]:
    """A prediction that matches nothing, and then one for each object, whose IoU is exactly the threshold."""
    M, quarters = draw.integers(2, 8, 1).item(), draw.integers(1, 4, 1).item()
    masks = torch.cat([strips(M, 9, 12)[:1], strips(M, 0, 2 * quarters)])
    return masks[:, None], 0.9 - torch.arange(M + 1) / 10, strips(M, 0, 8)[:, None], quarters / 4


def a_prediction(draw: Draw) -> tuple[Tensor, Tensor, Tensor, float]:
    """A single prediction, for one of some objects."""
    M, threshold = draw.integers(2, 5, 1).item(), draw.integers(3, 7, 1).item() / 10
    which = draw.integers(0, M, 1)
    return strips(M, 1, 9)[which][:, None], torch.rand(1, generator=draw.generator), strips(M, 0, 8)[:, None], threshold


PRECISION = replace(
    SHOWN["average_precision"],
    cases=(
        Case("predictions are matched in the order of their scores", predictions, 9),
        Case("several predictions for one object", lambda draw: predictions(draw, kinds="doubles"), 3),
        Case("an IoU that is exactly the threshold", one_for_each, 4),
        Case("a single prediction", a_prediction, 3),
    ),
)


def scene(
    draw: Draw, *, void: bool = False, unseen: bool = False, half: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Segments in the rows of an image, and predictions: good ones, shifted ones, of another class, some too many.

    Columns 12 to 19 are `void`, an `unseen` class is only predicted, and every second segment has `half` as its IoU.
    """
    rows, (background, *kinds, other) = draw.integers(8, 12, 1).item(), draw(9).argsort()[:5].tolist()
    true, predicted = torch.zeros(2, rows, 24, dtype=torch.int64)
    true_classes, predicted_classes = [background], [background]

    def predict(row: int, first: int, length: int, kind: int) -> None:
        predicted[row, first : first + length] = len(predicted_classes)
        predicted_classes.append(kind)

    true[:, 12:20] = -1 if void else 0
    for row in range(rows):
        first, length, shift, grow, more = (
            draw.integers(low, high, 1).item() for low, high in ((2, 4), (7, 9), (0, 4), (0, 3), (3, 6))
        )
        shift = (-1, 0, 1, 4)[shift]  # none of them has an IoU of exactly one half
        true[row, first : first + length], kind = row + 1, kinds[row % 3]
        true_classes.append(kind)
        if half and row % 2:
            predict(row, first, 2 * length, kind)
            continue
        predict(row, first + shift, length + grow, kinds[(row + 1) % 3] if row % 4 == 3 else kind)
        if void:  # two of these pixels are void
            predict(row, 18, 3 if row == 1 else more, other if row == 1 else kind)
        elif row % 2:
            predict(row, 18, more, other if unseen and row % 4 == 1 else kind)
    predicted[0, 23] = -1
    order, others = draw(len(predicted_classes)).argsort(), draw(len(true_classes)).argsort()
    return (
        torch.where(predicted < 0, -1, order.argsort()[predicted]),
        torch.tensor(predicted_classes)[order],
        torch.where(true < 0, -1, others.argsort()[true]),
        torch.tensor(true_classes)[others],
    )


PANOPTIC = replace(
    SHOWN["panoptic_quality"],
    cases=(
        Case("segments of several classes", scene, 8),
        Case("void pixels", lambda draw: scene(draw, void=True), 5),
        Case("an IoU that is exactly one half", lambda draw: scene(draw, half=True), 3),
        Case("a class that is only predicted", lambda draw: scene(draw, unseen=True), 3),
    ),
)


ASSIGNMENT = Assignment(
    "14",
    notebook="segmentation",
    title="Image to image",
    tasks=(UPSAMPLE, ROI_ALIGN, DDIM, WEIGHTS, LOVASZ, PRECISION, PANOPTIC, SHOWN["train"]),
)
