"""The figures of lesson 14: masks and their mistakes, ways to enlarge a feature map, noise, and generated drawings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from torch import Tensor

from course_lib.data.icons import CATEGORIES
from course_lib.lessons.lesson_14 import icon_recipes
from course_lib.viz.marks import HERO, OTHER, bare, image, label, prediction
from course_lib.viz.style import GREY, PALETTE, SEQUENTIAL, figure

CLASSES = (  # background, and the digits 0 to 9
    "#1c1c1c",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
    "#FFFFFF",
    "#882255",
    "#999999",
)
LABELS = ListedColormap(CLASSES)
ICON_CLASSES = dict(zip(icon_recipes.CLASSES, CLASSES, strict=False))
ICON_LABELS = ListedColormap(list(ICON_CLASSES.values()))
NETWORKS = {"U-Net": HERO, "U-Net without skips": OTHER}
METHODS = {"noisy": GREY, "Gaussian blur": PALETTE["orange"], "your network": HERO}
BOXES = PALETTE["orange"]


def titled(axes: Axes, values: Any, title: str, **options) -> None:
    """Values of pixels that are no brightness, such as a mask."""
    axes.imshow(np.asarray(values), **options)
    bare(axes)
    axes.set_title(title, fontsize=12, loc="center", weight="normal")


def row_name(axes: Axes, name: str) -> None:
    """At the left of a row of images."""
    axes.set_ylabel(name, rotation=0, ha="right", va="center", labelpad=8)


def drawing(axes: Axes, pixels: Float[Tensor, "3 H W"]) -> None:
    """A drawing whose pixels go from -1 to 1."""
    image(axes, ((pixels + 1) / 2).clamp(0, 1).permute(1, 2, 0))


def opening(
    pixels: Float[Tensor, "B 3 H W"],
    masks: Mapping[str, Int[Tensor, "B H W"]],
    scores: Mapping[str, float],
    predicted: float | None = None,
) -> Figure:
    """Scenes above their ground truth and their prediction; at the right scores in %, and the colours of the classes.

    The prediction is for the first score.
    """
    count = len(pixels)
    fig = figure(12.2, 5.2)[0]
    fig.clear()
    grid = fig.add_gridspec(3, count + 1, width_ratios=(*[1] * count, 2.7))
    for row, name in enumerate(("image", *masks)):
        for column in range(count):
            axes = fig.add_subplot(grid[row, column])
            if name == "image":
                image(axes, pixels[column].permute(1, 2, 0))
            else:
                titled(axes, masks[name][column], "", cmap=ICON_LABELS, vmin=0, vmax=len(ICON_CLASSES) - 1)
            if not column:
                row_name(axes, name.replace(" ", "\n"))
    axes = fig.add_subplot(grid[:, count])
    for row, (name, value) in enumerate(scores.items()):
        axes.barh(-row, value, height=0.4, color=HERO, alpha=1 if row == 0 else 0.5)
        axes.text(1, -row + 0.22, name, va="bottom")
        ink = "black" if row else "white"
        axes.text(value - 2, -row, f"{value:.0f}", ha="right", va="center", color=ink)
    if predicted is not None:
        prediction(axes, predicted, 0.85, (-12 if predicted > 55 else 12, 0))
    axes.set(xlim=(0, 100), ylim=(0.6 - len(scores), 1.1), xlabel="mean IoU on test scenes, %", yticks=[])
    axes.grid(visible=False, axis="y")
    colours = [Patch(facecolor=colour, edgecolor=GREY, label=name) for name, colour in ICON_CLASSES.items()]
    fig.legend(handles=colours, loc="outside lower center", ncols=len(colours), handlelength=1)
    return fig


def ways_up(enlarged: Mapping[str, Float[np.ndarray, "h w"]]) -> Figure:
    """One small feature map enlarged in several ways."""
    fig, panels = figure(12.2, 2.8, columns=len(enlarged))
    for axes, (name, pixels) in zip(panels, enlarged.items(), strict=True):
        image(axes, pixels, name)
    return fig


def sliding(
    pixels: Float[Tensor, "H W"], best: Int[Tensor, "h w"], probability: Float[Tensor, "h w"], window: int, sure: float
) -> Figure:
    """A large image, and the most probable digit of each window of it, dark where the probability is low."""
    fig, (left, right) = figure(10.5, 4.7, columns=2)
    image(left, pixels, "one image, and one window")
    left.add_patch(Rectangle((-0.5, -0.5), window, window, fill=False, edgecolor=BOXES, linewidth=3))
    colours = np.array([[int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)] for code in CLASSES])[best + 1]
    brightness = ((probability - 0.5) * 2).clamp(min=0).numpy()[..., None]
    titled(right, colours * brightness, "most probable digit of each window")
    for digit in sorted(set(best[probability > sure].tolist())):
        right.plot([], [], "s", color=CLASSES[digit + 1], markeredgecolor=GREY, label=f"{digit}", linestyle="none")
    legend = right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    legend.set_title(f"p > {sure}")
    return fig


def growing(pixels: Float[Tensor, "B 3 H W"], probs: Float[Tensor, "B H W"], true: Bool[Tensor, "B H W"]) -> Figure:
    """During training: a row for each image, with the probability of an icon at each pixel, and the ground truth."""
    fig, panels = figure(6.9, 2.2 * len(pixels) + 0.3, rows=len(pixels), columns=3, squeeze=False)
    for row, (axes, *shown) in enumerate(zip(panels, pixels, probs, true, strict=True)):
        names = ("image", "p(icon)", "ground truth") if not row else ("", "", "")
        image(axes[0], shown[0].permute(1, 2, 0), names[0])
        for panel, values, name in zip(axes[1:], shown[1:], names[1:], strict=True):
            titled(panel, values, name, cmap=SEQUENTIAL, vmin=0, vmax=1)
    return fig


def skips(
    pixels: Float[Tensor, "H W"],
    masks: Mapping[str, Int[Tensor, "H W"]],
    scores: Mapping[str, Mapping[str, Sequence[float]]],
    predicted: float | None = None,
) -> Figure:
    """Masks of one image, and for every network two scores, a dot for each seed."""
    fig = figure(12.2, 5.6)[0]
    fig.clear()
    grid = fig.add_gridspec(2, 4, width_ratios=(1, 1, 2.3, 2.3))
    image(fig.add_subplot(grid[0, 0]), pixels, "image")
    for position, (name, mask) in enumerate(masks.items(), start=1):
        titled(fig.add_subplot(grid[position // 2, position % 2]), mask, name, cmap=LABELS, vmin=0, vmax=10)
    for position, (measure, networks) in enumerate(scores.items()):
        axes = fig.add_subplot(grid[:, 2 + position])
        for row, (name, values) in enumerate(networks.items()):
            colour = NETWORKS.get(name, PALETTE["black"])
            axes.plot([100 * value for value in values], [-row] * len(values), "o", color=colour)
            axes.text(100 * np.mean(values), -row + 0.22, name, color=colour, ha="center", va="bottom")
            if predicted is not None and position == 0 and name == "U-Net without skips":
                shown = min(max(predicted, 70), 95)
                prediction(axes, shown, -row - 0.3, (0, -10), f"your prediction: {predicted:.0f}")
        axes.set(ylim=(-len(networks) + 0.1, 0.7), xlim=(66, 97) if position == 0 else (89, 100), yticks=[])
        axes.set(title=measure, xlabel="%, a dot for each seed")
        axes.set_xticks(range(90, 101, 2) if position else range(70, 96, 5))
    return fig


def uncertainty(
    pixels: Float[Tensor, "H W"],
    mask: Int[Tensor, "H W"],
    nats: Float[Tensor, "H W"],
    wrong: Bool[Tensor, "H W"],
    checked: Float[Tensor, " n"],
    found: Float[Tensor, " n"],
    position: float,
    predicted: float | None = None,
) -> Figure:
    """One image with mask, entropy and errors; the fraction of all errors that the least certain pixels hold."""
    fig = figure(12.2, 5.4)[0]
    fig.clear()
    grid = fig.add_gridspec(2, 3, width_ratios=(1, 1, 2.6))
    image(fig.add_subplot(grid[0, 0]), pixels, "image")
    for at, shown, name, how in (
        (grid[0, 1], mask, "predicted mask", {"cmap": LABELS, "vmin": 0, "vmax": 10}),
        (grid[1, 0], nats, "entropy", {"cmap": SEQUENTIAL, "vmin": 0}),
        (grid[1, 1], wrong, "wrong pixels", {"cmap": SEQUENTIAL, "vmin": 0, "vmax": 1}),
    ):
        titled(fig.add_subplot(at), shown, name, **how)
    axes = fig.add_subplot(grid[:, 2])
    axes.plot(100 * np.asarray(checked), 100 * np.asarray(found), color=HERO, linestyle="-")
    axes.plot([0, 25], [0, 25], color=GREY, linestyle=":")
    axes.text(17, 24, "in random order", color=GREY, ha="center")
    axes.text(13, 84, "highest entropy first", color=HERO)
    axes.axvline(100 * position, color=GREY, linewidth=1, linestyle="-")
    prediction(axes, 100 * position, predicted)
    axes.set(title="Errors found by entropy", xlabel="pixels checked, %", xlim=(0, 25), ylim=(0, 103))
    axes.set_ylabel("wrong pixels found, %")
    return fig


def things(
    scenes: Sequence[tuple[Float[Tensor, "H W"], list[tuple[list[int], int]]]], precision: Mapping[int, float]
) -> Figure:
    """Images with the boxes that were found, and average precision against the number of digits in an image."""
    widths = (*[1] * len(scenes), 1.5)
    fig, panels = figure(11.0, 3.6, columns=len(scenes) + 1, gridspec_kw={"width_ratios": widths})
    for axes, (pixels, found) in zip(panels, scenes, strict=False):
        name = f"{len(found)} objects found"
        image(axes, pixels, name)
        for (left, top, right, bottom), digit in found:
            axes.add_patch(Rectangle((left - 0.5, top - 0.5), right - left, bottom - top, fill=False, ec=BOXES, lw=2.5))
            name_box = {"fc": BOXES, "ec": "none", "pad": 1}
            axes.text(left, max(top, 7) - 1, f"{digit}", color="black", va="bottom", bbox=name_box)
    axes = panels[-1]
    axes.plot(list(precision), list(precision.values()), color=HERO, linestyle="-", marker="o")
    axes.set(title="Crowded images", xlabel="digits in an image of 96 × 96 pixels", ylim=(0, 1))
    axes.set_ylabel("average precision")
    axes.set_xticks(list(precision))
    return fig


def swap(
    pixels: Float[Tensor, "H W"],
    other: Float[Tensor, "H W"],
    masks: Mapping[str, Int[Tensor, "H W"]],
    fractions: Mapping[str, Sequence[float]],
) -> Figure:
    """Masks of an image with one feature map taken from another; the fractions of its digit's pixels by their label."""
    fig = figure(12.2, 5.6)[0]
    fig.clear()
    grid = fig.add_gridspec(2, 3, width_ratios=(1, 1, 3))
    image(fig.add_subplot(grid[0, 0]), pixels, "image")
    image(fig.add_subplot(grid[0, 1]), other, "other image")
    for position, (name, mask) in enumerate(masks.items()):
        found = mask[mask > 0].mode().values.item() - 1
        title = f"other's\n{name}: a {found}"
        titled(fig.add_subplot(grid[1, position]), mask, title, cmap=LABELS, vmin=0, vmax=10)
    axes = fig.add_subplot(grid[:, 2])
    kinds = (("its own digit", HERO), ("the other's digit", OTHER), ("background", GREY))
    for row, values in enumerate(fractions.values()):
        left = 0.0
        for value, (name, colour) in zip(values, kinds, strict=True):
            axes.barh(-row, 100 * value, left=100 * left, color=colour, height=0.6)
            if value > 0.25:
                axes.text(100 * (left + value / 2), -row, name, ha="center", va="center", color="white")
            left += value
    axes.set_yticks([-row for row in range(len(fractions))], list(fractions))
    axes.set(title="Label by level of the swap", xlim=(0, 100), ylabel="feature map from the other image")
    axes.set_xlabel("pixels of the digit with this label, %")
    axes.grid(visible=False)
    return fig


def denoised(
    rows: Mapping[str, Float[Tensor, "B 3 H W"]], errors: Mapping[str, float], predicted: float | None = None
) -> Figure:
    """Rows of drawings, and bars of the mean squared error in percent of the blur's; the prediction is for the last."""
    count = len(next(iter(rows.values())))
    fig = figure(12.2, 5.0)[0]
    fig.clear()
    grid = fig.add_gridspec(len(rows), count + 1, width_ratios=(*[1] * count, 4.2))
    for row, (name, pixels) in enumerate(rows.items()):
        for column in range(count):
            axes = fig.add_subplot(grid[row, column])
            drawing(axes, pixels[column])
            if not column:
                row_name(axes, name.replace(" ", "\n"))
    axes = fig.add_subplot(grid[:, -1])
    percent = {name: 100 * error / errors["Gaussian blur"] for name, error in errors.items()}
    for row, (name, value) in enumerate(percent.items()):
        axes.barh(-row, value, height=0.4, color=METHODS[name])
        axes.text(0, -row + 0.24, f"{name}, MSE {errors[name]:.3f}", va="bottom")
        label(axes, value, -row, f"{value:.0f} %", "black", (6, 0))
    prediction(axes, predicted, 0.64 - len(percent), (12, 0))
    axes.set(xlim=(0, 1.4 * max(percent.values())), ylim=(0.4 - len(percent), 0.6), yticks=[])
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("MSE, % of the blur's")
    return fig


def noising(
    noisy: Mapping[int, Float[Tensor, "3 H W"]],
    signal: Float[Tensor, " T"],
    noise: Float[Tensor, " T"],
    predicted: float | None = None,
) -> Figure:
    """One drawing after t steps of noise; below, how much of signal and of noise there is after each step."""
    fig = figure(10.5, 5.2)[0]
    fig.clear()
    grid = fig.add_gridspec(2, len(noisy), height_ratios=(1, 1.7))
    for column, (t, pixels) in enumerate(noisy.items()):
        axes = fig.add_subplot(grid[0, column])
        drawing(axes, pixels)
        axes.set_title(f"t = {t}", fontsize=12, loc="center", weight="normal")
    axes = fig.add_subplot(grid[1, :])
    at = 3 * len(signal) // 4  # here the two curves are far apart
    for values, name, colour, offset in (
        (signal, r"signal: $\sqrt{\bar\alpha_t}$", HERO, (8, 6)),
        (noise, r"noise: $\sqrt{1-\bar\alpha_t}$", OTHER, (8, -8)),
    ):
        axes.plot(np.asarray(values), color=colour, linestyle="-")
        label(axes, at, values[at].item(), name, colour, offset, fontsize=13)
    if predicted is not None:
        prediction(axes, predicted, 0.08, (12, 0))
    axes.set(xlim=(0, len(signal)), ylim=(0, 1.05), xlabel="step t", ylabel="coefficient")
    axes.set_xticks([*noisy])
    return fig


def samples(
    images: Float[Tensor, "C K 3 H W"],
    pairs: Mapping[str, tuple[Float[Tensor, "3 H W"], Float[Tensor, "3 H W"]]],
) -> Figure:
    """A row of generated drawings for each category; at the right, some beside their nearest training drawing."""
    fig = figure(11.0, 5.32)[0]
    fig.clear()
    left, right = fig.add_gridspec(1, 2, width_ratios=(2.2, 1))
    rows, count = images.shape[:2]
    grid = left.subgridspec(rows, count, wspace=0.05, hspace=0.05)
    for row, name in enumerate(CATEGORIES):
        for column in range(count):
            axes = fig.add_subplot(grid[row, column])
            drawing(axes, images[row, column])
            if not column:
                row_name(axes, name.replace(" and", "\nand"))
    beside = right.subgridspec(len(pairs), 2)
    for row, (name, pair) in enumerate(pairs.items()):
        for column, pixels in enumerate(pair):
            axes = fig.add_subplot(beside[row, column])
            drawing(axes, pixels)
            axes.spines[:].set(visible=True, color=GREY)
            if not row:
                title = ("sample", "nearest\nin training")[column]
                axes.set_title(title, fontsize=12, loc="center", weight="normal")
            if not column:
                axes.set_xlabel(name, loc="left")
    return fig
