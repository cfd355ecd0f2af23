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
    fig, panels = figure(9.6, 2.1, columns=len(images), layout=None)
    fig.subplots_adjust(left=0.01, right=0.99, top=0.98, bottom=0.4, wspace=0.25)
    for axes, pixels, row, label in zip(panels, images, probs, labels, strict=True):
        said(axes, pixels, row, label, names)
    return fig


def said(axes: Axes, pixels: Tensor, probs: Tensor, label: int, names: Sequence[str]) -> None:
    """An image, and under it the category with the largest probability, in another colour if it is wrong."""
    best = int(probs.argmax())
    image(axes, pixels)
    name = names[best].replace(" and ", " &\n")
    text = f"{name}\n{100 * probs[best]:.0f} %"
    axes.set_xlabel(text, labelpad=2, color="black" if best == int(label) else OTHER)


def seen(rows: Mapping[str, tuple[Tensor, Tensor, Sequence[int]]], names: Sequence[str]) -> Figure:
    """Under a title each a row of images with what a network takes them for."""
    count = len(next(iter(rows.values()))[0])
    fig, panels = figure(12.2, 2.8 * len(rows), rows=len(rows), columns=count, layout=None)
    fig.subplots_adjust(left=0.01, right=0.99, top=0.92, bottom=0.16, wspace=0.3, hspace=1.0)
    for (title, (images, probs, labels)), axes_of in zip(rows.items(), panels, strict=True):
        axes_of[0].set_title(title, fontsize=13, loc="left")
        for axes, pixels, row, label in zip(axes_of, images, probs, labels, strict=True):
            said(axes, pixels, row, label, names)
    return fig


def mechanism(
    picture: Float[Tensor, "H W"], patches: Float[Tensor, "N p p"], probs: Float[Tensor, " classes"]
) -> Figure:
    """The image, its patches as a row of tokens with a class token in front, and what comes out of the encoder."""
    fig = figure(12.2, 4.5, layout=None)[0]
    fig.clear()
    side = round(len(patches) ** 0.5)
    whole = fig.add_axes((0.005, 0.04, 0.2, 0.55))
    image(whole, picture, "an image,\n16 patches")
    patch_lines(whole, picture.shape[0], side)
    left, width = 0.215, 0.785
    words = fig.add_axes((left, 0, width, 1))
    tall = 17.9 * 4.5 / (12.2 * width)  # so that squares are square
    words.set(xlim=(0, 17.9), ylim=(0, tall))
    bare(words)
    for number in range(len(patches) + 1):
        x = 0.7 + number + (0.15 if number else 0)
        if number:
            patch, extent = patches[number - 1].numpy(), (x - 0.43, x + 0.43, 0.5, 1.36)
            words.imshow(patch, extent=extent, cmap="gray", vmin=0, vmax=1, aspect="auto")
            arrow(words, (x, 1.4), (x, 2.0), width=1.2)
            box(words, x, 2.35, "E", PALETTE["orange"], width=0.7, height=0.62, ink="black")
        else:
            box(words, x, 2.35, "class", OTHER, width=1.3, height=0.62)
        arrow(words, (x, 2.7), (x, 3.2), width=1.2)
        box(words, x, 3.55, f"{number}", PALETTE["sky"], width=0.88, height=0.62, ink="black")
        arrow(words, (x, 3.9), (x, 4.5), width=1.2)
    words.set(xlim=(0, 17.9), ylim=(0, tall))
    text = "the encoder of a Transformer: every token attends to every token"
    box(words, 8.8, 5.0, text, HERO, width=17.5, height=0.9, fontsize=13)
    arrow(words, (0.7, 5.5), (0.7, 6.1), width=1.2)
    words.text(1.1, 5.85, "the head reads the class token alone", color=GREY, va="center")
    best = int(probs.argmax())
    for digit, probability in enumerate(probs.tolist()):
        x = 0.7 + 0.9 * digit
        colour = HERO if digit == best else GREY
        words.bar(x, 0.04 + 1.0 * probability, bottom=6.85, width=0.6, color=colour)
        words.text(x, 6.5, str(digit), ha="center", va="center")
    words.text(1.1 + 0.9 * best, 7.4, f"  {100 * probs[best]:.0f} %", va="center")
    words.text(17.5, 5.6, "0 to 16: learned\npositions, added", color=GREY, ha="right", va="bottom")
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
            axes.text(len(counts) - 0.9, means[-1], name, color=colour, fontsize=13, weight="bold", va="center")
        axes.set_xticks(range(len(counts)), counts)
        axes.set(xlim=(-0.3, len(counts) - 0.3), xlabel="number of training drawings", ylabel="accuracy, %")
        axes.set_title(title)
    prediction(left, 0, predicted, (14, 0))
    for (name, value), colour in zip(yours.items(), (HERO, OTHER), strict=False):
        left.plot([len(counts) - 1.3], [100 * value], "*", color=colour, markersize=16)
        left.text(len(counts) - 1.18, 100 * value, f"your {name}", color=colour, va="center")
    return fig


def augmentation(rows: Mapping[str, tuple[Sequence[float], Sequence[float]]], predicted: float | None = None) -> Figure:
    """For each recipe a row: accuracy on new drawings (filled dots) and on the training drawings (open dots)."""
    fig, axes = figure(11, 3.4)
    for row, (new, old) in enumerate(rows.values()):
        axes.plot([100 * v for v in new], [-row] * len(new), "o", color=HERO, markersize=10)
        axes.plot([100 * v for v in old], [-row] * len(old), "o", color=OTHER, markersize=10, fillstyle="none")
    first = [100 * np.mean(values) for values in next(iter(rows.values()))]
    for value, colour, text in zip(first, (HERO, OTHER), ("new drawings", "training drawings"), strict=True):
        axes.plot([value, value], [0.45, 0.5 - len(rows)], color=colour, linestyle=":", linewidth=1.2)
        axes.text(value, 0.55, text, color=colour, ha="center")
    axes.set_yticks([-row for row in range(len(rows))], [name.replace("mirrors, ", "mirrors,\n") for name in rows])
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
    fig = figure(12.2, 5.9)[0]
    fig.clear()
    grid = fig.add_gridspec(3, 2, width_ratios=(1, 3.4))
    for row, title in enumerate(("an image", "its rollout", "half of it dropped")):
        axes = fig.add_subplot(grid[row, 0])
        image(axes, half if row == 2 else picture)
        axes.set_title(title, fontsize=12, loc="center", weight="normal")
        if row == 1:
            side = picture.shape[0]
            axes.imshow(found.numpy(), cmap="magma", extent=(-0.5, side - 0.5, side - 0.5, -0.5), alpha=0.78, vmin=0)
    axes = fig.add_subplot(grid[:, 1])
    looks = ((HERO, 3.5), (THIRD, 2), (GREY, 2), (OTHER, 2))
    for values, (colour, width) in zip(curves.values(), looks, strict=True):
        axes.plot(dropped, [100 * v for v in values], color=colour, linestyle="-", linewidth=width, marker="o")
    positions = ((9.4, 96, "left"), (6.4, 81, "center"), (4.1, 63, "center"), (3.6, 25, "right"))
    for name, (x, y, side), (colour, _) in zip(curves, positions, looks, strict=True):
        axes.text(x, y, name.replace("mean rollout's ", "mean\nrollout's\n"), color=colour, ha=side, va="center")
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
        axes.set_title(title, fontsize=12, loc="center", weight="normal")
    axes = fig.add_subplot(grid[0, 2])
    for row, (name, share) in enumerate(right.items()):
        axes.barh(-row, 100 * share, height=0.5, color=HERO if "stay" in name else PALETTE["sky"])
        axes.text(0.5, -row + 0.31, name, va="bottom")
        axes.text(100 * share + 1.5, -row, f"{100 * share:.0f} %", va="center")
    if predicted is not None:
        row = list(right).index("shuffled, positions stay")
        axes.plot([predicted], [-row], "*", color=PREDICTION, markersize=18)
        beyond = predicted > 75
        x = predicted - 4 if beyond else max(predicted + 4, 100 * right["shuffled, positions stay"] + 13)
        axes.text(x, -row, "your prediction", color=PREDICTION, ha="right" if beyond else "left", va="center")
    axes.set_yticks([])
    axes.set(xlim=(0, 113), ylim=(-len(right) + 0.55, 0.85), xlabel="accuracy, %")
    axes.set_title("Digits with their patches in another order")
    return fig


def paper(rows: Sequence[tuple[str, float, float, bool]]) -> Figure:
    """(name, TPUv3-core-days, accuracy on ImageNet, whether it is a ViT) of table 2, Dosovitskiy et al. 2021."""
    fig, axes = figure(10.5, 4.6)
    for name, days, accuracy, is_vit in rows:
        colour = HERO if is_vit else OTHER
        axes.plot([days], [accuracy], "o", color=colour, markersize=10)
        place, side = ((days, accuracy), "left") if is_vit else ((16_000, accuracy - 0.28), "right")
        axes.annotate(name, place, (8 * is_vit, 0), textcoords="offset points", color=colour, ha=side, va="center")
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
    fig = figure(12.2, 5.1)[0]
    fig.clear()
    grid = fig.add_gridspec(1, 2, width_ratios=(1, 2.3))
    left = fig.add_subplot(grid[0])
    middle, right = (fig.add_subplot(cell) for cell in grid[1].subgridspec(1, 2, wspace=0.08))
    height, width = similar.shape[:2]
    canvas = np.full((height * (height + 1), width * (width + 1)), np.nan)
    for row in range(height):
        for column in range(width):
            top, start = row * (height + 1), column * (width + 1)
            canvas[top : top + height, start : start + width] = similar[row, column]
    shown = left.imshow(canvas, cmap="viridis", vmin=-0.2, vmax=0.6)
    bare(left)
    left.set_title("Positions", fontsize=13)
    fig.colorbar(shown, ax=left, shrink=0.8, pad=0.03, location="bottom", label="cosine similarity")
    even, tokens = uniform
    panels = (
        (middle, distances, "distance, pixels", ((even, "equal weights"), (patch_size, "next patch only")), even + 3),
        (right, numbers, "effective number", ((tokens, "equal weights"), (1, "one token")), tokens + 8),
    )
    end = len(distances) + 0.5
    for axes, values, words, marks, top in panels:
        for block, heads in enumerate(values.tolist(), start=1):
            seed_dots(axes, block, heads, HERO, alpha=0.8)
        for y, text in marks:
            axes.plot([0.5, end], [y, y], color=GREY, linestyle=":", linewidth=1.5)
            axes.text(end, y + top / 60, text, color=GREY, va="bottom", ha="right")
        axes.set(xlabel="block", ylabel=words, xlim=(0.5, end), ylim=(0, top))
        axes.set_xticks(range(1, len(values) + 1))
        axes.locator_params(axis="y", nbins=5)
    middle.set_title("How far heads attend", fontsize=13)
    right.set_title("To how many tokens", fontsize=13)
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
        axes.set_title(f"{side} x {side} patches", fontsize=12, loc="center", weight="normal")
    axes = fig.add_subplot(grid[0, 2])
    for (name, (sizes, right)), colour in zip(curves.items(), (HERO, OTHER, GREY), strict=True):
        axes.plot(sizes, [100 * value for value in right], color=colour, linestyle="-", marker="o")
        axes.text(sizes[-1] + 0.6, 100 * right[-1], name, color=colour, va="center")
    prediction(axes, len(large), predicted, (-12, 0))
    axes.set(xlabel="pixels a side", ylabel="accuracy, %", xlim=(27, 54), ylim=(0, 103))
    axes.set_xticks([28, 36, 44])
    axes.set_title("Digits larger than in training")
    return fig
