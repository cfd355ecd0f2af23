"""Lesson 11: a Vision Transformer that sorts icons into six categories, beside a ResNet, a hybrid and a Mixer.

Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, arXiv 2010.11929. Zhang et al., "mixup: beyond empirical
risk minimization", ICLR 2018, arXiv 1710.09412. Touvron et al., "Training data-efficient image Transformers", 2021,
arXiv 2012.12877. Tolstikhin et al., "MLP-Mixer", NeurIPS 2021, arXiv 2105.01601.

Of several learning rates each network keeps the one that is best on validation; all networks of a comparison have as
many steps. A category, not a name, is asked for: most names have fewer than six training drawings, and a category can
also be asked of things that were never seen.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from course_lib.data.icons import CATEGORIES, SIZE, Icons, icons
from course_lib.models.mixer import Mixer, MixerConfig
from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.models.vit import ViT, ViTConfig
from course_lib.training.batches import shuffled_batches
from course_lib.training.recipe import Recipe, Scores, Trained, each, fit_by
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, normalised, seed_of_step

NETS = ("vit", "hybrid", "mixer", "resnet")
NEW = ("test", "new designer", "new names")  # splits of which nothing is seen or chosen by
SHIFT = 4  # pixels
WHITE = 0.5  # of the views are on white, the others on a random colour
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
    steps: int = 3000
    batch_size: int = 64
    learning_rates: tuple[float, ...] = (1e-3, 2e-3)  # the better one on validation is kept
    learning_rate: float = 0.0  # the one that is tried
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
        stem = "conv" if settings.net == "hybrid" else "patch"
        return ViT(ViTConfig(**shape, num_heads=settings.num_heads, stem=stem))


def views(
    drawings: Icons, flip: Bool[Tensor, " B"], shift: Int[Tensor, "B 2"], ground: Float[Tensor, "B 3"]
) -> Float[Tensor, "B 3 S S"]:
    """Windows of the padded drawings, mirrored where `flip` is True, on a background."""
    rgba = F.pad(torch.cat([drawings.pixels, drawings.alpha], dim=1), (SHIFT,) * 4)
    across, images = torch.arange(SIZE), torch.arange(len(flip))[:, None, None]
    rows = shift[:, :1] + across
    columns = shift[:, 1:] + torch.where(flip[:, None], across.flip(0), across)
    moved = rgba.permute(0, 2, 3, 1)[images, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    alpha = moved[:, 3:]
    return alpha * moved[:, :3] + (1 - alpha) * ground[:, :, None, None]


def random_views(drawings: Icons, generator: Generator | None = None) -> Float[Tensor, "B 3 S S"]:
    """A random view of each drawing."""
    count = len(drawings.names)
    flip = torch.rand(count, generator=generator) < 0.5
    shift = torch.randint(0, 2 * SHIFT + 1, (count, 2), generator=generator)
    white = torch.rand(count, 1, generator=generator) < WHITE
    colours = torch.rand(count, 3, generator=generator)
    return views(drawings, flip, shift, torch.where(white, torch.ones(3), colours))


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
    """Trains with each learning rate, and returns the training that ends best on validation drawings."""
    tried = []
    for learning_rate in settings.learning_rates:
        one = replace(settings, learning_rate=learning_rate)
        folder = None if checkpoint is None else checkpoint / f"{learning_rate:g}".replace(".", "-")
        trained = fit_by(one, build(one), batches(one), soft_loss, mode="max", checkpoint=folder)
        trained = replace(trained, settings=settings, extra={"learning_rate": learning_rate})
        tried.append((on_split(trained.model, "validation"), trained))
    return max(tried, key=lambda pair: pair[0])[1]


def on_split(model: nn.Module, split: str) -> float:
    """The accuracy on the drawings of a split, on white, from 0 to 1; for "test" those of all splits of `NEW`."""
    drawings = new_drawings() if split == "test" else icons(split)
    return accuracy(model, drawings.on(1.0), drawings.categories)


def new_drawings() -> Icons:
    """All test drawings: of known things, by a designer of whom nothing was seen, and of unseen things."""
    return Icons(*map(torch.cat, zip(*map(icons, NEW), strict=True)))


def score(trained: Trained, split: str) -> Scores:
    """The accuracy on new drawings, and the learning rate; of the test also on unseen things and training drawings."""
    found = {"accuracy": on_split(trained.model, split), "learning rate": trained.extra["learning_rate"]}
    if split == "test":
        known = subset(trained.settings)
        found |= {
            "accuracy, unseen things": on_split(trained.model, "new names"),
            "accuracy, training drawings": accuracy(trained.model, known.on(1.0), known.categories),
        }
    return found


FULL = IconSettings()
FEW, SOME = 300, 1000  # drawings
SHIPPED = replace(FULL, steps=6000, warmup=300)
BY_DATA = {
    f"{name}, {'all' if count is None else f'{count:,}'} drawings": replace(
        FULL, net=net, drawings=count, learning_rates=rates
    )
    for name, net, counts, rates in (
        ("ViT", "vit", (FEW, SOME, None), FULL.learning_rates),
        ("ResNet", "resnet", (FEW, SOME, None), (5e-3, 1e-2)),
        ("hybrid", "hybrid", (None,), FULL.learning_rates),
        ("Mixer", "mixer", (None,), FULL.learning_rates),
    )
    for count in counts
}
INGREDIENTS = {
    "all of them": FULL,
    "no warm-up": replace(FULL, warmup=0),
    "no weight decay": replace(FULL, weight_decay=0.0),
    "no mixup": replace(FULL, mixup=0.0),
    "no shifts, mirroring, backgrounds": replace(FULL, augmented=False),
}
DATA = (
    "icons of course_lib.data.icons, 32 x 32 pixels in colour, six categories; test: other drawings of known things, "
    "those of a designer of whom nothing is in the training, and 100 things of which nothing is in the training"
)
SHARED = {"lesson": "11", "data": DATA, "train": train, "scores": each(score), "mode": "max"}
RECIPES = {
    "vit_icons": Recipe(
        title="ViT that sorts icons", minutes=20, variants={"": SHIPPED}, chosen_by="accuracy", **SHARED
    ),
    "vit_icons_data": Recipe(
        title="ViT, ResNet, hybrid and Mixer of icons, by the number of drawings",
        minutes=60,
        variants=BY_DATA,
        ships="ViT, all drawings",
        chosen_by="accuracy, ViT, all drawings",
        timed=tuple(BY_DATA),
        weights=False,
        **SHARED,
    ),
    "vit_icons_recipe": Recipe(
        title="ViT of icons, one ingredient of the recipe left out",
        minutes=30,
        variants=INGREDIENTS,
        ships="all of them",
        chosen_by="accuracy, all of them",
        weights=False,
        **SHARED,
    ),
}
