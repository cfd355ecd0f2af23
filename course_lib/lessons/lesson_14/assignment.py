"""Lesson 14, Image to image: what the check cells of its assignment ask; the grader's tables are in hidden/14."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.functional.segmentation import mean_iou
from course_lib.tasks import TRAINING_SECONDS, Check, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general
from course_lib.tasks.table import Measure
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# outlines on noise, drawn anew for each training ------------------------------------------------------------

KNOWN, NEW = 300, 60  # images of the training, and of the measurement
SIDE, LARGER = 64, 96


def drawings(count: int, size: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images (count, 1, size, size), and for each pixel 0 for background, 1 inside a circle, 2 inside a square."""
    tiles = size // 32  # on each tile of 32 x 32 pixels there is a circle, a square, a cross or nothing
    kind = torch.randint(4, (count, tiles**2, 1, 1), generator=random)
    radius = 4 + 9 * torch.rand(count, tiles**2, 1, generator=random)
    corner = 32 * torch.cartesian_prod(torch.arange(tiles), torch.arange(tiles))
    shift = 2 * torch.rand(count, tiles**2, 2, generator=random) - 1
    centre, radius = corner + 15.5 + (14.5 - radius) * shift, radius[..., None]
    dy = (torch.arange(size)[:, None] - centre[..., 0, None, None]).abs()
    dx = (torch.arange(size) - centre[..., 1, None, None]).abs()
    distance = torch.where(kind == 1, torch.hypot(dy, dx), torch.maximum(dy, dx))
    line = ((distance - radius).abs() < 0.6) & (kind > 0)
    line = torch.where(kind == 3, ((dy - dx).abs() < 0.8) & (distance < radius), line)
    labels = torch.where((distance < radius + 0.6) & (kind < 3), kind, 0).amax(dim=1)
    images = 0.5 * line.any(dim=1) + 0.25 * torch.randn(count, size, size, generator=random)
    return images.clamp(0, 1)[:, None], labels


def near_borders(labels: Tensor) -> Tensor:
    """True where a pixel's neighbourhood of 5 x 5 pixels holds several labels."""
    x = labels[:, None].float()
    return (F.max_pool2d(x, 5, 1, 2) != -F.max_pool2d(-x, 5, 1, 2))[:, 0]


def inside_iou(predicted: Tensor, labels: Tensor) -> float:
    """The mean IoU of two labels, inside and outside, whatever the shape."""
    return mean_iou((predicted > 0).long(), (labels > 0).long(), 2)


NOT_LEARNED = Finding(
    "not learned",
    "In new images, pixels inside an outline are hardly told apart from the background.",
    "Does the training loss fall until the end? Try another learning rate.",
)
MEMORISED = Finding(
    "memorised",
    "The images of the training are labelled much better than new ones.",
    "Draw each batch from all of the images.",
)
KINDS = Finding(
    "circles and squares mixed up",
    "Inside and outside are told apart, but circles and squares are not.",
    "The network learns this last: does the loss still fall? Compare learning rates and normalisations.",
)
NO_CONTEXT = Finding(
    "receptive field too small",
    "Near the lines the labels are often right, but in the middle of large outlines they are wrong.",
    "How far from a pixel does your network see? Pooling enlarges the receptive field of all layers after it.",
)
COARSE = Finding(
    "borders blurred",
    "Away from the borders the labels are right, and next to them they are not.",
    "Pooling loses the exact position of a line. Which connection gives the decoder feature maps from before it?",
)
ONE_SIZE = Finding(
    "only images of one size",
    "Images of the training's size are labelled well, and larger ones are not.",
    "Use only layers that do not depend on the size: convolutions, pooling, transposed convolutions.",
)
TOGETHER = Finding(
    "result depends on the other images",
    "The logits of an image change with the other images of its batch.",
    "A batch norm in training mode uses the batch. Return the network in evaluation mode: `model.eval()`.",
)


def labelled(model: ModuleProbe, images: Tensor) -> Tensor:
    """The predicted label of each pixel; a CheckFailed if it depends on chance, or on the other images."""
    N, _, H, W = images.shape
    model.tensor(images[:1], shape=(1, 3, H, W))
    alone, again = (model.tensor(images[:3], shape=(3, 3, H, W)) for _ in range(2))
    logits = model.tensor(images, shape=(N, 3, H, W))
    for other, fault in ((again, general(RANDOM)), (logits[:3], TOGETHER)):
        if not torch.allclose(alone, other, atol=1e-2, rtol=1e-2):
            raise CheckFailed(fault)
    return logits.argmax(dim=1)


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained network, the images of its training, and how it labels new ones."""

    model: ModuleProbe
    known: tuple[Tensor, Tensor]
    found: Tensor
    true: Tensor


def _trained(probe: Probe) -> Trained:
    """A CheckFailed if the network depends on chance or on other images, or knows all with its parameters at 0."""
    known = drawings(KNOWN, SIDE, probe.draw.generator)
    model = probe.make("train", *known)
    images, true = drawings(NEW, SIDE, probe.draw.generator)
    found = labelled(model, images)

    def still_knows() -> bool:
        return inside_iou(model.tensor(images).argmax(dim=1), true) > 0.7

    in_parameters(model, images[:8], knows=still_knows)
    return Trained(model=model, known=known, found=found, true=true)


def _why(found: Tensor, true: Tensor, *, borders: bool = False) -> Finding:
    """What is said of labels that are not good enough: all of them, or those near the borders."""
    near = near_borders(true)
    edges, rest = inside_iou(found[near], true[near]), inside_iou(found[~near], true[~near])
    if rest > 0.93:
        return COARSE if borders else KINDS
    return NO_CONTEXT if edges > max(0.5, rest - 0.1) else NOT_LEARNED


def labels(name: str, points: float, *, above: float, borders: bool = False) -> Check:
    """The mean IoU of the three labels in new images; near the borders that of inside and outside."""

    def run(probe: Probe) -> list[Finding]:
        known = probe.once("trained", _trained)
        found, true, near = known.found, known.true, near_borders(known.true)
        new = mean_iou(found, true, 3)
        if not borders:
            probe.measured = new
        if (inside_iou(found[near], true[near]) if borders else new) > above:
            return []
        images, same = (part[:4] for part in known.known)
        if mean_iou(labelled(known.model, images), same, 3) > new + 0.15:
            return [MEMORISED]
        return [_why(found, true, borders=borders)]

    told = (NOT_LEARNED, MEMORISED, NO_CONTEXT, COARSE if borders else KINDS, TOGETHER)
    return Check(name=name, points=points, run=run, detects=(*(one.misconception for one in told), ELSEWHERE))


def larger(name: str, points: float, *, above: float) -> Check:
    """The mean IoU of the three labels in images that are larger than those of the training."""

    def run(probe: Probe) -> list[Finding]:
        known = probe.once("trained", _trained)
        images, true = drawings(NEW // 2, LARGER, probe.draw.generator)
        try:
            reached = mean_iou(labelled(known.model, images), true, 3)
        except CheckFailed:
            return [ONE_SIZE]
        if reached > above:
            return []
        return [ONE_SIZE if reached < mean_iou(known.found, known.true, 3) - 0.15 else _why(known.found, known.true)]

    told = (ONE_SIZE, NOT_LEARNED, NO_CONTEXT, KINDS, TOGETHER)
    return Check(name=name, points=points, run=run, detects=(*(one.misconception for one in told), ELSEWHERE))


# the examples -----------------------------------------------------------------------------------------------

UPSAMPLED = ([[[[4.0, 8.0]]]], 2), [[[[2.25, 3.75, 5.25, 4.5]] * 2]]
ALIGNED = (
    (
        torch.tensor([[[0.0, 8.0, 4.0, 0.0], [8.0, 0.0, 4.0, 0.0]]]),
        torch.tensor([[4, 2, 12, 6]]),
        4,
        2,
    ),
    [[[[5.25, 3.75], [2.75, 3.25]]]],
)
SKIPPED = ([[[[2.0, 1.0]]]], [[[[1.0, -1.0]]]], 2, 0, [0.9216, 0.64, 0.36]), [[[[2.2, 2.6]]]]
OBJECTS = (torch.tensor([[[1, 0, 2, 0]]]), 17.6, math.sqrt(2 / math.log(2))), [[[1.0, 9.8, 1.0, 2.1]]]
LIKELY = torch.tensor([0.64, 0.4, 0.9, 0.08, 0.5])
EXTENDED = (torch.stack([1 - LIKELY, LIKELY])[None, :, None], torch.tensor([[[1, 1, 0, 0, 255]]])), 0.61
STRIPS = torch.tensor([[1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 0, 0]])[:, None] > 0
PREDICTIONS = (STRIPS, [0.9, 0.8, 0.7, 0.3], STRIPS[1:3], 0.5), 5 / 6
SEGMENTS = (
    (
        torch.tensor([[0, 0, 0, 1, 1, -1, -1, 2, 2, 2]]),
        torch.tensor([1, 1, 2]),
        torch.tensor([[0, 0, 0, 0, 1, 1, 1, 2, 2, -1]]),
        torch.tensor([1, 1, 2]),
    ),
    11 / 16,
)

SHOWN = (
    Task(
        "upsample",
        "Bilinear upsampling that can be learned",
        asks="x, factor",
        also=(keeps_type, gradients),
        example=(UPSAMPLED,),
    ),
    Task(
        "roi_align",
        "RoIAlign, a feature map for each box",
        asks="x, boxes, stride, size",
        also=(keeps_type, gradients),
        example=(ALIGNED,),
    ),
    Task(
        "ddim_step",
        "A step of DDIM",
        asks="noisy, predicted, t, before, alpha_bars",
        also=(keeps_type,),
        example=(SKIPPED,),
    ),
    Task(
        "border_weights",
        "Loss weights between neighbouring objects",
        asks="objects, w0, sigma",
        example=(OBJECTS,),
    ),
    Task(
        "lovasz_softmax",
        "A loss made from the intersection over union",
        asks="probs, labels",
        also=(gradients,),
        example=(EXTENDED,),
    ),
    Task(
        "average_precision",
        "Average precision",
        asks="masks, scores, true, threshold",
        example=(PREDICTIONS,),
    ),
    Task(
        "panoptic_quality",
        "Panoptic quality",
        asks="predicted, predicted_classes, true, true_classes",
        example=(SEGMENTS,),
    ),
    Task(
        "train",
        "Inside or outside?",
        asks="images, labels",
        seconds=TRAINING_SECONDS,
        measure=Measure("mean IoU of new images", lower_is_better=False),
        checks=(
            labels("New images: mean IoU above 0.88", 8, above=0.88),
            larger("Larger images: mean IoU above 0.88", 8, above=0.88),
            labels("Near the borders: mean IoU of inside and outside above 0.89", 8, above=0.89, borders=True),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
