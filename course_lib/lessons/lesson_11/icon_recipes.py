"""Lesson 11: a Vision Transformer that sorts icons into six categories, beside a ResNet; lesson 12 adds a Swin.

Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, arXiv 2010.11929. Zhang et al., "mixup: beyond empirical
risk minimization", ICLR 2018, arXiv 1710.09412. Touvron et al., "Training data-efficient image Transformers", 2021,
arXiv 2012.12877.

All networks of a comparison have the same steps, batches and augmentation, and 13 to 15 million multiply-adds for an
image. Each has the learning rate that was best on validation drawings. A category, not a name, is asked
for: most names have fewer than six training drawings, and a category can also be asked of things that were never seen.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.icons import CATEGORIES, SIZE, Icons, icons
from course_lib.lessons.lesson_01.recipes.icon_names import random_views
from course_lib.models.mixer import Mixer, MixerConfig
from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.models.swin import Swin, SwinConfig
from course_lib.models.vit import ViT, ViTConfig
from course_lib.training.batches import shuffled_batches
from course_lib.training.recipe import Recipe, Scores, Trained, each, fit_by
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, normalised, seed_of_step

NETS = ("vit", "resnet", "swin", "mixer")
NEW = ("test", "new designer", "new names")  # splits of which nothing is seen or chosen by
Batch = tuple[Float[Tensor, "B 3 S S"], Float[Tensor, "B classes"]]


@dataclass(frozen=True, kw_only=True)
class IconSettings:
    """A network of icons, and how it is trained."""

    net: str = "vit"  # of `NETS`
    drawings: int | None = None  # so many training drawings; None: all
    augmented: bool = True  # shifted, mirrored, on a background; else as they are, on white
    mixup: float = 0.2  # of the Beta distribution of the blends' weights; 0: no blends
    warmup: int = 100  # steps
    weight_decay: float = 0.05
    patch_size: int = 4  # pixels a side
    dim: int = 64
    depth: int = 4
    num_heads: int = 4
    steps: int = 2000
    batch_size: int = 64
    learning_rate: float = 2e-3
    ema: float = 0.99
    seed: int = 0


def build(settings: IconSettings) -> nn.Module:
    """A fresh network; its first weights depend on the seed alone. Raises ValueError for an unknown `net`."""
    if settings.net not in NETS:
        raise ValueError(f"net must be one of {', '.join(NETS)}, got {settings.net!r}")
    shape = {"image_size": SIZE, "patch_size": settings.patch_size, "num_classes": len(CATEGORIES)}
    shape |= {"dim": settings.dim, "depth": settings.depth, "mlp_dim": 4 * settings.dim, "in_channels": 3}
    with seeded(settings.seed):
        if settings.net == "resnet":  # that of lesson 01
            stages = {"stem": "small", "stem_channels": 32, "widths": (32, 64, 128), "depths": (1, 1, 1)}
            stages |= {"block": "basic", "stride_in_first_stage": True}
            return ResNet(ResNetConfig(num_classes=len(CATEGORIES), **stages))
        if settings.net == "mixer":
            return Mixer(MixerConfig(**shape, token_mlp_dim=settings.dim))
        if settings.net == "swin":  # half as wide: its first stage has four times as many tokens
            stages = {"patch_size": 2, "dim": settings.dim // 2, "depths": (2, 2), "num_heads": (2, 4)}
            return Swin(SwinConfig(num_classes=len(CATEGORIES), window_size=4, drop_path=0.0, **stages))
        return ViT(ViTConfig(**shape, num_heads=settings.num_heads))


def blended(images: Tensor, targets: Tensor, partner: Int[Tensor, " B"], weight: Float[Tensor, " B"]) -> Batch:
    """Mixup: each image and its target, blended with those of its partner."""
    across, targets_weight = weight[:, None, None, None], weight[:, None]
    mixed = across * images + (1 - across) * images[partner]
    return mixed, targets_weight * targets + (1 - targets_weight) * targets[partner]


def subset(settings: IconSettings) -> Icons:
    """The training drawings; with a number of them, each seed has its own."""
    drawings = icons("train")
    if settings.drawings is None:
        return drawings
    generator = torch.Generator().manual_seed(settings.seed)
    return drawings.take(torch.randperm(len(drawings.names), generator=generator)[: settings.drawings])


def batches(settings: IconSettings) -> Callable[[int], Batch]:
    """`batch_at(step)`: images and targets, every drawing once in an epoch."""
    drawings = subset(settings)
    indices_at = shuffled_batches(len(drawings.names), settings.batch_size, settings.seed)

    def batch_at(step: int) -> Batch:
        some = drawings.take(indices_at(step))
        generator = torch.Generator().manual_seed(seed_of_step(settings.seed, step))
        images = random_views(some, generator) if settings.augmented else some.on(1.0)
        targets = F.one_hot(some.categories, len(CATEGORIES)).float()
        if not settings.mixup:
            return images, targets
        random = np.random.default_rng([settings.seed, step])
        weight = random.beta(settings.mixup, settings.mixup, len(images)).astype("float32")
        return blended(images, targets, torch.from_numpy(random.permutation(len(images))), torch.from_numpy(weight))

    return batch_at


def soft_loss(model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
    """Mean cross-entropy between the targets, which are distributions, and the predictions, in nats."""
    images, targets = batch
    return F.cross_entropy(model(normalised(model, images)), targets)


def train(settings: IconSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains a network on its drawings."""
    return fit_by(settings, build(settings), batches(settings), soft_loss, mode="max", checkpoint=checkpoint)


def on_split(model: nn.Module, split: str) -> float:
    """The accuracy on the drawings of a split, on white, from 0 to 1; for "test" those of all splits of `NEW`."""
    drawings = new_drawings() if split == "test" else icons(split)
    return accuracy(model, drawings.on(1.0), drawings.categories)


def new_drawings() -> Icons:
    """All test drawings: of known things, by a designer of whom nothing was seen, and of unseen things."""
    return Icons(*map(torch.cat, zip(*map(icons, NEW), strict=True)))


def score(trained: Trained, split: str) -> Scores:
    """The accuracy on new drawings; of the test also on unseen things and on the training drawings."""
    found = {"accuracy": on_split(trained.model, split)}
    if split == "test":
        known = subset(trained.settings)
        found |= {
            "accuracy, unseen things": on_split(trained.model, "new names"),
            "accuracy, training drawings": accuracy(trained.model, known.on(1.0), known.categories),
        }
    return found


# chosen on validation drawings: see the notes of `course train vit_icons_data` and `course train swin_icons`
RATES = {"ViT": 1e-3, "ResNet": 2.5e-3, "Swin": 5e-4}
NETWORKS = {name: IconSettings(net=name.lower(), learning_rate=rate) for name, rate in RATES.items()}
FEW, SOME = 300, 1000  # drawings
BY_DATA = {
    f"{name}, {'all' if count is None else f'{count:,}'} drawings": replace(NETWORKS[name], drawings=count)
    for name in ("ViT", "ResNet")
    for count in (FEW, SOME, None)
}
FULL = NETWORKS["ViT"]
WHOLE = replace(FULL, drawings=SOME)  # few enough that a network can memorise them in this time
AUGMENTATION = {
    "whole recipe": WHOLE,
    "no mixup": replace(WHOLE, mixup=0.0),
    "no shifts, mirrors, backgrounds": replace(WHOLE, augmented=False),
}
SHIPPED = replace(FULL, steps=6000, warmup=300)
SHARED = {
    "data": "icons of course_lib.data.icons, 32 x 32 pixels in colour, six categories; test: other drawings of known "
    "things, those of a designer of whom nothing is in the training, and 100 things that are not in the training",
    "train": train,
    "mode": "max",
}
SCORED = SHARED | {"lesson": "11", "scores": each(score)}
RECIPES = {
    "vit_icons": Recipe(
        title="ViT that sorts icons", minutes=8, variants={"": SHIPPED}, chosen_by="accuracy", **SCORED
    ),
    "vit_icons_data": Recipe(
        title="ViT and ResNet of icons, by the number of drawings",
        minutes=12,
        variants=BY_DATA,
        ships="ViT, all drawings",
        chosen_by="accuracy, ViT, all drawings",
        weights=False,
        **SCORED,
    ),
    "vit_augmentation": Recipe(
        title="ViT of 1,000 icons, with and without augmentation",
        minutes=12,
        variants=AUGMENTATION,
        ships="whole recipe",
        chosen_by="accuracy, whole recipe",
        weights=False,
        **SCORED,
    ),
}
