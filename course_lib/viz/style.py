"""The course's look: the colour-blind-safe palette of Okabe & Ito (2008) and type for a lecture hall.

Figures are built without pyplot, so nothing is registered globally, nothing is shown twice and nothing leaks.
"""

from collections.abc import Mapping
from types import MappingProxyType

import matplotlib as mpl
from cycler import cycler
from matplotlib.figure import Figure

PALETTE: Mapping[str, str] = MappingProxyType(
    {
        "blue": "#0072B2",
        "orange": "#E69F00",
        "green": "#009E73",
        "vermilion": "#D55E00",
        "sky": "#56B4E9",
        "purple": "#CC79A7",
        "yellow": "#F0E442",
        "black": "#000000",
    }
)
"""Okabe & Ito's eight colours by name, in the order in which lines take them."""

CYCLE = [PALETTE[name] for name in ("blue", "orange", "green", "vermilion", "sky", "purple", "black")]
"""Colours of successive lines: the palette without yellow, which is too faint for a line on white."""

LINE_STYLES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1))]
"""One dash pattern for each colour of `CYCLE`: a line is told apart without its colour, too."""

SEQUENTIAL = "cividis"
"""Colour map for weights and other amounts: readable in every common form of colour blindness and in grey."""

DIVERGING = "PuOr"
"""Colour map for signed values around zero."""

GREY = "#595959"
"""Secondary text and rules; 7:1 on white (WCAG AAA)."""

STYLE = MappingProxyType(
    {
        "axes.axisbelow": True,
        "axes.edgecolor": GREY,
        "axes.grid": True,
        "axes.labelsize": 12,
        "axes.prop_cycle": cycler(color=CYCLE) + cycler(linestyle=LINE_STYLES),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 13,
        "axes.titleweight": "bold",
        "figure.dpi": 100,
        "figure.facecolor": "white",
        "figure.titlesize": 14,
        "figure.titleweight": "bold",
        "font.size": 12,
        "grid.alpha": 0.35,
        "grid.linewidth": 0.8,
        "image.cmap": SEQUENTIAL,
        "image.interpolation": "nearest",
        "legend.fontsize": 12,
        "legend.frameon": False,
        "lines.linewidth": 2.5,
        "lines.markersize": 7,
        "savefig.dpi": 100,
        "svg.hashsalt": "course",
        "xtick.labelsize": 12,
        "ytick.labelsize": 12,
    }
)
"""Matplotlib settings of the course; font sizes in points."""


SLIDE = (8.2, 4.05)
"""Inches: on a slide as large as this, type of 12 points has 24 of 720 pixels."""


def use_style() -> None:
    """Apply the course's style to every figure made from now on, pyplot's included."""
    mpl.rcParams.update(STYLE)


def figure(
    width: float = 8.0,
    height: float = 4.5,
    *,
    rows: int = 1,
    columns: int = 1,
    layout: str | None = "constrained",
    **options,
):
    """Return `(figure, axes)` in the course's style, as `plt.subplots` would; sizes in inches.

    A figure that is larger than `SLIDE` is drawn on a smaller canvas and shown enlarged, up to one and a half times, so
    that its type can be read in a lecture hall and on a phone. Its type has 12 points or more.
    `layout=None` leaves the margins to the caller, which draws faster: for widgets.
    `axes` is one Axes, or an array when `rows` or `columns` exceed 1. `options` go to `Figure.subplots`.
    Raises ValueError for a size or a count that is not positive.
    """
    if width <= 0 or height <= 0 or rows < 1 or columns < 1:
        raise ValueError(
            f"A figure needs a positive size and at least one panel, but got width={width}, height={height}, "
            f"rows={rows}, columns={columns}."
        )
    with mpl.rc_context(dict(STYLE)):
        enlarged = min(1.5, max(1.0, width / SLIDE[0], height / SLIDE[1]))
        fig = Figure(figsize=(width / enlarged, height / enlarged), layout=layout, dpi=enlarged * STYLE["figure.dpi"])
        return fig, fig.subplots(rows, columns, **options)
