"""Lesson 13: how well is painted under masks of several kinds, and what the encoder costs that sees few patches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.functional.cost import count_flops, median_seconds
from course_lib.functional.images import standardise
from course_lib.layers.patches import block_noise, patchify, random_mask
from course_lib.models.mae import MAE

KINDS = ("random", "checkerboard", "block", "centre")


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
    """Which patches of the picture are hidden on the page."""
    return noise_of("random", 1, model.config.encoder.grid, seed=3)


@contextmanager
def hiding(model: MAE, ratio: float) -> Iterator[None]:
    """The model hides this share of the patches meanwhile."""
    before, model.encoder.mask_ratio = model.encoder.mask_ratio, ratio
    try:
        yield
    finally:
        model.encoder.mask_ratio = before


@torch.no_grad()
def errors(
    model: MAE, pixels: Float[Tensor, "B 1 H W"], noise: Float[Tensor, "B N"], ratio: float
) -> tuple[float, float]:
    """Mean squared error of the hidden patches: painted, and in the mean grey of the picture's visible patches."""
    image = standardise(pixels)
    patches = patchify(image, model.config.encoder.patch_size)
    masked = random_mask(noise, ratio).masked
    with hiding(model, ratio):
        painted = float(model.eval().loss(image, noise))
    grey = (patches.mean(-1) * ~masked).sum(1) / (~masked).sum(1)
    return painted, float((patches - grey[:, None, None]).square().mean(-1)[masked].mean())


def by_kind(model: MAE, pixels: Float[Tensor, "B 1 H W"], ratio: float = 0.5) -> dict[str, tuple[float, float]]:
    """Both errors under each kind of mask, the same share hidden."""
    grid = model.config.encoder.grid
    return {kind: errors(model, pixels, noise_of(kind, len(pixels), grid), ratio) for kind in KINDS}


def cost(model: MAE, pixels: Float[Tensor, "B 1 H W"]) -> dict[str, tuple[float, float]]:
    """Operations and seconds for one batch: the encoder as it is, and one that reads mask tokens, too; the decoder."""
    model.requires_grad_(False)
    image, encoder = standardise(pixels), model.eval().encoder
    noise = torch.rand(len(pixels), encoder.embed(image).shape[1], generator=torch.Generator().manual_seed(0))
    patches, visible = encoder.embed(image), encoder.see(image, noise)
    runs: dict[str, Callable[[], Tensor]] = {
        "encoder, visible patches": lambda: encoder.encode(patches[:, : visible.features.shape[1]]),
        "encoder, all patches": lambda: encoder.encode(patches),
        "decoder, all patches": lambda: model.decoder(visible, model.config.encoder.grid),
    }
    return {name: (float(count_flops(run)), median_seconds(run, repeats=5)) for name, run in runs.items()}
