"""The figures of lesson 04: the gradient of a cell, what it remembers and what it counts. Data in, Figure out.

A colour means the same in all of them: blue an LSTM, vermilion an RNN, green a GRU, grey what only counts.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, THIRD, label, prediction
from course_lib.viz.style import DIVERGING, GREY, PALETTE, SEQUENTIAL, figure

SHORT = PALETTE["sky"]  # an LSTM whose forget gate starts with a bias of 1
COLOURS = {"RNN": OTHER, "GRU": THIRD, "LSTM": HERO}


def colour_of(name: str) -> str:
    """The colour of a kind of network."""
    return SHORT if name == "LSTM, bias 1" else COLOURS.get(name.split(",")[0], GREY)


def distance(
    lstm: Mapping[int, float], others: Mapping[int, Sequence[float]], trained_on: int, predicted: float | None = None
) -> Figure:
    """Accuracy at naming the first symbol against the length: one LSTM, and RNNs that were trained at each length."""
    fig, axes = figure(10.4, 4.3)
    axes.plot(lstm.keys(), [100 * value for value in lstm.values()], color=HERO, linestyle="-", marker="o")
    label(axes, 700, 100, f"one LSTM, trained on {trained_on} symbols", HERO, (0, 9))
    axes.plot(others.keys(), [100 * np.mean(seeds) for seeds in others.values()], color=OTHER, linestyle="-")
    for length, seeds in others.items():
        axes.plot([length] * len(seeds), [100 * value for value in seeds], "o", color=OTHER)
    label(axes, 100, 15, "RNNs, trained and tested on each length", OTHER)
    axes.axhline(10, color=GREY, linestyle=":", linewidth=1.5)
    axes.text(6400, 3, "a guess", color=GREY, ha="right")
    prediction(axes, 400, predicted, (0, -12))
    axes.set_xscale("log")
    ticks = (2, 5, 10, 25, 50, 100, 400, 1600, 6400)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set(ylim=(-3, 118), xlabel="symbols in the sequence (logarithmic)", ylabel="first symbol named, %")
    return fig


def learning(
    losses: Mapping[str, Sequence[float]], ends: Mapping[str, float], costs: Mapping[str, float], every: int
) -> Figure:
    """The training loss of character models against steps, and their loss on validation text against their cost."""
    fig, (left, right) = figure(12.2, 4.8, columns=2, width_ratios=[1.1, 1])
    for name, values in losses.items():
        style = "--" if "wide" in name else "-"
        steps = every * (np.arange(len(values)) + 0.5)
        left.plot(steps, values, color=colour_of(name), linestyle=style)
        right.plot(
            costs[name] / 1000,
            ends[name],
            "o",
            color=colour_of(name),
            markersize=9,
            mfc="none" if "wide" in name else None,
            mew=2.5,
        )
        offset = {"GRU": (-10, 0), "LSTM": (0, -9)}.get(name, (0, 11))
        label(right, costs[name] / 1000, ends[name], name, colour_of(name), offset)
    left.set(xlabel="training steps", ylabel="training loss (nats)", ylim=(1.4, 3.4))
    left.set_title("Equal steps", loc="left")
    lowest, highest = min(ends.values()), max(ends.values())
    right.set(xlim=(0, 1.3 * max(costs.values()) / 1000), ylim=(lowest - 0.05, highest + 0.08))
    right.set(xlabel="thousand operations per character", ylabel="validation loss (nats)")
    right.locator_params(nbins=4)
    right.set_title("After the training, and its cost")
    return fig


def highway(reach: Mapping[str, Float[Tensor, " T"]], gates: Mapping[str, Float[Tensor, " T"]]) -> Figure:
    """The norm of the gradient against the distance: all of it (solid) and along the cells alone (dotted)."""
    fig, axes = figure(9.8, 4.8)
    for name, norms in reach.items():
        steps = np.arange(1, len(norms))
        seen = norms[1:] / norms[1]
        shown = seen > 1e-12
        axes.plot(steps[shown], seen[shown], color=colour_of(name), linestyle="-", linewidth=3.5)
        last = int(np.flatnonzero(shown.numpy())[-1])
        if last < 90:
            axes.text(steps[last] + 2, max(float(seen[last]), 1e-12) * 3, name, color=colour_of(name))
        else:
            axes.text(101, float(seen[-1]), name, color=colour_of(name), va="center")
        if name in gates:
            axes.plot(steps, gates[name][1:] / gates[name][1], color=colour_of(name), linestyle=":", linewidth=2)
    axes.set_yscale("log")
    axes.set(
        ylim=(1e-12, 30), xlim=(0, 128), xlabel="steps back", ylabel="norm of the gradient,\nrelative to one step back"
    )
    axes.set_xticks([0, 25, 50, 75, 100])
    axes.set_title("Before any training: the gradient at earlier inputs")
    return fig


def first_symbol(
    right: Mapping[str, Mapping[int, Sequence[float]]],
    yours: tuple[int, float] | None,
    hero: str,
    asked: str,
    predicted: float | None = None,
) -> Figure:
    """The percentage of first symbols named: a panel a kind, a dot a seed; the prediction is that of `asked` at 50."""
    fig, panels = figure(12.2, 4.3, columns=len(right), sharey=True)
    for axes, (kind, by_length) in zip(panels, right.items(), strict=True):
        positions = range(len(by_length))
        colour = colour_of(kind)
        axes.axhline(10, color=GREY, linestyle=":", linewidth=1.5)
        axes.plot(positions, [100 * np.mean(seeds) for seeds in by_length.values()], color=colour, linestyle="-", lw=2)
        for position, seeds in zip(positions, by_length.values(), strict=True):
            shift = np.linspace(-0.13, 0.13, len(seeds))
            axes.plot(position + shift, [100 * share for share in seeds], "o", color=colour, markersize=6, alpha=0.8)
        axes.set_title(kind.replace(", ", ",\n"), fontsize=12)
        axes.set_xticks(positions, [str(length) for length in by_length])
        axes.set(ylim=(-4, 106), xlim=(-0.4, len(by_length) - 0.6), xlabel="symbols T")
        lengths = list(by_length)
        if kind == hero and yours is not None:
            axes.plot(lengths.index(yours[0]), 100 * yours[1], "s", color="black", markersize=9, mfc="none", mew=2)
            axes.text(lengths.index(yours[0]), 100 * yours[1] - 11, "yours", ha="center")
        if kind == asked:
            prediction(axes, lengths.index(50), predicted, (0, 12), "your\nprediction")
    panels[0].set_ylabel("first symbol named, %")
    panels[0].text(-0.3, 0, "a guess", color=GREY)
    return fig


def memory(cells: Float[Tensor, "H T"], tokens: Sequence[int], probability: float) -> Figure:
    """What the first symbol left in some cells over one sequence, and its probability at the end."""
    fig, axes = figure(9, 3.3, layout=None)
    fig.subplots_adjust(left=0.09, right=0.98, bottom=0.2, top=0.88)
    most = max(0.3, float(cells.abs().max()))
    axes.imshow(cells.numpy(), aspect="auto", cmap=DIVERGING, vmin=-most, vmax=most, interpolation="nearest")
    axes.set_xticks(range(0, len(tokens), 1), [str(token) for token in tokens])
    axes.set(xlabel="the symbols that it reads", ylabel="24 cells: what the\nfirst symbol left")
    axes.set_yticks([])
    axes.grid(False)
    axes.set_title(f"probability of the first symbol, {tokens[0]}, after the last: {probability:.2f}", fontsize=12)
    return fig


def gates(text: str, cells: Float[Tensor, " T"], opened: Mapping[str, Float[Tensor, " T"]], unit: int) -> Figure:
    """One unit over a text: its cell as a line, below it how far its gates are open at each character."""
    fig, (above, below) = figure(12.2, 4.8, rows=2, height_ratios=[2.2, 1], sharex=True)
    positions = np.arange(len(text))
    above.plot(positions, cells, color=HERO, linestyle="-", marker="o", markersize=3.5, linewidth=2)
    above.grid(visible=False, axis="x")
    above.tick_params(axis="x", length=0)
    above.set_title(f"The cell of unit {unit} counts the characters of a sentence")
    below.imshow(
        np.stack([each.numpy() for each in opened.values()]),
        aspect="auto",
        cmap=SEQUENTIAL,
        vmin=0,
        vmax=1,
        interpolation="nearest",
    )
    below.grid(False)
    below.set_yticks(range(len(opened)), list(opened))
    below.set_xticks(positions, ["␣" if letter == " " else letter for letter in text], family="monospace")
    below.tick_params(axis="x", length=0)
    below.set_xlabel("gates: yellow is 1 (open), dark blue is 0 (closed)")
    return fig


def counter(
    cells: Float[Tensor, " T"], count: Float[Tensor, " T"], unit: int, scores: Mapping[str, tuple[float, float]]
) -> Figure:
    """A unit over test text beside the true count; how well the best unit of each network counts."""
    fig, (left, right) = figure(12.2, 4.4, columns=2, width_ratios=[2.2, 1])
    left.plot(count, color=GREY, linestyle=":", linewidth=2.5)
    left.plot(cells, color=HERO, linestyle="-", linewidth=2)
    top = float(max(count.max(), cells.max()))
    left.text(2, top * 1.12, "characters since the sentence began", color=GREY)
    left.text(len(cells) - 2, top * 1.12, f"cell of unit {unit}", color=HERO, ha="right")
    left.set(xlabel="character of the test text", ylim=(min(0, float(cells.min())) - 3, top * 1.25))
    left.set_title("Test text, never seen in training")
    for row, (name, (validation, test)) in enumerate(scores.items()):
        colour = HERO if row == 0 else OTHER
        right.barh(-row, abs(test), height=0.5, color=colour)
        right.plot(abs(validation), -row, "o", color="black", markersize=7)
        right.text(0.02, -row + 0.36, name)
    right.set(xlim=(0, 1), ylim=(-len(scores) + 0.4, 0.75), xticks=[0, 0.5, 1], yticks=[])
    right.set_xlabel("|r| with the count\nbar: test, dot: validation")
    right.set_title("The best units")
    return fig


def quotes(
    after: Mapping[str, Float[Tensor, " K"]],
    unit: int,
    everywhere: float,
    near: float,
    alone: float,
    predicted: float | None = None,
) -> Figure:
    """A unit after an opening and a closing mark; how well it tells *in quotes* from the rest, and distance alone."""
    fig, (left, right) = figure(12.2, 5.4, columns=2)
    for (name, means), colour in zip(after.items(), (PALETTE["orange"], "black"), strict=True):
        left.plot(means, color=colour, linestyle="-", marker="o", markersize=5)
        right_of = len(means) - 1
        left.text(right_of + 0.8, float(means[-1]), f"{name} mark", color=colour, va="center")
    left.set(xlabel="characters after the mark", ylabel=f"cell of unit {unit}, mean", xlim=(-0.5, 29))
    left.set(xticks=[0, 5, 10, 15, 20], yticks=[-5, -10, -15])
    left.set_title("Both marks set it back")
    rows = {
        "in quotes against all other text": everywhere,
        "in quotes against just behind": near,
        "the same, from the distance alone": alone,
    }
    for row, ((name, value), colour) in enumerate(zip(rows.items(), (HERO, HERO, GREY), strict=True)):
        right.barh(-row, value - 0.5, left=0.5, height=0.3, color=colour)
        right.text(0.5, -row + 0.2, name)
    prediction(right, predicted, -1, (0, -9))
    right.set(xlim=(0.5, 1.1), ylim=(-2.4, 0.5), xlabel="AUC on test text (0.5: a guess)")
    right.set(xticks=[0.5, 0.75, 1], yticks=[])
    right.set_title(f"Unit {unit}, on two questions")
    return fig


def characters(
    long: Mapping[str, Sequence[float]], short: Mapping[str, Sequence[float]], predicted: float | None = None
) -> Figure:
    """Bits per character: counting and the shipped networks; a short training of the three cells. Left is better."""
    fig, panels = figure(12.2, 4.3, columns=2, width_ratios=[1.15, 1])
    for axes, rows, title in (
        (panels[0], long, "2,440 steps and more, and counting"),
        (panels[1], short, "1,000 steps, smaller networks"),
    ):
        for row, (name, values) in enumerate(rows.items()):
            colour = colour_of(name)
            axes.plot(values, [-row] * len(values), "o", color=colour, markersize=9, alpha=0.75)
            axes.text(0.015, -row + 0.3, name, transform=axes.get_yaxis_transform(), color=colour)
        axes.set_yticks([])
        axes.set(ylim=(-len(rows) + 0.4, 0.7), xlabel="bits per character (left is better)")
        axes.set_title(title)
    names = list(long)
    prediction(panels[0], predicted, -names.index("LSTM"), (0, -12))
    low = min(min(values) for values in long.values())
    high = max(max(values) for values in long.values())
    panels[0].set_xlim(min(low - 0.12, (predicted or low) - 0.05), max(high + 0.05, (predicted or high) + 0.05))
    return fig
