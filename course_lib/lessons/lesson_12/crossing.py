"""Lesson 12: two marks on either side of a border between windows; are they alike? Windows that never move cannot say.

Without a shift the class scores are a mean over the windows, f(left) + g(right); no such sum tells whether two marks
are alike.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from course_lib.data.digits import LabelledImages
from course_lib.models.swin import Swin, SwinConfig
from course_lib.training.loop import FitConfig, fit
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, classification_loss, seed_of_step

PATCH, SIDE = 4, 4  # pixels of a patch; patches of a picture. Windows are half a picture wide


def marks(count: int, seed: int) -> LabelledImages:
    """Grey pictures with a light or dark mark on each side of the middle; 1 where the two differ, 0 where not."""
    dice = torch.Generator().manual_seed(seed)
    colours = torch.randint(0, 2, (count, 2), generator=dice)
    row = torch.randint(0, SIDE, (count,), generator=dice)
    turned = torch.rand(count, generator=dice) < 0.5
    patches, each = torch.full((count, SIDE, SIDE), 0.5), torch.arange(count)
    for position in (0, 1):
        patches[each, row, SIDE // 2 - 1 + position] = colours[:, position].float()
    patches = torch.where(turned[:, None, None], patches.mT, patches)
    pixels = patches.repeat_interleave(PATCH, 1).repeat_interleave(PATCH, 2)[:, None]
    return LabelledImages(pixels, (colours[:, 0] != colours[:, 1]).long())


@dataclass
class Learned:
    """Share of new pictures answered right at the end, and the loss of each step."""

    right: float = 0.0
    losses: list[float] = field(default_factory=list)


def build(*, shifted: bool, seed: int) -> Swin:
    """Two blocks, windows of 2 x 2 patches; the first weights depend on the seed alone, with and without the shift."""
    sizes = {"patch_size": PATCH, "in_channels": 1, "num_classes": 2, "dim": 32, "depths": (2,), "num_heads": (2,)}
    with seeded(seed):
        return Swin(SwinConfig(**sizes, window_size=SIDE // 2, shifted=shifted, drop_path=0.0))


def learn(*, shifted: bool, steps: int = 300, seed: int = 0) -> Learned:
    """Trains the two blocks on marks that are drawn afresh in each step."""
    model, found = build(shifted=shifted, seed=seed), Learned()

    def loss(model: Swin, batch: LabelledImages) -> Tensor:
        value = classification_loss(model, batch)
        found.losses.append(value.item())
        return value

    fit(
        model,
        lambda step: marks(64, seed_of_step(seed + 1, step)),
        loss,
        config=FitConfig(steps=steps, learning_rate=3e-3, warmup=min(20, steps), weight_decay=0.01, seed=seed),
    )
    found.right = accuracy(model, *marks(500, 0))
    return found
