"""The figures of lesson 13: reconstructions, and what they teach the encoder."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, image, label, prediction
from course_lib.viz.style import GREY, PALETTE, figure

COLOURS = {"mean colour": GREY, "interpolation": PALETTE["orange"], "MAE": HERO, "your MAE": PALETTE["sky"]}
COLOURS["15,000 steps"] = HERO
BASELINES = ("mean colour", "interpolation")
PALE = 0.35
TITLES = "Reconstruction", "Linear probe"
Lines = Mapping[str, Float[np.ndarray, "seeds settings"]]


def reconstructed(
    rows: Mapping[str, Float[Tensor, "B 3 H W"]], errors: Mapping[str, float], predicted: float | None = None
) -> Figure:
    """Rows of images, and bars of the error in percent of the interpolation's."""
    count = len(next(iter(rows.values())))
    fig = figure(12.2, 1.15 * len(rows) + 0.4)[0]
    fig.clear()
    grid = fig.add_gridspec(len(rows), count + 1, width_ratios=(*[1] * count, 4.3))
    for row, (name, pixels) in enumerate(rows.items()):
        for column, pixel in enumerate(pixels):
            axes = fig.add_subplot(grid[row, column])
            image(axes, pixel.permute(1, 2, 0).clamp(0, 1))
            if not column:
                axes.set_ylabel(name, rotation=0, ha="right", va="center", labelpad=8)
    relative_errors(fig.add_subplot(grid[:, count]), errors, predicted)
    return fig


def relative_errors(axes: Axes, errors: Mapping[str, float], predicted: float | None) -> None:
    """A bar for each method; the prediction is for the last one."""
    largest = max(errors.values())
    for row, (name, error) in enumerate(errors.items()):
        percent = 100 * error / errors["interpolation"]
        axes.barh(-row, percent, height=0.4, color=COLOURS[name], alpha=0.6 if name in BASELINES else 1)
        axes.text(1, -row + 0.26, name, va="bottom")
        axes.text(
            percent - 2,
            -row,
            f"{percent:.0f} %",
            ha="right",
            va="center",
            color="white" if COLOURS[name] == HERO else "black",
        )
    prediction(axes, predicted, 1 - len(errors), (0, -13))
    axes.set_yticks([])
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, 122 * largest / errors["interpolation"]), ylim=(0.4 - len(errors), 0.75))
    axes.set_xlabel("MSE, % of interpolation's")


def points(axes: Axes, across: Sequence[float], values: Float[np.ndarray, "seeds settings"], **style) -> None:
    """The mean over seeds as a line, and a dot for each seed."""
    axes.plot(across, values.mean(axis=0), linewidth=3, **style)
    for seed in values:
        axes.plot(across, seed, "o", color=style["color"], markersize=7, alpha=0.7)


def against_baselines(axes: Axes, across: Sequence[float], errors: Lines) -> None:
    """The error of each method; the baselines have no seeds."""
    for name, values in errors.items():
        points(axes, across, values, color=COLOURS[name], linestyle="-" if name == "MAE" else "--")
        label(axes, across[-2], values[:, -2].mean(), name, "black", (8, -6) if name == "MAE" else (-6, 6))
    axes.set(ylabel="MSE, standardised pixels", ylim=(0, 1.2))


def probes(
    axes: Axes,
    across: Sequence[float],
    accuracies: Lines,
    pixels: Mapping[str, float],
    predicted: tuple[float, float] | None,
) -> None:
    """The linear probe's accuracy by the number of labels, and a dotted line for that of pixels, in percent."""
    for (name, values), colour in zip(accuracies.items(), (PALETTE["vermilion"], HERO), strict=True):
        points(axes, across, 100 * values, color=colour, linestyle="-")
        y, align = (100 * values.max() + 0.7, "bottom") if colour == HERO else (100 * values[:, 0].min() - 1, "top")
        axes.text(across[0], y, f"MAE, {name}", color=colour, va=align)
        axes.axhline(pixels[name], color=colour, linestyle=":", linewidth=2)
        axes.text(1.01, pixels[name], "pixels", color=colour, va="center", transform=axes.get_yaxis_transform())
    if predicted is not None:
        prediction(axes, *predicted, (-12, 0))
    shown = [100 * value for values in accuracies.values() for value in values.flat] + list((predicted or ())[1:])
    lowest = min(30, min(shown) - 3)
    axes.set(ylabel=f"accuracy in % (axis from {lowest:.0f})", ylim=(lowest, max(shown) + 4))


def ratios(
    across: Sequence[float],
    errors: Lines,
    accuracies: Lines,
    pixels: Mapping[str, float],
    predicted: float | None = None,
) -> Figure:
    """By mask ratio: the error and the linear probe, each beside its baselines."""
    fig, panels = figure(11.5, 5.2, columns=2)
    against_baselines(panels[0], across, errors)
    probes(panels[1], across, accuracies, pixels, None if predicted is None else (across[-1], predicted))
    for axes, title in zip(panels, TITLES, strict=True):
        axes.set_title(title)
        axes.set(xlim=(10, 100), xlabel="patches hidden, %")
        axes.set_xticks(across)
    return fig


def depth(across: Sequence[int], errors: Lines, accuracies: Lines, pixels: Mapping[str, float]) -> Figure:
    """By the number of the decoder's blocks: the error and the linear probe, each beside its baselines."""
    fig, panels = figure(11.5, 5.0, columns=2)
    against_baselines(panels[0], across, errors)
    probes(panels[1], across, accuracies, pixels, None)
    for axes, title in zip(panels, TITLES, strict=True):
        axes.set_title(title)
        axes.set(xlim=(0.5, across[-1] + 0.5), xlabel="blocks of the decoder")
        axes.set_xticks(across)
    return fig


def normalised(
    drawing: Float[Tensor, "3 H W"], target: Float[Tensor, "3 H W"], accuracies: Mapping[str, Mapping[str, list[float]]]
) -> Figure:
    """A drawing, its normalised target, and the linear probe after training with each target; first, of pixels."""
    fig = figure(12.2, 5.0)[0]
    fig.clear()
    grid = fig.add_gridspec(1, 3, width_ratios=(1, 1, 1.7))
    for column, (pixels, title) in enumerate(
        ((drawing, "target: pixels"), (target / 6 + 0.5, "normalised target\nblack: -3, white: 3"))
    ):
        image(fig.add_subplot(grid[0, column]), pixels.permute(1, 2, 0).clamp(0, 1), title)
    axes = fig.add_subplot(grid[0, 2])
    ticks = {}
    for (name, found), colour in zip(accuracies.items(), (GREY, OTHER, HERO), strict=True):
        for group, values in enumerate(found.values()):
            row = -4 * group - len(ticks) // 2 - 1
            ticks[row] = name if name == "no network" else f"target: {name}"
            axes.barh(row, 100 * np.mean(values), height=0.6, color=colour, alpha=PALE)
            axes.plot([100 * value for value in values], [row] * len(values), "o", color=colour)
    for group, labels in enumerate(accuracies["no network"]):
        axes.text(0.5, -4 * group - 0.1, labels, va="center", weight="bold")
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.grid(visible=False, axis="y")
    axes.set(title="Logistic regression", xlabel="accuracy in %", xlim=(0, 60), ylim=(-7.5, 0.4))
    return fig


def labels(methods: Mapping[str, Mapping[str, Sequence[float]]], predicted: float | None = None) -> Figure:
    """Accuracy of each method by the number of labels, a dot a seed; the prediction is for the last with all."""
    fig, axes = figure(10.5, 4.6)
    colours = (PALETTE["orange"], GREY, OTHER, HERO)
    for row, (reached, colour) in enumerate(zip(methods.values(), colours, strict=True)):
        for (count, values), marker, lift in zip(reached.items(), ("o", "s"), (-0.17, 0.17), strict=True):
            mean = 100 * np.mean(values)
            axes.barh(row + lift, mean, height=0.28, color=colour, alpha=PALE)
            axes.plot([100 * value for value in values], [row + lift] * len(values), marker, color=colour, markersize=8)
            axes.text(
                max(100 * max(values), mean) + 1.5,
                row + lift,
                count,
                va="center",
                color=GREY,
            )
    prediction(axes, predicted, len(methods) - 0.83, (0, 12))
    axes.set_yticks(range(len(methods)), list(methods))
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, 80), ylim=(-0.5, len(methods) - 0.4), xlabel="accuracy on 1,594 new drawings, %")
    return fig


def masks(
    examples: Mapping[str, tuple[Float[Tensor, "3 H W"], Float[Tensor, "3 H W"]]],
    percent: Mapping[str, Mapping[str, float]],
) -> Figure:
    """One drawing under each kind of mask, and its reconstruction; below the error in percent of the mean colour's."""
    fig = figure(12.2, 5.9)[0]
    fig.clear()
    grid = fig.add_gridspec(2, 2 * len(examples), height_ratios=(1, 1.8))
    for column, (kind, pair) in enumerate(examples.items()):
        for part, (pixels, title) in enumerate(zip(pair, (kind, "MAE"), strict=True)):
            image(fig.add_subplot(grid[0, 2 * column + part]), pixels.permute(1, 2, 0).clamp(0, 1), title)
    axes = fig.add_subplot(grid[1, :])
    for column, found in enumerate(percent.values()):
        for position, (name, error) in enumerate(found.items()):
            x = column + 0.32 * position
            axes.bar(x, error, width=0.3, color=COLOURS[name], alpha=1 if name == "MAE" else 0.6, label=name)
            axes.text(x, error + 1, f"{error:.0f} %", ha="center")
        if not column:
            axes.legend(loc="upper left", frameon=False, ncols=2)
    axes.set_xticks([column + 0.16 for column in range(len(percent))], list(percent))
    axes.grid(visible=False, axis="x")
    highest = max(error for found in percent.values() for error in found.values())
    axes.set(ylabel="MSE, % of the mean colour's", ylim=(0, 1.3 * highest))
    return fig
