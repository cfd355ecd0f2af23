"""Handwritten digits: the 1,797 real ones, and clean larger images of them, as easy as MNIST.

E. Alpaydin and C. Kaynak, "Optical recognition of handwritten digits", UCI Machine Learning Repository, 1998. Splits
are by digit: a digit that a training image shows is in no validation or test image (the same people wrote all three).
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data.draws import Draws, generator
from course_lib.data.files import data_path

FOLDER, FILE = "images", "digits.npz"
SPLITS = {"train": slice(0, 1100), "validation": slice(1100, 1400), "test": slice(1400, 1797)}
INK = 0.4  # of 1: from here on a pixel belongs to the digit
SHARPNESS = 2  # how much steeper than the 8 x 8 digit's its edges are drawn
CACHE = 2**18  # numbers: images are drawn in parts of this size, which fit into the processor's cache


class LabelledImages(NamedTuple):
    """Images with values from 0 to 1, and the class of each."""

    pixels: Float[Tensor, "B C H W"]
    labels: Int[Tensor, " B"]


def handwritten_digits(split: str, *, classes: tuple[int, ...] | None = None) -> LabelledImages:
    """The real digits of a split, 8 x 8 pixels, ink 1 on paper 0 in steps of 1/16; `classes` keeps only some digits.

    Raises ValueError for a split or a digit that does not exist.
    """
    check_split(split)
    check_classes(classes)
    images, labels = _all_digits()
    images, labels = images[SPLITS[split]], labels[SPLITS[split]]
    if classes is not None:
        kept = torch.isin(labels, torch.tensor(classes))
        images, labels = images[kept], labels[kept]
    return LabelledImages(images.clone(), labels.clone())


@dataclass(frozen=True, kw_only=True)
class CleanDigits:
    """White digits on black: centred, slightly turned, slanted, scaled and shifted.

    Raises ValueError for settings out of range.
    """

    split: str
    size: int = 28  # pixels
    classes: tuple[int, ...] | None = None  # which digits; None: all ten
    scale: tuple[float, float] = (0.75, 0.9)  # side of the digit's square, of the image's side
    rotation: float = 8.0  # degrees, at most, to both sides
    slant: float = 0.1  # columns per row, at most, to both sides
    shift: float = 0.04  # of the image's side, at most, in each direction

    def __post_init__(self):
        check_split(self.split)
        check_classes(self.classes)
        check_geometry(self.size, self.scale, self.rotation)
        if self.slant < 0 or self.shift < 0:
            raise ValueError(f"slant and shift must be 0 or more, got slant={self.slant}, shift={self.shift}.")

    def batch(self, count: int, seed: int) -> LabelledImages:
        """`count` images, the same on every call and machine; labels are the digits themselves, 0 to 9."""
        check_count(count)
        shapes, labels = digit_shapes(self.split, self.classes)
        rows = torch.rand(count, 6, generator=generator("clean digits", seed))
        chosen, parts = [], []
        for part in rows.split(part_size(1, self.size)):
            draws = Draws(part)
            chosen.append(draws.whole(len(labels)))
            centre = torch.stack([0.5 + draws.uniform(-self.shift, self.shift) for _ in "xy"], dim=1)
            parts.append(
                draw_digits(
                    shapes[chosen[-1]],
                    self.size,
                    centre=centre * self.size,
                    side=draws.uniform(*self.scale) * self.size,
                    degrees=draws.uniform(-self.rotation, self.rotation),
                    slant=draws.uniform(-self.slant, self.slant),
                )
            )
        return LabelledImages(torch.cat(parts), labels[torch.cat(chosen)])


def draw_digits(
    shapes: Float[Tensor, "B 1 h w"],
    size: int,
    *,
    centre: Float[Tensor, "B 2"],
    side: Float[Tensor, " B"],
    degrees: Float[Tensor, " B"],
    slant: Float[Tensor, " B"] | float = 0.0,
) -> Float[Tensor, "B 1 size size"]:
    """How much ink each pixel of a size x size image gets, from 0 to 1, when the shapes are drawn into it.

    `centre` (x, y) and `side` are in pixels; a shape is turned clockwise, and its upper part slanted to the right.
    """
    angle = degrees * (math.pi / 180)
    # from the image's coordinates, -1 to 1, back to the shape's: the inverse of turning and scaling
    cosine, sine = angle.cos() * (size / side), angle.sin() * (size / side)
    matrix = torch.stack([cosine - slant * sine, sine + slant * cosine, -sine, cosine], dim=1).view(-1, 2, 2)
    offset = matrix @ (2 * centre / size - 1)[:, :, None]
    position = (torch.arange(size) * 2 + 1) / size - 1
    # (B, 2, S, S); affine_grid would do the same by a matrix product, eight times as slowly
    grid = matrix[:, :, :1, None] * position + (matrix[:, :, 1:] * position - offset)[:, :, :, None]
    ink = F.grid_sample(shapes, grid.permute(0, 2, 3, 1), align_corners=False)
    return ink.sub_(INK).mul_(SHARPNESS).add_(INK).clamp_(0, 1)


def part_size(channels: int, size: int) -> int:
    """How many images of this size to draw at once."""
    return max(1, CACHE // (channels * size * size))


@cache
def digit_shapes(split: str, classes: tuple[int, ...] | None) -> tuple[Float[Tensor, "n 1 h w"], Int[Tensor, " n"]]:
    """The digits of a split as smooth shapes of 32 x 32 pixels, `INK` at their edges; shared: not to be changed."""
    pixels, labels = handwritten_digits(split, classes=classes)
    return F.interpolate(pixels, size=32, mode="bicubic", align_corners=False), labels


@cache
def _all_digits() -> tuple[Float[Tensor, "n 1 8 8"], Int[Tensor, " n"]]:
    with np.load(data_path(FOLDER, FILE), allow_pickle=False) as stored:
        images, labels = stored["images"], stored["labels"]
    order = np.random.RandomState(0).permutation(len(labels))  # this old generator's numbers never change
    return torch.from_numpy(images[order])[:, None] / 16, torch.from_numpy(labels[order]).long()


def check_split(split: str) -> None:
    """Raises ValueError unless it is the name of a split."""
    if split not in SPLITS:
        raise ValueError(f"the split must be one of {', '.join(SPLITS)}, got {split!r}.")


def check_classes(classes: tuple[int, ...] | None) -> None:
    """Raises ValueError unless these are different digits."""
    if classes is not None and (not classes or len(set(classes)) < len(classes) or not set(classes) <= set(range(10))):
        raise ValueError(f"classes must be different digits from 0 to 9, or None for all, got {classes}.")


def check_geometry(size: int, scale: tuple[float, float], rotation: float) -> None:
    """Raises ValueError unless digits of these sizes can be drawn."""
    if size < 8:
        raise ValueError(f"size must be 8 pixels or more for a digit to be legible, got {size}.")
    if not 0 < scale[0] <= scale[1] <= 1:
        raise ValueError(f"scale must be two shares of the image's side, 0 < low <= high <= 1, got {scale}.")
    if not 0 <= rotation <= 180:
        raise ValueError(f"rotation must be from 0 to 180 degrees, got {rotation}.")


def check_count(count: int) -> None:
    """Raises ValueError unless there is something to draw."""
    if count < 1:
        raise ValueError(f"count must be 1 image or more, got {count}.")
