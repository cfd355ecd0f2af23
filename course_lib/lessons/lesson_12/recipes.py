"""Lesson 12: a small Swin Transformer that reads digits, the same without shifts, and three networks that name icons.

Liu et al., "Swin Transformer: hierarchical vision Transformer using shifted windows", ICCV 2021, arXiv 2103.14030,
table 4: shifted windows against unshifted ones. He et al. 2016 and Dosovitskiy et al. 2021 for the other two networks.
"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.data.icons import Icons, icons
from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.models.swin import Swin, SwinConfig
from course_lib.models.vit import ViT, ViTConfig
from course_lib.training.recipe import Recipe, Scores, Trained, common, each, plain
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, fit_classifier, seed_of_step

SPLIT_IMAGES = {"validation": 2000, "test": 4000}  # by which a model is scored


@dataclass(frozen=True, kw_only=True)
class SwinSettings:
    """A small Swin, and how it learns clean digits."""

    size: int = 32  # pixels
    patch_size: int = 4  # pixels
    window_size: int = 4  # patches
    dim: int = 32
    depths: tuple[int, ...] = (2, 2)
    num_heads: tuple[int, ...] = (2, 4)
    positions: bool = True  # learned absolute ones, beside the relative ones inside a window
    shifted: bool = True
    drop_path: float = 0.1
    steps: int = 3000
    batch_size: int = 32
    learning_rate: float = 2e-3
    weight_decay: float = 0.05
    ema: float = 0.995
    seed: int = 0


def build(settings: SwinSettings) -> Swin:
    """A fresh model; its first weights depend on the seed alone, with and without shifts."""
    image_size = settings.size if settings.positions else None
    config = SwinConfig(image_size=image_size, in_channels=1, num_classes=10, **common(settings, SwinConfig))
    with seeded(settings.seed):
        return Swin(config)


def train(settings: SwinSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains on digits that are drawn afresh in each step."""
    source = CleanDigits(split="train", size=settings.size)
    return fit_classifier(
        settings,
        build(settings),
        lambda step: source.batch(settings.batch_size, seed_of_step(settings.seed, step)),
        parts=6,
        warmup=min(100, settings.steps // 10),
        validate=lambda model: right(model, settings, "validation"),
        checkpoint=checkpoint,
    )


def right(model: nn.Module, settings: SwinSettings, split: str) -> float:
    """The accuracy on a split's digits, from 0 to 1."""
    return accuracy(model, *CleanDigits(split=split, size=settings.size).batch(SPLIT_IMAGES[split], seed=0))


SETTINGS = SwinSettings()

# Windows of 8 x 8 pixels, smaller than a digit, and nothing but the shifts leads from one to the next before the head:
# no merging. Learning rates were chosen for each of the two, see the card's notes.
COMPARED = SwinSettings(
    window_size=2,
    dim=48,
    depths=(4,),
    num_heads=(3,),
    positions=False,
    drop_path=0.0,
    weight_decay=0.01,
    steps=2500,
)
VARIANTS = {"shifted": COMPARED, "unshifted": replace(COMPARED, shifted=False)}

# Three networks, one task: the names of icons ---------------------------------------------------------------------

SHIFT = 4  # pixels by which a training drawing is moved at most


@dataclass(frozen=True, kw_only=True)
class IconSettings:
    """One of three networks of about 400,000 parameters, and how it learns the names of icons."""

    net: str = "Swin"  # or "ResNet", "ViT"
    steps: int = 3000
    batch_size: int = 64
    learning_rate: float = 2e-3
    weight_decay: float = 0.05
    ema: float = 0.99
    seed: int = 0


@cache
def known_names() -> Int[Tensor, " K"]:
    """The numbers of the things that training drawings show, in rising order: class k is the k-th."""
    return icons("train").names.unique()


@cache
def known(split: str) -> tuple[Icons, Int[Tensor, " B"]]:
    """The drawings of a split that show known things, and their classes."""
    drawings = icons(split)
    found = drawings.take(torch.isin(drawings.names, known_names()))
    return found, torch.searchsorted(known_names(), found.names)


def network(settings: IconSettings) -> nn.Module:
    """A fresh network for drawings of 32 x 32 pixels. Raises ValueError for an unknown `net`."""
    classes = len(known_names())
    with seeded(settings.seed):
        if settings.net == "ResNet":
            sizes = {"widths": (32, 64, 128), "depths": (1, 1, 1), "block": "basic", "stride_in_first_stage": True}
            return ResNet(ResNetConfig(num_classes=classes, stem="small", stem_channels=32, **sizes))
        if settings.net == "ViT":
            sizes = {"image_size": 32, "patch_size": 4, "dim": 96, "depth": 3, "num_heads": 6, "mlp_dim": 384}
            return ViT(ViTConfig(num_classes=classes, pool="mean", **sizes))
        if settings.net == "Swin":
            sizes = {"patch_size": 2, "dim": 48, "depths": (2, 2), "num_heads": (3, 6), "window_size": 4}
            return Swin(SwinConfig(num_classes=classes, drop_path=0.0, **sizes))
    raise ValueError(f"net must be ResNet, ViT or Swin, got {settings.net!r}")


def icon_batch(size: int, seed: int) -> LabelledImages:
    """Training drawings on white, with replacement, each moved by up to 4 pixels and mirrored half of the time."""
    drawings, labels = known("train")
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(len(labels), (size,), generator=generator)
    pixels = F.pad(drawings.take(rows).on(1.0), (SHIFT,) * 4, value=1.0)
    side = pixels.shape[-1] - 2 * SHIFT
    down, right = torch.randint(0, 2 * SHIFT + 1, (2, size, 1), generator=generator)
    flip = torch.rand(size, 1, generator=generator) < 0.5
    across = torch.arange(side)
    row, column = down + across, right + torch.where(flip, across.flip(0), across)
    batch = torch.arange(size)[:, None, None]
    moved = pixels.permute(0, 2, 3, 1)[batch, row[:, :, None], column[:, None, :]]
    return LabelledImages(moved.permute(0, 3, 1, 2), labels[rows])


def train_icons(settings: IconSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains one network on the training drawings."""
    return fit_classifier(
        settings,
        network(settings),
        lambda step: icon_batch(settings.batch_size, seed_of_step(settings.seed, step)),
        warmup=min(100, max(1, settings.steps // 10)),
        checkpoint=checkpoint,
    )


def on_icons(model: nn.Module, split: str) -> float:
    """The accuracy on the drawings of a split, on white, from 0 to 1."""
    drawings, labels = known(split)
    return accuracy(model, drawings.on(1.0), labels)


def icon_scores(trained: Trained, split: str) -> Scores:
    """The accuracy on new drawings; on the test also on those of the training."""
    if split == "validation":
        return {"accuracy": on_icons(trained.model, split)}
    return {f"accuracy{end}": on_icons(trained.model, name) for end, name in (("", "test"), (", training", "train"))}


# Each learning rate is to be chosen with seed 0 on the validation drawings, among 0.5, 1, 2 and 4 times this one.
NETWORKS = {
    "ResNet": IconSettings(net="ResNet", learning_rate=1e-2),
    "ViT": IconSettings(net="ViT"),
    "Swin": IconSettings(net="Swin"),
}

SHARED = {
    "lesson": "12",
    "data": (
        f"clean digits, {SETTINGS.size} x {SETTINGS.size} grey pixels, drawn afresh in each step by "
        f"course_lib.data.digits; validation {SPLIT_IMAGES['validation']:,}, test {SPLIT_IMAGES['test']:,} images, of "
        "handwritten digits of their own"
    ),
    "train": train,
    "scores": each(lambda one, split: {"accuracy": right(one.model, one.settings, split)}),
    "mode": "max",
}

RECIPES = {
    "swin": Recipe(
        title="A small Swin Transformer reads digits",
        minutes=1,
        variants={"": SETTINGS},
        chosen_by="accuracy",
        settings=plain(SETTINGS, "shifted"),
        **SHARED,
    ),
    "shifted_windows": Recipe(
        title="Shifted windows against unshifted ones",
        minutes=3,
        variants=VARIANTS,
        ships="shifted",
        chosen_by="accuracy, shifted",
        timed=tuple(VARIANTS),
        settings=plain(COMPARED, "shifted", "learning_rate")
        | {"learning_rates": {name: settings.learning_rate for name, settings in VARIANTS.items()}},
        **SHARED,
        weights=False,
    ),
    "image_networks": Recipe(
        title="ResNet, ViT and Swin name icons",
        lesson="12",
        data="icons of course_lib.data.icons, 32 x 32 pixels in colour, on white: 647 things by seven designers; "
        "validation and test are other drawings by these designers",
        minutes=30,
        variants=NETWORKS,
        ships="Swin",
        train=train_icons,
        scores=each(icon_scores),
        chosen_by="accuracy, Swin",
        mode="max",
        timed=tuple(NETWORKS),
        weights=False,
    ),
}
