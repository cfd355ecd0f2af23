"""Landmarks of several fields over the years: a row for each field, a dot for each paper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from course_lib.viz.marks import HERO
from course_lib.viz.style import GREY, figure

LETTER = 0.092  # inches: the mean width of a letter of 12 points
LEVELS = (0.3, -0.3)  # of the names above and below a row


@dataclass(frozen=True)
class Landmark:
    """A method and the year of its first paper or preprint."""

    name: str
    year: int
    transformer: bool = False


def timeline(rows: Mapping[str, Sequence[Landmark]], *, first: int, last: int, width: float = 12.0) -> Figure:
    """Transformers are blue circles, others grey squares; what is earlier than `first` stands at the left edge.

    Raises ValueError if a row's landmarks are not in the order of their years, or one is later than `last`.
    """
    fig, axes = figure(width, 0.56 + 0.68 * len(rows))
    years_per_inch = (last - first + 1.2) / (width - 2.1)
    for number, (field, landmarks) in enumerate(rows.items()):
        years = [landmark.year for landmark in landmarks]
        if years != sorted(years) or max(years) > last:
            raise ValueError(f"the landmarks of {field!r} must be in order and not after {last}, got {years}")
        y, ends = len(rows) - 1 - number, dict.fromkeys(LEVELS, float("-inf"))
        axes.axhline(y, color=GREY, linewidth=1, alpha=0.5, linestyle="-")
        for landmark in landmarks:
            x = max(landmark.year, first)
            name = landmark.name if x == landmark.year else f"◀ {landmark.name} {landmark.year}"
            letters = len(name) * (1.1 if landmark.transformer else 1)
            half = (letters * LETTER * fig.dpi / 100 + 0.2) * years_per_inch / 2
            middle = min(max(x, first - 0.6 + half), last + 0.6 - half)
            level = min(LEVELS, key=lambda one: max(ends[one] + half - middle, 0))  # where it moves least to the right
            middle = max(middle, ends[level] + half)
            ends[level] = middle + half
            colour = HERO if landmark.transformer else GREY
            if x == landmark.year:
                axes.plot(x, y, "o" if landmark.transformer else "s", color=colour, markersize=7, linestyle="none")
            weight = "bold" if landmark.transformer else "normal"
            axes.text(middle, y + level, name, ha="center", va="center", color=colour, weight=weight)
    axes.set_yticks(range(len(rows)), list(rows)[::-1])
    axes.set(xlim=(first - 0.6, last + 0.6), ylim=(-0.55, len(rows) - 0.45), xticks=range(first, last + 1, 2))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0, pad=8)
    axes.grid(visible=False)
    return fig
