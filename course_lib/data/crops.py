"""Which photograph does this piece come from? Real images without end, from 16 pictures.

Each picture is cut into tiles with gaps between them; some tiles are for training, some for validation, some for the
test, and a crop never leaves its tile: no pixel of one split is in another.
"""

from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data.digits import LabelledImages, check_count, check_split, part_size
from course_lib.data.draws import Draws, generator
from course_lib.data.photographs import PHOTOGRAPHS, photograph

CLASSES = tuple(name for name in PHOTOGRAPHS if name != "clock")  # of the labels 0, 1, ...; the clock is but a blur
TILE, GAP = 60, 4  # pixels
TURN = ("train", "validation", "train", "test", "train")  # whose is the tile, by (row + 2 * column) modulo 5
BLANK = 0.015  # spread below which a quarter of a tile shows nothing: such tiles, of dark sky, say, are left out


@dataclass(frozen=True, kw_only=True)
class PhotoCrops:
    """Square pieces of photographs, scaled, mirrored, made brighter or darker; the label is the photograph's number.

    `zoom` says how many pixels of the photograph make one of the crop. Raises ValueError for settings out of range.
    """

    split: str
    size: int = 32  # pixels
    colour: bool = False  # with colours, those of the 7 grey pictures are three equal channels, which tells them apart
    zoom: tuple[float, float] = (0.9, 1.75)
    brightness: float = 0.1  # at most so much is added or taken away
    contrast: float = 0.2  # the differences between pixels grow or shrink by at most this share

    def __post_init__(self):
        check_split(self.split)
        low, high = self.zoom
        rules = {
            "size": (self.size >= 8, "8 pixels or more"),
            "zoom": (0 < low <= high, "two numbers, 0 < low <= high"),
            "brightness": (0 <= self.brightness < 1, "from 0 to below 1"),
            "contrast": (0 <= self.contrast < 1, "from 0 to below 1"),
        }
        for name, (holds, rule) in rules.items():
            if not holds:
                raise ValueError(f"{name} must be {rule}, got {getattr(self, name)!r}.")
        if low * self.size > TILE:
            raise ValueError(
                f"size {self.size} with zoom {low} needs {low * self.size:.0f} pixels of a photograph, and a tile has "
                f"{TILE}: take a smaller size or zoom."
            )

    def batch(self, count: int, seed: int) -> LabelledImages:
        """`count` crops, the same on every call and machine; every photograph is as likely as any other."""
        check_count(count)
        rows = torch.rand(count, 8, generator=generator("crops", seed))
        parts = [self._draw(Draws(part)) for part in rows.split(part_size(3 if self.colour else 1, self.size))]
        return LabelledImages(*map(torch.cat, zip(*parts, strict=True)))

    def _draw(self, draws: Draws) -> LabelledImages:
        pictures, first, number = tiles(self.split, self.colour)
        labels = draws.whole(len(CLASSES))
        tile = first[labels] + (draws.uniform() * number[labels]).long()
        low, high = self.zoom
        side = draws.uniform(low, min(high, TILE / self.size)) * self.size  # pixels of the photograph
        left, top = (draws.uniform() * (TILE - side) for _ in "xy")
        mirrored = draws.coin()
        position = (torch.arange(self.size) + 0.5) / self.size  # of the crop's side
        x = torch.where(mirrored[:, None], 1 - position, position) * side[:, None] + left[:, None]
        y = position * side[:, None] + top[:, None]
        grid = torch.stack(torch.broadcast_tensors(x[:, None, :], y[:, :, None]), dim=-1) * (2 / TILE) - 1
        pixels = F.grid_sample(pictures[tile], grid, align_corners=False, padding_mode="border")
        contrast = draws.uniform(1 - self.contrast, 1 + self.contrast)[:, None, None, None]
        brightness = draws.uniform(-self.brightness, self.brightness)[:, None, None, None]
        mean = pixels.mean(dim=(1, 2, 3), keepdim=True)
        return LabelledImages(((pixels - mean) * contrast + mean + brightness).clamp_(0, 1), labels)


@cache
def tiles(
    split: str, colour: bool
) -> tuple[Float[Tensor, "n C t t"], Int[Tensor, " classes"], Int[Tensor, " classes"]]:
    """All tiles of a split, photograph by photograph; where each photograph's begin, and how many it has."""
    kept = [_tiles_of(name, split, colour) for name in CLASSES]
    number = torch.tensor([len(each) for each in kept])
    return torch.cat(kept), number.cumsum(0) - number, number


def _tiles_of(name: str, split: str, colour: bool) -> Float[Tensor, "n C t t"]:
    picture, grey = photograph(name, grey=not colour), photograph(name, grey=True)
    corners = tile_corners(*picture.shape[1:], split)
    cut, seen = (
        torch.stack([whole[:, top : top + TILE, left : left + TILE] for top, left in corners])
        for whole in (picture, grey)
    )
    quarters = seen[:, 0].unfold(1, TILE // 2, TILE // 2).unfold(2, TILE // 2, TILE // 2)
    return cut[quarters.std(dim=(3, 4)).amin(dim=(1, 2)) >= BLANK]


def tile_corners(height: int, width: int, split: str) -> list[tuple[int, int]]:
    """(top, left) of the tiles of a split in a picture of this size; the tiles lie in its middle."""
    down, across = ((length + GAP) // (TILE + GAP) for length in (height, width))
    margin_y, margin_x = ((length + GAP - n * (TILE + GAP)) // 2 for length, n in ((height, down), (width, across)))
    return [
        (margin_y + row * (TILE + GAP), margin_x + column * (TILE + GAP))
        for row in range(down)
        for column in range(across)
        if TURN[(row + 2 * column) % len(TURN)] == split
    ]
