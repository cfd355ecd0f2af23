"""The figures of lesson 11: an image as tokens, what a ViT learns from how much, and what it attends to."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.viz.marks import (
    HERO,
    OTHER,
    PREDICTION,
    THIRD,
    arrow,
    bare,
    box,
    image,
    patch_lines,
    prediction,
    seed_dots,
)
from course_lib.viz.style import GREY, PALETTE, figure


def guesses(
    images: Float[Tensor, "B H W 3"], probs: Float[Tensor, "B classes"], labels: Sequence[int], names: Sequence[str]
) -> Figure:
    """A row of images, under each the category with the largest probability; a wrong one says so."""
    fig, panels = figure(9.6, 1.9, columns=len(images), layout=None)
    fig.subplots_adjust(left=0.01, right=0.99, top=0.98, bottom=0.36, wspace=0.25)
    for axes, pixels, row, label in zip(panels, images, probs, labels, strict=True):
        said(axes, pixels, row, label, names)
    return fig


def said(axes: Axes, pixels: Tensor, probs: Tensor, label: int, names: Sequence[str]) -> None:
    """An image, and under it the category with the largest probability, in another colour if it is wrong."""
    best = int(probs.argmax())
    image(axes, pixels)
    name = names[best].replace(" and ", " &\n")
    text = f"{name}\n{100 * probs[best]:.0f} %"
    axes.set_xlabel(text, fontsize=11, labelpad=2, color="black" if best == int(label) else OTHER)


def seen(rows: Mapping[str, tuple[Tensor, Tensor, Sequence[int]]], names: Sequence[str]) -> Figure:
    """Under a title each a row of images with what a network takes them for."""
    count = len(next(iter(rows.values()))[0])
    fig, panels = figure(12.2, 2.45 * len(rows), rows=len(rows), columns=count, layout=None)
    fig.subplots_adjust(left=0.01, right=0.99, top=0.9, bottom=0.12, wspace=0.3, hspace=1.05)
    for (title, (images, probs, labels)), axes_of in zip(rows.items(), panels, strict=True):
        axes_of[0].set_title(title, fontsize=15, loc="left")
        for axes, pixels, row, label in zip(axes_of, images, probs, labels, strict=True):
            said(axes, pixels, row, label, names)
    return fig


def mechanism(
    picture: Float[Tensor, "H W"], patches: Float[Tensor, "N p p"], probs: Float[Tensor, " classes"]
) -> Figure:
    """The image, its patches as a row of tokens with a class token in front, and what comes out of the encoder."""
    fig = figure(12.2, 4.6, layout=None)[0]
    fig.clear()
    side = round(len(patches) ** 0.5)
    whole = fig.add_axes((0.005, 0.05, 0.2, 0.58))
    image(whole, picture)
    patch_lines(whole, picture.shape[0], side)
    whole.set_title("an image, 16 patches", fontsize=14, loc="center")
    left, width = 0.215, 0.785
    words = fig.add_axes((left, 0, width, 1))
    tall = 17.6 * 4.6 / (12.2 * width)  # so that squares are square
    words.set(xlim=(0, 17.6), ylim=(0, tall))
    bare(words)
    for number in range(len(patches) + 1):
        x = 0.55 + number
        if number:
            patch, extent = patches[number - 1].numpy(), (x - 0.43, x + 0.43, 0.5, 1.36)
            words.imshow(patch, extent=extent, cmap="gray", vmin=0, vmax=1, aspect="auto")
            arrow(words, (x, 1.4), (x, 2.0), width=1.2)
            box(words, x, 2.35, "E", PALETTE["orange"], width=0.7, height=0.62, ink="black", fontsize=12)
        else:
            box(words, x, 2.35, "class", OTHER, width=0.94, height=0.62, fontsize=11)
        arrow(words, (x, 2.7), (x, 3.2), width=1.2)
        box(words, x, 3.55, f"+ {number}", PALETTE["sky"], width=0.88, height=0.62, ink="black", fontsize=12)
        arrow(words, (x, 3.9), (x, 4.5), width=1.2)
    words.set(xlim=(0, 17.6), ylim=(0, tall))
    text = "the encoder of a Transformer: every token attends to every token"
    box(words, 8.55, 5.0, text, HERO, width=16.6, height=0.9, fontsize=15)
    arrow(words, (0.55, 5.5), (0.55, 6.1), width=1.2)
    words.text(1.1, 5.85, "the head reads the class token alone", color=GREY, va="center")
    best = int(probs.argmax())
    for digit, probability in enumerate(probs.tolist()):
        x = 0.55 + 0.9 * digit
        colour = HERO if digit == best else GREY
        words.bar(x, 0.04 + 1.0 * probability, bottom=6.85, width=0.6, color=colour)
        words.text(x, 6.5, str(digit), ha="center", va="center")
    words.text(0.95 + 0.9 * best, 7.4, f"  {100 * probs[best]:.0f} %", fontsize=14, va="center")
    words.text(17.0, 5.85, "+ 0 to + 16: learned positions", color=GREY, ha="right", va="center")
    return fig


def data(
    new: Mapping[str, Mapping[str, Sequence[float]]],
    known: Mapping[str, Mapping[str, Sequence[float]]],
    yours: Mapping[str, float],
    predicted: float | None = None,
) -> Figure:
    """Accuracy by the number of training drawings, on new drawings and on those of the training; yours are stars."""
    fig, (left, right) = figure(12.2, 4.9, columns=2)
    counts = list(next(iter(new.values())))
    for axes, by_count, title in ((left, new, "New drawings"), (right, known, "Training drawings")):
        for (name, found), colour in zip(by_count.items(), (HERO, OTHER), strict=True):
            means = [100 * np.mean(found[count]) for count in counts]
            axes.plot(range(len(counts)), means, color=colour, linestyle="-", linewidth=2)
            for x, count in enumerate(counts):
                seed_dots(axes, x, [100 * v for v in found[count]], colour)
            axes.text(len(counts) - 0.9, means[-1], name, color=colour, fontsize=15, weight="bold", va="center")
        axes.set_xticks(range(len(counts)), [f"{count} drawings" for count in counts])
        axes.set(xlim=(-0.3, len(counts) - 0.3), ylabel="accuracy, %")
        axes.set_title(title)
    prediction(left, 0, predicted, (14, 0))
    for (name, value), colour in zip(yours.items(), (HERO, OTHER), strict=False):
        left.plot([len(counts) - 1.3], [100 * value], "*", color=colour, markersize=16)
        left.text(len(counts) - 1.22, 100 * value, f"your {name}", color=colour, va="center")
    return fig


def augmentation(rows: Mapping[str, tuple[Sequence[float], Sequence[float]]], predicted: float | None = None) -> Figure:
    """For each recipe a row: accuracy on new drawings (filled dots) and on the training drawings (open dots)."""
    fig, axes = figure(11, 3.4)
    for row, (new, old) in enumerate(rows.values()):
        axes.plot([100 * v for v in new], [-row] * len(new), "o", color=HERO, markersize=10)
        axes.plot([100 * v for v in old], [-row] * len(old), "o", color=OTHER, markersize=10, fillstyle="none")
    first = [100 * np.mean(values) for values in next(iter(rows.values()))]
    for value, colour, text in zip(first, (HERO, OTHER), ("new drawings", "training drawings"), strict=True):
        axes.axvline(value, color=colour, linestyle=":", linewidth=1.2)
        axes.text(value, 0.55, text, color=colour, ha="center")
    axes.set_yticks([-row for row in range(len(rows))], list(rows))
    axes.set(xlabel="accuracy, %", ylim=(-len(rows) + 0.5, 0.85))
    axes.set_title("1,000 training drawings", pad=12)
    prediction(axes, predicted, 1 - len(rows), (0, 12))
    return fig


def rollouts(
    picture: Float[Tensor, "H W"],
    found: Float[Tensor, "h w"],
    half: Float[Tensor, "H W"],
    dropped: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    predicted: float | None = None,
) -> Figure:
    """An image, its rollout, the half that is kept; and the accuracy when patches are dropped in each order."""
    fig = figure(12.2, 5.6)[0]
    fig.clear()
    grid = fig.add_gridspec(3, 2, width_ratios=(1, 3.4))
    for row, title in enumerate(("an image", "its rollout", "half of it dropped")):
        axes = fig.add_subplot(grid[row, 0])
        image(axes, half if row == 2 else picture)
        axes.set_title(title, fontsize=13, loc="center", weight="normal")
        if row == 1:
            side = picture.shape[0]
            axes.imshow(found.numpy(), cmap="magma", extent=(-0.5, side - 0.5, side - 0.5, -0.5), alpha=0.78, vmin=0)
    axes = fig.add_subplot(grid[:, 1])
    looks = ((HERO, 3.5), (THIRD, 2), (GREY, 2), (OTHER, 2))
    for values, (colour, width) in zip(curves.values(), looks, strict=True):
        axes.plot(dropped, [100 * v for v in values], color=colour, linestyle="-", linewidth=width, marker="o")
    positions = ((9.4, 96, "left"), (6.4, 79, "center"), (4.1, 63, "center"), (3.5, 25, "right"))
    for name, (x, y, side), (colour, _) in zip(curves, positions, looks, strict=True):
        axes.text(x, y, name.replace("rollout's ", "rollout's\n"), color=colour, fontsize=14, ha=side, va="center")
    prediction(axes, 8, predicted)
    axes.set(xlabel="patches dropped, of 16", ylabel="accuracy, %", ylim=(0, 103))
    axes.set_xticks(dropped)
    axes.set_title("Dropping patches in four orders")
    return fig


def shuffled(
    before: Float[Tensor, "H W"],
    after: Float[Tensor, "H W"],
    right: Mapping[str, float],
    predicted: float | None = None,
) -> Figure:
    """A digit, its patches in another order, and the accuracy on 1,000 such images."""
    fig = figure(12.2, 3.9)[0]
    fig.clear()
    grid = fig.add_gridspec(1, 3, width_ratios=(1, 1, 2.6))
    for column, (picture, title) in enumerate(((before, "as it is"), (after, "shuffled"))):
        axes = fig.add_subplot(grid[0, column])
        image(axes, picture)
        patch_lines(axes, picture.shape[0], 4)
        axes.set_title(title, fontsize=14, loc="center", weight="normal")
    axes = fig.add_subplot(grid[0, 2])
    for row, (name, share) in enumerate(right.items()):
        axes.barh(-row, 100 * share, height=0.5, color=HERO if "stay" in name else PALETTE["sky"])
        axes.text(0.5, -row + 0.31, name, fontsize=14, va="bottom")
        axes.text(100 * share + 1.5, -row, f"{100 * share:.0f} %", va="center", fontsize=14)
    if predicted is not None:
        row = list(right).index("shuffled, positions stay")
        axes.plot([predicted], [-row], "*", color=PREDICTION, markersize=18)
        axes.text(
            predicted,
            -row + 0.31,
            "your prediction",
            color=PREDICTION,
            fontsize=14,
            ha="left" if predicted < 60 else "right",
            va="bottom",
        )
    axes.set_yticks([])
    axes.set(xlim=(0, 113), ylim=(-len(right) + 0.55, 0.85), xlabel="accuracy, %")
    axes.set_title("Digits with their patches in another order")
    return fig


def paper(rows: Sequence[tuple[str, float, float, bool]]) -> Figure:
    """(name, TPUv3-core-days, accuracy on ImageNet, whether it is a ViT) of table 2, Dosovitskiy et al. 2021."""
    fig, axes = figure(10.5, 4.6)
    for name, days, accuracy, is_vit in rows:
        colour, early = HERO if is_vit else OTHER, days < 1000
        axes.plot([days], [accuracy], "o", color=colour, markersize=12)
        axes.annotate(
            name,
            (days, accuracy),
            (12, 0) if early else (8, -20),
            textcoords="offset points",
            color=colour,
            fontsize=14,
            ha="left" if early else "right",
            va="center",
        )
    axes.set_xscale("log")
    axes.set(xlabel="TPUv3-core-days of pre-training", ylabel="ImageNet accuracy, %")
    axes.set(xlim=(150, 20_000), ylim=(84.8, 89.0))
    axes.set_xticks([200, 500, 1000, 2000, 5000, 10_000], ["200", "500", "1,000", "2,000", "5,000", "10,000"])
    axes.minorticks_off()
    axes.set_title("Accuracy and cost, table 2 of the paper")
    return fig


def inside(
    similar: Float[Tensor, "h w h w"],
    distances: Float[Tensor, "L H"],
    numbers: Float[Tensor, "L H"],
    uniform: tuple[float, int],
    patch_size: int,
) -> Figure:
    """How similar the positions are, a small map for each patch; how far each head attends, and to how many tokens."""
    fig, (left, middle, right) = figure(12.2, 5.0, columns=3, gridspec_kw={"width_ratios": (1.15, 1, 1)})
    height, width = similar.shape[:2]
    canvas = np.full((height * (height + 1), width * (width + 1)), np.nan)
    for row in range(height):
        for column in range(width):
            top, start = row * (height + 1), column * (width + 1)
            canvas[top : top + height, start : start + width] = similar[row, column]
    shown = left.imshow(canvas, cmap="viridis", vmin=-0.2, vmax=0.6)
    bare(left)
    left.set_title("Positions", fontsize=15)
    fig.colorbar(shown, ax=left, shrink=0.7, location="bottom", label="cosine with every other position")
    even, tokens = uniform
    panels = (
        (middle, distances, "distance, pixels", ((even, "equal weights"), (patch_size, "next patch only")), even + 3),
        (right, numbers, "effective number of tokens", ((tokens, "equal weights"), (1, "one token")), tokens + 4),
    )
    end = len(distances) + 0.5
    for axes, values, words, marks, top in panels:
        for block, heads in enumerate(values.tolist(), start=1):
            seed_dots(axes, block, heads, HERO, markersize=10, alpha=0.8)
        for y, text in marks:
            axes.plot([0.5, end], [y, y], color=GREY, linestyle=":", linewidth=1.5)
            axes.text(end, y + top / 60, text, color=GREY, va="bottom", ha="right", fontsize=12)
        axes.set(xlabel="block", ylabel=words, xlim=(0.5, end), ylim=(0, top))
        axes.set_xticks(range(1, len(values) + 1))
    middle.set_title("How far a head attends", fontsize=15)
    right.set_title("To how many tokens", fontsize=15)
    return fig


def larger(
    small: Float[Tensor, "S S"],
    large: Float[Tensor, "L L"],
    patch_size: int,
    curves: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    predicted: float | None = None,
) -> Figure:
    """A digit in two sizes with its patches, and the accuracy by size; the prediction is for the large one."""
    fig = figure(12.2, 4.4)[0]
    fig.clear()
    grid = fig.add_gridspec(1, 3, width_ratios=(len(small), len(large), 92))
    for column, pixels in enumerate((small, large)):
        axes, side = fig.add_subplot(grid[0, column]), len(pixels) // patch_size
        image(axes, pixels)
        patch_lines(axes, len(pixels), side)
        axes.set_title(f"{side} x {side} patches", fontsize=14, loc="center", weight="normal")
    axes = fig.add_subplot(grid[0, 2])
    for (name, (sizes, right)), colour in zip(curves.items(), (HERO, OTHER, GREY), strict=True):
        axes.plot(sizes, [100 * value for value in right], color=colour, linestyle="-", marker="o")
        axes.text(sizes[-1] + 0.6, 100 * right[-1], name, color=colour, fontsize=14, va="center")
    prediction(axes, len(large), predicted, (-12, 0))
    axes.set(xlabel="pixels a side", ylabel="accuracy, %", xlim=(27, 56), ylim=(0, 103))
    axes.set_xticks([28, 36, 44])
    axes.set_title("Digits larger than in training")
    return fig
