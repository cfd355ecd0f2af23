"""Lesson 13: a masked autoencoder learns from digits without labels, and then to name them from a few labels.

He et al., "Masked autoencoders are scalable vision learners", CVPR 2022, arXiv 2111.06377.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.data.scenes import DigitScenes
from course_lib.functional.images import standardise
from course_lib.layers.patches import patchify, random_mask
from course_lib.lessons.lesson_13 import icon_recipes
from course_lib.models.mae import MAE, MAEConfig, encoder_of
from course_lib.models.vit import ViT, ViTConfig
from course_lib.training.batches import shuffled_batches
from course_lib.training.probes import Labelled, features_of, label_draw, tuned_probe
from course_lib.training.recipe import Recipe, Scores, Trained, common, each, fit_by, mean_and_spread, plain
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, fit_classifier

CLASSES = 10
GEOMETRY = {"scale": (0.65, 0.85), "rotation": 15.0, "slant": 0.15, "shift": 0.1}  # of `CleanDigits`: not quite centred
COUNTS = (50, 100)  # labelled images, as many of each digit
DRAWS = 5  # of the labelled images
SPLIT_IMAGES, POOL_IMAGES = {"validation": 600, "test": 1000}, 4000  # labelled ones are drawn from the pool
ERROR = "squared error of hidden patches"
GREY = "squared error of the visible pixels' mean"


@dataclass(frozen=True, kw_only=True)
class PretrainingSettings:
    """A small MAE, and how long it paints."""

    pictures: str = "digits"  # or "scenes", digits on photographs
    dim: int = 64
    depth: int = 4
    num_heads: int = 4
    decoder_dim: int = 32
    decoder_depth: int = 1
    decoder_num_heads: int = 2
    patch_size: int = 4  # pixels: an image of 28 x 28 has 49 patches
    mask_ratio: float = 0.75
    normalised: bool = False
    steps: int = 18_000
    batch_size: int = 32
    learning_rate: float = 2e-3
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class FineTuningSettings:
    """How a classifier learns from a few labelled images."""

    learning_rate: float
    steps: int = 300
    batch_size: int = 32
    weight_decay: float = 0.05
    seed: int = 0


SETTINGS = PretrainingSettings()
# of the pretrained and of the fresh network: learning rates were chosen on the validation split
FINE_TUNING = {
    "fine-tuned": FineTuningSettings(learning_rate=2e-3),
    "scratch": FineTuningSettings(learning_rate=1e-3),
}


class HiddenBatch(NamedTuple):
    """Images, and the noise that says which of their patches are hidden."""

    pixels: Float[Tensor, "B 1 H W"]  # from 0 to 1
    noise: Float[Tensor, "B N"]


class FewLabels(NamedTuple):
    """A few labelled images to learn from, more to choose a probe's penalty by, and those to be named."""

    given: LabelledImages
    validation: LabelledImages
    asked: LabelledImages


# ------------------------------------------------------------------------------------------ pre-training


def digits(split: str) -> CleanDigits:
    """Digits that are turned, slanted, scaled and moved enough to be hard for a linear classifier of pixels."""
    return CleanDigits(split=split, **GEOMETRY)


def source_of(settings: PretrainingSettings, split: str) -> CleanDigits | DigitScenes:
    """What is painted: digits of 28 x 28 pixels, or scenes of 32 x 32."""
    return DigitScenes(split=split) if settings.pictures == "scenes" else digits(split)


def hidden_batch(settings: PretrainingSettings, split: str, count: int, seed: int) -> HiddenBatch:
    """`count` images and their noise: the same seed gives the same."""
    source = source_of(settings, split)
    num_patches = (source.size // settings.patch_size) ** 2
    noise = torch.rand(count, num_patches, generator=torch.Generator().manual_seed(seed))
    return HiddenBatch(source.batch(count, seed).pixels, noise)


def painting_loss(model: MAE, batch: HiddenBatch) -> Float[Tensor, ""]:
    """Mean squared error of the hidden patches, in units of `standardise`."""
    return model.loss(standardise(batch.pixels), batch.noise)


def build(settings: PretrainingSettings) -> MAE:
    """A fresh model, without a class token; its first weights depend on the seed alone."""
    encoder = ViTConfig(
        image_size=source_of(settings, "train").size,
        in_channels=1,
        num_classes=None,
        mlp_dim=4 * settings.dim,
        pool="mean",
        **common(settings, ViTConfig),
    )
    config = MAEConfig(encoder=encoder, decoder_mlp_dim=4 * settings.decoder_dim, **common(settings, MAEConfig))
    with seeded(settings.seed):
        return MAE(config)


def pretrain(settings: PretrainingSettings, *, checkpoint: Path | None = None) -> Trained:
    """Learns to paint hidden patches."""
    held_out = hidden_batch(settings, "validation", SPLIT_IMAGES["validation"], seed=0)
    return fit_by(
        settings,
        build(settings),
        lambda step: hidden_batch(settings, "train", settings.batch_size, seed=settings.seed * 2**32 + step + 1),
        painting_loss,
        parts=10,
        warmup=min(200, settings.steps // 10),
        betas=(0.9, 0.95),
        weight_decay=0.05,
        validate=lambda model: float(painting_loss(model, held_out)),
        checkpoint=checkpoint,
    )


# -------------------------------------------------------------------------------------------- comparisons


def few_labels(count: int, draw: int, split: str = "test") -> FewLabels:
    """`count` labelled training images, as many of each digit, and the images of `split` to be named."""
    pool = digits("train").batch(POOL_IMAGES, seed=0)
    chosen = label_draw(pool.labels, count // CLASSES, seed=draw)
    validation, asked = (digits(name).batch(SPLIT_IMAGES[name], seed=1) for name in ("validation", split))
    return FewLabels(LabelledImages(pool.pixels[chosen], pool.labels[chosen]), validation, asked)


def fine_tune(model: ViT, given: LabelledImages, settings: FineTuningSettings) -> ViT:
    """The classifier with all its weights trained, in place, on the labelled images."""
    indices_at = shuffled_batches(len(given.labels), settings.batch_size, settings.seed)
    return fit_classifier(
        settings,
        model,
        lambda step: (given.pixels[indices_at(step)], given.labels[indices_at(step)]),
        warmup=settings.steps // 10,
    ).model


def probe_accuracy(posed: FewLabels, encode: Callable[[Tensor], Tensor]) -> float:
    """Of logistic regression on what `encode` makes of pixels, its penalty chosen on the validation images."""
    given, validation, asked = (Labelled(encode(images.pixels), images.labels) for images in posed)
    return tuned_probe(given, validation).accuracy(*asked)


def pooled_features(encoder: ViT, pixels: Float[Tensor, "N C H W"]) -> Float[Tensor, "N D"]:
    """What stands for each image, of pixels from 0 to 1."""
    return features_of(encoder, pixels, encode=lambda image: encoder.pool(encoder.features(image)))


def compare(pretrained: MAE, *, count: int, draw: int, split: str = "test") -> Scores:
    """Accuracies after one draw of `count` labels, from 0 to 1.

    The pretrained encoder fine-tuned; the same network from scratch, for as many steps; logistic regression on the
    features of the pretrained encoder, and on pixels.
    """
    posed, encoder = few_labels(count, draw, split), encoder_of(pretrained)
    with seeded(draw):
        starts = {"fine-tuned": pretrained, "scratch": MAE(pretrained.config)}
        networks = {name: encoder_of(start, num_classes=CLASSES) for name, start in starts.items()}
    scores = {}
    for name, network in networks.items():
        tuned = fine_tune(network, posed.given, replace(FINE_TUNING[name], seed=draw))
        scores[name] = accuracy(tuned, *posed.asked)
    scores["linear probe"] = probe_accuracy(posed, lambda pixels: pooled_features(encoder, pixels))
    scores["pixels"] = probe_accuracy(posed, lambda pixels: pixels.flatten(1))
    return scores


def few_label_scores(pretrained: MAE, *, split: str = "test") -> Scores:
    """Mean and spread of each way's accuracy over the draws of labels."""
    scores = {}
    for count in COUNTS:
        draws = [compare(pretrained, count=count, draw=draw, split=split) for draw in range(DRAWS)]
        for name in draws[0]:
            scores |= mean_and_spread(f"accuracy, {count} labels, {name}", [draw[name] for draw in draws])
    return scores


def score(trained: Trained, split: str) -> Scores:
    """On validation how well hidden patches are painted, on the test also how much that helps with few labels."""
    if split == "validation":
        return {ERROR: float(trained.history.validation_values[-1])}
    asked = hidden_batch(trained.settings, split, SPLIT_IMAGES[split], seed=0)
    with torch.no_grad():
        error = float(painting_loss(trained.model, asked))
    return {ERROR: error} | few_label_scores(trained.model, split=split)


def scene_score(trained: Trained, split: str) -> Scores:
    """How well hidden patches are painted, beside a patch of the mean grey of all that is visible."""
    asked = hidden_batch(trained.settings, split, SPLIT_IMAGES[split], seed=0)
    patches = patchify(standardise(asked.pixels), trained.settings.patch_size)
    masked = random_mask(asked.noise, trained.settings.mask_ratio).masked
    with torch.no_grad():
        error = float(painting_loss(trained.model, asked))
    grey = (patches.mean(-1) * ~masked).sum(1) / (~masked).sum(1)
    flat = (patches - grey[:, None, None]).square().mean(-1)[masked].mean()
    return {ERROR: error, GREY: float(flat)}


DIGITS = (
    "digits of course_lib.data.digits (UCI, CC BY 4.0), 28 x 28 pixels, white on black, scaled, turned, slanted and "
    "moved; digits disjoint between training, validation and test"
)
SCENES = PretrainingSettings(pictures="scenes", steps=6000)

RECIPES = icon_recipes.RECIPES | {
    "mae": Recipe(
        title="MAE of handwritten digits",
        lesson="13",
        data=DIGITS,
        minutes=7,
        variants={"": SETTINGS},
        train=pretrain,
        scores=each(score),
        chosen_by=ERROR,
        settings=plain(SETTINGS, "pictures")
        | GEOMETRY
        | {name: asdict(settings) for name, settings in FINE_TUNING.items()}
        | {"counts": COUNTS, "draws": DRAWS},
    ),
    "mae_scenes": Recipe(
        title="MAE of digits on photographs",
        lesson="13",
        data="scenes of course_lib.data.scenes, 32 x 32 grey pixels, a digit on a piece of a photograph; digits and "
        "photographs of training, validation and test are disjoint",
        minutes=4,
        variants={"": SCENES},
        train=pretrain,
        scores=each(scene_score),
        chosen_by=ERROR,
    ),
}
