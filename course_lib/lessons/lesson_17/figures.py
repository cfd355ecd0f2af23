"""The figures of lesson 17: costs of attention, experts and their loads, filters and dreams of Boltzmann machines."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, PREDICTION, bare, image, label
from course_lib.viz.style import GREY, PALETTE, figure

KINDS = {"softmax": GREY, "local": PALETTE["orange"], "linear": HERO}


def cost(
    lengths: Sequence[int],
    counted: Mapping[str, Sequence[float]],
    bits: Mapping[str, Sequence[float]],
    crossing: int,
    predicted: float | None = None,
) -> Figure:
    """Operations per character over the length of the text; bits per character, a dot for each seed.

    `crossing` is the length from which linear attention needs fewer operations than softmax attention.
    """
    fig, (left, right) = figure(12.2, 5.6, columns=2, width_ratios=(1.4, 1))
    for name, values in counted.items():
        left.plot(lengths, [value / 1000 for value in values], "o-", color=KINDS[name])
        lift = {"linear": 1.13, "local": 0.86, "softmax": 1.0}[name]
        left.text(lengths[-1] * 1.1, lift * values[-1] / 1000, name, color=KINDS[name], va="center")
    left.axvline(crossing, color=HERO, linestyle=":", linewidth=1.5)
    left.text(1.08 * crossing, 190, f"{crossing}", color=HERO)
    if predicted is not None:
        left.axvline(max(predicted, 1), color=PREDICTION, linestyle="--", linewidth=2)
        left.text(
            max(predicted, 1), 2400, " your prediction ", color=PREDICTION, ha="left" if predicted < 400 else "right"
        )
    left.set(xscale="log", yscale="log", xlim=(lengths[0] * 0.7, lengths[-1] * 5), ylim=(170, 3000))
    left.set(xlabel="length of the text, characters", ylabel="thousand operations\nper character")
    left.set_title("Operations")
    left.set_xticks(lengths, [f"{length:,}" for length in lengths])
    left.set_yticks((250, 500, 1000, 2000), ("250", "500", "1,000", "2,000"))
    left.minorticks_off()
    for row, (name, values) in enumerate(reversed(bits.items())):
        right.plot(values, [row] * len(values), "o", color=KINDS[name], markersize=8)
    right.set_yticks(range(len(bits)), list(reversed(bits)))
    right.set(ylim=(-0.6, len(bits) - 0.4), xlabel="bits per character on test\n(lower is better)")
    right.set_title("Quality, a dot per seed")
    return fig


def flash(
    lengths: Sequence[int],
    held: Mapping[str, Sequence[int]],
    predicted: float | None = None,
) -> Figure:
    """How many scores are held at once, over the length of the text; the prediction is in MB, at the last length."""
    fig, axes = figure(12.2, 5.2)
    for (name, values), colour in zip(held.items(), (GREY, HERO), strict=True):
        axes.plot(lengths, values, "o-", color=colour)
        label(axes, lengths[-1], values[-1], name, colour, (10, 0))
    if predicted is not None and predicted > 0:
        axes.plot(lengths[-1], 1e6 * predicted / 4, "*", color=PREDICTION, markersize=18)
        label(axes, lengths[-1], 1e6 * predicted / 4, "your prediction", PREDICTION, (12, 0))
    axes.set(xscale="log", yscale="log", xlim=(lengths[0] * 0.8, lengths[-1] * 6))
    axes.set(xlabel="length of the text, characters", ylabel="numbers in the\nlargest tensor of scores")
    axes.set_xticks(lengths, [f"{length:,}" for length in lengths])
    axes.minorticks_off()
    axes.set_title("One head: the table of all scores, or one block of them")
    return fig


def experts(
    bits: Mapping[str, Sequence[float]],
    operations: Mapping[str, float],
    parameters: Mapping[str, float],
    loads: Mapping[str, Sequence[float]],
) -> Figure:
    """Bits per character of each variant, a dot per seed; the load of each expert with and without balance loss."""
    fig, (left, right) = figure(10.2, 5.0, columns=2, width_ratios=(1.25, 1))
    for row, (name, values) in enumerate(reversed(bits.items())):
        colour = GREY if name.startswith("dense") else HERO
        left.plot(values, [row] * len(values), "o", color=colour, markersize=8)
        costs = f"{operations[name] / 1000:.0f} k operations, {parameters[name] / 1000:.0f} k parameters"
        left.text(0.01, row + 0.17, f"{name}\n{costs}", transform=left.get_yaxis_transform(), linespacing=1.05)
    left.set_yticks(range(len(bits)), [""] * len(bits))
    left.tick_params(axis="y", length=0)
    left.set(ylim=(-0.35, len(bits) - 0.15), xlabel="bits per character on test (lower is better)")
    left.set_title("Quality, a dot per seed")
    count = len(next(iter(loads.values())))
    for shift, (name, values), colour in zip((-0.2, 0.2), loads.items(), (HERO, OTHER), strict=True):
        right.bar(np.arange(count) + shift, [100 * value for value in values], width=0.38, color=colour, label=name)
    right.axhline(100 / count, color=GREY, linestyle=":", linewidth=1.5)
    right.set_xticks(range(count), [f"{rank}" for rank in range(1, count + 1)])
    right.set(xlabel="expert, the most used one first", ylabel="choices, %")
    right.set_ylim(0, 1.35 * max(100 * max(values) for values in loads.values()))
    right.legend(loc="upper right")
    right.set_title("Load of each expert")
    return fig


def filters(weights: Float[Tensor, "N 8 8"]) -> Figure:
    """The weights of some hidden units, as images."""
    fig, axes = figure(6.6, 4.05)
    extent = float(weights.abs().quantile(0.98))
    drawn = axes.imshow(sheet(weights, 9), cmap="PuOr", vmin=-extent, vmax=extent)
    bare(axes)
    fig.colorbar(drawn, ax=axes, label="weight", shrink=0.85)
    axes.set_title("Hidden units and their 64 weights")
    return fig


def dreams(
    images: Float[Tensor, "N 8 8"],
    columns: int,
    recognised: Mapping[str, Sequence[float]],
    predicted: float | None = None,
) -> Figure:
    """Dreams, a column for each clamped label; how many of each machine are recognised, in %, a dot for each seed."""
    fig, (left, right) = figure(12.2, 4.6, columns=2, width_ratios=(1.45, 1))
    image(left, sheet(images, columns))
    left.set_title("Dreams, the clamped label above", pad=26)
    for column in range(columns):
        left.text(9 * column + 3.5, -1.2, f"{column}", ha="center", va="bottom")
    for row, (name, values) in enumerate(reversed(recognised.items())):
        right.plot(values, [row] * len(values), "o", color=GREY if "chance" in name else HERO, markersize=8)
    names = [name.replace(" with", "\nwith") for name in reversed(recognised)]
    right.set_yticks(range(len(recognised)), names)
    right.set(xlim=(0, 103), ylim=(-0.6, len(recognised) - 0.4), xlabel="recognised as their label, %")
    if predicted is not None:
        right.axvline(predicted, color=PREDICTION, linestyle="--", linewidth=2)
        right.text(
            predicted,
            len(recognised) - 0.55,
            " your prediction ",
            color=PREDICTION,
            ha="right" if predicted > 50 else "left",
        )
    return fig


def stack(
    first: Float[Tensor, "N 8 8"],
    second: Float[Tensor, "N 8 8"],
    dreams: Mapping[str, tuple[Tensor, Sequence[int], Sequence[bool]]],
    columns: int = 8,
) -> Figure:
    """What the units of two layers respond to, and dreams: images (N, 8, 8), their labels, and which are read so."""
    fig, (left, middle, right) = figure(12.2, 4.9, columns=3, width_ratios=(1, 1, 1.95))
    fig.get_layout_engine().set(wspace=0.05)
    filters = {"Weights, layer 1": (left, first), "Effect, layer 2": (middle, second)}
    for title, (axes, weights) in filters.items():
        extent = float(weights.abs().quantile(0.98))
        axes.imshow(sheet(weights, 4), cmap="PuOr", vmin=-extent, vmax=extent)
        bare(axes)
        axes.set_title(title, fontsize=12)
    image(right, sheet(torch.cat([images for images, *_ in dreams.values()]), columns, between=4))
    row = 0
    for name, (images, labels, agrees) in dreams.items():
        rows = -(-len(images) // columns)
        right.text(-4, 12 * row + 6 * rows - 4, name.replace(" ", "\n"), rotation=90, ha="center", va="center")
        for number, (written, agreed) in enumerate(zip(labels, agrees, strict=True)):
            text, colour = (f"{written}", HERO) if agreed else (f"({written})", OTHER)
            at = 9 * (number % columns) + 3.5, 12 * (row + number // columns) - 0.8
            right.text(*at, text, color=colour, ha="center", va="bottom")
        row += rows
    right.set_title("Dreams, each with its own label", fontsize=12, pad=20)
    return fig


def learned(errors: Sequence[float], images: Float[Tensor, "N 8 8"], columns: int) -> Figure:
    """The reconstruction error while a machine trained, and its dreams, a column for each clamped label."""
    fig, (left, right) = figure(12.2, 4.4, columns=2, width_ratios=(1, 1.5))
    part = max(1, len(errors) // 100)
    means = [float(np.mean(errors[first : first + part])) for first in range(0, len(errors), part)]
    left.plot(part * np.arange(len(means)), means, color=HERO, linestyle="-")
    left.set(ylim=(0, None), xlabel="step", ylabel="squared error per unit", title="Reconstruction error")
    image(right, sheet(images, columns))
    right.set_title("Dreams, the clamped label above", pad=26)
    for column in range(columns):
        right.text(9 * column + 3.5, -1.2, f"{column}", ha="center", va="bottom")
    return fig


def dreaming(images: Float[Tensor, "N 8 8"], columns: int, title: str) -> Figure:
    """While a machine trains: what it dreams."""
    fig, axes = figure(6.4, 2.4)
    image(axes, sheet(images, columns), title)
    return fig


def routed(loads: Sequence[Sequence[float]]) -> Figure:
    """While a mixture trains: the load of each expert in each block."""
    fig, panels = figure(6.4, 2.4, columns=len(loads), squeeze=False)
    for block, (axes, values) in enumerate(zip(panels[0], loads, strict=True), start=1):
        axes.bar(range(1, len(values) + 1), [100 * value for value in values], color=HERO)
        axes.axhline(100 / len(values), color=GREY, linestyle=":", linewidth=1.5)
        axes.set(ylim=(0, 100), xticks=range(1, len(values) + 1), xlabel="expert", ylabel="choices, %")
        axes.set_title(f"Block {block}", fontsize=12)
    return fig


def sheet(images: Float[Tensor, "N 8 8"], columns: int, *, between: int = 1) -> np.ndarray:
    """Small images beside each other, a pixel between them, and `between` pixels between rows."""
    height, width = images.shape[1:]
    rows = -(-len(images) // columns)
    paper = np.full((rows * (height + between) - between, columns * (width + 1) - 1), np.nan)
    for number, one in enumerate(images):
        top, left = number // columns * (height + between), number % columns * (width + 1)
        paper[top : top + height, left : left + width] = one.numpy()
    return paper
