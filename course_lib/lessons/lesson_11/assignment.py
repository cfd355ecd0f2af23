"""Lesson 11, Vision Transformer: what the check cells of its assignment ask; the grader's tables are in hidden/11."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data.digits import CleanDigits
from course_lib.layers.patches import patchify
from course_lib.tasks import TRAINING_SECONDS, Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# digits as lists of patches, with a secret numbering of the positions ---------------------------------------

SIDE, PATCH, PATCHES = 20, 5, 16  # an image of 20 x 20 pixels has 4 x 4 patches of 5 x 5 pixels
GIVEN = 10  # patches of each image in the upper check


class Pieces(NamedTuple):
    """Images as lists of patches in any order, the number of each patch's position, and the labels."""

    patches: Float[Tensor, "B N P"]
    positions: Int[Tensor, "B N"]
    labels: Int[Tensor, " B"]

    def first(self, count: int) -> "Pieces":
        """The first so many patches of each list: since lists have a random order, these are drawn at random."""
        return Pieces(self.patches[:, :count], self.positions[:, :count], self.labels)


def digits_in_pieces(split: str, count: int, *, secret: int = 0) -> Pieces:
    """Digits of 20 x 20 pixels as lists of 16 patches of 25 values; the same secret is the same numbering."""
    digits = CleanDigits(split=split, size=SIDE, scale=(0.6, 0.85), rotation=15.0, shift=0.1)
    pixels, labels = digits.batch(count, secret)
    patches, draw = patchify(pixels, PATCH), Draw(secret)
    numbers, order = draw(PATCHES).argsort(), draw(count, PATCHES).argsort(dim=1)
    return Pieces(patches[torch.arange(count)[:, None], order], numbers[order], labels)


NEIGHBOURS = Finding(
    "logits depend on the other images",
    "The logits of an image change with the other images of its batch.",
    "A batch norm in training mode uses the batch. Return the network in evaluation mode: `model.eval()`.",
)
NOT_LEARNED = Finding(
    "not learned",
    "The accuracy on new digits is lower than asked for.",
    "Does the training loss fall? Compare the accuracy on training and new digits, and try another learning rate, "
    "more steps, or larger initial position embeddings.",
)
MEMORISED = Finding(
    "memorised",
    "The first digits of the training are classified much better than new ones.",
    "Draw each batch from all of the digits, and use other patches of a digit each time.",
)
WITHOUT_POSITIONS = Finding(
    "positions ignored",
    "The logits stay the same when the patches of an image exchange their positions: the model is given a set of "
    "patches, and no order.",
    "Give each position number an embedding of its own, and add it to the patch.",
)
ONLY_COMPLETE = Finding(
    "only complete lists",
    "Complete digits are classified well, digits of which patches are absent are not.",
    "Leave out patches in training, too: other ones each time, and different numbers of them.",
)


def classifies(name: str, points: float, *, above: float, given: int = PATCHES) -> Check:
    """The accuracy on new digits is above this, with so many of their 16 patches given; a guess reaches 10 %."""

    def trained(probe: Probe) -> tuple[ModuleProbe, Pieces, Pieces]:
        secret = probe.draw.integers(0, 2**31, 1).item()
        seen, new = (
            digits_in_pieces(split, size, secret=secret) for split, size in (("train", 4_000), ("test", 1_000))
        )
        model = probe.make("train", *seen)
        few = Pieces(*(part[:100] for part in new))
        in_parameters(model, few.patches, few.positions, knows=lambda: accuracy(model, few) > 0.3)
        return model, seen, new

    def run(probe: Probe) -> list[Finding]:
        model, seen, new = probe.once("trained", trained)
        found = accuracy(model, new.first(given))
        if found > above:
            return []
        few, known = Pieces(*(part[:100] for part in new)), Pieces(*(part[:100] for part in seen))
        exchanged = few._replace(positions=few.positions.roll(1, dims=1))
        if torch.allclose(logits(model, few), logits(model, exchanged), atol=1e-3, rtol=1e-3):
            return [WITHOUT_POSITIONS if logits(model, few).std(dim=0).max() > 1e-3 else NOT_LEARNED]
        whole = accuracy(model, new)
        if accuracy(model, known) > whole + 0.25:
            return [MEMORISED]
        return [ONLY_COMPLETE if whole > max(above, found + 0.25) else NOT_LEARNED]

    told = (NEIGHBOURS, NOT_LEARNED, MEMORISED, WITHOUT_POSITIONS, ONLY_COMPLETE)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


def logits(model: ModuleProbe, some: Pieces) -> Tensor:
    """Ten for each image."""
    return model.tensor(some.patches, some.positions, shape=(len(some.labels), 10))


def accuracy(model: ModuleProbe, some: Pieces) -> float:
    """The fraction classified correctly; a CheckFailed if it depends on chance, or on the other images."""
    found = logits(model, some)
    if not torch.allclose(found, logits(model, some), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    for few in (torch.arange(len(found)).flip(0)[:5], torch.tensor([1])):  # elsewhere in another batch; alone
        if not torch.allclose(found[few], logits(model, Pieces(*(part[few] for part in some))), atol=1e-3, rtol=1e-3):
            raise CheckFailed(NEIGHBOURS)
    return (found.argmax(dim=1) == some.labels).float().mean().item()


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
CORNERS = (
    ([[[[1.0, 2.0], [3.0, 4.0]]]], 2, 1),
    [[[1.0, 4, 0, 0, 0, 2, 0, 3, 0, 0, 3, 0, 0, 2, 0, 4, 0, 0, 0, 1]]],
)
SINE, COSINE = math.sin(1), math.cos(1)
GRID = (
    ([[[0.0, 0, 0, 0], [2, 0, 0, 0], [0, 3, 0, 0], [0, 0, 0, 0]]], 2, 2),
    [[[0.0, 1, 0, 1], [2 + SINE, COSINE, 0, 1], [0, 4, SINE, COSINE], [SINE, COSINE, SINE, COSINE]]],
)
TURNED = (
    ([[[[1.0, 2, 3, 4], [1, 0, 2, 0], [0, 3, 0, 1], [1, 0, 0, 2]]]], 2, 2),
    [[[[1.0, 2, 3, 4], [COSINE, SINE, 2, 0], [0, 3, -SINE, COSINE], [COSINE, SINE, -2 * SINE, 2 * COSINE]]]],
)
FIRST = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
SECOND = [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
UP, DOWN = ([[0.0, 0.0, 0.0], [0.0, 0.0, slope], [0.0, 0.0, 0.0]] for slope in (4.0, -3.0))
MORE, LESS = ([[0.0, slope, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]] for slope in (4.0, -1.0))
ROLLED = (([[[FIRST, FIRST], [SECOND, SECOND]]], [[[UP, DOWN], [MORE, LESS]]], 1, 2), [[[1 / 3, 2 / 3]]])
NORMS = (
    (
        [[[FIRST, FIRST], [SECOND, SECOND]]],
        [
            [
                [[[1.0, 0], [1, 1], [3, 0]], [[0, 1], [1, 1], [0, 4]]],
                [[[2, 0], [2, 0], [1, 1]], [[-2, 0], [4, 0], [1, 1]]],
            ]
        ],
        [[[[1.0, 0], [15, 0], [1, 0]], [[0, 1], [1, 0], [1, 0]]]],
        1,
        2,
    ),
    [[[3 / 4, 1 / 4]]],
)
FUSED = (
    ([[[10.0], [1.0], [2.0], [6.0]]], [[[0.4, 0.2, 0.4, 0.0], [0.2, 0.2, 0.4, 0.2]]], 1),
    [[[10.0], [2.0], [8 / 3]]],
)
JOINED = (
    (
        [[[10.0], [1.0], [2.0], [4.0], [9.0]]],
        [[[[1.0, 1], [1, 0], [60, 0], [0, 2], [24, 0]], [[1, 1], [1, 0], [0, 80], [0, 0], [0, 10]]]],
        [[1.0, 1, 1, 1, 3]],
        1,
    ),
    [[[10.0], [7.0], [2.0], [4.0]]],
)
BOTH = (keeps_type, gradients)
SHOWN = (
    Task(
        "overlapping_patches",
        "Overlapping patches",
        asks="image, patch_size, stride, padding",
        also=BOTH,
        example=(NINE,),
    ),
    Task(
        "shifted_patches",
        "Shifted patches",
        asks="image, patch_size, shift",
        also=BOTH,
        example=(CORNERS,),
    ),
    Task("add_positions", "Positions in two dimensions", asks="patches, height, width", example=(GRID,)),
    Task("rotate_by_position", "Rotated by position", asks="x, height, width", example=(TURNED,)),
    Task(
        "rollout_map",
        "A rollout for one class",
        asks="weights, gradients, height, width",
        also=BOTH,
        example=(ROLLED,),
    ),
    Task(
        "contribution_map",
        "A rollout of vector norms",
        asks="weights, values, inputs, height, width",
        also=BOTH,
        example=(NORMS,),
    ),
    Task("keep_tokens", "Fused tokens", asks="tokens, attention, count", also=BOTH, example=(FUSED,)),
    Task(
        "merge_tokens",
        "Merged tokens",
        asks="tokens, keys, sizes, count",
        also=(keeps_type,),
        example=(JOINED,),
    ),
    Task(
        "train",
        "Digits in pieces",
        asks="patches, positions, labels",
        seconds=TRAINING_SECONDS,
        checks=(
            classifies("All 16 patches given: accuracy above 76 %", 7, above=0.76),
            classifies("Ten of 16 patches given: accuracy above 60 %", 10, above=0.6, given=GIVEN),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
