"""Lesson 02: features of digits, learned from pairs of views without a label, and what few labels then reach.

Chen et al., "A simple framework for contrastive learning of visual representations", ICML 2020, arXiv 2002.05709.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.augmentations import Augmentation, two_views
from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.data.draws import generator
from course_lib.functional.images import standardise
from course_lib.functional.losses import nt_xent
from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.models.simclr import SimCLR, SimCLRConfig
from course_lib.training.probes import (
    Labelled,
    Probe,
    features_of,
    few_label_accuracies,
    tuned_neighbours,
    tuned_probe,
)
from course_lib.training.recipe import Recipe, Scores, Trained, fit_by, mean_and_spread, plain
from course_lib.training.seeding import seeded
from course_lib.training.vision import classification_loss, seed_of_step

CLASSES = 10
COUNTS = (10, 50)  # labels, as many of each class
DRAWS = 5  # of the labels
SPLITS = {"train": 2000, "validation": 1500, "test": 2000}  # images to probe with; labels are drawn from "train"
PROBES: dict[str, Callable[[Labelled, Labelled], Probe]] = {
    "linear probe": tuned_probe,
    "nearest neighbours": tuned_neighbours,
}
CHANGES = {  # settings of `Augmentation` that are switched off, one group at a time
    "crop": ("crop",),
    "rotation": ("rotation",),
    "light": ("brightness", "contrast"),
    "blur": ("blur",),
    "cutout": ("cutout",),
}
SHORT = 0.4  # of the steps: trainings that leave a change out
DIGITS = {split: CleanDigits(split=split) for split in SPLITS}  # white on black, slightly turned, slanted and shifted


@dataclass(frozen=True, kw_only=True)
class ContrastiveSettings:
    """An encoder, how the views of an image differ, and how long it learns to recognise them."""

    encoder: ResNetConfig = ResNetConfig(
        in_channels=1,
        num_classes=None,
        stem="small",
        stem_channels=16,
        block="basic",
        widths=(16, 32, 64, 128),
        depths=(1, 1, 1, 1),
        stride_in_first_stage=True,  # where most of the time would go
    )
    augmentation: Augmentation = Augmentation(crop=0.5, flip=0.0, colour=0.0, rotation=20.0, cutout=0.5)
    supervised: bool = False  # learns the labels of the same views: what features can be with all labels
    negatives: bool = True  # without: nothing but the two views of an image, to be alike
    projection_dim: int = 64
    temperature: float = 0.5
    steps: int = 600
    batch_size: int = 128  # images; twice as many views
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    seed: int = 0


class Views(NamedTuple):
    """Two views of each image, all first ones before all second ones; the labels are for supervised learning alone."""

    pixels: Float[Tensor, "2B 1 H W"]  # from 0 to 1
    labels: Int[Tensor, " 2B"]


# --------------------------------------------------------------------------------------------- learning


def build(settings: ContrastiveSettings) -> SimCLR | ResNet:
    """A fresh model; its first weights depend on the seed alone."""
    with seeded(settings.seed):
        if settings.supervised:
            return ResNet(replace(settings.encoder, num_classes=CLASSES))
        return SimCLR(SimCLRConfig(encoder=settings.encoder, projection_dim=settings.projection_dim))


def views_at(settings: ContrastiveSettings, step: int) -> Views:
    """The batch of a step: new images, two views of each."""
    number = seed_of_step(settings.seed, step)
    images = DIGITS["train"].batch(settings.batch_size, seed=number)
    views = two_views(images.pixels, generator("views", number), settings.augmentation)
    return Views(torch.cat(views), images.labels.repeat(2))


def contrastive_loss(model: SimCLR, batch: Views, temperature: float) -> Float[Tensor, ""]:
    """NT-Xent of the projections. All views go through the network together: batch norm sees them as one batch."""
    first, second = model(standardise(batch.pixels)).chunk(2)
    return nt_xent(first, second, temperature=temperature)


def attraction_loss(model: SimCLR, batch: Views) -> Float[Tensor, ""]:
    """Minus the mean cosine of the two views of an image: what is left of the loss without negatives; -1 at best."""
    first, second = model(standardise(batch.pixels)).chunk(2)
    return -F.cosine_similarity(first, second).mean()


def loss_of(settings: ContrastiveSettings) -> Callable[[nn.Module, Views], Float[Tensor, ""]]:
    """What a variant minimises."""
    if settings.supervised:
        return classification_loss
    if not settings.negatives:
        return attraction_loss
    return partial(contrastive_loss, temperature=settings.temperature)


def train(settings: ContrastiveSettings, *, checkpoint: Path | None = None) -> Trained:
    """Learns without labels or, if supervised, with all of them, for as many steps."""
    return fit_by(
        settings,
        build(settings),
        lambda step: views_at(settings, step),
        loss_of(settings),
        warmup=settings.steps // 10,
        checkpoint=checkpoint,
    )


# --------------------------------------------------------------------------------------------- probing


@lru_cache(maxsize=3)
def images(split: str) -> LabelledImages:
    """The images of a split to probe with."""
    return DIGITS[split].batch(SPLITS[split], seed=2**32 - 1)  # a seed that no step of a training has


def encoder_of(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """A function from pixels to the features h of a model."""
    return lambda pixels: features_of(model, pixels, encode=model.features)


def encoders_of(trained: Mapping[str, Trained]) -> dict[str, Callable[[Tensor], Tensor]]:
    """What the probes look at: the features of all variants, and what they have to beat."""
    ours = trained["SimCLR"]
    others = {
        "SimCLR's projection": partial(features_of, ours.model),
        "random": encoder_of(build(ours.settings)),
        "pixels": lambda pixels: pixels.flatten(1),
    }
    learned = {name: encoder_of(each.model) for name, each in trained.items()}
    return {"SimCLR": learned["SimCLR"]} | others | learned


def probe_scores(encoders: Mapping[str, Callable[[Tensor], Tensor]], split: str) -> Scores:
    """Of each encoder with each probe, tuned on validation, and each count of labels: mean and spread over draws."""
    sets = {
        name: [Labelled(encode(images(each).pixels), images(each).labels) for each in ("train", "validation", split)]
        for name, encode in encoders.items()
    }
    scores = {}
    for (probe, tuned), count, name in product(PROBES.items(), COUNTS, encoders):
        accuracies = few_label_accuracies(*sets[name], per_class=count // CLASSES, draws=DRAWS, tuned=tuned)
        scores |= mean_and_spread(f"{probe}, {count} labels, {name}", accuracies)
    return scores


class Sphere(NamedTuple):
    """How directions lie: mean |x - y|² of the two views of an image, ln mean exp(-2 |x - y|²) and mean cosine of two
    images; Wang & Isola, "Understanding contrastive representation learning through alignment and uniformity on the
    hypersphere", ICML 2020, arXiv 2005.10242, section 4.
    """

    alignment: float
    uniformity: float
    cosine: float


def on_the_sphere(first: Float[Tensor, "N D"], second: Float[Tensor, "N D"]) -> Sphere:
    """Of two views of N images each, two images or more; images are compared by their first views."""
    first, second = F.normalize(first.double(), dim=1), F.normalize(second.double(), dim=1)
    cosines = (first @ first.T)[~torch.eye(len(first), dtype=torch.bool)]
    apart = (2 - 2 * cosines).clamp_min(0)  # |x - y|² of unit vectors
    alignment = (first - second).square().sum(dim=1).mean()
    return Sphere(alignment.item(), (-2 * apart).exp().mean().log().item(), cosines.mean().item())


def sphere_of(model: SimCLR, split: str, augmentation: Augmentation) -> Sphere:
    """Of the projections of two views of each image of a split."""
    views = two_views(images(split).pixels, generator("sphere", 0), augmentation)
    return on_the_sphere(*(features_of(model, pixels) for pixels in views))


def loss_scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """What each loss made: its features by the probes, and where it put its projections."""
    scores = probe_scores({name: encoder_of(each.model) for name, each in trained.items()}, split)
    for name, each in trained.items():
        sphere = sphere_of(each.model, split, each.settings.augmentation)
        scores |= {f"{key}, {name}": value for key, value in sphere._asdict().items()}
    return scores


# --------------------------------------------------------------------------------------- course train


def short_trainings(settings: ContrastiveSettings) -> dict[str, ContrastiveSettings]:
    """With all changes of an image, and without each of them."""
    short = replace(settings, steps=max(1, round(SHORT * settings.steps)))
    return {"short training, all changes": short} | {
        f"short training, without {name}": replace(
            short, augmentation=replace(settings.augmentation, **dict.fromkeys(without, 0.0))
        )
        for name, without in CHANGES.items()
    }


SETTINGS = ContrastiveSettings()
SIZE = DIGITS["train"].size
DATA = (
    f"clean handwritten digits, {SIZE} x {SIZE} grey pixels, drawn afresh in each step by course_lib.data.digits from "
    f"1,100 real ones, without labels; for the probes labels are drawn from {SPLITS['train']:,} training images; "
    f"validation {SPLITS['validation']:,}, test {SPLITS['test']:,} images of other digits"
)
TEMPERATURES = (0.05, 0.1, 0.2, 0.5, 1.0, 3.0)
BRIEF = replace(SETTINGS, steps=round(SHORT * SETTINGS.steps))
ALONE = "without negatives"
LOSSES = {f"temperature {t:g}": replace(BRIEF, temperature=t) for t in TEMPERATURES} | {
    ALONE: replace(BRIEF, negatives=False)
}

RECIPES = {
    "simclr": Recipe(
        title="SimCLR of handwritten digits",
        lesson="02",
        data=DATA,
        minutes=4,
        variants={"SimCLR": SETTINGS, "supervised": replace(SETTINGS, supervised=True)} | short_trainings(SETTINGS),
        ships="SimCLR",
        train=train,
        scores=lambda trained, split: probe_scores(encoders_of(trained), split),
        chosen_by="linear probe, 50 labels, SimCLR",
        mode="max",
        settings=plain(SETTINGS, "supervised", "negatives")
        | {"counts": COUNTS, "draws": DRAWS, "short trainings": SHORT},
    ),
    "simclr_losses": Recipe(
        title="SimCLR at several temperatures, and without negatives",
        lesson="02",
        data=DATA,
        minutes=4,
        variants=LOSSES,
        train=train,
        scores=loss_scores,
        ships=ALONE,
        chosen_by=f"linear probe, 50 labels, {ALONE}",
        mode="max",
        settings=plain(BRIEF, "supervised", "negatives", "temperature")
        | {"temperatures": TEMPERATURES, "counts": COUNTS, "draws": DRAWS},
    ),
}
