"""The figures of lesson 04: one cell, its highway, what it remembers and what it counts. Data in, Figure out."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, arrow, bare, box, prediction
from course_lib.viz.style import DIVERGING, GREY, PALETTE, SEQUENTIAL, figure

GATES = {"f": PALETTE["green"], "i": PALETTE["sky"], "g": PALETTE["orange"], "o": PALETTE["purple"]}


def cell(gates: Mapping[str, float], c_before: float, c: float, h: float) -> Figure:
    """One unit of an LSTM in one step, with its numbers: the highway above, the gates that act on it below."""
    fig, axes = figure(12, 4.9)
    bare(axes, (-0.2, 12.2), (-0.2, 5.1))
    road, gate_y = 4.0, 1.75
    x = {"f": 2.6, "i": 4.9, "g": 6.3, "o": 9.2}
    add = 5.6
    for start, end in ((1.35, x["f"] - 0.3), (x["f"] + 0.3, add - 0.3), (add + 0.3, 10.35)):
        arrow(axes, (start, road), (end, road), HERO, width=6)
    box(axes, 0.65, road, f"$C_{{t-1}}$ = {c_before:.2f}", HERO, width=1.35)
    box(axes, 11.15, road, f"$C_t$ = {c:.2f}", HERO, width=1.45)
    axes.text(8.0, road + 0.42, "the highway: no matrix, no squashing", color=HERO, ha="center", fontsize=14)
    meaning = {"f": "keep", "i": "write", "g": "what", "o": "show"}
    for name, position in x.items():
        kind = "tanh" if name == "g" else "σ"
        box(axes, position, gate_y, f"{name} = {gates[name]:.2f}", GATES[name], width=1.2, ink="black")
        axes.text(position, gate_y - 0.52, f"{kind}: {meaning[name]}", color=GREY, ha="center")
        arrow(axes, (position, 0.35), (position, gate_y - 0.75))
    axes.plot([1.2, 9.2], [0.3, 0.3], color=GREY, linestyle="-", linewidth=2)
    axes.text(1.1, 0.3, "$x_t$ and $h_{t-1}$", ha="right", va="center", fontsize=14)
    _circle(axes, x["f"], road, "×")
    _circle(axes, add, road, "+")
    _circle(axes, add, 2.95, "×")
    _circle(axes, x["o"], 2.95, "×")
    arrow(axes, (x["f"], gate_y + 0.35), (x["f"], road - 0.3))
    arrow(axes, (x["i"], gate_y + 0.35), (add - 0.2, 2.75))
    arrow(axes, (x["g"], gate_y + 0.35), (add + 0.2, 2.75))
    arrow(axes, (add, 3.2), (add, road - 0.3))
    arrow(axes, (x["o"], gate_y + 0.35), (x["o"], 2.7))
    arrow(axes, (x["o"], road - 0.05), (x["o"], 3.2))
    axes.text(x["o"] + 0.15, 3.45, "tanh", color=GREY)
    arrow(axes, (x["o"] + 0.28, 2.95), (10.35, 2.95))
    box(axes, 11.15, 2.95, f"$h_t$ = {h:.2f}", GREY, width=1.45)
    return fig


def highway(
    reach: Mapping[str, Float[Tensor, " T"]], gates: Mapping[str, Float[Tensor, " T"]], colours: Mapping[str, str]
) -> Figure:
    """The gradient's length against the distance, all of it (solid) and along the cells alone (dotted)."""
    fig, axes = figure(9.8, 4.8)
    for name, norms in reach.items():
        steps = np.arange(1, len(norms))
        seen = norms[1:] / norms[1]
        shown = seen > 1e-12
        axes.plot(steps[shown], seen[shown], color=colours[name], linestyle="-", linewidth=3.5)
        last = int(np.flatnonzero(shown.numpy())[-1])
        if last < 90:
            axes.text(steps[last] + 2, max(float(seen[last]), 1e-12) * 3, name, color=colours[name], fontsize=14)
        else:
            axes.text(101, float(seen[-1]), name, color=colours[name], fontsize=14, va="center")
        if name in gates:
            axes.plot(steps, gates[name][1:] / gates[name][1], color=colours[name], linestyle=":", linewidth=2)
    axes.set_yscale("log")
    axes.set(ylim=(1e-12, 30), xlim=(0, 128), xlabel="steps back", ylabel="gradient, 1 at the first step")
    axes.set_xticks([0, 25, 50, 75, 100])
    axes.set_title("Before any training: how far does the gradient reach?")
    return fig


def first_symbol(
    right: Mapping[str, Mapping[int, Sequence[float]]],
    yours: tuple[int, float] | None,
    hero: str,
    asked: str,
    predicted: float | None = None,
) -> Figure:
    """Share of first symbols named, a panel a cell, a dot a seed; the prediction: `asked` at 50."""
    fig, panels = figure(12.2, 4.3, columns=len(right), sharey=True)
    for axes, (kind, by_length) in zip(panels, right.items(), strict=True):
        positions = range(len(by_length))
        colour = HERO if kind == hero else OTHER if kind == asked else GREY
        axes.axhline(10, color=GREY, linestyle=":", linewidth=1.5)
        axes.plot(positions, [100 * np.mean(seeds) for seeds in by_length.values()], color=colour, linestyle="-", lw=2)
        for position, seeds in zip(positions, by_length.values(), strict=True):
            shift = np.linspace(-0.13, 0.13, len(seeds))
            axes.plot(position + shift, [100 * share for share in seeds], "o", color=colour, markersize=8, alpha=0.8)
        axes.set_title(kind.replace(", ", ",\n"), fontsize=14, color=colour)
        axes.set_xticks(positions, [str(length) for length in by_length])
        axes.set(ylim=(-4, 106), xlim=(-0.4, len(by_length) - 0.6), xlabel="symbols T")
        lengths = list(by_length)
        if kind == hero and yours is not None:
            axes.plot(lengths.index(yours[0]), 100 * yours[1], "s", color="black", markersize=10, mfc="none", mew=2)
            axes.text(lengths.index(yours[0]), 100 * yours[1] - 11, "yours", ha="center")
        if kind == asked:
            prediction(axes, lengths.index(50), predicted, (0, 12))
    panels[0].set_ylabel("first symbol named, %")
    panels[0].text(0, 2, "a guess", color=GREY, ha="center")
    return fig


def memory(cells: Float[Tensor, "H T"], tokens: Sequence[int], chance: float) -> Figure:
    """What the first symbol left in some cells over one sequence, and the chance that it is given at the end."""
    fig, axes = figure(9, 3.3, layout=None)
    fig.subplots_adjust(left=0.09, right=0.98, bottom=0.2, top=0.88)
    most = max(0.3, float(cells.abs().max()))
    axes.imshow(cells.numpy(), aspect="auto", cmap=DIVERGING, vmin=-most, vmax=most, interpolation="nearest")
    axes.set_xticks(range(0, len(tokens), 1), [str(token) for token in tokens], fontsize=9)
    axes.set(xlabel="the symbols that it reads", ylabel="cells: what the\nfirst symbol left")
    axes.set_yticks([])
    axes.grid(False)
    axes.set_title(f"after the last symbol it gives the first one, {tokens[0]}, {100 * chance:.0f} %", fontsize=13)
    return fig


def gates(text: str, cells: Float[Tensor, " T"], opened: Mapping[str, Float[Tensor, " T"]], unit: int) -> Figure:
    """One unit over a text: its cell as a line, below it how far its gates are open at each character."""
    fig, (above, below) = figure(12.2, 4.8, rows=2, height_ratios=[2.2, 1], sharex=True)
    positions = np.arange(len(text))
    above.plot(positions, cells, color=HERO, linestyle="-", marker="o", markersize=4)
    above.set_ylabel(f"cell of unit {unit}")
    above.grid(visible=False, axis="x")
    above.tick_params(axis="x", length=0)
    above.set_title(f"Unit {unit} counts the characters, and begins anew with each sentence")
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
    below.set_xticks(positions, ["␣" if letter == " " else letter for letter in text], fontsize=10, family="monospace")
    below.tick_params(axis="x", length=0)
    below.set_xlabel("gates: yellow is open, dark blue is shut")
    return fig


def counter(
    cells: Float[Tensor, " T"], count: Float[Tensor, " T"], unit: int, scores: Mapping[str, tuple[float, float]]
) -> Figure:
    """A unit over test text beside the true count; how well the best unit of each network counts."""
    fig, (left, right) = figure(12.2, 4.4, columns=2, width_ratios=[2.4, 1])
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
        right.plot(abs(validation), -row, "o", color="black", markersize=8)
        right.text(0.02, -row + 0.36, name)
    right.set(xlim=(0, 1), ylim=(-len(scores) + 0.4, 0.75), xlabel="|r| with the count")
    right.set_yticks([])
    right.set_title("Bar: test. Dot: validation")
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
    fig, (left, right) = figure(12.2, 4.4, columns=2, width_ratios=[1.5, 1])
    for (name, means), colour in zip(after.items(), (HERO, OTHER), strict=True):
        left.plot(means, color=colour, linestyle="-", marker="o", linewidth=2.5)
        right_of = len(means) - 1
        left.text(right_of + 0.4, float(means[-1]), f"{name} mark", color=colour, fontsize=14, va="center")
    left.set(xlabel="characters after the mark", ylabel=f"cell of unit {unit}, mean", xlim=(-0.5, 24.5))
    left.set_title("Both marks set it back")
    rows = {
        "in quotes against all other text": everywhere,
        "in quotes against just behind": near,
        "just behind, by the distance alone": alone,
    }
    for row, ((name, value), colour) in enumerate(zip(rows.items(), (HERO, OTHER, GREY), strict=True)):
        right.barh(-row, value - 0.5, left=0.5, height=0.5, color=colour)
        right.text(0.51, -row + 0.36, name)
    prediction(right, predicted, -1)
    right.set(xlim=(0.5, 1.02), ylim=(-2.5, 0.75), xlabel="AUC on test text (0.5: a guess)")
    right.set_yticks([])
    right.set_title(f"Unit {unit}, on two questions")
    return fig


def characters(
    long: Mapping[str, Sequence[float]], short: Mapping[str, Sequence[float]], predicted: float | None = None
) -> Figure:
    """Bits per character: counting and the shipped networks; a short training of the three cells. Left is better."""
    fig, panels = figure(12.2, 4.3, columns=2, width_ratios=[1.25, 1])
    for axes, rows, title in (
        (panels[0], long, "2,440 steps and more, and counting"),
        (panels[1], short, "1,000 steps, smaller networks"),
    ):
        for row, (name, values) in enumerate(rows.items()):
            colour = GREY if "gram" in name else HERO if "LSTM" in name else OTHER
            axes.plot(values, [-row] * len(values), "o", color=colour, markersize=11, alpha=0.75)
            axes.text(0.015, -row + 0.3, name, transform=axes.get_yaxis_transform(), color=colour)
        axes.set_yticks([])
        axes.set(ylim=(-len(rows) + 0.4, 0.7), xlabel="bits a character, test text (left is better)")
        axes.set_title(title)
    names = list(long)
    prediction(panels[0], predicted, -names.index("LSTM"), (0, -12))
    low = min(min(values) for values in long.values())
    high = max(max(values) for values in long.values())
    panels[0].set_xlim(min(low - 0.12, (predicted or low) - 0.05), max(high + 0.05, (predicted or high) + 0.05))
    return fig


def arrangements() -> Figure:
    """Three ways to arrange layers: on top of each other, from both ends, and packed."""
    fig, panels = figure(12.2, 4.3, columns=3)
    for axes, title in zip(panels, ("Stacked", "Bidirectional", "Packed"), strict=True):
        axes.set_title(title)
        bare(axes, (-0.7, 4.7), (-0.7, 3.6))
    for t in range(4):
        for row, colour in ((1, HERO), (2, PALETTE["sky"])):
            box(panels[0], t, row, "h", colour, width=0.55, ink="white" if row == 1 else "black")
            arrow(panels[0], (t, row - 0.65), (t, row - 0.3))
            if t < 3:
                arrow(panels[0], (t + 0.32, row), (t + 0.68, row))
        for row, colour in ((1, HERO), (2, OTHER)):
            box(panels[1], t, row, "h", colour, width=0.55)
        if t < 3:
            arrow(panels[1], (t + 0.32, 1), (t + 0.68, 1), HERO)
            arrow(panels[1], (t + 0.68, 2), (t + 0.32, 2), OTHER)
        for axes in panels[:2]:
            box(axes, t, 0.1, f"$x_{t + 1}$", "#DDDDDD", width=0.6, ink="black")
        panels[1].text(t, 2.75, "both", ha="center", fontsize=12, color=GREY)
    panels[0].text(1.5, 2.9, "layer 2 reads the h of layer 1", ha="center")
    panels[1].text(1.5, -0.6, "each place knows both sides", ha="center")
    for row, length in enumerate((4, 3, 1)):
        for t in range(4):
            real = t < length
            box(
                panels[2],
                t,
                2.4 - 0.8 * row,
                "x" if real else "pad",
                HERO if real else "#EEEEEE",
                width=0.62,
                ink="white" if real else GREY,
                fontsize=12,
            )
    for t, count in enumerate((3, 2, 2, 1)):
        panels[2].text(t, 0.05, str(count), ha="center", fontsize=14, weight="bold")
    panels[2].text(1.5, -0.6, "so many rows are really computed", ha="center")
    return fig


def _circle(axes, x, y, text) -> None:
    axes.plot(x, y, "o", color="white", mec=GREY, mew=2, markersize=25, zorder=3)
    axes.text(x, y - 0.02, text, ha="center", va="center", fontsize=18, color="black", zorder=4)


# fmt: skip
