"""Lesson 02: features of digits, learned from pairs of views without a label, and what few labels then reach.

Chen et al., "A simple framework for contrastive learning of visual representations", ICML 2020, arXiv 2002.05709.
"""

import itertools
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.augmentations import Augmentation, two_views
from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.data.draws import generator
from course_lib.functional.images import standardise
from course_lib.functional.losses import nt_xent
from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.models.simclr import SimCLR, SimCLRConfig
from course_lib.training.history import History
from course_lib.training.loop import FitConfig, fit
from course_lib.training.probes import (
    Labelled,
    Probe,
    features_of,
    few_label_accuracies,
    tuned_neighbours,
    tuned_probe,
)
from course_lib.training.progress import Progress
from course_lib.training.registry import Recipe, Trained
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
SCORE = "linear probe, 50 labels, SimCLR"


@dataclass(frozen=True, kw_only=True)
class ContrastiveRecipe:
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


class Run(NamedTuple):
    """A finished training."""

    model: nn.Module
    history: History


# --------------------------------------------------------------------------------------------- learning


def digits(split: str) -> CleanDigits:
    """White digits on black, slightly turned, slanted, scaled and shifted."""
    return CleanDigits(split=split)


def build(recipe: ContrastiveRecipe) -> SimCLR:
    """A fresh model; its first weights depend on the seed alone."""
    with seeded(recipe.seed):
        return SimCLR(SimCLRConfig(encoder=recipe.encoder, projection_dim=recipe.projection_dim))


def views_at(recipe: ContrastiveRecipe, step: int) -> Views:
    """The batch of a step: new images, two views of each."""
    number = seed_of_step(recipe.seed, step)
    images = digits("train").batch(recipe.batch_size, seed=number)
    views = two_views(images.pixels, generator("views", number), recipe.augmentation)
    return Views(torch.cat(views), images.labels.repeat(2))


def contrastive_loss(model: SimCLR, batch: Views, temperature: float) -> Float[Tensor, ""]:
    """NT-Xent of the projections. All views go through the network together: batch norm sees them as one batch."""
    first, second = model(standardise(batch.pixels)).chunk(2)
    return nt_xent(first, second, temperature=temperature)


def pretrain(recipe: ContrastiveRecipe, *, checkpoint: Path | None = None, progress: Progress | None = None) -> Run:
    """Learns without labels; with a folder `checkpoint` an interrupted run goes on, see `fit`."""
    return _fit(build(recipe), lambda m, b: contrastive_loss(m, b, recipe.temperature), recipe, checkpoint, progress)


def supervise(recipe: ContrastiveRecipe, *, checkpoint: Path | None = None, progress: Progress | None = None) -> Run:
    """The same encoder learns the labels of the same views, for as many steps: what features can be with all labels."""
    with seeded(recipe.seed):
        model = ResNet(replace(recipe.encoder, num_classes=CLASSES))
    return _fit(model, classification_loss, recipe, checkpoint, progress)


def _fit(
    model: nn.Module,
    loss: Callable[[nn.Module, Views], Tensor],
    recipe: ContrastiveRecipe,
    checkpoint: Path | None,
    progress: Progress | None,
) -> Run:
    config = FitConfig(
        steps=recipe.steps,
        learning_rate=recipe.learning_rate,
        warmup=recipe.steps // 10,
        weight_decay=recipe.weight_decay,
        checkpoint_every=max(1, recipe.steps // 5),
        seed=recipe.seed,
    )
    history = fit(
        model, lambda step: views_at(recipe, step), loss, config=config, checkpoint=checkpoint, progress=progress
    )
    return Run(model, history)


# --------------------------------------------------------------------------------------------- probing


@lru_cache(maxsize=3)
def images(split: str) -> LabelledImages:
    """The images of a split to probe with."""
    return digits(split).batch(SPLITS[split], seed=2**32 - 1)  # a seed that no step of a training has


def labelled_features(encode: Callable[[Tensor], Tensor]) -> dict[str, Labelled]:
    """What `encode` makes of the pixels of each split."""
    return {split: Labelled(encode(images(split).pixels), images(split).labels) for split in SPLITS}


def all_scores(encoders: dict[str, Callable[[Tensor], Tensor]]) -> dict[str, dict[str, float]]:
    """For validation and test: mean and standard deviation of the accuracies over the draws of labels.

    They are those of each encoder with each probe and each count of labels; every probe is tuned on validation.
    """
    features = {name: labelled_features(encode) for name, encode in encoders.items()}
    scores: dict[str, dict[str, float]] = {"validation": {}, "test": {}}
    for (probe, tuned), count, name in itertools.product(PROBES.items(), COUNTS, encoders):
        sets = features[name]
        for split, found in scores.items():
            accuracies = few_label_accuracies(
                sets["train"], sets["validation"], sets[split], per_class=count // CLASSES, draws=DRAWS, tuned=tuned
            )
            found[f"{probe}, {count} labels, {name}"] = statistics.mean(accuracies)
            found[f"{probe}, {count} labels, {name}, spread"] = statistics.stdev(accuracies)
    return scores


def encoder_of(model: SimCLR | ResNet) -> Callable[[Tensor], Tensor]:
    """A function from pixels to the features h of a model."""
    return lambda pixels: features_of(model, pixels, encode=model.features)


def flat_pixels(pixels: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D"]:
    """Pixels as features: what every encoder has to beat."""
    return pixels.flatten(1)


# --------------------------------------------------------------------------------------- course train

SETTINGS = ContrastiveRecipe()


def ablations(recipe: ContrastiveRecipe) -> dict[str, ContrastiveRecipe]:
    """Shorter trainings: with all changes of an image, and without each of them."""
    short = replace(recipe, steps=max(1, round(SHORT * recipe.steps)))
    return {"all changes": short} | {
        f"without {name}": replace(short, augmentation=replace(recipe.augmentation, **dict.fromkeys(settings, 0.0)))
        for name, settings in CHANGES.items()
    }


def train(seed: int, checkpoint: Path, progress: Progress | None) -> Trained:
    """SimCLR, the same encoder with labels, and the shorter trainings that show which change of an image matters."""
    recipe = replace(SETTINGS, seed=seed)
    run = pretrain(recipe, checkpoint=checkpoint / "simclr", progress=progress)
    encoders: dict[str, Callable[[Tensor], Tensor]] = {
        "SimCLR": encoder_of(run.model),
        "SimCLR's projection": partial(features_of, run.model),
        "random": encoder_of(build(recipe).eval()),
        "pixels": flat_pixels,
        "supervised": encoder_of(supervise(recipe, checkpoint=checkpoint / "supervised", progress=progress).model),
    }
    shorter = {
        f"short training, {name}": encoder_of(
            pretrain(each, checkpoint=checkpoint / name.replace(" ", "-"), progress=progress).model
        )
        for name, each in ablations(recipe).items()
    }
    return Trained(
        model=run.model, history=run.history, **all_scores(encoders | shorter), extra={"recipe": asdict(recipe)}
    )


RECIPE = Recipe(
    title="SimCLR of handwritten digits",
    lesson="02",
    data=(
        f"clean handwritten digits, {CleanDigits(split='train').size} x {CleanDigits(split='train').size} grey pixels, "
        "drawn afresh in each step by course_lib.data.digits from 1,100 real ones, without labels; for the probes "
        f"labels are drawn from {SPLITS['train']:,} training images; validation {SPLITS['validation']:,}, test "
        f"{SPLITS['test']:,} images of other digits"
    ),
    licence="MIT",
    minutes=4,
    settings={name: value for name, value in asdict(SETTINGS).items() if name != "seed"}
    | {"counts": COUNTS, "draws": DRAWS, "short trainings": SHORT},
    train=train,
    chosen_by=SCORE,
    best=max,
    notes=(
        "Accuracies are means, spreads standard deviations, over five draws of as many labels of each digit. A linear "
        "probe is logistic regression on frozen features, whose penalty and scale of the features are chosen on "
        "validation; the number of nearest neighbours is, too. The same probes see the pixels, an encoder with its "
        "first weights (random) and one that learned the labels of all the same views, for as many steps "
        "(supervised). The validation images are many more than the labels drawn: choosing by them helps all the "
        f"contestants alike. The short trainings have {SHORT:g} of the steps, one with all changes of the images and "
        "one without each of them (light: brightness and contrast). Crops matter by far the most, then, at 10 labels, "
        "light; without rotation, cutout or blur a probe loses about the spread over draws or less. Unlike in the "
        "paper, the projection serves a probe as well as the features before it, or slightly better. Width, "
        "temperature and changes were chosen after five short trainings of one seed, by the probes' accuracy on "
        "validation. The CPU seconds are those of SimCLR alone; all trainings of a seed together take five times as "
        "long."
    ),
)
