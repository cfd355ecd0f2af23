"""Figures of lesson 00: what training changes, what accuracy costs, the landscape of the field. Data in, Figure out."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch

from course_lib.viz.style import CYCLE, GREY, LINE_STYLES, PALETTE, figure

MARKERS = ("o", "s", "^", "D", "v", "P")
PALE = ("#F6DDB5", "#D5E8F5", "#F3D9E6", "#D9EFE6")
"""Light tints of the palette, for black type on them."""
SCHEMATIC = "schematic, not measured"
_BESIDE = {"loc": "right", "fontsize": 13, "fontweight": "normal", "style": "italic"}


@dataclass(frozen=True, kw_only=True)
class Era:
    """What a community used from a year on, until its next era."""

    name: str
    since: int  # year
    transformer: bool = False


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened in a year (or from `year` to `until`), above or below its lane in the drawing."""

    name: str
    year: float
    until: float | None = None
    below: bool = False


@dataclass(frozen=True, kw_only=True)
class Bias:
    """How much of a system people built in, and what the data decide; `built_in` is an illustration from 0 to 1."""

    name: str
    built_in: float
    by_people: str
    from_data: str


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One trained model: what it costs and what it can do."""

    width: int
    parameters: int
    operations: int  # multiplications for one word
    seconds: float  # CPU seconds of training
    accuracy: float  # 0 to 1


def wiring(
    stages: Mapping[str, Sequence[Float[np.ndarray, "_ _"]]],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> Figure:
    """A small network drawn wire by wire, once for each stage of its training.

    A stage is a list of weight matrices, one a layer. The thicker a wire, the larger its weight; negative ones are
    dashed. Raises ValueError if two stages do not have the same wires, or the names do not fit their ends.
    """
    shapes = [[matrix.shape for matrix in matrices] for matrices in stages.values()]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"All stages must have the same wires, but their matrices have the shapes {shapes}.")
    sizes = [shapes[0][0][1], *(rows for rows, _ in shapes[0])]
    if sizes[0] != len(inputs) or sizes[-1] != len(outputs):
        raise ValueError(
            f"The network has {sizes[0]} inputs and {sizes[-1]} outputs, but {len(inputs)} and {len(outputs)} names "
            "were given."
        )
    largest = max(np.abs(matrix).max() for matrices in stages.values() for matrix in matrices)
    fig, panels = figure(5.8 * len(stages), 4.6, columns=len(stages), squeeze=False)
    for axes, (title, matrices) in zip(panels[0], stages.items(), strict=True):
        _blank(axes, (-0.45, len(matrices) + 0.75), (-0.2, 1.08))
        axes.set_title(title)
        for layer, matrix in enumerate(matrices):
            for (to, start), weight in np.ndenumerate(matrix):
                axes.plot(
                    [layer, layer + 1],
                    [_place(start, sizes[layer]), _place(to, sizes[layer + 1])],
                    color=PALETTE["blue"] if weight >= 0 else PALETTE["vermilion"],
                    linestyle="-" if weight >= 0 else (0, (4, 2)),
                    linewidth=0.4 + 6 * abs(weight) / largest,
                    alpha=0.85,
                )
        for layer, size in enumerate(sizes):
            names = inputs if layer == 0 else outputs if layer == len(matrices) else [""] * size
            for unit, name in enumerate(names):
                axes.plot(layer, _place(unit, size), "o", ms=15, mfc="white", mec="black", mew=1.5, zorder=5)
                left = layer == 0
                axes.text(
                    layer + (-0.14 if left else 0.14), _place(unit, size), name,
                    ha="right" if left else "left", va="center", fontsize=14,
                )  # fmt: skip
        axes.text(len(matrices) / 2, -0.15, "solid: positive, dashed: negative", ha="center", color=GREY, fontsize=12)
    return fig


def belief_bars(names: Sequence[str], shares: Sequence[float], *, title: str = "") -> Figure:
    """How sure a network is of each answer, as bars from 0 to 100 %."""
    fig, axes = figure(7.5, 0.9 + 0.6 * len(names))
    places = np.arange(len(names))[::-1]
    axes.barh(places, [100 * share for share in shares], color=CYCLE[: len(names)], height=0.6)
    for place, share in zip(places, shares, strict=True):
        inside = share > 0.85
        axes.text(
            100 * share + (-1 if inside else 1), place, f"{100 * share:.0f}%",
            ha="right" if inside else "left", va="center", color="white" if inside else "black",
        )  # fmt: skip
    axes.set(xlim=(0, 100), xlabel="the network's belief (%)", title=title)
    axes.set_yticks(places, names)
    axes.grid(visible=False, axis="y")
    return fig


def price_of_accuracy(curves: Mapping[str, Sequence[Measured]]) -> Figure:
    """Accuracy against operations for each architecture, its sizes joined by a line; parameters beside the points."""
    fig, axes = figure(10, 5.0)
    for i, (label, models) in enumerate(curves.items()):
        costs, scores = [m.operations for m in models], [100 * m.accuracy for m in models]
        axes.plot(costs, scores, marker=MARKERS[i], markersize=10, label=label)
        for model, cost, score in zip(models, costs, scores, strict=True):
            # Curves that come later are the better ones: their notes stand above, the first curve's below.
            axes.annotate(
                f"{model.parameters:,} parameters", (cost, score), xytext=(0, -22 if i == 0 else 14),
                textcoords="offset points", ha="center" if i == 0 else "right", fontsize=12, color=GREY,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.margins(x=0.24)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set(xlabel="multiplications for one word", ylabel="words translated right (%)", ylim=(40, 107))
    axes.set_yticks(range(40, 101, 10))
    axes.legend(loc="lower right")
    return fig


def falling_bias(kinds: Sequence[Bias]) -> Figure:
    """Schematic: what people build in becomes less, what data decide becomes more."""
    fig, axes = figure(10.5, 4.9)
    axes.set_title("Who decides what the system does?")
    axes.set_title(SCHEMATIC, **_BESIDE)
    _blank(axes, (0, 1), (-0.62, len(kinds) - 0.35))
    for i, kind in enumerate(kinds):
        y = len(kinds) - 1 - i
        axes.barh(y, kind.built_in, height=0.36, color=PALE[0], edgecolor=PALETTE["orange"], hatch="///")
        axes.barh(y, 1 - kind.built_in, left=kind.built_in, height=0.36, color=PALETTE["blue"])
        axes.text(0, y + 0.25, kind.name, fontsize=14, fontweight="bold", va="bottom")
        axes.text(0, y - 0.24, f"people: {kind.by_people}", fontsize=12, va="top")
        axes.text(1, y - 0.24, f"data: {kind.from_data}", fontsize=12, va="top", ha="right", color=PALETTE["blue"])
    axes.text(0, -0.6, "hatched: built in by people; solid: learned from data", fontsize=12, color=GREY)
    return fig


def bitter_lesson(kinds: Sequence[Bias]) -> Figure:
    """Schematic: what people built in helps at first, and computation and data make up for it (Sutton 2019)."""
    fig, axes = figure(10.5, 4.4)
    axes.set_title("The bitter lesson (Sutton 2019)")
    axes.set_title(SCHEMATIC, **_BESIDE)
    computation = np.linspace(0, 10, 200)
    for i, kind in enumerate(kinds):
        # Any curves with less to start from and more to reach would do: the point is that they cross.
        top, delay = 1 - 0.75 * kind.built_in, 7.5 * (1 - kind.built_in) - 1.2
        score = top / (1 + np.exp(-(computation - delay) * 0.9))
        axes.plot(computation, score, color=CYCLE[i], linestyle=LINE_STYLES[i])
        axes.text(10.15, score[-1], kind.name.split(" (")[0].replace(" ", "\n", 1), va="center", fontsize=13)
    axes.set(xlabel="computation and data →", ylabel="performance →", xlim=(0, 12.6), ylim=(0, 1.08))
    axes.set_xticks([])
    axes.set_yticks([])
    return fig


def takeovers(landscape: Mapping[str, Sequence[Era]], *, first: int, last: int) -> Figure:
    """For each community the architecture of its time, from year `first` to `last`; the Transformer's eras are dark.

    Raises ValueError if the eras of a community do not follow one another.
    """
    fig, axes = figure(12, 0.9 + 0.75 * len(landscape))
    for i, (community, eras) in enumerate(landscape.items()):
        years = [era.since for era in eras]
        if years != sorted(set(years)):
            raise ValueError(f"The eras of {community!r} must follow one another, but begin in {years}.")
        y = len(landscape) - 1 - i
        for k, (era, end) in enumerate(zip(eras, [*years[1:], last], strict=True)):
            start, earlier = max(era.since, first), "◀ " if era.since < first else ""
            colour = PALETTE["blue"] if era.transformer else PALE[k % len(PALE)]
            axes.barh(y, end - start, left=start, height=0.66, color=colour, edgecolor="white", linewidth=2)
            axes.text(
                start + 0.12, y, f"{era.name}\n{earlier}{era.since}", va="center", fontsize=12, linespacing=1.25,
                color="white" if era.transformer else "black", fontweight="bold" if era.transformer else "normal",
            )  # fmt: skip
    most = max(sum(not era.transformer for era in eras) for eras in landscape.values())
    before = tuple(Patch(facecolor=colour, edgecolor="white") for colour in PALE[:most])
    fig.legend(
        [before, Patch(facecolor=PALETTE["blue"])], ["what came before", "Transformer"],
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)}, loc="outside upper center", ncols=2, handlelength=3,
    )  # fmt: skip
    axes.set_yticks(range(len(landscape)), list(landscape)[::-1], fontsize=13)
    axes.set(xlim=(first, last), xlabel="year")
    axes.set_xticks(range(first, last + 1, 2))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    return fig


def waves(lanes: Mapping[str, Sequence[Event]], *, first: int, last: int) -> Figure:
    """Lines of events, one above the other, over the same years; what began before `first` stands left of a break."""
    fig, axes = figure(11.5, 0.8 + 1.9 * len(lanes))
    early, broken = first - 2, first - 1
    has_early = {lane: any(event.year < first for event in events) for lane, events in lanes.items()}
    left = early - 0.8 if any(has_early.values()) else first - 0.6
    for i, (lane, events) in enumerate(lanes.items()):
        y, colour = len(lanes) - 1 - i, CYCLE[i]
        axes.hlines(y, max(left, broken), last + 0.6, color=colour, linewidth=3, zorder=1)
        if has_early[lane]:
            axes.hlines(y, left, broken - 0.12, color=colour, linewidth=3, zorder=1)
            for x in (broken - 0.12, broken):
                axes.plot([x - 0.08, x + 0.08], [y - 0.1, y + 0.1], color=colour, linestyle="-", linewidth=3)
        axes.text(left + 0.1, y + 0.43, lane, fontsize=15, fontweight="bold")
        for event in events:
            side = -1 if event.below else 1
            x = event.year if event.year >= first else early
            note = f"{event.name}\n" + (f"{event.year:g}" if event.until is None else f"{event.year:g}-{event.until:g}")
            if event.until is None:
                axes.plot(x, y, marker=MARKERS[i], ms=13, color=colour, zorder=3)
            else:
                axes.plot([x, event.until], [y, y], color=colour, linestyle="-", linewidth=14, solid_capstyle="round")
                x = (x + event.until) / 2
            axes.text(x, y + 0.11 * side, note, ha="center", va="bottom" if side > 0 else "top", fontsize=12.5)
    axes.set(xlim=(left, last + 0.6), ylim=(-0.55, len(lanes) - 0.35), xlabel="year")
    axes.set_xticks(range(first, last + 1))
    axes.spines["bottom"].set_bounds(max(left, broken), last + 0.6)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)
    return fig


def course_map(
    titles: Mapping[str, str],
    places: Mapping[str, tuple[float, float]],
    builds_on: Mapping[str, Sequence[str]],
    *,
    there: Sequence[str],
) -> Figure:
    """The lessons as boxes at (column, row) and an arrow from each to what builds on it.

    Lessons that are `there` are filled, those to come are dashed. Raises ValueError for an arrow to or from a lesson
    without a title or a place.
    """
    unknown = {n for name, before in builds_on.items() for n in (name, *before) if n not in titles or n not in places}
    if unknown or set(titles) != set(places):
        wrong = sorted(unknown | set(titles) ^ set(places))
        raise ValueError(f"Each lesson on the map needs a title and a place; look at {', '.join(wrong)}.")
    fig, axes = figure(12.2, 6.0)
    columns, rows = zip(*places.values(), strict=True)
    _blank(axes, (min(columns) - 0.46, max(columns) + 0.46), (min(rows) - 0.4, max(rows) + 0.4))
    for name, before in builds_on.items():
        for start in before:
            _arrow_between(axes, places[start], places[name])
    for name, title in titles.items():
        x, y = places[name]
        here = name in there
        axes.add_patch(
            FancyBboxPatch(
                (x - 0.41, y - 0.33), 0.82, 0.66, boxstyle="round,pad=0.02", lw=2,
                fc=PALE[1] if here else "white", ec=PALETTE["blue"] if here else GREY,
                linestyle="-" if here else (0, (3, 2)),
            )
        )  # fmt: skip
        lines = textwrap.wrap(title, 11, break_long_words=False)
        axes.text(x, y + 0.2, name, ha="center", va="center", fontsize=15, fontweight="bold")
        axes.text(x, y - 0.11, "\n".join(lines), ha="center", va="center", fontsize=12, linespacing=1.05)
    axes.text(
        min(columns) - 0.43, min(rows) - 0.2, "solid frame: here\ndashed frame: to come", ha="left", fontsize=13,
        color=GREY,
    )  # fmt: skip
    return fig


def _place(unit: int, size: int) -> float:
    """Height of a unit in its layer, from 0 to 1: small layers stand in the middle."""
    return 0.5 if size == 1 else 0.5 + (0.5 - unit / (size - 1)) * min(1.0, 0.3 * (size - 1))


def _arrow_between(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """An arrow into the left side of a box, from the right of its neighbour or from above or below one far away."""
    side = np.sign(end[1] - start[1])
    around = side != 0 and end[0] - start[0] > 1  # straight on it would run through the boxes between
    tail = (start[0], start[1] + 0.35 * side) if around else (start[0] + 0.43, start[1])
    head = (end[0] - 0.43, end[1])
    arrow = {"arrowstyle": "-|>", "mutation_scale": 14, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(tail, head, lw=1.8, color=GREY, **arrow))


def _blank(axes: Axes, x_limits: tuple[float, float], y_limits: tuple[float, float]) -> None:
    axes.set(xlim=x_limits, ylim=y_limits)
    axes.axis("off")
