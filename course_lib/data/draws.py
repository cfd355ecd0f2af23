"""Random numbers for generated images: image number i of a seed is the same, however many are asked for.

Only uniform numbers are drawn: torch makes them one after the other from the Mersenne Twister's bits, the same on
every machine, while normal ones depend on the machine's mathematics and on how many are drawn at once.
"""

import hashlib
import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def generator(*key: int | str) -> torch.Generator:
    """A generator of its own for each key, such as ("noise", 3): neighbouring seeds have nothing in common."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:4], "big"))  # the twister takes 32 bits


class Draws:
    """A row of uniform numbers per image, handed out column by column."""

    def __init__(self, rows: Float[Tensor, "B columns"]):
        self._columns = iter(rows.unbind(dim=1))

    def uniform(self, low: float = 0.0, high: float = 1.0) -> Float[Tensor, " B"]:
        """From low to below high."""
        return low + (high - low) * next(self._columns)

    def whole(self, count: int) -> Int[Tensor, " B"]:
        """One of 0 ... count - 1."""
        return (next(self._columns) * count).long()

    def coin(self) -> Bool[Tensor, " B"]:
        """True half of the time."""
        return next(self._columns) < 0.5


def uniform_noise(shape: Sequence[int], deviation: float, generator: torch.Generator) -> Float[Tensor, "*shape"]:
    """Even noise of mean 0 and this standard deviation, in 256 steps, for images of the shape (B, ...).

    A number of 64 bits gives eight pixels their noise, in a tenth of the time of drawing one for each.
    """
    count, pixels = shape[0], math.prod(shape[1:])
    drawn = torch.empty(count, -(-pixels // 8), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    levels = drawn.view(torch.uint8)[:, :pixels].reshape(shape).float()
    return levels.sub_(127.5).mul_(deviation * 12**0.5 / 256)
