"""A pad to draw on: a few grey pixels, painted with mouse, finger, pen or keyboard."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets
from jaxtyping import UInt8
from PIL import Image

from course_lib.classroom.widgets.controls import Control

Drawing = UInt8[np.ndarray, "N N"]
SMALLEST, LARGEST = 28, 64  # pixels


@dataclass(frozen=True, kw_only=True)
class Pad(Control):
    """A square of `size` x `size` grey pixels to draw on; its value is that array, 0 (paper) to 255 (ink).

    "Give me an example" takes what `example` returns; "Shake it" turns, scales and shifts the drawing a little.
    `drawings` are drawings by name, for the steps of a page without a kernel. Raises ValueError for another size.
    """

    size: int = 28
    brush: float = 3.0  # the line's width in pixels
    example: Callable[[], Drawing] | None = None
    drawings: Mapping[str, Drawing] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not SMALLEST <= self.size <= LARGEST:
            raise ValueError(f"A pad has {SMALLEST} to {LARGEST} pixels a side, but got {self.size}.")

    @property
    def start(self) -> Drawing:
        """The first of the named drawings, or empty paper."""
        return next(iter(self.drawings.values()), np.zeros((self.size, self.size), np.uint8))

    def check(self, value: Any) -> Drawing:
        drawing = np.asarray(value)
        if drawing.shape != (self.size, self.size) or drawing.dtype != np.uint8:
            raise ValueError(
                f"{self.label} takes {self.size} x {self.size} pixels of uint8, but got {drawing.shape} "
                f"of {drawing.dtype}."
            )
        return drawing

    def same(self, one: Drawing, other: Drawing) -> bool:
        return np.array_equal(one, other)

    def words(self, value: Drawing) -> str:
        name = next((name for name, drawing in self.drawings.items() if self.same(drawing, value)), None)
        return name or (f"a drawing, {(value > 127).mean():.0%} of it ink" if value.any() else "empty paper")

    def build(self, changed):
        asked = {"Shake it": lambda drawing: shaken(drawing, np.random.default_rng())}
        if self.example:
            asked = {"Give me an example": lambda _: self.example()} | asked
        pad = PadWidget(size=self.size, brush=self.brush, label=self.label, actions=asked, drawing=self.start)

        def drawn(_) -> None:
            changed(pad.drawing, **({"settled": False} if pad.pen_down else {}))

        pad.observe(drawn, "pixels")
        pad.observe(lambda change: change["new"] or drawn(change), "pen_down")  # the stroke has ended
        return pad, partial(setattr, pad, "drawing")


class PadWidget(anywidget.AnyWidget):
    """The pad on the page; it sends its pixels about ten times a second while one draws."""

    _esm = Path(__file__).with_name("pad.js")
    _css = Path(__file__).with_name("pad.css")
    # from the page come memoryviews, which traitlets' Bytes refuses; an echo would erase strokes drawn meanwhile
    pixels = traitlets.Bytes().tag(sync=True, from_json=lambda value, _: bytes(value), echo_update=False)
    pen_down = traitlets.Bool(False).tag(sync=True)
    size = traitlets.Int().tag(sync=True)
    brush = traitlets.Float().tag(sync=True)
    label = traitlets.Unicode().tag(sync=True)
    actions = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(self, *, actions: Mapping[str, Callable[[Drawing], Drawing]], drawing: Drawing, **traits: Any):
        super().__init__(pixels=drawing.tobytes(), actions=list(actions), **traits)
        self.on_msg(lambda _, content, __: setattr(self, "drawing", actions[content["ask"]](self.drawing)))

    @property
    def drawing(self) -> Drawing:
        """What is drawn: 0 (paper) to 255 (ink)."""
        return np.frombuffer(self.pixels, np.uint8).reshape(self.size, self.size)

    @drawing.setter
    def drawing(self, value: Drawing) -> None:
        self.pixels = value.tobytes()


def shaken(
    drawing: Drawing,
    rng: np.random.Generator,
    *,
    degrees: float = 12,
    scale: float = 0.1,
    slant: float = 0.1,
    shift: float = 1.5,
) -> Drawing:
    """The drawing turned, scaled, slanted and shifted, each by a random little; `shift` is in pixels of 28."""
    angle, lean = np.radians(rng.uniform(-degrees, degrees)), rng.uniform(-slant, slant)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ [[1, lean], [0, 1]] * rng.uniform(1 - scale, 1 + scale)
    side = len(drawing)
    middle = np.full(2, side / 2)
    offset = middle - matrix @ (middle + rng.uniform(-shift, shift, size=2) * side / 28)
    rows = np.column_stack([matrix, offset]).ravel()
    moved = Image.fromarray(drawing).transform(
        (side, side), Image.Transform.AFFINE, data=rows, resample=Image.Resampling.BILINEAR
    )
    return np.asarray(moved)
