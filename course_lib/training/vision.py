"""What the trainings of image models share: their loss on a labelled batch, and how many labels they get right."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.functional.pixels import standardise


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
