"""Pixels as models like them: about zero in the mean, about one in spread."""

from jaxtyping import Float
from torch import Tensor

MEAN, STD = 0.5, 0.25  # of pixels from 0 to 1; the same for all data of the course, so that models can change places


def standardise(pixels: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """(pixels - 0.5) / 0.25, for pixels from 0 (black) to 1 (white)."""
    return (pixels - MEAN) / STD


def restore(standardised: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Pixels from 0 to 1 out of what `standardise` made of them."""
    return standardised * STD + MEAN
