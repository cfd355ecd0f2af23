"""What the trainings of image models share: how a classifier is trained, and how many labels it gets right."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.functional.images import COURSE_PIXELS
from course_lib.functional.losses import check_whole
from course_lib.training.recipe import Trained, fit_by

STEPS_OF_A_SEED = 10**6  # more than any training has


def seed_of_step(seed: int, step: int) -> int:
    """The number by which a step's images are drawn: each step of each seed has its own."""
    return seed * STEPS_OF_A_SEED + step


def normalised(model: nn.Module, pixels: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
    """Pixels from 0 to 1 as this model expects them: by its `normalisation`, or the course's if it has none.

    Raises ValueError for other pixels, and for a model whose checkpoint does not say what it expects.
    """
    normalisation = getattr(model, "normalisation", COURSE_PIXELS)
    if normalisation is None:
        raise ValueError(
            f"this {type(model).__name__} does not say how its pixels are normalised: its checkpoint had no "
            "preprocessor_config.json beside it. Set model.normalisation = Normalisation(mean=..., std=...), of "
            "course_lib.functional.images, to what its authors give"
        )
    return normalisation(pixels)


def classification_loss(
    model: nn.Module, batch: tuple[Float[Tensor, "B C H W"], Int[Tensor, " B"]]
) -> Float[Tensor, ""]:
    """Mean cross-entropy of the model's logits, in nats; the batch is (pixels from 0 to 1, labels).

    Raises ValueError for labels that are not whole numbers, and as `normalised` does.
    """
    pixels, labels = batch
    check_whole("labels", labels)
    return F.cross_entropy(model(normalised(model, pixels)), labels)


def fit_classifier(
    settings: Any,
    model: nn.Module,
    batch_at: Callable[[int], tuple[Float[Tensor, "B C H W"], Int[Tensor, " B"]]],
    **others: Any,
) -> Trained:
    """`fit_by` to labelled images; by `validate`, if it is given, more is better."""
    return fit_by(settings, model, batch_at, classification_loss, mode="max", **others)


@torch.no_grad()
def predictions(
    model: nn.Module, pixels: Float[Tensor, "B C H W"], *, batch_size: int = 500
) -> Float[Tensor, "B classes *map"]:
    """The model's logits, of each image or each pixel, in evaluation mode; pixels from 0 to 1.

    Raises ValueError as `normalised` does.
    """
    was_training = model.training
    model.eval()
    try:
        return torch.cat([model(normalised(model, part)) for part in pixels.split(batch_size)])
    finally:
        model.train(was_training)


def accuracy(
    model: nn.Module, pixels: Float[Tensor, "B C H W"], labels: Int[Tensor, " B"], *, batch_size: int = 500
) -> float:
    """Share of the images whose label gets the highest logit, from 0 to 1; pixels from 0 to 1.

    Raises ValueError as `normalised` does.
    """
    return (predictions(model, pixels, batch_size=batch_size).argmax(dim=-1) == labels).float().mean().item()
