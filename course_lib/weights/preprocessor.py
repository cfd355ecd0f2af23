"""How the pixels of an official checkpoint are to be normalised: preprocessor_config.json beside its weights."""

import math
from pathlib import Path
from typing import Any

from torch import nn

from course_lib.functional.images import Normalisation

PREPROCESSOR = "preprocessor_config.json"


def as_normalisation(said: dict[str, Any], path: Path) -> Normalisation | None:
    """What a preprocessor_config.json says; None if it begins with other pixels than those from 0 to 1.

    Raises ValueError for numbers that make no sense.
    """
    if not said.get("do_rescale", True) or not math.isclose(said.get("rescale_factor", 1 / 255), 1 / 255, rel_tol=1e-3):
        return None
    if not said.get("do_normalize", True):
        return Normalisation(mean=(0.0,), std=(1.0,))
    try:
        mean, std = (tuple(map(float, said[name])) for name in ("image_mean", "image_std"))
        return Normalisation(mean=mean, std=std)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must have image_mean and image_std, a number for each channel, got {said.get('image_mean')!r} and "
            f"{said.get('image_std')!r}"
        ) from error


def as_preprocessor(model: nn.Module, channels: int) -> dict[str, Any] | None:
    """The same the other way round, for Hugging Face's image processors; None if the model does not say."""
    normalisation = getattr(model, "normalisation", None)
    if normalisation is None:
        return None
    mean, std = (list(each) * (channels if len(each) == 1 else 1) for each in (normalisation.mean, normalisation.std))
    return {
        "do_resize": False,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": mean,
        "image_std": std,
    }
