"""What figures of many lessons draw: images, boxes, arrows, seeds, labels at lines, the learner's prediction."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from course_lib.viz.style import GREY, PALETTE, figure

HERO, OTHER, THIRD = PALETTE["blue"], PALETTE["vermilion"], PALETTE["green"]
PREDICTION = PALETTE["purple"]


def columns(width: float, height: float, ratios: Sequence[float], rows: int = 1) -> tuple[Figure, list[Axes]]:
    """An empty figure with columns of these widths, the last one through all rows; its axes, row by row."""
    fig = figure(width, height)[0]
    fig.clear()
    cells = fig.add_gridspec(rows, len(ratios), width_ratios=ratios)
    left = [fig.add_subplot(cells[row, column]) for row in range(rows) for column in range(len(ratios) - 1)]
    return fig, [*left, fig.add_subplot(cells[:, -1])]


def bare(axes: Axes, x: Sequence[float] | None = None, y: Sequence[float] | None = None) -> None:
    """Nothing but what is drawn, as on a sheet of paper, within these limits."""
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    if x is not None:
        axes.set(xlim=x, ylim=y)


def image(axes: Axes, pixels: Any, title: str = "", **options: Any) -> None:
    """An image (H, W), grey from 0 to 1, or (H, W, 3)."""
    axes.imshow(np.asarray(pixels), **{"cmap": "gray", "vmin": 0, "vmax": 1} | options)
    bare(axes)
    if title:
        axes.set_title(title, fontsize=12, loc="center", weight="normal")


def patch_lines(axes: Axes, side: int, parts: int, *, width: float = 1.5, colour: str = PALETTE["yellow"]) -> None:
    """Lines between so many patches a side of an image."""
    for cut in range(1, parts):
        for line in (axes.axhline, axes.axvline):
            line(cut * side / parts - 0.5, color=colour, linewidth=width, linestyle="-")


def box(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    colour: str = HERO,
    *,
    width: float = 1.0,
    height: float = 0.5,
    ink: str = "white",
    edge: str = "none",
    **style: Any,
) -> None:
    """A rounded box around (x, y) with a text in it; `style` is the text's."""
    shape = FancyBboxPatch((x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0,rounding_size=0.15")
    shape.set(facecolor=colour, edgecolor=edge, zorder=3)
    axes.add_patch(shape)
    axes.text(x, y, text, **{"ha": "center", "va": "center", "color": ink, "zorder": 4} | style)


def arrow(
    axes: Axes, start: Sequence[float], end: Sequence[float], colour: str = GREY, *, width: float = 2.0, **style: Any
) -> None:
    """An arrow between two points of the data; `style` goes to matplotlib's arrow."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": width} | style)


def label(
    axes: Axes, x: float, y: float, text: str, colour: str, offset: tuple[float, float] = (8, 0), **style: Any
) -> None:
    """A text beside a point, so many typographic points away from it, on the side to which the offset leads."""
    side = "left" if offset[0] > 0 else "right" if offset[0] < 0 else "center"
    height = "center" if not offset[1] else "bottom" if offset[1] > 0 else "top"
    axes.annotate(
        text, (x, y), offset, textcoords="offset points", **{"color": colour, "ha": side, "va": height} | style
    )


def lines(
    axes: Axes, curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], colours: Sequence[str], **style: Any
) -> None:
    """A line for each name, which stands at its end."""
    for (name, (x, y)), colour in zip(curves.items(), colours, strict=True):
        axes.plot(x, y, **{"color": colour, "linestyle": "-", "marker": "o"} | style)
        label(axes, x[-1], y[-1], name, colour)


def seed_dots(axes: Axes, x: float, values: Sequence[float], colour: str = GREY, **style: Any) -> None:
    """A dot for the result of each seed."""
    axes.plot([x] * len(values), values, "o", **{"color": colour, "markersize": 9} | style)


def band(axes: Axes, x: Sequence[float], values: Any, colour: str, **style: Any) -> None:
    """The mean of the seeds (seeds, points) as a line, and from the worst to the best as a band."""
    values = np.asarray(values)
    axes.fill_between(x, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.25, linewidth=0)
    axes.plot(x, values.mean(axis=0), **{"color": colour, "linestyle": "-", "linewidth": 1.5} | style)


def prediction(
    axes: Axes, x: float | None, y: float | None, offset: tuple[float, float] = (12, 0), text: str = "your prediction"
) -> None:
    """The learner's prediction as a star; nothing if there is none."""
    if x is not None and y is not None:
        axes.plot([x], [y], "*", color=PREDICTION, markersize=18, zorder=5)
        label(axes, x, y, text, PREDICTION, offset)
