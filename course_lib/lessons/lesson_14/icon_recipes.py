"""Lesson 14: a U-Net that segments icons in photographs: animals and plants, faces, food, and the background.

Ronneberger, Fischer & Brox, "U-Net: convolutional networks for biomedical image segmentation", MICCAI 2015, arXiv
1505.04597, with group normalisation. Icons and photographs of training, validation and test are disjoint.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.icon_scenes import IconScenes, IconScenesBatch
from course_lib.data.icons import CATEGORIES as ALL_CATEGORIES
from course_lib.functional.images import standardise
from course_lib.functional.segmentation import boundary_f_score, dice_loss, mean_iou
from course_lib.models.unet import UNet, UNetConfig
from course_lib.training.recipe import Recipe, Scores, Trained, each, fit_by, rounded
from course_lib.training.seeding import seeded
from course_lib.training.vision import predictions, seed_of_step

CATEGORIES = ("animals and nature", "faces", "food and drink")
CLASSES = ("background", *CATEGORIES)
# the class of each number in a scene: 0, and the categories' numbers plus 1; those that are not asked for never occur
CLASS_OF = torch.tensor([0] + [CLASSES.index(name) if name in CLASSES else 0 for name in ALL_CATEGORIES])
SPLIT_SCENES = {"validation": 500, "test": 1000, "new designer": 500, "new names": 500}


@dataclass(frozen=True, kw_only=True)
class IconSegmentation:
    """A U-Net of icon scenes, and its training on new scenes at every step."""

    widths: tuple[int, ...] = (16, 32, 64, 128)
    norm_groups: int = 8
    skips: bool = True
    steps: int = 2500
    batch_size: int = 16
    learning_rate: float = 3e-3
    ema: float = 0.99
    seed: int = 0


def scenes(split: str, **settings) -> IconScenes:
    """Images of 64 x 64 pixels with one or two icons."""
    return IconScenes(split=split, **{"size": 64, "things": (1, 2), "categories": CATEGORIES} | settings)


def drawn(source: IconScenes, count: int, seed: int) -> IconScenesBatch:
    """Scenes whose pixels have numbers of `CLASSES`."""
    batch = source.batch(count, seed=seed)
    return batch._replace(semantic=CLASS_OF[batch.semantic])


@lru_cache(maxsize=4)
def held_out(split: str) -> IconScenesBatch:
    """The scenes that a network is evaluated on."""
    return drawn(scenes(split), SPLIT_SCENES[split], seed=0)


def build(settings: IconSegmentation) -> UNet:
    """A fresh network; its first weights depend on the seed alone."""
    with seeded(settings.seed):
        return UNet(
            UNetConfig(
                in_channels=3,
                num_classes=len(CLASSES),
                widths=settings.widths,
                skips=settings.skips,
                norm_groups=settings.norm_groups,
            )
        )


def batch_of(settings: IconSegmentation, step: int) -> IconScenesBatch:
    """New scenes for a step."""
    return drawn(scenes("train"), settings.batch_size, seed=seed_of_step(settings.seed + 1, step))


def segmentation_loss(model: nn.Module, batch: IconScenesBatch) -> Float[Tensor, ""]:
    """Cross-entropy in nats per pixel plus the Dice loss."""
    logits = model(standardise(batch.pixels))
    return F.cross_entropy(logits, batch.semantic) + dice_loss(logits, batch.semantic)


def segment(model: nn.Module, pixels: Float[Tensor, "B 3 H W"]) -> Int[Tensor, "B H W"]:
    """The most probable class of every pixel; pixels from 0 to 1."""
    return predictions(model.eval(), pixels, batch_size=50).argmax(dim=1)


def train(settings: IconSegmentation, *, checkpoint: Path | None = None) -> Trained:
    """Learns from scenes that it has never seen before, at every step; the weights are rounded to 16 bits."""
    trained = fit_by(
        settings,
        build(settings),
        lambda step: batch_of(settings, step),
        segmentation_loss,
        parts=5,
        warmup=min(100, settings.steps // 10),
        weight_decay=1e-2,
        validate=lambda model: quality(model, "validation")["mean IoU"],
        mode="max",
        checkpoint=checkpoint,
    )
    rounded(trained.model)
    return trained


def quality(model: nn.Module, split: str) -> Scores:
    """How well the scenes of a split are segmented, from 0 to 1."""
    asked = held_out(split)
    predicted = segment(model, asked.pixels)
    found, true = (predicted > 0).long(), (asked.semantic > 0).long()
    return {
        "mean IoU": mean_iou(predicted, asked.semantic, len(CLASSES)),
        "mean IoU, icon or background": mean_iou(found, true, 2),
        "boundary F, icon or background": boundary_f_score(found, true),
    }


def score(trained: Trained, split: str) -> Scores:
    """On the test also for a designer and for things of which nothing was seen."""
    found = quality(trained.model, split)
    if split == "test":
        found |= {
            f"{name}, {other}": value
            for other in ("new designer", "new names")
            for name, value in quality(trained.model, other).items()
        }
    return found


RECIPES = {
    "unet_icons": Recipe(
        title="U-Net for icons in photographs",
        lesson="14",
        data="scenes of course_lib.data.icon_scenes, 64 x 64 pixels in colour, one or two icons (animals and plants, "
        "faces, food) on a piece of a photograph; icons and photographs of training, validation and test are disjoint",
        minutes=15,
        variants={"": IconSegmentation()},
        train=train,
        scores=each(score),
        chosen_by="mean IoU",
        mode="max",
    ),
}
