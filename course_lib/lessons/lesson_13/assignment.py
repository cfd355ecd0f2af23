"""Lesson 13, masked autoencoders: what the check cells of its assignment ask; the grader's tables are in hidden/13."""

import math

import torch
from torch import Tensor

from course_lib.tasks import Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general

# cloth, woven anew for each training ------------------------------------------------------------------------

SIDE, PATCHES = 16, 16  # a picture of 16 x 16 pixels has 4 x 4 patches of 4 x 4 pixels
WAVES = 3


class Cloth:
    """Pictures that are sums of the same three waves, in each picture begun elsewhere and of another strength."""

    def __init__(self, draw: Draw):
        across = torch.cartesian_prod(torch.arange(1, 4), torch.arange(-3, 4))
        self.waves = across[draw(len(across)).argsort()[:WAVES]]

    def pictures(self, draw: Draw, count: int) -> Tensor:
        """So many, (count, 16, 16), of mean 0 and variance 1."""
        position = torch.arange(SIDE) / SIDE
        down, across = self.waves.T[:, :, None, None]
        turns = down * position[:, None] + across * position
        start, strength = torch.rand(2, count, WAVES, 1, 1, generator=draw.generator)
        return ((0.5 + strength) * (2 * math.pi * (turns + start)).cos()).sum(1) / (WAVES * 13 / 24) ** 0.5


def holes(masked: Tensor) -> Tensor:
    """Masks of patches, (B, 16), as masks of pixels, (B, 16, 16)."""
    return masked.view(-1, 4, 4).repeat_interleave(4, dim=1).repeat_interleave(4, dim=2)


LOOKS = Finding(
    "looks into the holes",
    "What your model paints changes when the hidden pixels change: it has read what it is to guess.",
    "Fill the holes before anything else is computed: `pictures.masked_fill(holes, 0.0)`. True means hidden.",
)
NOT_LEARNED = Finding(
    "not learned",
    "The hidden patches of new pictures are painted worse than asked for.",
    "Does the loss fall from step to step? Are other patches hidden in each step? Then more steps.",
)
BY_HEART = Finding(
    "learned by heart",
    "The pictures of the training are painted much better than new ones of the same cloth.",
    "Use all of the pictures: other ones in each step.",
)
WHOLE = Finding(
    "nothing was hidden in training",
    "Whole pictures come out well, torn ones do not.",
    "Hide patches in training, other ones in each step, and let the loss count what is painted there.",
)
OTHER_SHARES = Finding(
    "only one share of hidden patches",
    "With as many patches hidden as in training it paints well, with more or fewer of them it does not.",
    "Hide sometimes few and sometimes many patches in training.",
)


def errors(model: ModuleProbe, pictures: Tensor, hidden: int, draw: Draw) -> tuple[float, float]:
    """The squared error at hidden and at visible pixels; a CheckFailed if it depends on chance, or on hidden pixels."""
    masked = draw(len(pictures), PATCHES).argsort(dim=1) < hidden
    away = holes(masked)
    model.tensor(pictures[:1], masked[:1], shape=(1, *pictures.shape[1:]))  # a picture alone
    found = model.tensor(pictures, masked, shape=pictures.shape)
    if not torch.allclose(found, model.tensor(pictures, masked, shape=pictures.shape), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    others = torch.where(away, draw(*pictures.shape), pictures)
    if not torch.allclose(found, model.tensor(others, masked, shape=pictures.shape), atol=1e-3, rtol=1e-3):
        raise CheckFailed(LOOKS)
    wrong = (found - pictures).square()
    return wrong[away].mean().item(), wrong[~away].mean().item()


def paints(name: str, points: float, *, below: float, hidden: int = 8) -> Check:
    """New pictures, with so many of 16 patches hidden, are painted with a smaller error than this; grey has 1."""

    def trained(probe: Probe) -> tuple[ModuleProbe, Tensor, Tensor]:
        cloth = Cloth(probe.draw)
        seen, new = cloth.pictures(probe.draw, 2_000), cloth.pictures(probe.draw, 500)
        return probe.make("train", seen, seconds=45), seen, new

    def run(probe: Probe) -> list[Finding]:
        model, seen, new = probe.once("trained", trained)
        error, _ = errors(model, new, hidden, probe.draw)
        if error < below:
            return []
        if errors(model, new, 0, probe.draw)[1] < error / 10:
            return [WHOLE]
        if min(errors(model, some, hidden, probe.draw)[0] for some in (seen[:8], seen[-8:])) < error / 3:
            return [BY_HEART]
        others = min(errors(model, new, share, probe.draw)[0] for share in (4, 8, 12))
        return [(OTHER_SHARES if others < 0.1 else NOT_LEARNED)]

    told = (LOOKS, NOT_LEARNED, BY_HEART, WHOLE, OTHER_SHARES)
    return Check(name=name, points=points, run=run, detects=tuple(one.misconception for one in told))


# the examples -----------------------------------------------------------------------------------------------

BLOCKS = (
    (torch.tensor([[0, 1, 2, 2], [1, 2, 3, 3]]), (3, 4), 5),
    [[False, True, True, False], [False, True, True, True], [False, False, False, False]],
)
TORN = (
    (
        [[[[5.0, 6.0, 0.0, 0.0], [7.0, 8.0, 0.0, 4.0]]]],
        [[[9.0, 9.0, 9.0, 9.0], [1.0, 0.0, -1.0, 0.0]]],
        torch.tensor([[False, True]]),
        2,
    ),
    [[[[5.0, 6.0, 3.0, 1.0], [7.0, 8.0, -1.0, 1.0]]]],
)
TWO = (([[0.0], [2.0]], torch.tensor([0, 1]), [[3.0], [1.0]], 2, 2.0), [[0.0, 1.0], [0.5, 0.5]])

SHOWN = (
    Task("block_mask", "Holes of a given size", asks="blocks, grid, count", example=(BLOCKS,)),
    Task(
        "reconstruct",
        "Back to a picture",
        asks="image, painted, masked, patch_size",
        also=(keeps_type, gradients),
        example=(TORN,),
    ),
    Task(
        "probe_scores",
        "A probe in one step",
        asks="features, labels, asked, num_classes, penalty",
        also=(keeps_type,),
        example=(TWO,),
    ),
    Task(
        "train",
        "Mend the cloth",
        asks="pictures",
        seconds=45.0,
        checks=(
            paints("With half of the patches hidden, it paints better than grey", 6, below=0.5),
            paints("With half of the patches hidden, it paints well", 8, below=0.1),
            paints("With three quarters hidden, too", 6, below=0.1, hidden=12),
            paints("With a quarter hidden, too", 5, below=0.1, hidden=4),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
