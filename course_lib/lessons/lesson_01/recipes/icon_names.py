"""A small ResNet that names icons, with and without augmentation: new drawings, and an unseen designer.

He et al., "Deep residual learning for image recognition", CVPR 2016, arXiv 1512.03385. Crop, flip and background are
the augmentation of the lesson's exercise: each training drawing is shifted by up to 4 pixels, mirrored half of the
time, and half of the time put on a background of a random colour instead of white. Drawings are scored on white, and
those of the test on random colours, too.
"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from course_lib.data.digits import LabelledImages
from course_lib.data.icons import Icons, icons
from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.training.recipe import Recipe, Scores, Trained, each
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, fit_classifier, seed_of_step

SHIFT = 4  # pixels
WHITE = 0.5  # share of the views on white


@dataclass(frozen=True, kw_only=True)
class IconSettings:
    """A ResNet with a stage at each of three resolutions, and how it learns the names."""

    augmented: bool = True
    widths: tuple[int, ...] = (32, 64, 128)
    depths: tuple[int, ...] = (1, 1, 1)
    steps: int = 3000
    batch_size: int = 64
    learning_rate: float = 1e-2
    weight_decay: float = 0.05
    ema: float = 0.99
    seed: int = 0


def build(settings: IconSettings, num_classes: int) -> ResNet:
    """A fresh network; its first weights depend on the seed alone."""
    config = ResNetConfig(
        num_classes=num_classes,
        stem="small",
        stem_channels=settings.widths[0],
        widths=settings.widths,
        depths=settings.depths,
        block="basic",
        stride_in_first_stage=True,
    )
    with seeded(settings.seed):
        return ResNet(config)


@cache
def known_names() -> Int[Tensor, " K"]:
    """The numbers of the things that training drawings show, in rising order: class k is the k-th."""
    return icons("train").names.unique()


def with_classes(drawings: Icons, names: Int[Tensor, " K"] | None = None) -> tuple[Icons, Int[Tensor, " B"]]:
    """The drawings of these things (None: those of training), and which of them each shows."""
    names = known_names() if names is None else names
    kept = torch.isin(drawings.names, names)
    found = drawings.take(kept)
    return found, torch.searchsorted(names, found.names)


def views(
    drawings: Icons,
    flip: Bool[Tensor, " B"],
    shift: Int[Tensor, "B 2"],
    ground: Float[Tensor, "B 3"],
) -> Float[Tensor, "B 3 H W"]:
    """The exercise `augment` without a loop: windows of the padded drawings, mirrored, on a background."""
    rgba = F.pad(torch.cat([drawings.pixels, drawings.alpha], dim=1), (SHIFT,) * 4)
    size = drawings.pixels.shape[-1]
    across = torch.arange(size)
    rows, columns = shift[:, :1] + across, shift[:, 1:] + torch.where(flip[:, None], across.flip(0), across)
    batch = torch.arange(len(flip))[:, None, None]
    moved = rgba.permute(0, 2, 3, 1)[batch, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    alpha = moved[:, 3:]
    return alpha * moved[:, :3] + (1 - alpha) * ground[:, :, None, None]


def grounds(count: int, generator: Generator | None = None) -> Float[Tensor, "B 3"]:
    """White or, for half of them, a random colour."""
    white = torch.rand(count, 1, generator=generator) < WHITE
    return torch.where(white, torch.ones(3), torch.rand(count, 3, generator=generator))


def random_views(drawings: Icons, generator: Generator | None = None) -> Float[Tensor, "B 3 H W"]:
    """A random view of each drawing."""
    count = len(drawings.names)
    return views(
        drawings,
        torch.rand(count, generator=generator) < 0.5,
        torch.randint(0, 2 * SHIFT + 1, (count, 2), generator=generator),
        grounds(count, generator),
    )


def batch_of(drawings: Icons, labels: Int[Tensor, " B"], size: int, *, augmented: bool, seed: int) -> LabelledImages:
    """Some of the drawings, drawn with replacement: random views of them, or all as they are on white."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(len(labels), (size,), generator=generator)
    some = drawings.take(rows)
    return LabelledImages(random_views(some, generator) if augmented else some.on(1.0), labels[rows])


def train(settings: IconSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains on the training drawings of all known things."""
    drawings, labels = with_classes(icons("train"))
    return fit_classifier(
        settings,
        build(settings, len(known_names())),
        lambda step: batch_of(
            drawings,
            labels,
            settings.batch_size,
            augmented=settings.augmented,
            seed=seed_of_step(settings.seed, step),
        ),
        warmup=min(100, max(1, settings.steps // 10)),
        checkpoint=checkpoint,
    )


def on_split(model: ResNet, split: str, *, coloured: bool = False) -> float:
    """The accuracy on the drawings of a split, from 0 to 1: on white, or on a random colour each."""
    drawings, labels = with_classes(icons(split))
    colours = torch.rand(len(labels), 3, 1, 1, generator=torch.Generator().manual_seed(0))
    return accuracy(model, drawings.on(colours if coloured else 1.0), labels)


def score(trained: Trained, split: str) -> Scores:
    """The accuracy on new drawings; for the test also on coloured grounds, by an unseen designer, and in training."""
    if split == "validation":
        return {"accuracy": on_split(trained.model, "validation")}
    return {
        "accuracy": on_split(trained.model, "test"),
        "accuracy, coloured ground": on_split(trained.model, "test", coloured=True),
        "accuracy, new designer": on_split(trained.model, "new designer"),
        "accuracy, training drawings": on_split(trained.model, "train"),
    }


SETTINGS = IconSettings()
SHIPPED = "augmented"
VARIANTS = {SHIPPED: SETTINGS, "plain": replace(SETTINGS, augmented=False)}

RECIPE = Recipe(
    title="ResNet that names icons",
    lesson="01",
    data="icons of course_lib.data.icons, 32 x 32 pixels in colour: 647 things by seven designers; test: other "
    "drawings by these designers, and the same things by a designer of whom nothing is in the training",
    minutes=5,
    variants=VARIANTS,
    ships=SHIPPED,
    train=train,
    scores=each(score),
    chosen_by=f"accuracy, {SHIPPED}",
    mode="max",
)
