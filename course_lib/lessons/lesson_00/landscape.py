"""Figures of lesson 00: what training changes, what size buys, the landscape of the field. Data in, Figure out."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch

from course_lib.lessons.lesson_00.words import Measured
from course_lib.viz.marks import bare, prediction
from course_lib.viz.style import GREY, PALETTE, figure

PALE = ("#F6DDB5", "#D5E8F5", "#F3D9E6", "#D9EFE6")
"""Light tints of the palette, for black type on them."""
TWO = (PALETTE["blue"], PALETTE["orange"])


@dataclass(frozen=True, kw_only=True)
class Era:
    """What a community used from a year on, until its next era."""

    name: str
    since: int  # year
    transformer: bool = False


def wiring(
    stages: Mapping[str, Sequence[Float[np.ndarray, "_ _"]]],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> Figure:
    """A small network drawn with all its connections, once for each stage of its training.

    A stage is a list of weight matrices, one a layer. The thicker a line, the larger its weight; negative ones are
    dashed. Raises ValueError if two stages do not have the same wires, or the names do not fit their ends.
    """
    shapes = [[tuple(matrix.shape) for matrix in matrices] for matrices in stages.values()]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"All stages must have the same wires, but their matrices have the shapes {shapes}.")
    fig, panels = figure(5.8 * len(stages), 4.6, columns=len(stages), squeeze=False)
    largest = max(float(abs(matrix).max()) for matrices in stages.values() for matrix in matrices)
    for axes, (title, matrices) in zip(panels[0], stages.items(), strict=True):
        _draw_wiring(axes, matrices, inputs, outputs, largest)
        axes.set_title(title)
    return fig


def letters_at_work(
    matrices: Sequence[Float[np.ndarray, "_ _"]],
    means: Float[np.ndarray, "2 letters"],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    title: str,
) -> Figure:
    """A trained network wire by wire, and beside it how often each of its letters occurs in either language."""
    fig, (left, right) = figure(8.6, 4.0, columns=2, layout=None, gridspec_kw={"width_ratios": [1.1, 1]})
    fig.subplots_adjust(left=0.01, right=0.99, bottom=0.14, top=0.9, wspace=0.1)
    _draw_wiring(left, matrices, inputs, outputs, max(float(abs(matrix).max()) for matrix in matrices))
    left.set_title(title)
    positions = np.arange(len(inputs))
    for shift, heights, name, colour in zip((-0.2, 0.2), means, outputs, TWO, strict=True):
        right.bar(positions + shift, heights, width=0.38, color=colour, label=name)
    right.set_xticks(positions, inputs)
    right.set(title="of 10 letters in a sentence", xlim=(-0.6, max(len(inputs), 4) - 0.4))
    right.grid(visible=False, axis="x")
    right.legend(loc="upper right", ncols=2)
    right.set_ylim(0, 1.25 * max(0.1, float(means.max())))
    return fig


def belief_bars(names: Sequence[str], probs: Sequence[float]) -> Figure:
    """The probabilities that a network gives to two answers, as bars from 0 to 100 %."""
    fig, axes = figure(7.5, 0.9 + 0.6 * len(names))
    positions = np.arange(len(names))[::-1]
    axes.barh(positions, [100 * prob for prob in probs], color=TWO, height=0.6)
    for position, prob, type_on in zip(positions, probs, ("white", "black"), strict=True):
        inside = prob > 0.85
        axes.text(
            100 * prob + (-1 if inside else 1),
            position,
            f"{100 * prob:.0f} %",
            ha="right" if inside else "left",
            va="center",
            color=type_on if inside else "black",
        )
    axes.set(xlim=(0, 100), xlabel="probability (%)")
    axes.set_yticks(positions, names)
    axes.grid(visible=False, axis="y")
    return fig


def price_of_accuracy(curves: Mapping[str, Sequence[Measured]], predicted: float | None = None) -> Figure:
    """Accuracy against cost: the first architecture thin, the second thick; the prediction for the first a star."""
    fig, axes = figure(10.5, 5.0)
    (_, alone), _ = curves.items()
    for label, models in curves.items():
        costs, scores = [m.operations for m in models], [100 * m.accuracy for m in models]
        colour, width = (PALETTE["vermilion"], 2.5) if models is alone else (PALETTE["blue"], 4)
        axes.plot(costs, scores, marker="o", markersize=10, color=colour, linewidth=width, linestyle="-")
        axes.text(1.3 * costs[-1], scores[-1], label.replace(" to ", "\nto "), color=colour, va="center")
        for model, cost, score in zip(models, costs, scores, strict=True):
            axes.annotate(
                f"{model.parameters:,}",
                (cost, score),
                xytext=(0, -22 if models is alone else 14),
                textcoords="offset points",
                ha="center" if models is alone else "right",
                color=GREY,
            )
    prediction(axes, alone[-1].operations, predicted)
    axes.set_xscale("log")
    axes.set_xlim(300, 1_500_000)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set(xlabel="multiplications for one word", ylabel="words translated correctly (%)", ylim=(40, 107))
    axes.set_yticks(range(40, 101, 10))
    axes.text(0.02, 0.95, "beside the points: parameters", transform=axes.transAxes, color=GREY)
    axes.set_title("More parameters do not replace a connection")
    return fig


def takeovers(landscape: Mapping[str, Sequence[Era]], *, first: int, last: int) -> Figure:
    """For each community the architecture of its time, from year `first` to `last`; the Transformer's eras are dark.

    Raises ValueError if the eras of a community do not follow one another.
    """
    fig, axes = figure(12, 0.9 + 0.72 * len(landscape))
    for i, (community, eras) in enumerate(landscape.items()):
        years = [era.since for era in eras]
        if years != sorted(set(years)):
            raise ValueError(f"The eras of {community!r} must follow one another, but begin in {years}.")
        y = len(landscape) - 1 - i
        for k, (era, end) in enumerate(zip(eras, [*years[1:], last], strict=True)):
            start, earlier = max(era.since, first), "◀ " if era.since < first else ""
            colour = PALETTE["blue"] if era.transformer else PALE[k % len(PALE)]
            axes.barh(y, end - start, left=start, height=0.9, color=colour, edgecolor="white", linewidth=2)
            words = textwrap.wrap(f"{earlier}{era.since} {era.name}", 3 * (end - start), break_long_words=False)
            axes.text(
                start + 0.12,
                y,
                "\n".join(words),
                va="center",
                linespacing=1.1,
                color="white" if era.transformer else "black",
                fontweight="bold" if era.transformer else "normal",
            )
    most = max(sum(not era.transformer for era in eras) for eras in landscape.values())
    before = tuple(Patch(facecolor=colour, edgecolor="white") for colour in PALE[:most])
    fig.legend(
        [before, Patch(facecolor=PALETTE["blue"])],
        ["what came before", "Transformer"],
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
        loc="outside upper center",
        ncols=2,
        handlelength=3,
    )
    axes.set_yticks(range(len(landscape)), list(landscape)[::-1])
    axes.set(xlim=(first, last), ylim=(-0.5, len(landscape) - 0.5))
    axes.set_xticks(range(first, last + 1, 2))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    return fig


def course_map(
    titles: Mapping[str, str],
    positions: Mapping[str, tuple[float, float]],
    builds_on: Mapping[str, Sequence[str]],
) -> Figure:
    """The lessons as boxes at (column, row) and an arrow from each to what builds on it.

    Raises ValueError for an arrow to or from a lesson without a title or a place.
    """
    unknown = {
        n for name, before in builds_on.items() for n in (name, *before) if n not in titles or n not in positions
    }
    if unknown or set(titles) != set(positions):
        wrong = sorted(unknown | set(titles) ^ set(positions))
        raise ValueError(f"Each lesson on the map needs a title and a place; look at {', '.join(wrong)}.")
    fig, axes = figure(12.2, 6.0)
    columns, rows = zip(*positions.values(), strict=True)
    bare(axes, (min(columns) - 0.45, max(columns) + 0.45), (min(rows) - 0.42, max(rows) + 0.42))
    for name, before in builds_on.items():
        for start in before:
            _arrow_between(axes, positions[start], positions[name])
    for name, title in titles.items():
        x, y = positions[name]
        axes.add_patch(
            FancyBboxPatch(
                (x - 0.41, y - 0.37), 0.82, 0.74, boxstyle="round,pad=0.02", lw=2, fc=PALE[1], ec=PALETTE["blue"]
            )
        )
        words = "\n".join(textwrap.wrap(f"{name} {title}", 13, break_long_words=False))
        words = words.replace(name, rf"$\bf{{{name}}}$", 1)
        axes.text(x, y, words, ha="center", va="center", linespacing=1.1)
    return fig


def _draw_wiring(
    axes: Axes, matrices: Sequence[np.ndarray], inputs: Sequence[str], outputs: Sequence[str], largest: float
) -> None:
    """One network; a weight of size `largest` is the thickest wire."""
    sizes = [matrices[0].shape[1], *(len(matrix) for matrix in matrices)]
    if sizes[0] != len(inputs) or sizes[-1] != len(outputs):
        raise ValueError(
            f"The network has {sizes[0]} inputs and {sizes[-1]} outputs, but {len(inputs)} and {len(outputs)} names "
            "were given."
        )
    bare(axes, (-0.45, len(matrices) + 0.75), (-0.2, 1.08))
    for layer, matrix in enumerate(matrices):
        for (to, start), weight in np.ndenumerate(np.asarray(matrix)):
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
                layer + (-0.14 if left else 0.14),
                _place(unit, size),
                name,
                ha="right" if left else "left",
                va="center",
            )
    axes.text(len(matrices) / 2, -0.15, "solid: positive, dashed: negative", ha="center", color=GREY)


def _place(unit: int, size: int) -> float:
    """Height of a unit in its layer, from 0 to 1: small layers stand in the middle."""
    return 0.5 if size == 1 else 0.5 + (0.5 - unit / (size - 1)) * min(1.0, 0.3 * (size - 1))


def _arrow_between(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """An arrow from the right side of a box into the left one of another, or straight up or down in a column."""
    side = np.sign(end[1] - start[1])
    if start[0] == end[0]:
        tail, head = (start[0], start[1] + 0.39 * side), (end[0], end[1] - 0.39 * side)
    else:
        tail, head = (start[0] + 0.43, start[1]), (end[0] - 0.43, end[1])
    arrow = {"arrowstyle": "-|>", "mutation_scale": 14, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(tail, head, lw=1.8, color=GREY, **arrow))
