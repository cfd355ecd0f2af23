"""Random numbers for generated images: image number i of a seed is the same, however many are asked for.

Only uniform numbers are drawn: torch makes them one after the other from the Mersenne Twister's bits, the same on
every machine, while normal ones depend on the machine's mathematics and on how many are drawn at once.
"""

import hashlib

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
        return (next(self._columns) * count).long().clamp(max=count - 1)

    def coin(self) -> Bool[Tensor, " B"]:
        """True half of the time."""
        return next(self._columns) < 0.5
