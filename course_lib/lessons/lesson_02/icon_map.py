"""What one flies over in lesson 02: a map of icons that no training has seen, by three kinds of features."""

import base64
import io
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor, nn

from course_lib.classroom.widgets import Choice, Explorer, Goal, Pick, TextBox, in_base64, pixel_image
from course_lib.data.icons import DESIGNERS, Icons, icon_names
from course_lib.functional.images import standardise
from course_lib.functional.neighbour_maps import tsne
from course_lib.lessons.lesson_02 import across, learner, looking

NEAREST = 5
NAMES = {"h": "h of your network", "z": "z of your network", "pixels": "pixels"}
EXAMPLES = ("microscope", "face", "book", "bus")
FEWEST = 3  # drawings of a thing that the third goal asks for
START = ("thinking face", "noto")
FRAME = (217, 133, 0)  # red, green and blue of a frame
COLUMNS, QUALITY, ALPHA_QUALITY = 24, 45, 20  # of the sheet with all icons; WebP's qualities
SIDE = 24  # pixels of an icon on the page: all icons together have to fit into the notebook
GRID = 999  # steps of a coordinate on the page
PAPER, SMALL, MARGIN = (330, 500), 16, 11  # of the static form: height and width, pixels of an icon, and around it


class IconMap:
    """Drawings on a map for each kind of features, and the nearest of each by designers of other families."""

    def __init__(self, encoders: Mapping[str, looking.Encoder], drawings: Icons):
        self.encoders, self.drawings = encoders, drawings
        names, designers = icon_names(), list(DESIGNERS)
        self.things = [names[number] for number in drawings.names.tolist()]
        self.hands = [designers[number] for number in drawings.designers.tolist()]

    @cached_property
    def near(self) -> Mapping[str, Int[Tensor, "N K"]]:
        """The rows of the nearest drawings, nearest first."""
        return {
            name: across.ranked(self.drawings, self.drawings, encoder, NEAREST)
            for name, encoder in self.encoders.items()
        }

    @cached_property
    def same(self) -> Mapping[str, Bool[Tensor, "N K"]]:
        """Whether they show the same thing."""
        names = self.drawings.names
        return {name: names[rows] == names[:, None] for name, rows in self.near.items()}

    @cached_property
    def places(self) -> Mapping[str, Float[Tensor, "N 2"]]:
        """Where t-SNE puts the drawings, each map turned so that it is most like the first one.

        Each axis is stretched to go from -1 to 1: only who is near whom has a meaning.
        """
        found: dict[str, Tensor] = {}
        for name, encoder in self.encoders.items():
            (directions,) = across.directions(encoder, self.drawings)
            at = in_one_thread(tsne, directions, perplexity=15.0, steps=350).double()
            at = at - at.mean(dim=0)
            if found:
                u, _, v = torch.linalg.svd(at.T @ next(iter(found.values())))
                at = at @ (u @ v)
            else:
                at = at @ torch.linalg.svd(at, full_matrices=False).Vh.T  # the long side lies
            found[name] = at
        return {name: 2 * (at - at.amin(dim=0)) / (at.amax(dim=0) - at.amin(dim=0)) - 1 for name, at in found.items()}

    def found(self, query: str) -> list[int]:
        """The rows of the drawings whose names have these words; none for no words."""
        words = " ".join(query.lower().split())
        return [row for row, name in enumerate(self.things) if words and words in name]

    def tiles(self, side: int) -> Float[Tensor, "N 4 side side"]:
        """The drawings with their alpha, of so many pixels."""
        its = torch.cat([self.drawings.pixels * self.drawings.alpha, self.drawings.alpha], dim=1)
        its = F.interpolate(its, (side, side), mode="bilinear", antialias=True).clamp(0, 1)
        return torch.cat([its[:, :3] / its[:, 3:].clamp_min(1e-3), its[:, 3:]], dim=1).clamp(0, 1)

    def sheet(self) -> str:
        """All drawings on one transparent image, row by row, as a WebP image in base64."""
        from PIL import Image  # here: the rest of the course works without

        its = self.tiles(SIDE)
        rows = -(-len(its) // COLUMNS)
        every = torch.zeros(rows * COLUMNS, 4, SIDE, SIDE)
        every[: len(its)] = its
        sheet = rearrange(every, "(r c) k h w -> (r h) (c w) k", c=COLUMNS)
        buffer = io.BytesIO()
        Image.fromarray((255 * sheet).round().byte().numpy()).save(
            buffer, "WEBP", quality=QUALITY, alpha_quality=ALPHA_QUALITY, method=6
        )
        return base64.b64encode(buffer.getvalue()).decode()

    def image(self, name: str, marked: Collection[int]) -> UInt8[np.ndarray, "H W 3"]:
        """All drawings at their places on white paper; the marked ones have a frame."""
        height, width = PAPER
        paper, half = np.full((height, width, 3), 255.0), SMALL // 2
        at = (self.places[name].numpy() * (1, -1) + 1) / 2 * (width - 2 * MARGIN, height - 2 * MARGIN) + MARGIN
        tiles = rearrange(self.tiles(SMALL), "n k h w -> n h w k").numpy()
        for row in sorted(range(len(tiles)), key=lambda row: row in marked):
            x, y = at[row].round().astype(int)
            if row in marked:
                paper[max(y - half - 3, 0) : y + half + 3, max(x - half - 3, 0) : x + half + 3] = FRAME
            top, left = max(half - y, 0), max(half - x, 0)
            part = paper[y - half + top : y + half, x - half + left : x + half]
            tile = tiles[row, top : top + part.shape[0], left : left + part.shape[1]]
            part += tile[..., 3:] * (255 * tile[..., :3] - part)
        return paper.round().astype(np.uint8)


def packed(numbers: Tensor) -> str:
    """Whole numbers below 65,536, row by row, in two bytes each."""
    return in_base64(np.ascontiguousarray(numbers.round().numpy(), np.uint16).view(np.uint8))


def in_one_thread(function: Callable[..., Tensor], *arguments: Any, **settings: Any) -> Tensor:
    """The result of a function whose tensors are so small that threads would wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return function(*arguments, **settings)
    finally:
        torch.set_num_threads(before)


def projected(model: nn.Module) -> looking.Encoder:
    """A function from pixels to z, where the loss was."""

    @torch.no_grad()
    def encode(pixels: Tensor) -> Tensor:
        training = model.training
        z = model.eval()(standardise(pixels))
        model.train(training)
        return z

    return encode


def icon_map(model: nn.Module) -> Explorer:
    """The drawings of 100 new things by the features of a network: a map to fly over, to search and to ask."""
    encoders = {"h": learner.encoder_of(model), "z": projected(model), "pixels": across.pixels_alone}
    its = IconMap(encoders, across.drawings("new names"))
    start = 1 + next(row for row, drawn in enumerate(zip(its.things, its.hands, strict=True)) if drawn == START)

    def words(state) -> str:
        row, name = state["point"] - 1, state["features"]
        near = ", ".join(f"{its.things[n]} by {its.hands[n]}" for n in its.near[name][row].tolist())
        count, query = int(its.same[name][row].sum()), " ".join(state["query"].lower().split())
        said = f" “{query}” finds {len(its.found(query))} of {len(its.things)} drawings." if query else ""
        return (
            f"The map by {NAMES[name]}. Chosen: {its.things[row]} by {its.hands[row]}. Nearest by other designers: "
            f"{near}. {count} of {NEAREST} show the same thing.{said}"
        )

    def draw(state) -> str:
        marked = its.found(state["query"]) or [state["point"] - 1]
        return pixel_image(its.image(state["features"], marked), PAPER[1], words(state), colours=32)

    def nearest_is_same(state, name: str) -> bool:
        return bool(its.same[name][state["point"] - 1, 0])

    def all_found(state) -> bool:
        rows = its.found(state["query"])
        one = len({its.things[row] for row in rows}) == 1
        return state["features"] == "h" and one and len(rows) >= FEWEST and bool(its.same["h"][rows, 0].all())

    return Explorer(
        name="icons",
        title=f"{len(its.things)} icons of {len(set(its.things))} things that no training has seen",
        controls=[
            Choice(name="features", label="Features", options={words: name for name, words in NAMES.items()}),
            TextBox(name="query", label="Search", value="", examples=EXAMPLES),
            Pick(name="point", label="Drawing", count=len(its.things), value=start),
        ],
        draw=draw,
        alt=words,
        varies=True,
        goals=(
            Goal("by h: a drawing whose nearest is the same thing by another designer",
                 lambda state: state["features"] == "h" and nearest_is_same(state, "h")),
            Goal("a drawing where pixels find the same thing and h does not",
                 lambda state: nearest_is_same(state, "pixels") and not nearest_is_same(state, "h")),
            Goal(f"by h: a search for one thing with {FEWEST} drawings or more, each of them nearest to the same thing",
                 all_found),
        ),
        script="iconmap",
        config={
            "sheet": its.sheet(),
            "side": SIDE,
            "columns": COLUMNS,
            "called": sorted(set(its.things)),
            "things": [sorted(set(its.things)).index(name) for name in its.things],
            "designers": list(DESIGNERS),
            "hands": its.drawings.designers.tolist(),
            "names": NAMES,
            "grid": GRID,
            "places": {name: packed(GRID * (places + 1) / 2) for name, places in its.places.items()},
            "near": {name: packed(rows) for name, rows in its.near.items()},
            "nearest": NEAREST,
            "examples": EXAMPLES,
            "fewest": FEWEST,
            "start": {"features": "h", "query": "", "point": start},
        },
    )  # fmt: skip
