"""The figures of lesson 13: ruins and repairs, what they teach, and what they cost."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, box, image, prediction
from course_lib.viz.style import GREY, PALETTE, figure


def repairs(*rows: Float[Tensor, "B H W"] | Sequence[str]) -> Figure:
    """Rows of pictures, their names last."""
    *pictures, names = rows
    count = len(pictures[0])
    fig = figure(1.25 * count + 1.6, 1.25 * len(pictures), layout=None)[0]
    fig.clear()
    left = 1.6 / (1.25 * count + 1.6)
    grid = fig.add_gridspec(
        len(pictures), count, left=left, right=0.99, top=0.99, bottom=0.01, wspace=0.05, hspace=0.05
    )
    for row, (several, name) in enumerate(zip(pictures, names, strict=True)):
        for column, picture in enumerate(several):
            axes = fig.add_subplot(grid[row, column])
            image(axes, picture)
            if not column:
                axes.set_ylabel(
                    name.replace(" paints", "\npaints").replace(" sees", "\nsees"),
                    fontsize=13,
                    rotation=0,
                    ha="right",
                    va="center",
                    labelpad=8,
                )
    return fig


def mechanism(
    picture: Float[Tensor, "H W"], seen: Float[Tensor, "H W"], painted: Float[Tensor, "H W"], visible: int, patches: int
) -> Figure:
    """What is left of a picture goes through the encoder, all places through the decoder; the way of MAE's figure 1."""
    fig = figure(12.2, 4.6, layout=None)[0]
    fig.clear()
    for left, pixels, title in (
        (0.01, picture, "the picture"),
        (0.21, seen, f"{visible} of {patches} patches stay"),
        (0.81, painted, "painted"),
    ):
        axes = fig.add_axes((left, 0.25, 0.18, 0.5))
        image(axes, pixels)
        axes.set_title(title, fontsize=14, loc="center", weight="normal")
    flow = fig.add_axes((0.4, 0, 0.4, 1))
    flow.set(xlim=(0, 10), ylim=(0, 10))
    flow.axis("off")
    box(flow, 2.5, 5, "encoder", HERO, width=3.2, height=6.5, fontsize=17)
    box(flow, 7.9, 5, "decoder", OTHER, width=2.4, height=3, fontsize=15)
    for start, end in (((0, 5), (0.8, 5)), ((4.2, 5), (6.6, 5)), ((9.2, 5), (10, 5))):
        flow.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": GREY, "linewidth": 1.6})
    flow.text(2.5, 0.9, "large, and sees only\nwhat is left", ha="center", color=GREY)
    flow.text(7.9, 1.9, "small, and has all places:\na mask token in each hole", ha="center", color=GREY)
    flow.text(5.4, 5.3, "back in\norder", ha="center", fontsize=12, color=GREY)
    return fig


def repaired(
    pictures: Sequence[Float[Tensor, "B H W"]], names: Sequence[str], left_over: Mapping[str, float], predicted=None
) -> Figure:
    """Held-out pictures, what is seen, what is painted; and how much of the grey's error is left."""
    count = len(pictures[0])
    fig = figure(12.2, 5.2)[0]
    fig.clear()
    grid = fig.add_gridspec(len(pictures), count + 1, width_ratios=(*[1] * count, 4.2))
    for row, (several, name) in enumerate(zip(pictures, names, strict=True)):
        for column, picture in enumerate(several):
            axes = fig.add_subplot(grid[row, column])
            image(axes, picture)
            if not column:
                axes.set_ylabel(name, fontsize=13, rotation=0, ha="right", va="center", labelpad=8)
    axes = fig.add_subplot(grid[:, count])
    for row, (name, share) in enumerate(left_over.items()):
        axes.barh(-row, 100 * share, height=0.45, color=(GREY, PALETTE["sky"], HERO)[row])
        axes.text(1, -row + 0.3, name, fontsize=14, va="bottom")
        inside = share > 0.85
        axes.text(
            100 * share + (-2 if inside else 2),
            -row,
            f"{100 * share:.0f} %",
            fontsize=14,
            va="center",
            ha="right" if inside else "left",
            color="white" if inside else "black",
        )
    prediction(axes, predicted, 1 - len(left_over), (0, -12))
    axes.set_yticks([])
    axes.set(xlim=(0, 105), ylim=(-len(left_over), 0.8), xlabel="error of hidden patches, % of the grey's")
    axes.set_title("Most of it can be guessed")
    return fig


def ratios(
    errors: Sequence[float],
    error: Float[np.ndarray, "seeds ratios"],
    probe: Float[np.ndarray, "seeds ratios"],
    paper: Sequence[tuple[float, float]],
    predicted: float | None = None,
) -> Figure:
    """By the share that is hidden: error and probe of ours, and two points of He et al."""
    fig, panels = figure(12.2, 4.4, columns=3)
    across = [100 * share for share in errors]
    for axes, values, title, colour in (
        (panels[0], error, "Ours: the error rises", OTHER),
        (panels[1], 100 * probe, "Ours: the probe peaks", HERO),
    ):
        axes.plot(across, values.mean(axis=0), color=colour, linestyle="-", linewidth=3)
        for seed in values:
            axes.plot(across, seed, "o", color=colour, markersize=8, alpha=0.7)
        axes.set_title(title)
    panels[0].set(ylabel="squared error, of (p - 0.5) / 0.25", ylim=(0, 1.25))
    panels[1].set(ylabel="named right with 100 labels, %", ylim=(30, 70))
    panels[2].plot(*zip(*paper, strict=True), "o", color=GREY, markersize=11)
    for x, y in paper:
        panels[2].text(
            x + (4 if x < 50 else -4), y, f"{y:.1f}", fontsize=14, va="center", ha="left" if x < 50 else "right"
        )
    panels[2].set(ylabel="linear probe, ImageNet, %", ylim=(50, 78))
    panels[2].set_title("He et al. 2022, ViT-L")
    if predicted is not None:
        prediction(panels[1], 90, predicted, (-12, 0))
        panels[1].set_ylim(min(30, predicted - 4), max(70, predicted + 4))
    for axes in panels:
        axes.set(xlim=(0, 100), xlabel="patches hidden, %")
        axes.set_xticks([10, 25, 50, 75, 90])
    return fig


def labels(ways: Mapping[str, Mapping[int, Sequence[float]]], predicted: float | None = None) -> Figure:
    """Accuracy of each way by the number of labels, one dot a seed; the prediction is for the last way, 50 labels."""
    fig, axes = figure(10.5, 4.6)
    colours = (GREY, PALETTE["orange"], OTHER, HERO)
    for row, (reached, colour) in enumerate(zip(ways.values(), colours, strict=True)):
        for (count, values), marker, lift in zip(reached.items(), ("o", "s"), (0.13, -0.13), strict=True):
            mean = 100 * np.mean(values)
            axes.barh(row + lift, mean, height=0.22, color=colour, alpha=0.35)
            axes.plot([100 * value for value in values], [row + lift] * len(values), marker, color=colour, markersize=8)
            axes.text(
                max(100 * max(values), mean) + 1.5, row + lift, f"{count} labels", fontsize=12, va="center", color=GREY
            )
    prediction(axes, predicted, len(ways) - 1 + 0.13, (0, -12))
    axes.set_yticks(range(len(ways)), list(ways))
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, 100), ylim=(-0.5, len(ways) - 0.3), xlabel="test digits named right, %")
    axes.set_title("With few labels the frozen features win")
    return fig


def cost(rows: Mapping[str, tuple[float, float]]) -> Figure:
    """Millions of operations for one picture; seconds of a batch stand beside the bars."""
    fig, axes = figure(10.5, 3.6)
    for row, (name, (operations, seconds)) in enumerate(rows.items()):
        axes.barh(-row, operations / 1e6, height=0.45, color=(HERO, OTHER, PALETTE["sky"])[row])
        axes.text(0.2, -row + 0.28, name, fontsize=14, va="bottom")
        axes.text(
            operations / 1e6 + 0.2,
            -row,
            f"{operations / 1e6:.1f} million, {1e3 * seconds:.0f} ms a batch here",
            va="center",
        )
    axes.set_yticks([])
    most = max(operations for operations, _ in rows.values()) / 1e6
    axes.set(xlim=(0, 1.45 * most), ylim=(-len(rows) + 0.6, 0.75), xlabel="operations for one picture, millions")
    axes.set_title("Who sees a quarter pays less than a quarter")
    return fig


def masks(
    seen: Mapping[str, Float[Tensor, "H W"]],
    painted: Mapping[str, Float[Tensor, "H W"]],
    left_over: Mapping[str, Mapping[str, float]],
) -> Figure:
    """One picture under each kind of mask, painted; below how much of the grey's error is left, by kind."""
    fig = figure(12.2, 5.6)[0]
    fig.clear()
    grid = fig.add_gridspec(2, 2 * len(seen), height_ratios=(1, 1.25))
    for column, kind in enumerate(seen):
        for part, (pictures, title) in enumerate(((seen, kind), (painted, "painted"))):
            axes = fig.add_subplot(grid[0, 2 * column + part])
            image(axes, pictures[kind])
            axes.set_title(title, fontsize=13, loc="center", weight="normal")
    axes = fig.add_subplot(grid[1, :])
    for position, (name, colour) in enumerate(zip(left_over, (HERO, OTHER), strict=True)):
        for column, share in enumerate(left_over[name].values()):
            x = column + 0.34 * position
            axes.bar(x, 100 * share, width=0.32, color=colour, label=name if not column else None)
            axes.text(x, 100 * share + 1, f"{100 * share:.0f}", ha="center")
    axes.set_xticks([column + 0.17 for column in range(len(seen))], list(seen))
    axes.legend(loc="upper left", frameon=False, fontsize=13)
    axes.grid(visible=False, axis="x")
    axes.set(ylabel="error, % of the grey's", ylim=(0, 80))
    axes.set_title("Half hidden: scattered holes are easy, one large hole is not")
    return fig


def normalised(picture: Float[Tensor, "H W"], target: Float[Tensor, "H W"], means: Float[Tensor, "H W"]) -> Figure:
    """A picture, each patch less its mean and divided by its spread, and the means that are taken away."""
    fig, panels = figure(10.5, 3.8, columns=3)
    for axes, pixels, title in zip(
        panels,
        (picture, target / 6 + 0.5, means),
        ("the picture", "normalised target", "what is left out"),
        strict=True,
    ):
        image(axes, pixels)
        axes.set_title(title, fontsize=14, loc="center", weight="normal")
    return fig
