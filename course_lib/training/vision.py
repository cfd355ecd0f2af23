"""What the trainings of image models share: how a classifier is trained, and how many labels it gets right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim import Optimizer

from course_lib.functional.images import standardise
from course_lib.training.history import History
from course_lib.training.loop import FitConfig, fit
from course_lib.training.progress import Progress

STEPS_OF_A_SEED = 10**6  # more than any training has


def seed_of_step(seed: int, step: int) -> int:
    """The number by which a step's images are drawn: each step of each seed has its own."""
    return seed * STEPS_OF_A_SEED + step


def fit_classifier(
    model: nn.Module,
    batch_at: Callable[[int], tuple[Float[Tensor, "B C H W"], Int[Tensor, " B"]]],
    *,
    steps: int,
    parts: int = 1,
    validate: Callable[[nn.Module], float] | None = None,
    optimizer: Optimizer | None = None,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> History:
    """`fit` to labelled images; `settings` are those of `FitConfig`.

    After each of so many equal `parts`, and at the end, the model is saved and, by `validate`, scored: more is better.
    """
    every = max(1, steps // parts)
    return fit(
        model,
        batch_at,
        classification_loss,
        config=FitConfig(steps=steps, evaluate_every=every, checkpoint_every=every, **settings),
        validate=validate,
        mode="max",
        optimizer=optimizer,
        checkpoint=checkpoint,
        progress=progress,
    )


def classification_loss(
    model: nn.Module, batch: tuple[Float[Tensor, "B C H W"], Int[Tensor, " B"]]
) -> Float[Tensor, ""]:
    """Mean cross-entropy of the model's logits, in nats; the batch is (pixels from 0 to 1, labels)."""
    pixels, labels = batch
    return F.cross_entropy(model(standardise(pixels)), labels)


@torch.no_grad()
def predictions(
    model: nn.Module, pixels: Float[Tensor, "B C H W"], *, batch_size: int = 500
) -> Float[Tensor, "B classes *map"]:
    """The model's logits, of each image or each pixel, in evaluation mode; pixels from 0 to 1."""
    was_training = model.training
    model.eval()
    try:
        return torch.cat([model(standardise(part)) for part in pixels.split(batch_size)])
    finally:
        model.train(was_training)


def accuracy(
    model: nn.Module, pixels: Float[Tensor, "B C H W"], labels: Int[Tensor, " B"], *, batch_size: int = 500
) -> float:
    """Share of the images whose label gets the highest logit, from 0 to 1; pixels from 0 to 1."""
    return (predictions(model, pixels, batch_size=batch_size).argmax(dim=-1) == labels).float().mean().item()
