"""Lesson 11, Vision Transformer: what the check cells of its assignment ask; the grader's tables are in hidden/11."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.layers.patches import patchify, unpatchify
from course_lib.tasks import Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general

# digits in pieces, put together in one secret order ---------------------------------------------------------

SIDE, PATCH, PATCHES = 16, 4, 16  # a picture of 16 x 16 pixels has 4 x 4 patches of 4 x 4 pixels


def scrambled_digits(split: str, count: int, *, secret: int = 0) -> LabelledImages:
    """Digits, (count, 16, 16), of which all patches stand elsewhere: the same secret is the same order."""
    pixels, labels = CleanDigits(split=split, size=SIDE).batch(count, secret)
    order = Draw(secret)(PATCHES).argsort()
    return LabelledImages(_with_patches(pixels[:, 0], lambda patches: patches[:, order]), labels)


def _with_patches(pictures: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    return unpatchify(change(patchify(pictures[:, None], PATCH)), PATCH, SIDE, SIDE)[:, 0]


def _in_pieces(pictures: Tensor, draw: Draw, *, hidden: int = 0, shuffled: bool = False) -> Tensor:
    """The pictures with so many patches in black, in each others, or with all patches in another order."""
    turn = draw(PATCHES).argsort() if shuffled else torch.arange(PATCHES)
    seen = draw(len(pictures), PATCHES, 1).argsort(dim=1) >= hidden
    return _with_patches(pictures, lambda patches: (patches * seen)[:, turn])


NOT_LEARNED = Finding(
    "not learned",
    "New digits are named worse than asked for.",
    "Does the loss fall from step to step? More steps, another learning rate, larger first positions?",
)
BY_HEART = Finding(
    "learned by heart",
    "The first pictures of the training are named much better than new ones.",
    "Use all of the pictures: other ones in each step.",
)
PLACELESS = Finding(
    "places left out",
    "The scores stay the same when the patches of a picture are shuffled: your model sees a bag of patches.",
    "Give each place something of its own: a position for each patch, or a Mixer's MLP across the places.",
)
ONLY_WHOLE = Finding(
    "only whole pictures",
    "Whole pictures are named well, those with black patches are not.",
    "Black some patches in training, too, in each picture others.",
)


def names(name: str, points: float, *, level: float, hidden: int = 0) -> Check:
    """At least this share of new digits is named right, with so many of 16 patches in black."""

    def trained(probe: Probe) -> tuple[ModuleProbe, LabelledImages, LabelledImages]:
        secret = probe.draw.integers(0, 2**31, 1).item()
        seen, new = scrambled_digits("train", 2_000, secret=secret), scrambled_digits("test", 1_000, secret=secret)
        return probe.make("train", *seen, seconds=45), seen, new

    def scores(model: ModuleProbe, pictures: Tensor) -> Tensor:
        return model.tensor(pictures, shape=(len(pictures), 10))

    def right(model: ModuleProbe, pictures: Tensor, labels: Tensor) -> float:
        return (scores(model, pictures).argmax(dim=1) == labels).float().mean().item()

    def run(probe: Probe) -> list[Finding]:
        model, seen, new = probe.once("trained", trained)
        found = scores(model, new.pixels[:100])
        scores(model, new.pixels[:1])  # a picture alone
        if not torch.allclose(found, scores(model, new.pixels[:100]), atol=1e-3, rtol=1e-3):
            raise CheckFailed(general(RANDOM))
        if right(model, _in_pieces(new.pixels, probe.draw, hidden=hidden), new.labels) >= level:
            return []
        shuffled = scores(model, _in_pieces(new.pixels[:100], probe.draw, shuffled=True))
        if torch.allclose(found, shuffled, atol=1e-3, rtol=1e-3) and found.std(dim=0).max() > 1e-3:
            return [PLACELESS]
        whole, known = right(model, *new), right(model, seen.pixels[:60], seen.labels[:60])
        if known > whole + 0.25:
            return [BY_HEART]
        return [(ONLY_WHOLE if hidden and whole >= level else NOT_LEARNED)]

    told = (NOT_LEARNED, BY_HEART, PLACELESS, ONLY_WHOLE)
    return Check(name=name, points=points, run=run, detects=tuple(one.misconception for one in told))


# the examples -----------------------------------------------------------------------------------------------

NINE = (
    ([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]]], 3, 2, 1),
    [
        [
            [0.0, 0, 0, 0, 1, 2, 0, 4, 5],
            [0.0, 0, 0, 2, 3, 0, 5, 6, 0],
            [0.0, 4, 5, 0, 7, 8, 0, 0, 0],
            [5.0, 6, 0, 8, 9, 0, 0, 0, 0],
        ]
    ],
)
SINE, COSINE = math.sin(1), math.cos(1)
GRID = (
    ([[[0.0, 0, 0, 0], [2, 0, 0, 0], [0, 3, 0, 0], [0, 0, 0, 0]]], 2, 2),
    [[[0.0, 1, 0, 1], [2 + SINE, COSINE, 0, 1], [0, 4, SINE, COSINE], [SINE, COSINE, SINE, COSINE]]],
)
FIRST = [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
SECOND = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
ROLLED = (([[[FIRST], [SECOND]]], 1, 2), [[[1 / 3, 2 / 3]]])
FUSED = (
    ([[[10.0], [1.0], [2.0], [6.0]]], [[[0.4, 0.2, 0.4, 0.0], [0.2, 0.2, 0.4, 0.2]]], 1),
    [[[10.0], [2.0], [8 / 3]]],
)
BOTH = (keeps_type, gradients)
SHOWN = (
    Task(
        "overlapping_patches",
        "Patches that overlap",
        asks="image, patch_size, stride, padding",
        also=BOTH,
        example=(NINE,),
    ),
    Task("add_positions", "Places in two directions", asks="patches, height, width", example=(GRID,)),
    Task("rollout_map", "Through all blocks at once", asks="weights, height, width", also=BOTH, example=(ROLLED,)),
    Task("keep_tokens", "Fewer tokens", asks="tokens, attention, count", also=BOTH, example=(FUSED,)),
    Task(
        "train",
        "Digits in pieces",
        asks="pictures, labels",
        seconds=45.0,
        checks=(
            names("At least 60 % of new digits are named right", 6, level=0.6),
            names("At least 85 % of new digits are named right", 9, level=0.85),
            names("At least 70 % are named right with a quarter of the patches in black", 8, level=0.7, hidden=4),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
