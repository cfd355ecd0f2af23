"""The ResNet of lesson 01 and the ViT of lesson 11 on real digits and clothes."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_lib.classroom.output import show as show_figure
from course_lib.data import real
from course_lib.data.checkpoints import TrainedModel
from course_lib.data.real import ImageSet
from course_lib.models.resnet import resnet8
from course_lib.models.vit import ViT, ViTConfig
from course_lib.training.batches import shuffled_batches
from course_lib.training.recipe import Recipe, Scores, Trained, each
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, fit_classifier, predictions
from course_lib.viz.style import PALETTE, figure

WHOLE = {"mnist": real.mnist, "fashion_mnist": real.fashion_mnist}
PARTS = {"mnist_part": real.mnist_part, "fashion_mnist_part": real.fashion_mnist_part}
HELD_OUT = 5_000  # of the 60,000 training images: for validation
SHOWN = 12  # test images on a lesson's page
SHARE = 0.15  # of a part: as much for validation, and as much for the test


@dataclass(frozen=True, kw_only=True)
class ImageSettings:
    """A classifier of real images and how it is trained."""

    data: str  # the name of a set
    model: str  # "resnet" or "vit"
    steps: int
    learning_rate: float
    weight_decay: float = 0.05
    batch_size: int = 64  # images
    seed: int = 0


@lru_cache(maxsize=1)
def splits(data: str) -> dict[str, ImageSet]:
    """Training, validation and test images of a set.

    Of a whole set the published test images are the test, and the last training images the validation; of a part,
    which has no published test images, both are cut from its end.
    """
    if data in WHOLE:
        images, test = WHOLE[data]("train"), WHOLE[data]("test")
        cut = len(images.labels) - HELD_OUT
        return {"train": images.part(slice(cut)), "validation": images.part(slice(cut, None)), "test": test}
    images = PARTS[data]()
    count, held_out = len(images.labels), round(SHARE * len(images.labels))
    first, second = count - 2 * held_out, count - held_out
    cuts = {"train": slice(first), "validation": slice(first, second), "test": slice(second, None)}
    return {name: images.part(rows) for name, rows in cuts.items()}


def build(settings: ImageSettings, images: ImageSet) -> nn.Module:
    """A fresh model; its first weights depend on the seed alone."""
    channels, size = images.pixels.shape[1:3]
    with seeded(settings.seed):
        if settings.model == "resnet":
            return resnet8(in_channels=channels, num_classes=len(images.classes))
        config = {"image_size": size, "patch_size": 4, "in_channels": channels, "num_classes": len(images.classes)}
        return ViT(ViTConfig(**config, dim=64, depth=4, num_heads=4, mlp_dim=256, pool="mean"))


def train(settings: ImageSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains a classifier on the images as they are, without augmentation."""
    images = splits(settings.data)
    indices_at = shuffled_batches(len(images["train"].labels), settings.batch_size, settings.seed)
    return fit_classifier(
        settings,
        build(settings, images["train"]),
        lambda step: images["train"].take(indices_at(step)),
        parts=4,
        schedule="cosine",
        warmup=min(100, settings.steps // 4),
        validate=lambda model: accuracy(model, *images["validation"].take(slice(None))),
        checkpoint=checkpoint,
        extra={"classes": images["train"].classes},
    )


def score(trained: Trained, split: str) -> Scores:
    """The share of images that get their label, from 0 to 1."""
    return {"accuracy": accuracy(trained.model, *splits(trained.settings.data)[split].take(slice(None)))}


@torch.no_grad()
def show(data: str, trained: Trained | TrainedModel | None = None) -> None:
    """The first test images with their labels, and with a model what it takes each for."""
    images = splits(data)["test"].part(slice(SHOWN))
    pixels, labels = images.take(slice(None))
    said = labels if trained is None else predictions(trained.model.eval(), pixels).argmax(dim=1)
    fig, axes = figure(9.6, 3.6, rows=2, columns=SHOWN // 2)
    for place, picture, label, found in zip(axes.flat, pixels[:, 0], labels.tolist(), said.tolist(), strict=True):
        place.imshow(picture, cmap="gray_r", vmin=0, vmax=1)
        place.set_axis_off()
        right = found == label
        text = images.classes[found] if right else f"{images.classes[found]}\nis: {images.classes[label]}"
        place.set_title(text, loc="center", fontsize=12, color="black" if right else PALETTE["vermilion"])
    names = ", ".join(images.classes[label] for label in labels.tolist())
    count = int((said == labels).sum())
    told = "" if trained is None else f" The model names {count} of them rightly; the others are marked in colour."
    show_figure(fig, alt=f"The first {SHOWN} test images, 28 by 28 pixels, dark on white: {names}.{told}")


def recipe(model: str, data: str, *, minutes: float, **settings: Any) -> Recipe:
    """One model on one set."""
    if data in PARTS:
        cut = f"Validation and test: {SHARE:.0%} each, cut from its end, not the published test images."
    else:
        cut = f"Validation: its last {HELD_OUT:,} training images. Test: the 10,000 published test images."
    return Recipe(
        title=f"{NAMES[model]} on {TITLES[data]}",
        lesson=LESSONS[model],
        data=f"The data set {data}, see docs/data.md. {cut}",
        minutes=minutes,
        variants={"": ImageSettings(data=data, model=model, **settings)},
        train=train,
        scores=each(score),
        chosen_by="accuracy",
        mode="max",
        licence=LICENCES[data.removesuffix("_part")],
    )


NAMES, LESSONS = {"resnet": "A ResNet-8", "vit": "A small ViT"}, {"resnet": "01", "vit": "11"}
TITLES = {
    "mnist": "the digits of MNIST",
    "fashion_mnist": "the clothes of Fashion-MNIST",
    "mnist_part": "the first 19,690 training digits of MNIST",
    "fashion_mnist_part": "the first 3,615 training images of Fashion-MNIST",
}
LICENCES = {
    "mnist": "The weights come from MNIST, which is under CC BY-SA 3.0.",
    "fashion_mnist": "MIT, as Fashion-MNIST.",
}
RECIPES = {f"resnet_{data}": recipe("resnet", data, minutes=1, steps=1200, learning_rate=5e-3) for data in TITLES} | {
    f"vit_{data}": recipe("vit", data, minutes=4, steps=3000, learning_rate=2e-3) for data in TITLES
}
