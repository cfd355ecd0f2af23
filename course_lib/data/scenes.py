"""Real handwritten digits on real textures, with all that can be asked about them: classes, masks, boxes.

`clutter` is the dial from plain to hard. Digits and textures of the three splits are disjoint.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.data.digits import (
    INK,
    LabelledImages,
    check_classes,
    check_count,
    check_geometry,
    check_split,
    digit_shapes,
    draw_digits,
    part_size,
)
from course_lib.data.draws import Draws, generator, uniform_noise
from course_lib.data.photographs import photograph

TEXTURES = {
    "train": ("astronaut", "brick", "camera", "chelsea", "china", "coffee", "grass", "hubble", "clock"),
    "validation": ("cell", "gravel", "rocket"),
    "test": ("coins", "flower", "retina", "tissue"),
}
TEXTURE_SIZE = 192  # pixels: the sides that the pictures are scaled to before a piece is cut out
ABSENT = -100  # the label where there is no digit; cross-entropy leaves it out
CROWDED = 2 / 3  # how fast digits get smaller when there are more of them
PLACES = 12  # that are tried for each digit
APART = (0.7, 1.0)  # of two digits' mean side: so far, across or down, their middles should be from each other


class Scenes(NamedTuple):
    """Images from 0 to 1 of at most K digits, and what is on them."""

    pixels: Float[Tensor, "B C S S"]
    labels: Int[Tensor, "B K"]  # the digits, ABSENT where there is none
    present: Bool[Tensor, "B K"]
    semantic: Int[Tensor, "B S S"]  # 0 is background, digit + 1
    instances: Int[Tensor, "B S S"]  # 0 is background, 1 ... K which of the digits; a later one covers an earlier
    boxes: Int[Tensor, "B K 4"]  # of what is to be seen: x0, y0, x1, y1 in pixels, x1 and y1 just behind; else zeros

    def classification(self) -> LabelledImages:
        """The images with their first digit as label."""
        return LabelledImages(self.pixels, self.labels[:, 0])


@dataclass(frozen=True, kw_only=True)
class DigitScenes:
    """Digits drawn into pieces of photographs.

    The colour of a digit differs in every channel by `contrast` or more from the mean of what its ink covers. Digits
    are kept apart where there is room: if they overlap, a later one covers an earlier one. Raises ValueError for
    settings out of range.
    """

    split: str
    size: int = 32  # pixels
    digits: tuple[int, int] = (1, 1)  # fewest and most in an image
    clutter: float | tuple[float, float] = 1.0  # 0: plain, 1: the texture as it is; of a range each image draws one
    colour: bool = False
    classes: tuple[int, ...] | None = None  # which digits; None: all ten
    contrast: float = 0.35  # of the range from black to white
    scale: tuple[float, float] = (0.55, 0.9)  # of a digit's side, of the image's; n digits: divided by n ** CROWDED
    rotation: float = 20.0  # degrees, at most, to both sides
    noise: float = 0.03  # standard deviation of what each pixel is off

    def __post_init__(self):
        check_split(self.split)
        check_classes(self.classes)
        check_geometry(self.size, self.scale, self.rotation)
        low, high = self.clutter_range
        rules = {
            "size": (self.size <= TEXTURE_SIZE, f"at most {TEXTURE_SIZE} pixels, the size of the textures"),
            "digits": (1 <= self.digits[0] <= self.digits[1], "fewest and most, 1 <= fewest <= most"),
            "clutter": (0 <= low <= high <= 1, "a number from 0 to 1 or a range of them, low before high"),
            "contrast": (0 <= self.contrast <= 0.5, "from 0 to 0.5: on middle grey there is no more"),
            "noise": (self.noise >= 0, "0 or more"),
        }
        for name, (holds, rule) in rules.items():
            if not holds:
                raise ValueError(f"{name} must be {rule}, got {getattr(self, name)!r}.")

    @property
    def clutter_range(self) -> tuple[float, float]:
        return self.clutter if isinstance(self.clutter, tuple) else (self.clutter, self.clutter)

    def batch(self, count: int, seed: int) -> Scenes:
        """`count` scenes, the same on every call and machine."""
        check_count(count)
        most = self.digits[1]
        columns = 5 + most * (3 + 2 * PLACES + self.channels)
        rows = torch.rand(count, columns, generator=generator("scenes", seed))
        noise = generator("noise of scenes", seed)
        parts = [self._draw(Draws(part), noise) for part in rows.split(part_size(self.channels, self.size))]
        return Scenes(*map(torch.cat, zip(*parts, strict=True)))

    @property
    def channels(self) -> int:
        return 3 if self.colour else 1

    def _draw(self, draws: Draws, noise: torch.Generator) -> Scenes:
        shapes, digit_of = digit_shapes(self.split, self.classes)
        pixels = self._background(draws)
        few, most = self.digits
        number = few + draws.whole(most - few + 1)
        instances = torch.zeros(len(pixels), self.size, self.size, dtype=torch.long)
        labels, present, placed = [], [], []
        for index in range(most):
            is_there = index < number
            chosen = draws.whole(len(digit_of))
            side = draws.uniform(*self.scale) * self.size / number**CROWDED
            centre = free_place(draws, side, self.size, placed)
            ink = draw_digits(
                shapes[chosen],
                self.size,
                centre=centre,
                side=side,
                degrees=draws.uniform(-self.rotation, self.rotation),
            )
            ink = ink * is_there[:, None, None, None]
            pixels = torch.lerp(pixels, self._ink_colour(draws, pixels, ink), ink)
            instances = torch.where(ink[:, 0] >= INK, index + 1, instances)
            placed.append((centre, side))
            present.append(is_there)
            labels.append(digit_of[chosen].masked_fill(~is_there, ABSENT))
        pixels += uniform_noise(pixels.shape, self.noise, noise)
        labels = torch.stack(labels, dim=1)
        return Scenes(
            pixels=pixels.clamp_(0, 1),
            labels=labels,
            present=torch.stack(present, dim=1),
            semantic=classes_of(instances, labels),
            instances=instances,
            boxes=boxes_of(instances, most),
        )

    def _background(self, draws: Draws) -> Float[Tensor, "B C S S"]:
        """Pieces of textures, their deviation from their mean multiplied by the clutter."""
        pixels = texture_pieces(draws, self.split, self.size, self.colour)
        clutter = draws.uniform(*self.clutter_range)
        return torch.lerp(pixels.mean(dim=(2, 3), keepdim=True), pixels, clutter[:, None, None, None])

    def _ink_colour(
        self, draws: Draws, pixels: Float[Tensor, "B C S S"], ink: Float[Tensor, "B 1 S S"]
    ) -> Float[Tensor, "B C 1 1"]:
        """Any colour, with equal chances, that differs by `contrast` or more from the mean of what the ink covers."""
        covered = (pixels * ink).sum(dim=(2, 3)) / ink.sum(dim=(2, 3)).clamp(min=1e-6)  # (B, C)
        below = (covered - self.contrast).clamp(min=0)  # how much room there is for darker ink, and for brighter
        above = (1 - covered - self.contrast).clamp(min=0)
        position = torch.stack([draws.uniform() for _ in range(self.channels)], dim=1) * (below + above)
        colour = torch.where(position < below, position, covered + self.contrast + position - below)
        return colour.clamp(0, 1)[:, :, None, None]


def free_place(
    draws: Draws, side: Float[Tensor, " B"], size: int, placed: list[tuple[Tensor, Tensor]]
) -> Float[Tensor, "B 2"]:
    """The first of several random places that is far enough from all digits so far, else the farthest."""
    tried = torch.stack([torch.stack([draws.uniform() for _ in "xy"], dim=1) for _ in range(PLACES)], dim=1)
    tried = side[:, None, None] / 2 + tried * (size - side)[:, None, None]  # (B, PLACES, 2)
    distance = -torch.arange(PLACES) * 1e-3 + torch.ones(len(side), 1)  # of equal ones the first
    for other, other_side in placed:
        away = (tried - other[:, None]).abs() / torch.tensor(APART) / ((side + other_side) / 2)[:, None, None]
        distance = torch.minimum(distance, away.amax(dim=2).clamp(max=1) - torch.arange(PLACES) * 1e-3)
    return tried[torch.arange(len(side)), distance.argmax(dim=1)]


def classes_of(instances: Int[Tensor, "B S S"], labels: Int[Tensor, "B K"]) -> Int[Tensor, "B S S"]:
    """The semantic mask of an instance mask."""
    classes = torch.cat([torch.zeros_like(labels[:, :1]), labels + 1], dim=1)
    return classes.gather(1, instances.flatten(1)).view_as(instances)


def boxes_of(instances: Int[Tensor, "B S S"], count: int) -> Int[Tensor, "B K 4"]:
    """x0, y0, x1, y1 of each of the instances 1 ... count, zeros if no pixel of it is to be seen."""
    masks = instances[:, None] == torch.arange(1, count + 1)[:, None, None]
    position = torch.arange(instances.shape[-1])
    sides = [masks.any(dim=2), masks.any(dim=3)]  # which columns, which rows are touched
    first = [torch.where(touched, position, len(position)).amin(dim=2) for touched in sides]
    behind = [torch.where(touched, position + 1, 0).amax(dim=2) for touched in sides]
    return torch.stack([*first, *behind], dim=2) * masks.any(dim=(2, 3))[:, :, None]


def texture_pieces(draws: Draws, split: str, size: int, colour: bool) -> Float[Tensor, "B C size size"]:
    """Squares of `size` pixels, each from anywhere in any texture of a split."""
    windows = textures(split, colour).unfold(2, size, 1).unfold(3, size, 1)
    picture, row, column = (draws.whole(windows.shape[axis]) for axis in (0, 2, 3))
    return windows[picture, :, row, column]


@cache
def textures(split: str, colour: bool) -> Float[Tensor, "n C size size"]:
    """The textures of a split, and their mirror images."""
    pictures = torch.stack([photograph(name, grey=not colour, size=TEXTURE_SIZE) for name in TEXTURES[split]])
    return torch.cat([pictures, pictures.flip(3)])
