"""The architecture diagram of a model, drawn from a description of its parts: boxes, shapes, repeats, residual paths.

    fig, alt = architecture({"GPT": [
        Box("tokens", "input", shape="(B, T)"),
        Box("token embedding", "embedding", shape="(B, T, D)"),
        Add("position embedding", shape="(B, T, D)"),
        Repeat("L", [Residual([Box("LayerNorm", "norm"), Box("causal self-attention", "attention")]), ...]),
    ]})

Data flow upwards, as in most papers. A part's `shape` is that of what leaves it; it stands beside the arrow.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from course_lib.viz.marks import arrow, bare, box
from course_lib.viz.style import GREY, figure

COLOURS = {  # of a kind of part; the words in the box say what it is, too
    "input": "none",
    "embedding": "#FBE0BC",
    "norm": "#F6F1A7",
    "attention": "#BFDDF2",
    "mlp": "#C3E7D9",
    "convolution": "#BFDDF2",
    "head": "#F1D3E2",
    "other": "#E4E4E4",
}
WIDTH, HEIGHT, GAP = 3.1, 0.43, 0.32  # of a box, and between two: inches
PLUS, SIDE = 0.15, 0.36  # radius of a sum; how far a skip connection passes beside its boxes
CELL = 0.1  # of a mask
BELOW, ABOVE = 0.4, 0.22  # room in the frame around what is repeated


@dataclass(frozen=True)
class Box:
    """A layer, or an input or output (kind "input"), which has no frame; `name` lets links find it."""

    text: str
    kind: str = "other"
    shape: str = ""
    name: str = ""


@dataclass(frozen=True)
class Add(Box):
    """Something that comes in from the side and is added."""

    kind: str = "embedding"


@dataclass(frozen=True)
class Mask:
    """Which key (columns) each query (rows) may attend to, as a small grid: `#` if it may, `.` if not."""

    text: str
    rows: Sequence[str]
    shape: str = ""


@dataclass(frozen=True)
class Residual:
    """Parts with a skip connection around them."""

    parts: Sequence["Part"]
    shape: str = ""


@dataclass(frozen=True)
class Repeat:
    """Parts that come several times, one group after the other."""

    times: str
    parts: Sequence["Part"]
    title: str = ""
    shape: str = ""


Part = Box | Mask | Residual | Repeat


@dataclass(frozen=True)
class Link:
    """An arrow from the side of one named part to that of another, in whichever column it stands."""

    start: str
    end: str
    text: str = ""


def architecture(columns: Mapping[str, Sequence[Part]], links: Sequence[Link] = ()) -> tuple[Figure, str]:
    """Return the diagram, a column for each title, and its text alternate.

    Raises ValueError for a kind that has no colour, and for a link to a name that no part has.
    """
    tallest = max(_height(parts) for parts in columns.values())
    sides = [_sides(parts) for parts in columns.values()]
    width, height = sum(map(sum, sides)), tallest + 0.6
    fig, axes = figure(width, height, layout=None)
    fig.subplots_adjust(0, 0, 1, 1)
    bare(axes, (0, width), (-0.1, height - 0.1))
    drawing = _Drawing(axes)
    edge = 0.0
    for (title, parts), (left, right) in zip(columns.items(), sides, strict=True):
        drawing.column(parts, edge + left, (tallest - _height(parts)) / 2)
        axes.text(edge + left, tallest + 0.25, title, ha="center", va="center", weight="bold")
        edge += left + right
    for link in links:
        drawing.link(link)
    return fig, describe(columns, links)


def describe(columns: Mapping[str, Sequence[Part]], links: Sequence[Link] = ()) -> str:
    """The diagram in words."""
    told = [f"{title}, from bottom to top: {'; '.join(_words(parts))}." for title, parts in columns.items()]
    names = {part.name: part.text for parts in columns.values() for part in _all(parts) if isinstance(part, Box)}
    told += [f"{link.text or 'An arrow'} leads from {names[link.start]} to {names[link.end]}." for link in links]
    return " ".join(told).replace("\n", " ")


def _words(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        shape = f" {part.shape}" if part.shape else ""
        if isinstance(part, Add):
            yield f"plus {part.text}{shape}"
        elif isinstance(part, Mask):
            allowed = ", ".join(f"{query} to {row.count('#')}" for query, row in enumerate(part.rows, 1))
            yield f"{part.text}, a grid of queries and keys (query {allowed} keys){shape}"
        elif isinstance(part, Box):
            yield from [f"{part.text}{shape}"] if part.text else []
        else:
            inside = ", ".join(_words(part.parts))
            around = "a skip connection around" if isinstance(part, Residual) else f"{part.times} times"
            yield f"{around} [{inside}]{shape}"


def _all(parts: Sequence[Part]) -> Iterator[Part]:
    for part in parts:
        yield part
        if isinstance(part, Residual | Repeat):
            yield from _all(part.parts)


def _height(parts: Sequence[Part]) -> float:
    """How much room parts take, one above the other, with the gaps between them."""
    return sum(map(_size, parts)) + GAP * (len(parts) - 1)


def _size(part: Part) -> float:
    if isinstance(part, Residual):
        return _height(part.parts) + GAP + 2 * PLUS
    if isinstance(part, Repeat):
        return _height(part.parts) + BELOW + ABOVE
    if isinstance(part, Add):
        return 2 * PLUS
    if isinstance(part, Mask):
        return max(HEIGHT, CELL * len(part.rows) + 0.06)
    return HEIGHT * (0.65 if part.kind == "input" else 1 + 0.45 * part.text.count("\n"))


def _sides(parts: Sequence[Part]) -> tuple[float, float]:
    """How much room parts take to the left and to the right of their middle."""
    kinds = {type(part) for part in _all(parts)}
    left = WIDTH / 2 + 0.2 + SIDE * (Residual in kinds) + 0.2 * (Repeat in kinds)
    return left, max(WIDTH / 2 + 0.25 + 0.55 * (Repeat in kinds), PLUS + 2.72 * (Add in kinds))


class _Drawing:
    """Draws parts upwards, and knows afterwards where the named ones are."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.places: dict[str, tuple[float, float, float]] = {}  # name -> x, y, half the width

    def column(self, parts: Sequence[Part], x: float, y: float) -> float:
        """Draw parts from the height y on; returns the height above the last one."""
        for number, part in enumerate(parts):
            if number:
                arrow(self.axes, (x, y), (x, y + GAP), width=1.5)
                if shape := parts[number - 1].shape:
                    self.text(x + 0.12, y + GAP / 2, shape)
                y += GAP
            y = self.part(part, x, y)
        return y

    def part(self, part: Part, x: float, y: float) -> float:
        """Draw one part from the height y on; returns the height above it."""
        top = y + _size(part)
        if isinstance(part, Box) and part.kind not in COLOURS:
            raise ValueError(f"the kind of a box must be one of {', '.join(COLOURS)}, got {part.kind!r}")
        if isinstance(part, Add):
            middle = (y + top) / 2
            self.plus(x, middle)
            left = x + 0.66
            box(
                self.axes,
                left + 1.1,
                middle,
                part.text,
                COLOURS[part.kind],
                width=2.2,
                height=0.32,
                ink="black",
                edge=GREY,
            )
            arrow(self.axes, (left, middle), (x + PLUS, middle), width=1.5)
            self.places[part.name] = (x, middle, PLUS)
        elif isinstance(part, Box):
            edge = "none" if part.kind == "input" else GREY
            middle = (y + top) / 2
            style = {"ink": "black", "edge": edge, "width": WIDTH, "height": top - y}
            box(self.axes, x, middle, part.text, COLOURS[part.kind], **style)
            self.places[part.name] = (x, middle, WIDTH / 2)
        elif isinstance(part, Mask):
            self.mask(part, x, y)
        elif isinstance(part, Residual):
            above = self.column(part.parts, x, y)
            arrow(self.axes, (x, above), (x, above + GAP), width=1.5)
            middle = above + GAP + PLUS
            self.plus(x, middle)
            side, below = x - WIDTH / 2 - SIDE, y - GAP / 2
            line = {"color": GREY, "linewidth": 1.5, "linestyle": "-", "zorder": 1}
            self.axes.plot([x, side, side], [below, below, middle], **line)
            arrow(self.axes, (side, middle), (x - PLUS, middle), width=1.5)
        else:
            above = self.column(part.parts, x, y + BELOW)
            arrow(self.axes, (x, y), (x, y + BELOW), width=1.5)
            self.axes.plot([x, x], [above, top], color=GREY, linewidth=1.5, linestyle="-")
            left, right = x - _sides(part.parts)[0] + 0.05, x + WIDTH / 2 + 0.15
            frame = FancyBboxPatch((left, y), right - left, top - y, boxstyle="round,pad=0,rounding_size=0.15")
            frame.set(facecolor="none", edgecolor=GREY, linestyle=(0, (4, 3)), linewidth=1.2, zorder=1)
            self.axes.add_patch(frame)
            self.text(right + 0.12, (y + top) / 2, f"{part.title}\n× {part.times}".strip())
        return top

    def mask(self, mask: Mask, x: float, y: float) -> None:
        """A box with the grid at its left and the words beside it."""
        size = _size(mask)
        box(self.axes, x, y + size / 2, "", COLOURS["other"], width=WIDTH, height=size, edge=GREY)
        left, top = x - WIDTH / 2 + 0.15, y + (size + CELL * len(mask.rows)) / 2
        for query, row in enumerate(mask.rows):
            for key, cell in enumerate(row):
                colour = GREY if cell == "#" else "white"
                place = (left + CELL * key, top - CELL * (query + 1))
                self.axes.add_patch(Rectangle(place, CELL, CELL, facecolor=colour, edgecolor="black", lw=0.6, zorder=5))
        words = left + CELL * len(mask.rows[0]) + 0.12
        self.axes.text(words, y + size / 2, mask.text, ha="left", va="center", zorder=5)

    def plus(self, x: float, y: float) -> None:
        self.axes.add_patch(Circle((x, y), PLUS, facecolor="white", edgecolor=GREY, zorder=3))
        self.axes.text(x, y - 0.01, "+", ha="center", va="center", zorder=4)

    def text(self, x: float, y: float, text: str) -> None:
        self.axes.text(x, y, text, ha="left", va="center", color=GREY)

    def link(self, link: Link) -> None:
        for name in (link.start, link.end):
            if not name or name not in self.places:
                known = ", ".join(filter(None, self.places)) or "none"
                raise ValueError(
                    f"the link from {link.start!r} to {link.end!r} finds no {name!r}; the names are {known}"
                )
        (x, y, half), (to_x, to_y, to_half) = self.places[link.start], self.places[link.end]
        side = 1 if to_x > x else -1
        arrow(self.axes, (x + side * half, y), (to_x - side * to_half, to_y), width=1.5)
        if link.text:
            dx, middle = to_x - side * to_half - (x + side * half), (x + side * half + to_x - side * to_half) / 2
            if abs(to_y - y) > abs(dx):  # beside a steep arrow, on the side to which it does not lean
                self.text(middle + 0.12, (y + to_y) / 2 + 0.1 * (side if y > to_y else -side), link.text)
            else:
                self.axes.text(middle, (y + to_y) / 2 + 0.14, link.text, ha="center", color=GREY)
