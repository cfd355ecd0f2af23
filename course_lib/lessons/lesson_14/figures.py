"""The figures of lesson 14: what goes from the way down to the way up, how maps grow, and what a mask is worth."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, bare, box, image, prediction
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
KINDS = {"U-Net": HERO, "U-Net without skips": OTHER}
BOXES = PALETTE["orange"]


def machine() -> Figure:
    """Four nets, fine maps above and coarse ones below, and what each hands over from the way down to the way up."""
    fig, panels = figure(12.2, 4.6, columns=4)
    nets = (
        ("U-Net", "the maps themselves", HERO, 1.0),
        ("SegNet", "where each maximum was", PALETTE["green"], 1.0),
        ("FCN", "scores of the classes", PALETTE["orange"], 0.35),
        ("no skips", "nothing", GREY, 1.0),
    )
    for axes, (name, handed, colour, thick) in zip(panels, nets, strict=True):
        bare(axes, (-1.2, 5.2), (-0.9, 4.6))
        axes.set_title(name)
        for level, side in enumerate((32, 16, 8, 4)):
            y, width = 3.7 - 1.2 * level, 0.55 + 1.15 * side / 32
            box(axes, 0.7, y, f"{side}", PALETTE["sky"], width=width, height=0.6, ink="black", fontsize=12)
            if level == 3:
                axes.annotate("", (2.8, y), (1.1, y), arrowprops={"arrowstyle": "-|>", "color": GREY, "lw": 2})
                box(axes, 3.3, y, f"{side}", PALETTE["sky"], width=width, height=0.6 * thick, ink="black", fontsize=12)
                continue
            box(axes, 3.3, y, f"{side}", PALETTE["sky"], width=width, height=0.6 * thick, ink="black", fontsize=12)
            for x, start, end in ((0.7, y - 0.35, y - 0.85), (3.3, y - 0.85, y - 0.35)):
                axes.annotate("", (x, end), (x, start), arrowprops={"arrowstyle": "-|>", "color": GREY, "lw": 2})
            if name != "no skips" and not (name == "FCN" and level == 0):
                arrow = FancyArrowPatch((0.75 + width / 2, y), (3.25 - width / 2, y), arrowstyle="-|>")
                arrow.set(mutation_scale=16, linewidth=4, color=colour)
                axes.add_patch(arrow)
        axes.text(2, -0.75, f"handed over:\n{handed}", ha="center", va="center", color=colour)
    return fig


def ways_up(pictures: Mapping[str, Float[np.ndarray, "h w"]]) -> Figure:
    """One small map made larger in several ways."""
    fig, panels = figure(12.2, 3.0, columns=len(pictures))
    for axes, (name, picture) in zip(panels, pictures.items(), strict=True):
        image(axes, picture, name)
    return fig


def sliding(
    picture: Float[Tensor, "H W"], best: Int[Tensor, "h w"], share: Float[Tensor, "h w"], window: int, labels: str
) -> Figure:
    """A large picture, and what a classifier of small ones says of each window of it; faint where it is unsure."""
    fig, (left, right) = figure(10.5, 4.7, columns=2)
    image(left, picture, "One picture, and one window")
    left.add_patch(Rectangle((-0.5, -0.5), window, window, fill=False, edgecolor=BOXES, linewidth=3))
    colours = np.array([[int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)] for code in CLASSES])[best + 1]
    right.imshow(colours * ((share - 0.5) * 2).clamp(min=0).numpy()[..., None])
    bare(right)
    right.set_title("What it says of each window", fontsize=14, loc="center", weight="normal")
    for digit in sorted(set(best[share > 0.9].tolist())):
        right.plot([], [], "s", color=CLASSES[digit + 1], markeredgecolor=GREY, label=f"{digit}", linestyle="none")
    legend = right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=14)
    legend.set_title(labels)
    return fig


def growing(picture: Float[Tensor, "H W"], digit: Float[Tensor, "H W"], true: Bool[Tensor, "H W"]) -> Figure:
    """While it learns: the picture, the probability of a digit at each pixel, and the true mask."""
    fig, panels = figure(6.9, 2.7, columns=3)
    image(panels[0], picture, "picture")
    panels[1].imshow(digit, cmap=SEQUENTIAL, vmin=0, vmax=1)
    bare(panels[1])
    panels[1].set_title("is it digit?", fontsize=14, loc="center", weight="normal")
    panels[2].imshow(true, cmap=SEQUENTIAL, vmin=0, vmax=1)
    bare(panels[2])
    panels[2].set_title("true mask", fontsize=14, loc="center", weight="normal")
    return fig


def skips(
    picture: Float[Tensor, "H W"],
    masks: Mapping[str, Int[Tensor, "H W"]],
    scores: Mapping[str, Mapping[str, Sequence[float]]],
    predicted: float | None = None,
) -> Figure:
    """Masks of one picture, and for every net two scores, a dot for each seed."""
    fig = figure(12.2, 4.8)[0]
    fig.clear()
    grid = fig.add_gridspec(2, 4, width_ratios=(1, 1, 2.3, 2.3))
    image(fig.add_subplot(grid[0, 0]), picture, "the picture")
    for position, (name, mask) in enumerate(masks.items(), start=1):
        axes = fig.add_subplot(grid[position // 2, position % 2])
        axes.imshow(mask, cmap=LABELS, vmin=0, vmax=10)
        bare(axes)
        axes.set_title(name, fontsize=14, loc="center", weight="normal")
    shared = None
    for position, (measure, nets) in enumerate(scores.items()):
        axes = fig.add_subplot(grid[:, 2 + position], sharey=shared)
        shared = shared or axes
        for row, (name, values) in enumerate(nets.items()):
            colour = KINDS.get(name, PALETTE["black"])
            axes.plot(values, [-row] * len(values), "o", color=colour, markersize=10)
            axes.text(min(values) - 0.01, -row + 0.28, name, color=colour, ha="center")
            if predicted is not None and position == 0 and name == "U-Net without skips":
                shown = min(max(predicted / 100, 0.56), 0.95)
                prediction(axes, shown, -row - 0.3, (0, -12), f"your prediction {predicted:.0f}")
        axes.set(title=f"{measure}, test", ylim=(-len(nets) + 0.2, 0.7), xlim=(0.5, 1) if position == 0 else (0.88, 1))
        axes.set_yticks([])
    return fig


def uncertainty(
    picture: Float[Tensor, "H W"],
    mask: Int[Tensor, "H W"],
    nats: Float[Tensor, "H W"],
    wrong: Bool[Tensor, "H W"],
    looked: Float[Tensor, " n"],
    found: Float[Tensor, " n"],
    position: float,
    predicted: float | None = None,
) -> Figure:
    """One picture with its mask, its entropy and its mistakes; how many of all mistakes one finds by the entropy."""
    fig = figure(12.2, 4.6)[0]
    fig.clear()
    grid = fig.add_gridspec(2, 3, width_ratios=(1, 1, 2.2))
    image(fig.add_subplot(grid[0, 0]), picture, "picture")
    for at, shown, name, how in (
        (grid[0, 1], mask, "its mask", {"cmap": LABELS, "vmin": 0, "vmax": 10}),
        (grid[1, 0], nats, "entropy", {"cmap": SEQUENTIAL, "vmin": 0}),
        (grid[1, 1], wrong, "wrong pixels", {"cmap": SEQUENTIAL, "vmin": 0, "vmax": 1}),
    ):
        axes = fig.add_subplot(at)
        axes.imshow(shown, **how)
        bare(axes)
        axes.set_title(name, fontsize=14, loc="center", weight="normal")
    axes = fig.add_subplot(grid[:, 2])
    axes.plot(100 * looked, 100 * found, color=HERO, linestyle="-")
    axes.plot([0, 25], [0, 25], color=GREY, linestyle=":")
    axes.text(17, 23.5, "at random", color=GREY)
    axes.text(10, 88, "the most uncertain first", color=HERO, fontsize=14)
    axes.axvline(100 * position, color=GREY, linewidth=1)
    prediction(axes, 100 * position, predicted)
    axes.set(title="Entropy knows where it is wrong", xlabel="% of all pixels looked at", xlim=(0, 25), ylim=(0, 103))
    axes.set_ylabel("% of the wrong pixels found")
    return fig


def things(
    scenes: Sequence[tuple[Float[Tensor, "H W"], list[tuple[list[int], int]]]],
    precision: Mapping[int, float],
) -> Figure:
    """Pictures with the boxes that were found, and average precision against the number of digits in a picture."""
    widths = (*[1] * len(scenes), 1.5)
    fig, panels = figure(12.2, 4.0, columns=len(scenes) + 1, gridspec_kw={"width_ratios": widths})
    for axes, (picture, found), name in zip(panels, scenes, ("few digits", "many digits"), strict=False):
        image(axes, picture, name)
        for (left, top, right, bottom), digit in found:
            axes.add_patch(Rectangle((left - 0.5, top - 0.5), right - left, bottom - top, fill=False, ec=BOXES, lw=2.5))
            axes.text(
                left,
                max(top, 7) - 1,
                f"{digit}",
                color="black",
                fontsize=12,
                va="bottom",
                bbox={"fc": BOXES, "ec": "none", "pad": 1},
            )
    axes = panels[-1]
    axes.plot(list(precision), list(precision.values()), color=HERO, linestyle="-", marker="o")
    axes.set(title="The closer, the worse", xlabel="digits in a picture of 96 x 96 pixels", ylim=(0, 1))
    axes.set_ylabel("average precision")
    axes.set_xticks(list(precision))
    return fig


def tiles(
    picture: Float[Tensor, "H W"],
    masks: Mapping[str, Int[Tensor, "H W"]],
    near: Mapping[str, float],
    away: Mapping[str, float],
) -> Figure:
    """A picture, its masks put together from tiles, and mean IoU near the seams and away from them."""
    widths = (*[1] * (len(masks) + 1), 1.5)
    fig, panels = figure(12.2, 3.4, columns=len(masks) + 2, gridspec_kw={"width_ratios": widths})
    image(panels[0], picture, "picture")
    for axes, (name, mask) in zip(panels[1:], masks.items(), strict=False):
        axes.imshow(mask, cmap=LABELS, vmin=0, vmax=10)
        bare(axes)
        axes.set_title(name, fontsize=14, loc="center", weight="normal")
    axes = panels[-1]
    lines = ((away, PALETTE["black"], "elsewhere", 0.13), (near, OTHER, "near seams", -0.04))
    for values, colour, name, above in lines:
        axes.plot(range(len(values)), list(values.values()), color=colour, linestyle="-", marker="o")
        axes.text(0.12, list(values.values())[0] + above, name, color=colour, va="top")
    axes.set_xticks(range(len(near)), [name.replace("overlap ", "") for name in near])
    axes.set(title="Mean IoU by overlap", ylim=(0, 1), xlabel="pixels of overlap")
    return fig


def swap(
    picture: Float[Tensor, "H W"],
    other: Float[Tensor, "H W"],
    masks: Mapping[str, Int[Tensor, "H W"]],
    fractions: Mapping[str, Sequence[float]],
) -> Figure:
    """Masks of a picture with one map taken from another; of its digit's pixels the shares that get each label."""
    fig = figure(12.2, 4.8)[0]
    fig.clear()
    grid = fig.add_gridspec(2, 3, width_ratios=(1, 1, 2.2))
    image(fig.add_subplot(grid[0, 0]), picture, "the picture")
    image(fig.add_subplot(grid[0, 1]), other, "the other")
    for position, (name, mask) in enumerate(masks.items()):
        axes = fig.add_subplot(grid[1, position])
        axes.imshow(mask, cmap=LABELS, vmin=0, vmax=10)
        found = mask[mask > 0].mode().values.item() - 1
        bare(axes)
        axes.set_title(f"other's {name}: a {found}", fontsize=14, loc="center", weight="normal")
    axes = fig.add_subplot(grid[:, 2])
    kinds = (("its own digit", HERO), ("the other's digit", OTHER), ("background", GREY))
    for row, values in enumerate(fractions.values()):
        left = 0.0
        for value, (name, colour) in zip(values, kinds, strict=True):
            axes.barh(-row, 100 * value, left=100 * left, color=colour, height=0.6)
            if value > 0.19:
                axes.text(100 * (left + value / 2), -row, name, ha="center", va="center", color="white", fontsize=12)
            left += value
    axes.set_yticks([-row for row in range(len(fractions))], list(fractions))
    axes.set(title="The smallest map says what", xlim=(0, 100), ylabel="map taken from another picture")
    axes.set_xlabel("% of the digit's pixels that are called so")
    axes.grid(visible=False)
    return fig
