"""Pictures of several icons on real textures, with masks, boxes and a sentence: "a red apple left of a rocket".

Icons and textures of the splits are disjoint; `new designer` and `new names` stand on the textures of the test.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.data.digits import check_count, part_size
from course_lib.data.draws import Draws, generator
from course_lib.data.icons import CATEGORIES, SPLITS, Icons, icon_names, icons
from course_lib.data.scenes import (
    ABSENT,
    CROWDED,
    PLACES,
    TEXTURE_SIZE,
    TEXTURES,
    boxes_of,
    classes_of,
    free_place,
    texture_pieces,
)

OPAQUE = 0.5  # alpha: from here on a pixel belongs to the icon
FINER = 2  # icons are drawn so many times larger and averaged, so that small ones keep their lines
VOWELS = (*"aeiou", "hour")
SPOKEN_WITH_Y = ("uni", "eu", "ewe")  # "a unicorn"
ONE_THING_IN_S = ("ss", "us", "tennis", "rhinoceros")  # "a dress", "a bus", where other words in s are many things


class IconScenesBatch(NamedTuple):
    """Images from 0 to 1 of at most K icons, and what is on them."""

    pixels: Float[Tensor, "B 3 S S"]
    names: Int[Tensor, "B K"]  # numbers of `icon_names()`, ABSENT where there is none
    categories: Int[Tensor, "B K"]  # numbers of CATEGORIES, likewise
    present: Bool[Tensor, "B K"]
    semantic: Int[Tensor, "B S S"]  # 0 is background, category + 1
    instances: Int[Tensor, "B S S"]  # 0 is background, 1 ... K which of the icons; a later one covers an earlier
    boxes: Int[Tensor, "B K 4"]  # of what is to be seen: x0, y0, x1, y1 in pixels, x1 and y1 just behind; else zeros


@dataclass(frozen=True, kw_only=True)
class IconScenes:
    """Icons drawn into pieces of photographs; they are kept apart where there is room.

    `categories` keeps the things of some categories, `names` those of some names. Raises ValueError for settings out of
    range, and where no icon is left.
    """

    split: str
    size: int = 64  # pixels
    things: tuple[int, int] = (1, 3)  # fewest and most in an image
    categories: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None
    clutter: float = 1.0  # 0: a plain ground, 1: the texture as it is
    scale: tuple[float, float] = (0.5, 0.8)  # of an icon's side, of the image's; n icons: divided by n ** CROWDED

    def __post_init__(self):
        low, high = self.scale
        rules = {
            "split": (self.split in SPLITS, f"one of {SPLITS}"),
            "size": (16 <= self.size <= TEXTURE_SIZE, f"from 16 to {TEXTURE_SIZE} pixels, the size of the textures"),
            "things": (1 <= self.things[0] <= self.things[1], "fewest and most, 1 <= fewest <= most"),
            "clutter": (0 <= self.clutter <= 1, "a number from 0 to 1"),
            "scale": (0 < low <= high <= 1, "two fractions of the image's side, 0 < low <= high <= 1"),
            "categories": (set(self.categories or ()) <= set(CATEGORIES), f"among {tuple(CATEGORIES)}"),
            "names": (set(self.names or ()) <= set(icon_names()), "among `icon_names()`"),
        }
        for name, (holds, rule) in rules.items():
            if not holds:
                raise ValueError(f"{name} must be {rule}, got {getattr(self, name)!r}.")
        if len(self.icons().names) == 0:
            raise ValueError(f"the split {self.split!r} has no icon of these names and categories.")

    def icons(self) -> Icons:
        """The drawings that the scenes are made of."""
        return _drawings(self.split, self.categories, self.names)

    def batch(self, count: int, seed: int) -> IconScenesBatch:
        """`count` scenes, the same on every call and machine."""
        check_count(count)
        drawings, most = self.icons(), self.things[1]
        rows = torch.rand(count, 4 + most * (2 + 2 * PLACES), generator=generator("icon scenes", seed))
        parts = [self._draw(Draws(part), drawings) for part in rows.split(part_size(3 * FINER**2, self.size))]
        return IconScenesBatch(*map(torch.cat, zip(*parts, strict=True)))

    def _draw(self, draws: Draws, drawings: Icons) -> IconScenesBatch:
        pixels = self._ground(draws)
        few, most = self.things
        number = few + draws.whole(most - few + 1)
        instances = torch.zeros(len(pixels), self.size, self.size, dtype=torch.long)
        names, categories, present, placed = [], [], [], []
        for index in range(most):
            is_there = index < number
            chosen = draws.whole(len(drawings.names))
            side = draws.uniform(*self.scale) * self.size / number**CROWDED
            centre = free_place(draws, side, self.size, placed)
            colour, alpha = self._place(drawings.take(chosen), centre, side)
            alpha = alpha * is_there[:, None, None, None]
            pixels = colour * is_there[:, None, None, None] + (1 - alpha) * pixels
            instances = torch.where(alpha[:, 0] >= OPAQUE, index + 1, instances)
            placed.append((centre, side))
            present.append(is_there)
            names.append(drawings.names[chosen].masked_fill(~is_there, ABSENT))
            categories.append(drawings.categories[chosen].masked_fill(~is_there, ABSENT))
        names, categories, present = (torch.stack(each, dim=1) for each in (names, categories, present))
        semantic, boxes = classes_of(instances, categories), boxes_of(instances, most)
        return IconScenesBatch(pixels.clamp(0, 1), names, categories, present, semantic, instances, boxes)

    def _ground(self, draws: Draws) -> Float[Tensor, "B 3 S S"]:
        pixels = texture_pieces(draws, self.split if self.split in TEXTURES else "test", self.size, True)
        return torch.lerp(pixels.mean(dim=(2, 3), keepdim=True), pixels, self.clutter)

    def _place(
        self, drawings: Icons, centre: Float[Tensor, "B 2"], side: Float[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B 3 S S"], Float[Tensor, "B 1 S S"]]:
        """Each icon with its middle (x, y) at `centre`, `side` pixels large: colour times alpha, and alpha."""
        at = (torch.arange(FINER * self.size) + 0.5) / FINER
        x, y = ((at - centre[:, axis, None]) * (2 / side)[:, None] for axis in (0, 1))
        grid = torch.stack(torch.broadcast_tensors(x[:, None, :], y[:, :, None]), dim=-1)
        layers = torch.cat([drawings.pixels * drawings.alpha, drawings.alpha], dim=1)
        large = F.grid_sample(layers, grid, align_corners=False, padding_mode="zeros")
        small = F.avg_pool2d(large, FINER)
        return small[:, :3], small[:, 3:]


@lru_cache(maxsize=4)  # a training asks for them in each step
def _drawings(split: str, categories: tuple[str, ...] | None, names: tuple[str, ...] | None) -> Icons:
    every = icons(split)
    kept = torch.ones(len(every.names), dtype=torch.bool)
    if categories is not None:
        wanted = [list(CATEGORIES).index(category) for category in categories]
        kept &= torch.isin(every.categories, torch.tensor(wanted))
    if names is not None:
        kept &= torch.isin(every.names, torch.tensor([icon_names().index(name) for name in names]))
    return every.take(kept)


def captions(scenes: IconScenesBatch) -> list[str]:
    """What is on each image: its first icon, and where that stands from the second, if there is one to be seen."""
    rows = zip(scenes.names.tolist(), scenes.boxes.tolist(), strict=True)
    return [_caption([(icon_names()[n], box) for n, box in zip(*row, strict=True) if any(box)]) for row in rows]


def with_article(name: str) -> str:
    """ "a rocket", "an owl", "grapes"."""
    thing = name.split(" with ")[0]
    if thing.endswith("s") and not thing.endswith(ONE_THING_IN_S):
        return name
    return f"{'an' if name.startswith(VOWELS) and not name.startswith(SPOKEN_WITH_Y) else 'a'} {name}"


def _caption(things: list[tuple[str, list[int]]]) -> str:
    first, *others = things
    if not others:
        return with_article(first[0])
    (x0, y0, x1, y1), (u0, v0, u1, v1) = first[1], others[0][1]
    across, down = (x0 + x1) - (u0 + u1), (y0 + y1) - (v0 + v1)
    if abs(across) >= abs(down):
        where = "right of" if across > 0 else "left of"
    else:
        where = "below" if down > 0 else "above"
    return f"{with_article(first[0])} {where} {with_article(others[0][0])}"
