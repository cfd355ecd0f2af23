"""Lesson 13: a masked autoencoder of icons, what its encoder is worth with few labels, and variants of it.

He et al., "Masked autoencoders are scalable vision learners", CVPR 2022, arXiv 2111.06377. Pre-training sees the
training drawings of `course_lib.data.icons` without their labels, shifted, mirrored and on a background. Nothing of
the validation and test drawings is seen, and the learning rates were chosen on the validation drawings.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.data.icons import CATEGORIES, SIZE, Icons, icons
from course_lib.functional.images import standardise
from course_lib.layers.patches import random_mask, unpatchify
from course_lib.lessons.lesson_01.recipes.icon_names import random_views
from course_lib.lessons.lesson_11.icon_recipes import new_drawings
from course_lib.models.mae import MAE, MAEConfig, encoder_of
from course_lib.models.vit import ViTConfig
from course_lib.training.batches import shuffled_batches
from course_lib.training.probes import Labelled, features_of, label_draw, tuned_probe
from course_lib.training.recipe import Recipe, Scores, Trained, common, each, fit_by, mean_and_spread, plain
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, fit_classifier, seed_of_step

LABELS = {"300 labels": 50, "all labels": None}  # drawings of each category; None: all there are
DRAWS = 3  # of the labelled drawings, for the probes of the variants
ERROR = "squared error of hidden patches"
BASELINES = {"mean colour": ERROR + ", mean colour", "interpolation": ERROR + ", interpolation"}
POWER = 4  # of the inverse distance; of 2 to 6 the best on the validation drawings


@dataclass(frozen=True, kw_only=True)
class PretrainingSettings:
    """A small MAE of 32 x 32 pixels in colour, and how long it is trained."""

    patch_size: int = 4  # pixels a side: 64 patches
    dim: int = 64
    depth: int = 4
    num_heads: int = 4
    decoder_dim: int = 48
    decoder_depth: int = 2
    decoder_num_heads: int = 4
    mask_ratio: float = 0.75
    normalised: bool = False
    steps: int = 15_000
    batch_size: int = 64
    learning_rate: float = 4e-3
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class FineTuningSettings:
    """How a classifier learns from a few labelled drawings."""

    learning_rate: float
    steps: int = 2000
    batch_size: int = 32
    weight_decay: float = 0.05
    seed: int = 0


SETTINGS = PretrainingSettings()
# of the pre-trained and of the fresh network: learning rates were chosen on the validation drawings
FINE_TUNING = {
    "fine-tuned": FineTuningSettings(learning_rate=2e-3),
    "scratch": FineTuningSettings(learning_rate=1e-3),
}


class HiddenBatch(NamedTuple):
    """Images, and the noise that says which of their patches are hidden."""

    pixels: Float[Tensor, "B 3 H W"]  # from 0 to 1
    noise: Float[Tensor, "B N"]


class FewLabels(NamedTuple):
    """A few labelled drawings to learn from, more to choose a probe's penalty by, and those to be classified."""

    given: Icons
    validation: Icons
    asked: Icons


# ------------------------------------------------------------------------------------------ pre-training


def num_patches(settings: PretrainingSettings) -> int:
    return (SIZE // settings.patch_size) ** 2


def training_batches(settings: PretrainingSettings) -> Callable[[int], HiddenBatch]:
    """`batch_at(step)`: views of training drawings, every drawing once in an epoch, and their noise."""
    drawings = icons("train")
    indices_at = shuffled_batches(len(drawings.names), settings.batch_size, settings.seed)

    def batch_at(step: int) -> HiddenBatch:
        some = drawings.take(indices_at(step))
        generator = torch.Generator().manual_seed(seed_of_step(settings.seed, step))
        pixels = random_views(some, generator)
        return HiddenBatch(pixels, torch.rand(len(pixels), num_patches(settings), generator=generator))

    return batch_at


def drawings_of(split: str) -> Icons:
    """The drawings of a split; of "test" all that are new: see `new_drawings` of lesson 11."""
    return new_drawings() if split == "test" else icons(split)


def hidden_drawings(settings: PretrainingSettings, split: str) -> HiddenBatch:
    """The drawings of a split on white, and noise that is the same each time."""
    pixels = drawings_of(split).on(1.0)
    return HiddenBatch(
        pixels, torch.rand(len(pixels), num_patches(settings), generator=torch.Generator().manual_seed(0))
    )


def reconstruction_loss(model: MAE, batch: HiddenBatch) -> Float[Tensor, ""]:
    """Mean squared error of the hidden patches, in units of `standardise`."""
    return model.loss(standardise(batch.pixels), batch.noise)


def build(settings: PretrainingSettings) -> MAE:
    """A fresh model, without a class token; its first weights depend on the seed alone."""
    encoder = ViTConfig(
        image_size=SIZE,
        in_channels=3,
        num_classes=None,
        mlp_dim=4 * settings.dim,
        pool="mean",
        **common(settings, ViTConfig),
    )
    config = MAEConfig(encoder=encoder, decoder_mlp_dim=4 * settings.decoder_dim, **common(settings, MAEConfig))
    with seeded(settings.seed):
        return MAE(config)


def pretrain(settings: PretrainingSettings, *, checkpoint: Path | None = None) -> Trained:
    """Learns to reconstruct hidden patches."""
    held_out = hidden_drawings(settings, "validation")
    return fit_by(
        settings,
        build(settings),
        training_batches(settings),
        reconstruction_loss,
        parts=10,
        warmup=min(200, settings.steps // 10),
        betas=(0.9, 0.95),
        weight_decay=0.05,
        validate=lambda model: float(reconstruction_loss(model, held_out)),
        checkpoint=checkpoint,
    )


# ------------------------------------------------------------------------------- what needs no network


def mean_colour(pixels: Float[Tensor, "B C H W"], masked: Bool[Tensor, "B 1 H W"]) -> Float[Tensor, "B C H W"]:
    """Each hidden pixel gets the mean colour of its image's visible pixels."""
    visible = (~masked).float()
    mean = (pixels * visible).sum((2, 3), keepdim=True) / visible.sum((2, 3), keepdim=True)
    return torch.where(masked, mean, pixels)


def interpolation(pixels: Float[Tensor, "B C H W"], masked: Bool[Tensor, "B 1 H W"]) -> Float[Tensor, "B C H W"]:
    """Each hidden pixel gets the mean of all visible ones, weighted by 1 / distance^POWER.

    Shepard, "A two-dimensional interpolation function for irregularly-spaced data", ACM 1968.
    """
    visible, weight = (~masked).float().flatten(2), inverse_distances(*pixels.shape[-2:])
    mean = (pixels.flatten(2) * visible) @ weight / (visible @ weight)
    return torch.where(masked, mean.reshape(pixels.shape), pixels)


@cache
def inverse_distances(height: int, width: int) -> Float[Tensor, "HW HW"]:
    """1 / distance^POWER between all pixels; 0 of a pixel to itself."""
    positions = torch.cartesian_prod(torch.arange(height), torch.arange(width)).float()
    return torch.cdist(positions, positions).fill_diagonal_(torch.inf) ** -POWER


def masked_pixels(masked: Bool[Tensor, "B N"], patch_size: int, size: int = SIZE) -> Bool[Tensor, "B 1 H W"]:
    """The mask of patches as one of pixels."""
    return unpatchify(masked[..., None].expand(-1, -1, patch_size**2).float(), patch_size, size, size).bool()


def baseline_errors(settings: PretrainingSettings, split: str) -> Scores:
    """Mean squared error of the hidden pixels, filled in without a network."""
    asked = hidden_drawings(settings, split)
    pixels = standardise(asked.pixels)
    masked = masked_pixels(random_mask(asked.noise, settings.mask_ratio).masked, settings.patch_size)
    hidden = masked.expand_as(pixels)
    return {
        BASELINES[name]: float((fill(pixels, masked) - pixels).square()[hidden].mean())
        for name, fill in (("mean colour", mean_colour), ("interpolation", interpolation))
    }


# ------------------------------------------------------------------------------------------ few labels


def few_labels(per_category: int | None, draw: int, split: str = "test") -> FewLabels:
    """So many labelled training drawings of each category (None: all), and the drawings of `split` to be classified."""
    pool = icons("train")
    if per_category is not None:
        pool = pool.take(label_draw(pool.categories, per_category, seed=draw))
    return FewLabels(pool, icons("validation"), drawings_of(split))


def fine_tune(model: nn.Module, given: Icons, settings: FineTuningSettings) -> nn.Module:
    """The classifier with all its weights trained, in place, on views of the labelled drawings."""
    indices_at = shuffled_batches(len(given.names), settings.batch_size, settings.seed)

    def batch_at(step: int) -> tuple[Float[Tensor, "B 3 H W"], Int[Tensor, " B"]]:
        some = given.take(indices_at(step))
        generator = torch.Generator().manual_seed(seed_of_step(settings.seed, step))
        return random_views(some, generator), some.categories

    return fit_classifier(settings, model, batch_at, warmup=settings.steps // 10).model


def pooled_features(encoder: nn.Module, pixels: Float[Tensor, "N 3 H W"]) -> Float[Tensor, "N D"]:
    """The mean of an image's features, for images of pixels from 0 to 1."""
    return features_of(encoder, pixels, encode=lambda image: encoder.pool(encoder.features(image)))


def small_pixels(pixels: Float[Tensor, "N 3 H W"]) -> Float[Tensor, "N P"]:
    """Means of 2 x 2 pixels: at full resolution logistic regression takes far longer."""
    return F.avg_pool2d(pixels, 2).flatten(1)


def probe_accuracy(posed: FewLabels, encode: Callable[[Tensor], Tensor]) -> float:
    """Of logistic regression on what `encode` makes of pixels, its penalty chosen on the validation drawings."""
    given, validation, asked = (Labelled(encode(drawings.on(1.0)), drawings.categories) for drawings in posed)
    return tuned_probe(given, validation).accuracy(*asked)


def compare(pretrained: MAE, *, per_category: int | None, draw: int, split: str = "test") -> Scores:
    """Accuracies after one draw of labels, from 0 to 1.

    The pre-trained encoder fine-tuned; the same network from scratch, for as many steps; logistic regression on the
    features of the pre-trained encoder, and on pixels of half the resolution.
    """
    posed, encoder = few_labels(per_category, draw, split), encoder_of(pretrained)
    scores = {}
    for name, settings in FINE_TUNING.items():
        network = classifier(pretrained, name, draw)
        tuned = fine_tune(network, posed.given, replace(settings, seed=draw))
        scores[name] = accuracy(tuned, posed.asked.on(1.0), posed.asked.categories)
    scores["linear probe"] = probe_accuracy(posed, lambda pixels: pooled_features(encoder, pixels))
    scores["pixels"] = probe_accuracy(posed, small_pixels)
    return scores


def classifier(pretrained: MAE, start: str, seed: int) -> nn.Module:
    """A classifier of categories to be trained: the encoder with a fresh head, or all of it fresh ("scratch")."""
    with seeded(seed):
        source = MAE(pretrained.config) if start == "scratch" else pretrained
        return encoder_of(source, num_classes=len(CATEGORIES))


def few_label_scores(pretrained: MAE, *, seed: int, split: str = "test") -> Scores:
    """Each method's accuracy by the number of labels; each seed has a draw of its own."""
    return {
        f"accuracy, {labels}, {name}": accuracy
        for labels, per_category in LABELS.items()
        for name, accuracy in compare(pretrained, per_category=per_category, draw=seed, split=split).items()
    }


def reconstruction_error(trained: Trained, split: str) -> Scores:
    """The error on a split; of a model with normalised targets it is in their unit, no pixel's."""
    with torch.no_grad():
        return {ERROR: float(reconstruction_loss(trained.model, hidden_drawings(trained.settings, split)))}


def score(trained: Trained, split: str) -> Scores:
    """On validation how well hidden patches are reconstructed, on the test also how much that helps with few labels."""
    found = reconstruction_error(trained, split)
    if split == "test":
        found |= baseline_errors(trained.settings, split) | few_label_scores(
            trained.model, seed=trained.settings.seed, split=split
        )
    return found


def probe_score(trained: Trained, split: str) -> Scores:
    """The error of reconstruction; on the test also that of the baselines, and the accuracy of a linear probe."""
    found = reconstruction_error(trained, split)
    if split == "validation":
        return found
    found |= baseline_errors(trained.settings, split)
    encoder, pool = encoder_of(trained.model), icons("train")
    train, validation, asked = (
        Labelled(pooled_features(encoder, drawings.on(1.0)), drawings.categories)
        for drawings in (pool, icons("validation"), drawings_of(split))
    )
    reached = []
    for draw in range(DRAWS):
        chosen = label_draw(pool.categories, LABELS["300 labels"], seed=draw)
        reached.append(tuned_probe(Labelled(*(part[chosen] for part in train)), validation).accuracy(*asked))
    found |= mean_and_spread("accuracy, 300 labels, linear probe", reached)
    found["accuracy, all labels, linear probe"] = tuned_probe(train, validation).accuracy(*asked)
    return found


BASE = "75 % hidden"  # with a decoder of two blocks
SHORT = replace(SETTINGS, steps=1500)
VARIANTS = (
    {f"{100 * ratio:.0f} % hidden": replace(SHORT, mask_ratio=ratio) for ratio in (0.25, 0.5, 0.75, 0.9)}
    | {f"decoder depth {depth}": replace(SHORT, decoder_depth=depth) for depth in (1, 4)}
    | {"normalised targets": replace(SHORT, normalised=True)}
)
SHARED = {
    "lesson": "13",
    "data": "icons of course_lib.data.icons, 32 x 32 pixels in colour; pre-training without labels; test: other "
    "drawings of known things, those of a designer of whom nothing is in the training, and 100 unseen things",
    "train": pretrain,
}
RECIPES = {
    "mae_icons": Recipe(
        title="MAE of icons",
        minutes=20,
        variants={"": SETTINGS},
        scores=each(score),
        chosen_by=ERROR,
        settings=plain(SETTINGS)
        | {name: asdict(settings) for name, settings in FINE_TUNING.items()}
        | {"labels": LABELS},
        **SHARED,
    ),
    "mae_icons_variants": Recipe(
        title="MAE of icons by mask ratio, decoder depth and target",
        minutes=15,
        variants=VARIANTS,
        ships=BASE,
        scores=each(probe_score),
        chosen_by=f"{ERROR}, {BASE}",
        weights=False,
        **SHARED,
    ),
}
