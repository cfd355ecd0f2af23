"""Lesson 13: reconstruction under masks of several kinds, and the cost of an encoder that sees few patches."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.functional.cost import count_flops, median_seconds
from course_lib.functional.images import restore, standardise
from course_lib.layers.patches import block_noise, patch_statistics, patchify, unpatchify
from course_lib.lessons.lesson_13.icon_recipes import interpolation, masked_pixels, mean_colour
from course_lib.models.mae import MAE

KINDS = ("random", "checkerboard", "block", "centre")
PATCH = 4  # pixels a side
FILLS = {"mean colour": mean_colour, "interpolation": interpolation}


def noise_of(kind: str, count: int, grid: tuple[int, int], seed: int = 0) -> Float[Tensor, "B N"]:
    """Noise with which `random_mask` hides patches at random, every second one, a block anywhere or in the middle."""
    draws = torch.Generator().manual_seed(seed)
    if kind == "random":
        return torch.rand(count, grid[0] * grid[1], generator=draws)
    if kind == "checkerboard":
        number = torch.arange(grid[0])[:, None] + torch.arange(grid[1])
        return (number % 2).flatten().float().expand(count, -1)
    middle = (torch.tensor(grid) - 1) / 2
    positions = torch.rand(count, 2, generator=draws) * (torch.tensor(grid) - 1)
    return block_noise(middle.expand(count, 2) if kind == "centre" else positions, grid)


def coin_noise(model: MAE) -> Float[Tensor, "1 N"]:
    """Which patches of the coin are hidden at first."""
    return noise_of("random", 1, model.config.encoder.grid, seed=3)


@contextmanager
def hiding(model: MAE, ratio: float) -> Iterator[None]:
    """The model hides this fraction of the patches meanwhile."""
    before, model.encoder.mask_ratio = model.encoder.mask_ratio, ratio
    try:
        yield
    finally:
        model.encoder.mask_ratio = before


@torch.no_grad()
def reconstructions(
    model: nn.Module, pixels: Float[Tensor, "B C H W"], noise: Float[Tensor, "B N"]
) -> tuple[Float[Tensor, "B C H W"], Bool[Tensor, "B 1 H W"]]:
    """The images with their hidden patches reconstructed, and which pixels were hidden; pixels from 0 to 1.

    `model(image, noise)` returns the patches and the mask of the hidden ones, as `MAE` does, and a learner's class.
    """
    image, size = standardise(pixels), pixels.shape[-2:]
    patches, masked = model(image, noise)
    merged = torch.where(masked[..., None], patches, patchify(image, PATCH))
    return restore(unpatchify(merged, PATCH, *size)), masked_pixels(masked, PATCH, size[-1])


def hidden_error(filled: Tensor, pixels: Float[Tensor, "B C H W"], masked: Tensor) -> float:
    """Mean squared error of the hidden pixels, in units of `standardise`."""
    wrong = (standardise(filled) - standardise(pixels)).square()
    return float(wrong[masked.expand_as(wrong)].mean())


def errors(
    models: Mapping[str, nn.Module], pixels: Float[Tensor, "B C H W"], noise: Float[Tensor, "B N"]
) -> dict[str, float]:
    """The error of the baselines and of each model, all on the same hidden pixels."""
    image, found = standardise(pixels), {}
    for name, model in models.items():
        with torch.no_grad():
            patches, hidden = model(image, noise)
        found[name] = float((patches - patchify(image, PATCH))[hidden].square().mean())
    masked = masked_pixels(hidden, PATCH, pixels.shape[-1])
    return {name: hidden_error(fill(pixels, masked), pixels, masked) for name, fill in FILLS.items()} | found


def by_kind(model: MAE, pixels: Float[Tensor, "B C H W"], ratio: float = 0.5) -> dict[str, dict[str, float]]:
    """The errors under each kind of mask, with the same fraction hidden."""
    with hiding(model, ratio):
        return {
            kind: errors({"MAE": model}, pixels, noise_of(kind, len(pixels), model.config.encoder.grid))
            for kind in KINDS
        }


def normalised_patches(pixels: Float[Tensor, "1 C H W"]) -> Float[Tensor, "1 C H W"]:
    """The normalised target of an image, as an image: mean 0 and standard deviation 1 in each patch."""
    patches = patchify(standardise(pixels), PATCH)
    mean, std = patch_statistics(patches)
    return unpatchify((patches - mean) / std, PATCH, *pixels.shape[-2:])


@torch.no_grad()
def cost(model: MAE, pixels: Float[Tensor, "B C H W"]) -> dict[str, tuple[float, float]]:
    """Multiply-adds for one image, and seconds for the batch: the encoder on visible or on all patches; the decoder."""
    image, encoder = standardise(pixels), model.eval().encoder
    noise = torch.rand(len(pixels), encoder.embed(image).shape[1], generator=torch.Generator().manual_seed(0))
    patches, visible = encoder.embed(image), encoder.see(image, noise)
    runs: dict[str, Callable[[], Tensor]] = {
        "encoder, visible patches": lambda: encoder.encode(patches[:, : visible.features.shape[1]]),
        "encoder, all patches": lambda: encoder.encode(patches),
        "decoder, all patches": lambda: model.decoder(visible, model.config.encoder.grid),
    }
    return {name: (count_flops(run) / 2 / len(pixels), median_seconds(run, repeats=5)) for name, run in runs.items()}
