"""Lesson 14, Image to image: what the check cells of its assignment ask; the grader's tables are in hidden/14."""

import math

import torch
from torch import Tensor

from course_lib.functional.segmentation import mean_iou, outlines
from course_lib.tasks import Check, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# outlines on noise, drawn anew for each training ------------------------------------------------------------


def drawings(count: int, size: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pictures (count, 1, size, size), and for each pixel 0 for ground, 1 inside a circle, 2 inside a square.

    In each piece of 16 x 16 pixels stands one outline, or a cross, which is ground, or nothing.
    """
    pieces = size // 16
    kind = torch.randint(4, (count, pieces**2, 1, 1), generator=random)
    radius = 3.5 + 3.5 * torch.rand(count, pieces**2, 1, 1, generator=random)
    corner = 16 * torch.cartesian_prod(torch.arange(pieces), torch.arange(pieces))
    middle = corner + 6.5 + 2 * torch.rand(count, pieces**2, 2, generator=random)
    dy = (torch.arange(size)[:, None] - middle[..., 0, None, None]).abs()
    dx = (torch.arange(size) - middle[..., 1, None, None]).abs()
    far = torch.where(kind == 1, torch.hypot(dy, dx), torch.maximum(dy, dx))
    line = ((far - radius).abs() < 0.6) & (kind > 0)
    line = torch.where(kind == 3, ((dy - dx).abs() < 0.8) & (far < radius), line)
    labels = torch.where((far < radius + 0.6) & (kind < 3), kind, 0).amax(dim=1)
    pictures = 0.5 * line.any(dim=1) + 0.25 * torch.randn(count, size, size, generator=random)
    return pictures.clamp(0, 1)[:, None], labels


NOT_LEARNED = Finding(
    "not learned",
    "Of new pictures, what is inside of an outline is hardly told from the ground.",
    "Does the loss fall from step to step? If it does, pixels in the middle may not see the outline around them: pool.",
)
BY_HEART = Finding(
    "learned by heart",
    "The pictures of the training are labelled much better than new ones.",
    "Take other pictures in each step, from all that are given.",
)
KINDS = Finding(
    "circles and squares mixed up",
    "What is inside is told from the ground, but circles and squares are not told apart.",
    "A pixel in the middle has to see the outline around it: pool twice or more, so that a few convolutions reach far.",
)
COARSE = Finding(
    "borders astray",
    "Away from the borders the labels are right, next to them they are not.",
    "Where something is, is known best before pooling: let the larger maps take part, beside those that come up again.",
)
ONE_SIZE = Finding(
    "only pictures of one size",
    "Pictures of the training's size are labelled well, larger ones are not.",
    "Use nothing but convolutions, pooling and transposed convolutions: none of them knows how large the picture is.",
)
TOGETHER = Finding(
    "depends on the rest of the batch",
    "A picture is labelled otherwise alone than among others.",
    "Batch normalisation uses the batch's own mean until it is told not to: return `model.eval()`.",
)


def labelled(model: ModuleProbe, pictures: Tensor) -> Tensor:
    """The likeliest label of each pixel; a CheckFailed if it depends on chance, or on the other pictures."""
    N, _, H, W = pictures.shape
    model.tensor(pictures[:1], shape=(1, 3, H, W))
    alone, again = (model.tensor(pictures[:3], shape=(3, 3, H, W)) for _ in range(2))
    scores = model.tensor(pictures, shape=(N, 3, H, W))
    for other, fault in ((again, general(RANDOM)), (scores[:3], TOGETHER)):
        if not torch.allclose(alone, other, atol=1e-2, rtol=1e-2):
            raise CheckFailed(fault)
    return scores.argmax(dim=1)


def labels(name: str, points: float, *, above: float, size: int = 32) -> Check:
    """The mean IoU of the three labels in new pictures."""

    def trained(probe: Probe) -> tuple[ModuleProbe, tuple[Tensor, Tensor]]:
        known = drawings(300, 32, probe.draw.generator)
        return probe.make("train", *known, seconds=45), known

    def run(probe: Probe) -> list[Finding]:
        model, (old, old_labels) = probe.once("trained", trained)
        pictures, true = drawings(120, 32, probe.draw.generator)

        def still_knows() -> bool:
            return mean_iou(model.tensor(pictures).argmax(dim=1), true, 3) > above

        found = labelled(model, pictures)
        new = mean_iou(found, true, 3)
        if new > above:
            probe.once("in its parameters", lambda _: in_parameters(model, pictures[:8], knows=still_knows))
        if size != 32:
            larger, larger_labels = drawings(40, size, probe.draw.generator)
            try:
                share = mean_iou(labelled(model, larger), larger_labels, 3)
            except CheckFailed:
                share = 0.0
            return [] if share > above else [(ONE_SIZE if new > above else NOT_LEARNED)]
        if new > above:
            return []
        inner = ~outlines(true)
        if mean_iou(labelled(model, old[:16]), old_labels[:16], 3) > new + 0.1:
            return [BY_HEART]
        if mean_iou(found[inner], true[inner], 3) > above:
            return [COARSE]
        inside = mean_iou((found > 0).long(), (true > 0).long(), 2)
        return [(KINDS if inside > 0.6 else NOT_LEARNED)]

    told = (NOT_LEARNED, BY_HEART, KINDS, COARSE, ONE_SIZE, TOGETHER)
    return Check(name=name, points=points, run=run, detects=(*(one.misconception for one in told), ELSEWHERE))


# the examples -----------------------------------------------------------------------------------------------

BOTH = (keeps_type, gradients)
GROWN = ([[[[4.0, 8.0]]]], 2), [[[[2.25, 3.75, 5.25, 4.5]] * 2]]
SKIP, SMALL = [[[[float(4 * row + column + 1) for column in range(4)] for row in range(4)]]], [[[[50.0], [60.0]]]]
JOINED = (SKIP, SMALL), [[[[6.0], [10.0]], [[50.0], [60.0]]]]
THINGS = (torch.tensor([[[1, 0, 2, 0]]]), 17.6, math.sqrt(2 / math.log(2))), [[[1.0, 9.8, 1.0, 2.1]]]
STRIPS = torch.tensor([[1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 0, 0]])[:, None] > 0
GUESSES = (STRIPS, [0.9, 0.8, 0.7, 0.3], STRIPS[1:3], 0.5), 5 / 6

SHOWN = (
    Task("upsample", "A net that grows maps", asks="maps, factor", also=BOTH, example=(GROWN,)),
    Task("crop_and_join", "The skip of 2015", asks="skip, x", also=BOTH, example=(JOINED,)),
    Task("border_weights", "Where two things nearly touch", asks="things, w0, sigma", example=(THINGS,)),
    Task("average_precision", "How many things were found?", asks="masks, scores, true, threshold", example=(GUESSES,)),
    Task(
        "train",
        "Inside or outside?",
        asks="pictures, labels",
        seconds=45.0,
        checks=(
            labels("Ground, circles and squares are told apart in new pictures", 9, above=0.75),
            labels("The labels are right up to the outlines", 9, above=0.87),
            labels("Larger pictures are labelled as well", 7, above=0.85, size=64),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
