"""749 things, each drawn by up to eight designers of emoji: colour images with a name, a category and alpha.

    images = icons("train")
    images.on(1.0)                  # (B, 3, 32, 32) on white
    icon_names()[images.names[0]]   # "dog face"

Five splits: drawings to learn from; other drawings of the same things by the same designers; the same things by a
designer of whom nothing was seen, which is a domain shift; and things of which nothing was seen, for few labels.
data/images/icons/README.md names the designers' licences; `course_lib.data.build_icons` has the recipe.
"""

import csv
import hashlib
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.data.files import data_path

FOLDER, NAMES_FILE = ("images", "icons"), "names.tsv"
SIZE = 32  # pixels


class Designer(NamedTuple):
    """Who drew a set of icons; sets of one `family` resemble each other, and are held out together."""

    package: str  # npm's @iconify-json/...
    family: str


DESIGNERS = {
    "noto": Designer("noto", "noto"),
    "noto-v1": Designer("noto-v1", "noto"),
    "twemoji": Designer("twemoji", "twemoji"),
    "fluent": Designer("fluent-emoji", "fluent"),
    "fluent-flat": Designer("fluent-emoji-flat", "fluent"),
    "fxemoji": Designer("fxemoji", "fxemoji"),
    "emojione": Designer("emojione", "emojione"),
    "streamline": Designer("streamline-emojis", "streamline"),
}
CATEGORIES = {  # as the course calls them, and as Unicode does
    "activities": "Activities",
    "animals and nature": "Animals & Nature",
    "faces": "Smileys & Emotion",
    "food and drink": "Food & Drink",
    "objects": "Objects",
    "travel and places": "Travel & Places",
}
NEW_DESIGNER = "emojione"
NEW_NAMES = 100  # things that are in the split "new names" alone
HELD_OUT = {"test": 10, "validation": 10}  # per cent of the known designers' drawings of known things
SPLITS = ("train", "validation", "test", "new designer", "new names")


class Icons(NamedTuple):
    """Drawings, and what each is of: numbers of `icon_names()`, of CATEGORIES and of DESIGNERS."""

    pixels: Float[Tensor, "B 3 H W"]  # red, green and blue from 0 to 1; 0 where nothing is drawn
    alpha: Float[Tensor, "B 1 H W"]  # 0: nothing is drawn here, 1: nothing shines through
    names: Int[Tensor, " B"]
    categories: Int[Tensor, " B"]
    designers: Int[Tensor, " B"]

    def on(self, ground: float | Tensor) -> Float[Tensor, "B 3 H W"]:
        """The drawings on a ground: a level from 0 to 1, or levels that broadcast to (B, 3, H, W)."""
        return self.alpha * self.pixels + (1 - self.alpha) * ground

    def take(self, rows: Int[Tensor, " K"] | Bool[Tensor, " B"]) -> "Icons":
        """Some of the drawings."""
        return Icons(*(each[rows] for each in self))


def icons(split: str) -> Icons:
    """All drawings of a split, 32 x 32 pixels, the same on every machine.

    Raises ValueError for a split that does not exist.
    """
    if split not in SPLITS:
        raise ValueError(f"the split must be one of {SPLITS}, got {split!r}.")
    drawings, splits = _all_icons()
    return drawings.take(torch.tensor([each == split for each in splits]))


def icon_names() -> tuple[str, ...]:
    """What the things are called, such as "red apple", in the order of their numbers."""
    return tuple(row["name"] for row in _table())


def split_of(name: str, designer: str) -> str:
    """The split of one drawing, which depends on nothing else; "none" for a new thing by the new designer."""
    if name in _new_names():
        return "new names" if designer != NEW_DESIGNER else "none"
    if designer == NEW_DESIGNER:
        return "new designer"
    ticket = _ticket(f"{name} by {DESIGNERS[designer].family}") % 100
    for split, percent in HELD_OUT.items():
        if ticket < percent:
            return split
        ticket -= percent
    return "train"


def _ticket(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


@cache
def _table() -> tuple[dict[str, str], ...]:
    with open(data_path(*FOLDER, NAMES_FILE), encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file, delimiter="\t"))


@cache
def _new_names() -> frozenset[str]:
    return frozenset(sorted(icon_names(), key=_ticket)[:NEW_NAMES])


@cache
def _all_icons() -> tuple[Icons, list[str]]:
    """Designer by designer, and the split of each."""
    from PIL import Image  # here: the rest of the course works without

    categories, parts, rows, splits = list(CATEGORIES), [], [], []
    for number, designer in enumerate(DESIGNERS):
        with Image.open(data_path(*FOLDER, f"{designer}.webp")) as file:
            sheet = np.asarray(file.convert("RGBA"))
        tiles = sheet.reshape(sheet.shape[0] // SIZE, SIZE, -1, SIZE, 4).swapaxes(1, 2).reshape(-1, SIZE, SIZE, 4)
        drawn = [i for i, row in enumerate(_table()) if row[designer] == "1"]
        parts.append(tiles[drawn])
        rows += [(i, categories.index(_table()[i]["category"]), number) for i in drawn]
        splits += [split_of(_table()[i]["name"], designer) for i in drawn]
    levels = torch.from_numpy(np.concatenate(parts)).permute(0, 3, 1, 2).float() / 255
    return Icons(levels[:, :3].contiguous(), levels[:, 3:].contiguous(), *torch.tensor(rows).unbind(dim=1)), splits
