"""Signs of a made script: nobody has seen them before, and no two scripts have the same ones."""

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

SIGN, SIDE = 9, 16  # pixels a side of a sign, and of the picture in which it lies anywhere
STROKES = 4
NOISE = 0.25  # standard deviation


class Script:
    """So many kinds of signs, of four straight strokes each."""

    def __init__(self, kinds: int, generator: Generator):
        ends = (SIGN - 1) * torch.rand(kinds, STROKES, 2, 2, generator=generator)
        walk = torch.linspace(0, 1, 20)[:, None]
        positions = (ends[:, :, :1] * (1 - walk) + ends[:, :, 1:] * walk).round().long().flatten(1, 2)
        self.signs = torch.zeros(kinds, SIGN, SIGN)
        self.signs[torch.arange(kinds)[:, None], positions[..., 0], positions[..., 1]] = 1.0

    def pictures(self, kinds: Int[Tensor, " B"], generator: Generator) -> Float[Tensor, "B 16 16"]:
        """One of each of these kinds, anywhere in its picture, in darker or brighter ink, with noise."""
        corners = torch.randint(SIDE - SIGN + 1, (len(kinds), 2), generator=generator)
        pixels = torch.zeros(len(kinds), SIDE, SIDE)
        for picture, sign, (top, left) in zip(pixels, self.signs[kinds], corners.tolist(), strict=True):
            picture[top : top + SIGN, left : left + SIGN] = sign
        ink = 0.6 + 0.8 * torch.rand(len(kinds), 1, 1, generator=generator)
        return ink * pixels + NOISE * torch.randn(pixels.shape, generator=generator)
