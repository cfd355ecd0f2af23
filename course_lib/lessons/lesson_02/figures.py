"""The figures of lesson 02: pairs of views, what is learned from them, and where it lies."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, THIRD, box, image, label, prediction
from course_lib.viz.style import GREY, PALETTE, SEQUENTIAL, figure


def cosines(values: Float[Tensor, "B B"], first: Float[Tensor, "B H W"], second: Float[Tensor, "B H W"]) -> Figure:
    """How alike each first view (rows) is to each second one (columns), the pictures at the rims."""
    count = len(values)
    fig = figure(5.6, 4.6, layout=None)[0]
    fig.clear()
    axes = fig.add_axes((0.12, 0.04, 0.66, 0.8))
    image = axes.imshow(values.numpy(), vmin=-1, vmax=1, cmap=SEQUENTIAL, aspect="auto")
    axes.axis("off")
    for position, (one, other) in enumerate(zip(first, second, strict=True)):
        row = fig.add_axes((0.03, 0.04 + 0.8 * (count - 1 - position) / count, 0.08, 0.8 / count))
        column = fig.add_axes((0.12 + 0.66 * position / count, 0.85, 0.66 / count, 0.08))
        for where, picture in ((row, one), (column, other)):
            where.imshow(picture.numpy(), cmap="gray", vmin=0, vmax=1)
            where.axis("off")
    bar = fig.add_axes((0.82, 0.04, 0.03, 0.8))
    fig.colorbar(image, cax=bar, label="cosine", ticks=(-1, 0, 1))
    return fig


def views(columns: Mapping[str, Float[Tensor, "B H W"]]) -> Figure:
    """Pictures in rows, a column for each change."""
    rows = len(next(iter(columns.values())))
    fig, axes = figure(1.4 * len(columns), 1.35 * rows + 0.5, rows=rows, columns=len(columns))
    for column, (name, several) in enumerate(columns.items()):
        axes[0, column].set_title(name.replace(", ", ",\n"), fontsize=12, loc="center", weight="normal")
        for row, picture in enumerate(several):
            image(axes[row, column], picture)
    return fig


def shortcut(
    views: Mapping[str, Float[Tensor, "2 B 3 H W"]], found: Mapping[str, Sequence[float]], guess: float
) -> Figure:
    """Two views of some icons for each set of augmentations; and how often colours alone find the partner."""
    fig = figure(12.2, 1.7 * len(views))[0]
    fig.clear()
    count = len(next(iter(views.values()))[0])
    heights = ([1, 1, 0.3] * len(views))[:-1]
    grid = fig.add_gridspec(len(heights), count + 1, width_ratios=(*[1] * count, 1.1 * count), height_ratios=heights)
    for row, both in enumerate(views.values()):
        for side, column in ((side, column) for side in range(2) for column in range(count)):
            image(fig.add_subplot(grid[3 * row + side, column]), both[side, column].permute(1, 2, 0))
    axes = fig.add_subplot(grid[:, count])
    for row, values in enumerate(found.values()):
        mean = 100 * float(np.mean(values))
        axes.barh(-row, mean, height=0.45, color=HERO, alpha=0.4)
        axes.plot([100 * value for value in values], [-row] * len(values), "o", color=HERO)
        axes.text(max(mean, 100 * max(values)) + 3, -row, f"{mean:.0f} %", va="center")
    axes.axvline(100 * guess, color="black", linestyle=":", linewidth=2)
    axes.set_yticks([-row for row in range(len(found))], list(found))
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, 115), ylim=(0.5 - len(found), 0.5), xticks=range(0, 101, 20))
    axes.set_xlabel("partner found by its colours alone, %")
    return fig


def mechanism(originals: Float[Tensor, "2 H W"], views: Float[Tensor, "2 2 H W"]) -> Figure:
    """Two views of two pictures through encoder and projection onto the sphere; Chen et al. 2020, figure 2."""
    fig = figure(12.2, 4.6, layout=None)[0]
    fig.clear()
    for number, (picture, both) in enumerate(zip(originals, views, strict=True)):
        image(fig.add_axes((0.01, 0.53 - 0.44 * number, 0.11, 0.36)), picture)
        for side, view in enumerate(both):
            axes = fig.add_axes((0.19, 0.71 - 0.22 * side - 0.44 * number, 0.07, 0.18))
            image(axes, view)
            for spine in axes.spines.values():
                spine.set(visible=True, color=(HERO, OTHER)[number], linewidth=3)
    flow = fig.add_axes((0, 0, 1, 1))
    flow.set(xlim=(0, 12.2), ylim=(0, 4.6))
    flow.axis("off")
    flow.patch.set_alpha(0)
    box(flow, 4.33, 2.25, "encoder f", GREY, width=1.45, height=2.6)
    box(flow, 7.5, 2.25, "projection g", GREY, width=1.75, height=1.5)
    for start, end in ((3.25, 3.58), (5.12, 6.6), (8.4, 9.08)):
        flow.annotate("", (end, 2.25), (start, 2.25), arrowprops={"arrowstyle": "-|>", "color": GREY, "linewidth": 1.8})
    flow.text(5.85, 2.5, "h", ha="center", fontsize=14, style="italic")
    flow.text(8.72, 2.5, "z", ha="center", fontsize=14, style="italic")
    flow.text(5.84, 1.6, "kept for\nother tasks", ha="center", va="center", color=GREY)
    flow.text(0.12, 4.32, "two random views of each", color=GREY)
    centre, radius = np.array((10.6, 2.15)), 1.4
    flow.add_patch(Circle(centre, radius, fill=False, color=GREY, linewidth=1.5))
    for angles, colour in (((120, 75), HERO), ((-35, -80), OTHER)):
        positions = [centre + radius * np.array((np.cos(np.radians(a)), np.sin(np.radians(a)))) for a in angles]
        for position in positions:
            flow.plot(*position, "o", color=colour, markersize=11)
        flow.annotate(
            "",
            positions[1],
            positions[0],
            arrowprops={
                "arrowstyle": "<|-|>",
                "color": colour,
                "linewidth": 2.5,
                "shrinkA": 9,
                "shrinkB": 9,
                "connectionstyle": "arc3,rad=0.35",
            },
        )
    flow.annotate(
        "",
        centre + (0.05, 1.0),
        centre + (0.3, -1.0),
        arrowprops={"arrowstyle": "<|-|>", "color": GREY, "linewidth": 2.5, "linestyle": ":"},
    )
    flow.text(10.65, 3.75, "together:\nviews of one image", ha="center")
    flow.text(10.02, 2.15, "apart:\nall others", ha="center", va="center", color=GREY)
    return fig


def rising(steps: Sequence[int], votes: Sequence[float], losses: Sequence[float], pixels: float, guess: float,
           predicted: float | None = None) -> Figure:  # fmt: skip
    """The loss of each step; and how many pictures the neighbours name right, without a label in the training."""
    fig, (left, right) = figure(12.2, 4.8, columns=2)
    left.plot(range(1, len(losses) + 1), losses, color=HERO)
    left.axhline(guess, color=GREY, linestyle="--", linewidth=1.5)
    left.text(len(losses), guess + 0.03, "a guess among all views", ha="right", va="bottom", color=GREY)
    left.set(xlabel="step", ylabel="loss, nats", ylim=(min(losses) - 0.2, max([guess, *losses]) + 0.3))
    left.set_title("Finding the partner gets easier")
    right.plot(steps, [100 * vote for vote in votes], "o", linestyle="-", color=HERO, linewidth=3)
    right.axhline(100 * pixels, color=OTHER, linestyle="--", linewidth=2)
    right.text(steps[-1], 100 * pixels - 1.5, "neighbours by pixels", ha="right", va="top", color=OTHER)
    prediction(right, steps[-1], predicted, (-12, 0))
    right.set(xlabel="step", ylabel="accuracy with 50 labels, %", ylim=(0, 104))
    right.set_title("and classes come together")
    for axes in (left, right):
        axes.locator_params(nbins=5)
    return fig


def labels(ways: Mapping[str, Mapping[int, Sequence[float]]], predicted: float | None = None) -> Figure:
    """Accuracy of a linear probe on each kind of features, one mark a seed; the prediction is for SimCLR, 10 labels."""
    fig, axes = figure(10.5, 4.8)
    colours = (GREY, PALETTE["orange"], HERO, PALETTE["sky"], THIRD)
    for row, ((name, reached), colour) in enumerate(zip(ways.items(), colours, strict=True)):
        for (count, values), marker, lift in zip(reached.items(), ("o", "s"), (0.17, -0.17), strict=True):
            mean = 100 * np.mean(values)
            axes.barh(row + lift, mean, height=0.3, color=colour, alpha=0.35)
            axes.plot([100 * value for value in values], [row + lift] * len(values), marker, color=colour, markersize=8)
            axes.text(1, row + lift, f"{count} labels" if row == len(ways) - 1 else count, va="center")
        if name == "SimCLR, h":
            prediction(axes, predicted, row + 0.17, (0, 12))
    axes.set_yticks(range(len(ways)), list(ways))
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, 102), ylim=(-0.5, len(ways) - 0.3), xlabel="accuracy of a linear probe on test digits, %")
    axes.set_title("One label per class goes far")
    return fig


def pairs(panels: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Cosines of views of one picture and of two, for each network."""
    fig, each = figure(12.2, 3.8, columns=len(panels))
    bins = np.linspace(-1, 1, 61)
    for position, (axes, (name, (positives, negatives))) in enumerate(zip(each, panels.items(), strict=True)):
        for values, colour, words, height in (
            (negatives, OTHER, "two images", 0.62),
            (positives, HERO, "one image", 0.82),
        ):
            inside = bins[(bins > values.min() - 1 / 30) & (bins < values.max() + 1 / 30)]  # of the bins, 1/30 wide
            share = np.histogram(values, inside)[0] / len(values)
            axes.stairs(share / share.max(), inside, fill=True, color=colour, alpha=0.5)
            if not position:
                axes.text(-0.95, height, f"views of {words}", color=colour)
        axes.set(xlabel="cosine", xlim=(-1, 1), ylim=(0, 1.08), xticks=(-1, 0, 1), yticks=[])
        axes.set_title(name)
    return fig


def losses(
    temperatures: Sequence[float],
    probe: Float[np.ndarray, "seeds T"],
    alone: Sequence[float],
    positions: Mapping[str, tuple[float, float]],
) -> Figure:
    """The probe by temperature; and where each loss put its projections, alignment against uniformity."""
    fig, (left, right) = figure(12.2, 5.2, columns=2)
    left.plot(temperatures, 100 * probe.mean(axis=0), color=HERO, linewidth=3)
    for seed in probe:
        left.plot(temperatures, 100 * seed, "o", color=HERO, alpha=0.6)
    left.axhline(100 * float(np.mean(alone)), color=OTHER, linestyle="--", linewidth=2)
    left.text(3, 100 * float(np.mean(alone)) + 1.5, "without negatives", color=OTHER, ha="right")
    left.set_xscale("log")
    left.set_xticks(temperatures, [f"{t:g}" for t in temperatures])
    left.minorticks_off()
    left.set(xlabel="temperature", ylabel="accuracy with 10 labels, %", yticks=range(0, 101, 25))
    left.set_title("Neither too small nor too large")
    for name, (uniformity, alignment) in positions.items():
        special = name in ("without negatives", "untrained")
        right.plot(uniformity, alignment, "s" if special else "o", color=OTHER if special else HERO, markersize=10)
        beside = {"0.1": (10, 0), "0.2": (10, 0), "1": (0, -9), "3": (0, -9)}
        label(right, uniformity, alignment, name, "black", (-10, 0) if special else beside.get(name, (0, 9)))
    lowest = min(uniformity for uniformity, _ in positions.values())
    right.set(
        xlabel="uniformity (low: even)",
        ylabel="alignment (low: close)",
        yticks=(0, 0.2, 0.4),
        xlim=(lowest - 0.3, 0.6),
        ylim=(-0.03, 0.05 + max(alignment for _, alignment in positions.values())),
    )
    right.set_title("Pairs close, all points even")
    return fig


def kept(found: Mapping[str, Mapping[str, float]], predicted: float | None = None) -> Figure:
    """What a linear probe can read from each kind of features: groups are questions, bars are features."""
    fig, axes = figure(12.2, 4.8)
    colours = (PALETTE["orange"], GREY, HERO, PALETTE["sky"])
    questions = {"digit": "which digit?", "bright": "bright or dark?", "right": "turned left or right?"}
    for position, ((name, reached), colour) in enumerate(zip(found.items(), colours, strict=True)):
        for group, question in enumerate(questions):
            x, height = group + 0.2 * (position - 1.5), 100 * reached[question]
            axes.bar(x, height, width=0.18, color=colour, label=name if not group else None)
            axes.text(x, height + 1.5, f"{height:.0f}", ha="center")
    for group, guess in enumerate((10, 50, 50)):
        axes.plot([group - 0.42, group + 0.42], [guess, guess], color="black", linestyle=":", linewidth=2)
    axes.text(0.56, 50, "guess", ha="right", va="center")
    prediction(axes, 1 + 0.2 * 1.5, predicted, text="yours")
    axes.set_xticks(range(3), list(questions.values()))
    axes.grid(visible=False, axis="x")
    axes.set(ylim=(0, 124), yticks=range(0, 101, 25), ylabel="accuracy of the probe, %")
    axes.legend(loc="upper center", ncols=4, frameon=False)
    axes.set_title("Brightness is lost first; h keeps the rotation")
    return fig


def across(
    queries: Float[Tensor, "N 3 H W"],
    found: Mapping[str, tuple[Float[Tensor, "N K 3 H W"], Bool[Tensor, "N K"]]],
    reached: Mapping[str, Sequence[float]],
    yours: float,
) -> Figure:
    """Drawings, and the nearest by other designers by two kinds of features, framed where it is the same thing."""
    several = [nearest.shape[1] for nearest, _ in found.values()]
    widths = [1, *[part for k in several for part in (0.35, *[1] * k)], 0.2, 4.6]
    fig = figure(12.2, 0.75 * len(queries) + 0.8)[0]
    fig.clear()
    grid = fig.add_gridspec(len(queries), len(widths), width_ratios=widths)
    for row, query in enumerate(queries):
        axes = [fig.add_subplot(grid[row, 0])]
        image(axes[0], query.permute(1, 2, 0), "" if row else "icon")
        column = 1
        for name, (nearest, same) in found.items():
            for k, (drawing, right) in enumerate(zip(nearest[row], same[row], strict=True)):
                one = fig.add_subplot(grid[row, column + 1 + k])
                image(one, drawing.permute(1, 2, 0), name.replace(" by ", " by\n") if not row and k == 1 else "")
                if right:
                    for spine in one.spines.values():
                        spine.set(visible=True, color=THIRD, linewidth=4)
            column += 1 + nearest.shape[1]
    axes = fig.add_subplot(grid[:, -1])
    for row, values in enumerate(reached.values()):
        average = 100 * float(np.mean(values))
        axes.barh(-row, average, height=0.45, color=HERO, alpha=0.4)
        axes.plot([100 * value for value in values], [-row] * len(values), "o", color=HERO)
        axes.text(100 * max(values) + 4, -row, f"{average:.0f} %", va="center")
    axes.plot(100 * yours, 1 - len(reached), "D", color=OTHER, markersize=10)
    axes.text(100 * yours, 0.55 - len(reached), "yours", color=OTHER, ha="center", va="center")
    axes.set_yticks([-row for row in range(len(reached))], [name.replace(" drawing", "\ndrawing") for name in reached])
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, 100), ylim=(0.25 - len(reached), 0.5), xlabel="nearest is the\nsame thing, %")
    return fig
