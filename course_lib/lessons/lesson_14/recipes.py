"""Lesson 14: which pixel belongs to which digit? U-Net with and without skips, SegNet and FCN at equal parameters.

Ronneberger, Fischer & Brox 2015, arXiv 1505.04597; Badrinarayanan, Kendall & Cipolla 2017, arXiv 1511.00561; Long,
Shelhamer & Darrell 2015, arXiv 1411.4038. And what a backbone
is worth that learned to classify first, when masks are few.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.scenes import DigitScenes, Scenes
from course_lib.functional.images import standardise
from course_lib.functional.segmentation import (
    average_precision,
    boundary_f_score,
    dice_loss,
    find_instances,
    mean_iou,
    true_instances,
)
from course_lib.lessons.lesson_14 import diffusion_recipes, icon_recipes
from course_lib.models.cnn import CNNConfig
from course_lib.models.fcn import FCN, FCNConfig
from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.models.segnet import SegNet, SegNetConfig
from course_lib.models.unet import UNet, UNetConfig, unet_from_classifier
from course_lib.training.recipe import Recipe, Scores, Trained, each, fit_by, mean_and_spread
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, fit_classifier, predictions, seed_of_step

NUM_CLASSES = 11  # background, and ten digits
WIDTHS = (16, 32, 64, 112)  # at the finest resolution more channels than classes: with 8 the classes got through late
FCN_BACKBONE = CNNConfig(widths=(16, 32, 64, 170), depths=(2, 2, 2, 2), num_classes=None)
NETS: dict[str, UNetConfig | SegNetConfig | FCNConfig] = {  # about as many parameters each, U-Net the fewest
    "U-Net": UNetConfig(num_classes=NUM_CLASSES, widths=WIDTHS),
    "U-Net without skips": UNetConfig(num_classes=NUM_CLASSES, widths=(17, 34, 68, 119), skips=False),
    "SegNet": SegNetConfig(in_channels=1, num_classes=NUM_CLASSES, widths=(16, 32, 64, 100), depths=(2, 2, 2, 2)),
    "FCN": FCNConfig(backbone=FCN_BACKBONE, window=4, num_classes=NUM_CLASSES, num_skips=2),
    "FCN without skips": FCNConfig(
        backbone=replace(FCN_BACKBONE, widths=(16, 32, 64, 162)), window=4, num_classes=NUM_CLASSES
    ),
}
BACKBONE = ResNetConfig(
    in_channels=1, num_classes=10, stem="small", stem_channels=16, block="basic", widths=WIDTHS, depths=(1, 1, 1, 1)
)
CLUTTER = (0.0, 1.0)  # each image draws its own, from a plain background to the texture as it is
SPLIT_SCENES = {"validation": 1000, "test": 2000}
SMALLEST = 12  # pixels: smaller areas are no digits


@dataclass(frozen=True, kw_only=True)
class SegmentationSettings:
    """A net of `NETS`, and its training on new scenes at every step."""

    net: str = "U-Net"
    steps: int = 1800
    batch_size: int = 32
    learning_rate: float = 3e-3
    background: float = 0.3  # weight of its pixels in the cross-entropy; those of digits have 1
    ema: float = 0.99
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class BackboneSettings:
    """How long a classifier of scenes learns."""

    steps: int = 1200
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class FewMasksSettings:
    """How a U-Net on the backbone learns from a few labelled images."""

    steps: int
    learning_rate: float
    backbone: str = "frozen"  # the classifier's, as it is; "tuned": it learns on; "scratch": a fresh one
    batch_size: int = 16
    seed: int = 0


class Quality(NamedTuple):
    """Of a segmentation, from 0 to 1."""

    mean_iou: float  # over the classes
    boundary_f: float  # at a tolerance of one pixel


# Steps were chosen so that all take the same CPU time, rates and the few-mask trainings on the validation scenes.
STEPS = {"U-Net": 1800, "U-Net without skips": 1570, "SegNet": 2180, "FCN": 3130, "FCN without skips": 2930}
TRAININGS = {net: SegmentationSettings(net=net, steps=steps) for net, steps in STEPS.items()}
CLASSIFIER, BACKBONE_TRAINING = "backbone as a classifier", BackboneSettings()
FEW_MASKS = (
    FewMasksSettings(steps=600, learning_rate=3e-3),
    FewMasksSettings(steps=600, learning_rate=3e-3, backbone="scratch"),
)
MASK_COUNTS, DRAWS = (20, 100), 2


def scenes(split: str, **settings) -> DigitScenes:
    """Images of 32 x 32 pixels with one digit of 18 to 29 pixels, clean or cluttered; digits and textures by split."""
    return DigitScenes(split=split, **{"size": 32, "clutter": CLUTTER} | settings)


@lru_cache(maxsize=2)
def held_out(split: str) -> Scenes:
    """The scenes that all nets are asked about."""
    return scenes(split).batch(SPLIT_SCENES[split], seed=0)


def batch_seed(seed: int, step: int) -> int:
    """A number of its own for each step of each seed; none is that of the held-out scenes, 0."""
    return seed_of_step(seed + 1, step)


# ---------------------------------------------------------------------------------------------- the nets


def build(name: str, *, seed: int) -> UNet | SegNet | FCN:
    """A fresh net of `NETS`."""
    config = NETS[name]
    kind = {UNetConfig: UNet, SegNetConfig: SegNet, FCNConfig: FCN}[type(config)]
    with seeded(seed):
        return kind(config)


def segmentation_loss(model: nn.Module, batch: Scenes, *, background: float = 0.3) -> Float[Tensor, ""]:
    """Cross-entropy in nats per pixel, the background's pixels weighing less, plus the Dice loss."""
    logits = model(standardise(batch.pixels))
    weights = logits.new_ones(logits.shape[1])
    weights[0] = background
    return F.cross_entropy(logits, batch.semantic, weight=weights) + dice_loss(logits, batch.semantic)


def segment(model: nn.Module, pixels: Float[Tensor, "B C H W"]) -> Int[Tensor, "B H W"]:
    """The argmax class of every pixel; pixels from 0 to 1."""
    return predictions(model, pixels, batch_size=250).argmax(dim=1)


def quality(model: nn.Module, asked: Scenes) -> Quality:
    """How well the model segments these scenes."""
    predicted = segment(model, asked.pixels)
    return Quality(mean_iou(predicted, asked.semantic, NUM_CLASSES), boundary_f_score(predicted, asked.semantic))


def train_net(settings: SegmentationSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains a net on scenes that it has never seen before, at every step."""
    source, asked = scenes("train"), held_out("validation")
    return fit_by(
        settings,
        build(settings.net, seed=settings.seed),
        lambda step: source.batch(settings.batch_size, seed=batch_seed(settings.seed, step)),
        partial(segmentation_loss, background=settings.background),
        parts=4,
        warmup=min(100, settings.steps),
        weight_decay=1e-2,
        validate=lambda model: quality(model, asked).mean_iou,
        mode="max",
        checkpoint=checkpoint,
    )


def instance_scores(model: nn.Module, *, split: str = "test", count: int = 300) -> Scores:
    """Average precision at IoU 0.5, the mean over digits: four digits in images four times as large as in training."""
    asked = scenes(split, size=64, digits=(4, 4)).batch(count, seed=1)
    found = find_instances(predictions(model, asked.pixels, batch_size=100), smallest=SMALLEST)
    areas = average_precision(found, true_instances(asked.instances, asked.semantic, NUM_CLASSES))
    return {"average precision, four digits": mean(areas.values())}


# --------------------------------------------------------------------------------------------- few masks


def train_backbone(settings: BackboneSettings, *, checkpoint: Path | None = None) -> Trained:
    """A classifier of scenes: it knows the digit of every training image, but the mask of none."""
    with seeded(settings.seed):
        model = ResNet(BACKBONE)
    source = scenes("train")
    return fit_classifier(
        settings,
        model,
        lambda step: source.batch(32, seed=batch_seed(settings.seed, step)).classification(),
        learning_rate=3e-3,
        warmup=min(100, settings.steps),
        weight_decay=1e-2,
        ema=0.99,
        checkpoint=checkpoint,
    )


def learn_from_few(classifier: ResNet, labelled: Scenes, settings: FewMasksSettings) -> UNet:
    """A U-Net trained on these scenes alone, on a copy of the classifier or, from scratch, on a fresh backbone."""
    with seeded(settings.seed):
        backbone = ResNet(BACKBONE) if settings.backbone == "scratch" else classifier
        model = unet_from_classifier(backbone, num_classes=NUM_CLASSES)
    if settings.backbone == "frozen":
        model.backbone.freeze()

    def batch_at(step: int) -> Scenes:
        generator = torch.Generator().manual_seed(batch_seed(settings.seed, step))
        chosen = torch.randperm(len(labelled.pixels), generator=generator)[: settings.batch_size]
        return Scenes(*(values[chosen] for values in labelled))

    warmup = min(20, settings.steps)
    return fit_by(settings, model, batch_at, segmentation_loss, warmup=warmup, weight_decay=1e-2, ema=0.98).model


def few_mask_scores(classifier: ResNet, *, split: str = "test") -> Scores:
    """Mean and spread of the mean IoU over draws of the labelled images, for both backbones."""
    asked, scores = held_out(split), {}
    for count in MASK_COUNTS:
        for settings in FEW_MASKS:
            values = []
            for draw in range(DRAWS):
                labelled = scenes("train").batch(count, seed=500 + draw)
                values.append(
                    quality(learn_from_few(classifier, labelled, replace(settings, seed=draw)), asked).mean_iou
                )
            scores |= mean_and_spread(f"{count} masks, {settings.backbone} backbone, mean IoU", values)
    return scores


# ------------------------------------------------------------------------------------------ course train


def train(settings: SegmentationSettings | BackboneSettings, *, checkpoint: Path | None = None) -> Trained:
    """A net, or the backbone."""
    one = train_backbone if isinstance(settings, BackboneSettings) else train_net
    return one(settings, checkpoint=checkpoint)


def score(trained: Trained, split: str) -> Scores:
    """How well a net segments, or the backbone classifies."""
    asked = held_out(split)
    if isinstance(trained.model, ResNet):
        return {"accuracy": accuracy(trained.model, asked.pixels, asked.labels[:, 0])}
    areas, outlines = quality(trained.model, asked)
    seconds = {"CPU seconds": float(trained.history.cpu_seconds[-1])} if split == "test" else {}
    return {"mean IoU": areas, "boundary F": outlines} | seconds


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Those of each net, of U-Net with several digits and, on the test, of a few masks on the backbone."""
    found = each(score, "{name}, {score}")(trained, split) | instance_scores(trained["U-Net"].model, split=split)
    return found | few_mask_scores(trained[CLASSIFIER].model) if split == "test" else found


RECIPES = {
    "unet": Recipe(
        title="U-Net for digits in scenes",
        lesson="14",
        data="scenes of course_lib.data.scenes, 32 x 32 pixels, one real handwritten digit each on a piece of a "
        "photograph, clutter from 0 to 1; digits and photographs of training, validation and test are disjoint",
        minutes=10,
        variants=TRAININGS | {CLASSIFIER: BACKBONE_TRAINING},
        ships="U-Net",
        train=train,
        scores=scores,
        chosen_by="U-Net, mean IoU",
        mode="max",
        settings={
            "nets": {name: asdict(config) for name, config in NETS.items()},
            "trainings": {name: asdict(settings) for name, settings in TRAININGS.items()},
            "backbone": asdict(BACKBONE),
            "steps of the backbone": BACKBONE_TRAINING.steps,
            "few masks": [asdict(settings) for settings in FEW_MASKS],
            "draws": DRAWS,
        },
    )
}
RECIPES["unet_no_skips"] = replace(  # one of its variants, to be looked at
    RECIPES["unet"],
    title="U-Net without skips, for digits in scenes",
    minutes=2,
    variants={"": TRAININGS["U-Net without skips"]},
    ships="",
    scores=each(score),
    chosen_by="mean IoU",
    settings=None,
)
RECIPES |= icon_recipes.RECIPES | diffusion_recipes.RECIPES
