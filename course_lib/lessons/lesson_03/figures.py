"""The figures of lesson 03: unrolling, accuracy, powers of a matrix, gradients, clipping, five arrangements."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.lessons.lesson_03.clipping import RATES, SIGMAS
from course_lib.lessons.lesson_03.shapes import Shape
from course_lib.viz.marks import HERO, OTHER, arrow, bare, box, prediction
from course_lib.viz.style import GREY, PALETTE, SEQUENTIAL, figure

STATE, SAID = PALETTE["blue"], PALETTE["green"]

COUNTED = PALETTE["black"]


def mechanism(states: Sequence[float], inputs: Sequence[float], deltas: Sequence[float]) -> Figure:
    """The layer with its loop, and unrolled in time: states forwards, gradients backwards."""
    fig, (folded, unrolled) = figure(12, 4.6, columns=2, gridspec_kw={"width_ratios": (1, 3)})
    bare(folded, (-1.7, 1.7), (-2.2, 2.5))
    box(folded, 0, 0, "$h_t$", STATE, width=1.2, height=0.9, fontsize=13)
    arrow(folded, (0, -1.5), (0, -0.5))
    arrow(folded, (0, 0.5), (0, 1.5))
    folded.text(0, -1.95, "$x_t$", ha="center", fontsize=14)
    folded.text(0, 1.75, "$h_t = w h_{t-1} + u x_t$", ha="center", fontsize=13)
    loop = {"arrowstyle": "-|>", "color": STATE, "lw": 2, "connectionstyle": "arc3,rad=-1.6"}
    folded.annotate("", (0.62, -0.22), (0.62, 0.22), arrowprops=loop)
    folded.text(1.35, 0, "$w$", color=STATE, fontsize=14, va="center")
    folded.text(-0.15, -1.05, "$u$", color=GREY, fontsize=13, ha="right")
    folded.set_title("One layer, a loop")
    last = len(inputs)
    bare(unrolled, (-0.4, last + 0.75), (-2.2, 2.5))
    for t in range(last + 1):
        box(unrolled, t, 0, f"$h_{t}$ = {states[t]:g}", STATE if t else GREY, width=0.66, height=0.9, fontsize=13)
        if not t:
            continue
        arrow(unrolled, (t - 0.66, 0.12), (t - 0.34, 0.12), STATE)
        unrolled.text(t - 0.5, 0.32, "$w$", color=STATE, ha="center", fontsize=13)
        arrow(unrolled, (t, -1.5), (t, -0.5))
        unrolled.text(t, -1.95, f"$x_{t}$ = {inputs[t - 1]:g}", ha="center", fontsize=13)
        unrolled.text(t + 0.06, -1.1, "$u$", color=GREY)
        unrolled.text(t, 0.68, f"$\\delta_{t}$ = {deltas[t - 1]:g}", color=OTHER, ha="center", fontsize=13)
        if t > 1:
            arrow(unrolled, (t - 0.34, -0.22), (t - 0.66, -0.22), OTHER)
    unrolled.text(last + 0.4, 0, "loss", va="center", color=GREY)
    note = "blue: states, forwards in time; orange: gradients, backwards"
    unrolled.text(0.5 * last, 1.6, note, ha="center", color=GREY)
    unrolled.set_title("Unrolled: the same weights at each step")
    return fig


def names(
    rows: Sequence[tuple[str, Sequence[float], str]],
    confusion: Float[Tensor, "L L"],
    languages: Sequence[str],
    predicted: float | None = None,
) -> Figure:
    """The accuracy of each method (name, one value for each seed, colour), and the confusion matrix of the network."""
    fig, (axes, table) = figure(12.2, 5.6, columns=2, gridspec_kw={"width_ratios": (1.25, 1)})
    for position, (name, values, colour) in enumerate(rows):
        marker = "*" if name.startswith("yours") else "o"
        axes.plot(values, [-position] * len(values), marker, color=colour, markersize=15 if marker == "*" else 8)
        left = min(values) > 30
        where = min(values) - 4 if left else max(values) + 12
        axes.text(where, -position, name, color=colour, va="center", ha="right" if left else "left")
        axes.text(max(values) + 3.5, -position, f"{np.mean(values):.0f}", color=colour, va="center")
    prediction(axes, predicted, 0.9, (0, 10))
    axes.set(xlim=(0, 100), ylim=(-len(rows) + 0.4, 1.9), xlabel="accuracy on the test names (%)")
    axes.set_yticks([])
    axes.set_title("Trigram counts beat the RNN")
    fractions = confusion / confusion.sum(dim=1, keepdim=True)
    table.imshow(fractions.numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)
    short = [name[:3] for name in languages]
    table.set_xticks(range(len(short)), short, rotation=90)
    table.set_yticks(range(len(short)), languages)
    table.set(xlabel="answer of your network", ylabel="language of the name")
    table.set_title("Confusion matrix")
    table.grid(visible=False)
    return fig


def powers(trails: Mapping[str, Sequence[Float[Tensor, "T 2"]]], norms: Mapping[str, Sequence[float]]) -> Figure:
    """Paths of states in the plane without inputs, for several matrices, and norms of states over the steps."""
    fig, panels = figure(12.2, 3.8, columns=len(trails) + 1, width_ratios=[1] * len(trails) + [1.15])
    for axes, (title, paths), colour in zip(panels, trails.items(), (HERO, PALETTE["green"], OTHER), strict=False):
        for path in paths:
            axes.plot(*path.T.numpy(), color=colour, linestyle="-", linewidth=1, alpha=0.75)
            axes.scatter(*path.T.numpy(), s=np.linspace(30, 5, len(path)), color=colour)
            axes.plot(*path[0].tolist(), "o", color="black", markersize=6)
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.axvline(0, color=GREY, linewidth=0.8)
        axes.set(xlim=(-2.2, 2.2), ylim=(-2.2, 2.2), title=title, aspect="equal", yticks=[-2, 0, 2])
        axes.tick_params(labelleft=axes is panels[0])
    panels[0].text(-2.05, -2.0, "black: $h_0$")
    for (name, values), colour in zip(norms.items(), (HERO, PALETTE["black"]), strict=True):
        panels[-1].plot(values, color=colour, linestyle="-")
        at = int(np.argmax(values)) if max(values) > values[0] else len(values) // 3
        panels[-1].annotate(name, (at, values[at]), (6, 6), textcoords="offset points", color=colour)
    panels[-1].set_yscale("log")
    panels[-1].set(xlabel="step", title="Norm of $h_t$", ylim=(1e-2, 100))
    return fig


def reach(
    linear: Mapping[float, Sequence[float]],
    squashed: Mapping[float, Sequence[float]],
    trained: Sequence[float],
    radius: float,
    predicted: float | None = None,
) -> Figure:
    """Norms of gradients against the distance, on a logarithmic axis: linear, with a tanh, and in a trained model."""
    fig, panels = figure(12.2, 4.8, columns=3, sharex=True, sharey=True)
    colours = (HERO, PALETTE["green"], OTHER)
    for (value, lengths), colour in zip(linear.items(), colours, strict=True):
        panels[0].plot(lengths, color=colour, linestyle="-")
        panels[0].text(len(lengths), lengths[-1], f" radius {value:g}", color=colour, va="center", ha="left")
    if predicted is not None:
        prediction(panels[0], 50, max(predicted, 1e-3) / 100, (-10, -8), "your\nprediction")
    panels[0].set_title("Cause 1: the matrix")
    for (size, lengths), colour in zip(squashed.items(), (PALETTE["green"], PALETTE["orange"], OTHER), strict=True):
        lengths = np.maximum(lengths, 1e-14)
        panels[1].plot(lengths, color=colour, linestyle="-")
        at = np.argmax(np.array(lengths) < 1e-9) or len(lengths) - 1
        panels[1].text(at + 2, lengths[at], f"inputs {size:g}", color=colour, va="bottom", ha="left")
    panels[1].set_title("Cause 2: slope of tanh")
    panels[1].text(2, 1e2, "radius 1 in all three", color=GREY)
    panels[2].plot(trained, color=HERO, linestyle="-")
    panels[2].set_title("A trained model")
    panels[2].text(2, 1e2, f"radius {radius:.1f}", color=GREY)
    for axes in panels:
        axes.set_yscale("log")
        axes.set(xlabel="steps back", xlim=(0, 104), ylim=(1e-10, 1e4))
        axes.set_xticks([0, 20, 40, 60])
    panels[0].set_ylabel("norm of the gradient")
    return fig


def clipping(
    ways: Mapping[str, tuple[Float[Tensor, "sigmas seeds rates"], Float[Tensor, "sigmas seeds rates"]]],
    surface: tuple[np.ndarray, np.ndarray, np.ndarray],
    step: tuple[tuple[float, float], tuple[float, float]],
) -> Figure:
    """Losses at the end and largest gradient norms against the learning rate, with and without clipping; the cliff.

    `surface` has the axes w (W), b (B) and the losses (B, W) of a network with one unit; `step` is a point on its
    cliff and the direction of the negative gradient there.
    """
    fig, (*panels, cliff) = figure(12.2, 5.6, columns=3, width_ratios=(1, 1, 1.25))
    for (name, measured), colour in zip(ways.items(), (OTHER, HERO), strict=True):
        for axes, values in zip(panels, measured, strict=True):
            for sigma, rows, line, mark in zip(SIGMAS, values, ("-", "--"), ("o", "^"), strict=True):
                label = f"{name}, $\\sigma$ = {sigma:g}"
                style = {"linestyle": line, "marker": mark, "markersize": 6, "label": label}
                axes.plot(RATES, rows.median(dim=0).values, color=colour, **style)
                axes.plot(RATES, rows.T, mark, color=colour, markersize=6)
    for axes in panels:
        axes.set(xscale="log", yscale="log", xlabel="learning rate\n(lines: medians)")
        axes.set_xticks(RATES, [f"{rate:g}" for rate in RATES])
        axes.set_xticks([], minor=True)
    panels[0].set_yticks([2, 4, 8, 16, 32], ["2", "4", "8", "16", "32"])
    panels[0].set_yticks([], minor=True)
    panels[0].set(title="Final loss (nats)")
    panels[1].set(title="Largest gradient norm")
    fig.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    w, b, losses = surface
    shown = cliff.pcolormesh(w, b, losses, cmap=SEQUENTIAL, shading="nearest", rasterized=True)
    fig.colorbar(shown, ax=cliff)
    (at, towards) = step
    cliff.plot(*at, "o", color=OTHER, markersize=9)
    cliff.plot(*([p, p + 30 * d] for p, d in zip(at, towards, strict=True)), color=OTHER, linestyle="--", linewidth=2)
    near = {"arrowstyle": "-|>", "color": HERO, "lw": 2.5}
    cliff.annotate("", (at[0] + 0.2 * towards[0], at[1] + 0.2 * towards[1]), at, arrowprops=near)
    cliff.set(xlim=(w[0], w[-1]), ylim=(b[0], b[-1]), xlabel="w", ylabel="b", title="Loss of one unit: a cliff")
    cliff.set(xticks=[5, 6, 7], yticks=[-3.6, -3.2, -2.8, -2.4])
    cliff.grid(visible=False)
    return fig


def shapes(all_five: Sequence[Shape]) -> Figure:
    """Each arrangement with its example: a box for each step, inputs below, outputs above, fed-back words in green.

    Where the inputs are others at training time, they stand below.
    """
    fig, axes = figure(12.2, 6.0, layout=None)
    fig.subplots_adjust(0, 0, 1, 1)
    bare(axes, (0, 16.4), (0, 8.06))
    places = ((0.65, 6.12, 1), (3.2, 6.12, 1.06), (10.35, 6.12, 0.5), (0.75, 1.84, 0.71), (9.4, 1.84, 0.88))
    for shape, place in zip(all_five, places, strict=True):
        _shape(axes, shape, *place)
    return fig


def _shape(axes: Axes, shape: Shape, left: float, y: float, step: float) -> None:
    """An arrangement whose first box is at (left, y), the next one a step to the right; long words lean, one by one."""
    recurrent, half = shape.name != "one to one", min(0.3, 0.31 * step)
    leaning = step < 1 and max(map(len, (*shape.given, *shape.said[1:]))) > 1
    title = r"$\bf{" + shape.name.replace(" ", r"\ ") + "}$" + (": " if leaning else "\n") + shape.task
    axes.text(left - half, y + (2.2 if leaning else 1.84), title, va="top")
    for t in range(max(len(shape.given), shape.waits + len(shape.said))):
        x = left + t * step
        box(axes, x, y, "", STATE if recurrent else GREY, width=2 * half, height=0.4)
        if t:
            arrow(axes, (x - step + half, y), (x - half, y), STATE)
        fed_back = shape.feeds_back and t > shape.waits
        if t < len(shape.given) or fed_back:
            arrow(axes, (x, y - 0.6), (x, y - 0.18), SAID if fed_back else GREY)
            word = shape.said[t - shape.waits - 1] if fed_back else shape.given[t]
            lean = leaning and len(word) > 1
            _word(axes, x, y - 0.64, word, lean, color=SAID if fed_back else "black", ha="right", va="top")
        if shape.waits <= t < shape.waits + len(shape.said):
            arrow(axes, (x, y + 0.18), (x, y + 0.6), SAID)
            _word(axes, x, y + 0.64, shape.said[t - shape.waits], leaning, ha="left", va="bottom")
    for t, word in enumerate(shape.taught):
        axes.text(left + t * step, y - 1.72, word, ha="center", va="center", style="normal" if t else "italic")
    if shape.taught:
        axes.text(left - 0.6, y - 1.72, "in training:", ha="right", va="center", color=GREY)
    if shape.picture is not None:
        inset = axes.inset_axes((left - 0.42, y - 1.46, 0.84, 0.84), transform=axes.transData)
        inset.imshow(shape.picture.numpy(), cmap="gray", vmin=0, vmax=1)
        inset.set_axis_off()


def _word(axes: Axes, x: float, y: float, word: str, lean: bool, **style: Any) -> None:
    axes.text(x, y, word, **style | ({"rotation": 30, "rotation_mode": "anchor"} if lean else {"ha": "center"}))
