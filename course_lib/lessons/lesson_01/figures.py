"""The figures of lesson 01: depth, few labels, and what each stage of a network looks for."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from torch import Tensor

from course_lib.functional.visualisation import Field, Patches
from course_lib.viz.marks import HERO, OTHER, THIRD, arrow, bare, prediction
from course_lib.viz.style import DIVERGING, GREY, PALETTE, SEQUENTIAL, figure

COLOURS = {"scratch": GREY, "frozen": THIRD, "fine-tuned": OTHER, "rates by layer": HERO}


def block() -> Figure:
    """A plain block, a residual block, and a bottleneck, after He et al. 2016, figures 2 and 5."""
    fig, panels = figure(12.2, 4.8, columns=3, layout=None)
    fig.subplots_adjust(left=0.01, right=0.99, top=0.9, bottom=0.01, wspace=0.05)
    plans = (
        ("plain: H(x)", ("3 x 3", "3 x 3"), False),
        ("residual: F(x) + x", ("3 x 3", "3 x 3"), True),
        ("bottleneck", ("1 x 1, to a quarter", "3 x 3", "1 x 1, back"), True),
    )
    for axes, (title, layers, shortcut) in zip(panels, plans, strict=True):
        axes.set(xlim=(0, 10), ylim=(0, 10))
        axes.axis("off")
        axes.set_title(title, loc="center")
        positions = np.linspace(7.4, 3.6, len(layers))
        stops = [9.6, *positions, 1.5]
        for upper, lower in zip(stops, stops[1:], strict=False):
            arrow(axes, (4, upper - (0.55 if upper < 9 else 0)), (4, lower + (0.55 if lower > 2 else 0.4)), width=1.6)
        for position, layer in zip(positions, layers, strict=True):
            axes.add_patch(
                FancyBboxPatch(
                    (1.6, position - 0.5), 4.8, 1, boxstyle="round,pad=0,rounding_size=0.15", fc=HERO, ec="none"
                )
            )
            axes.text(4, position, layer, ha="center", va="center", color="white", fontsize=14)
        axes.text(4.4, 9.4, "x", fontsize=16, va="center")
        axes.text(
            4,
            1.4,
            "+" if shortcut else "ReLU",
            ha="center",
            va="center",
            fontsize=22 if shortcut else 14,
            color=OTHER if shortcut else GREY,
        )
        if shortcut:
            axes.plot([4, 8.3, 8.3, 4.5], [8.9, 8.9, 1.4, 1.4], "-", color=OTHER, linewidth=3)
            axes.text(8.1, 5.2, "x itself", color=OTHER, fontsize=14, ha="right", va="center", rotation=90)
        arrow(axes, (4, 0.95), (4, 0.1), width=1.6)
        axes.text(4.4, 0.45, "ReLU" if shortcut else "", color=GREY, va="center")
    return fig


def depth(
    yours: Mapping[str, Sequence[float]], card: Mapping[str, Sequence[float]], predicted: float | None = None
) -> Figure:
    """Losses of the learner's trainings, and how many training digits the nets name right in the end, by seed."""
    fig, (left, right) = figure(12.2, 4.8, columns=2)
    colours = {"plain, 8 layers": GREY, "plain, 20 layers": PALETTE["sky"], "plain, 44 layers": OTHER,
               "residual, 8 layers": THIRD, "residual, 20 layers": PALETTE["orange"],
               "residual, 44 layers": HERO}  # fmt: skip
    for name, losses in yours.items():
        width = 10
        smooth = np.convolve(losses, np.ones(width) / width, mode="valid")
        left.plot(np.arange(len(smooth)) + width, smooth, "-", color=colours[name], linewidth=3)
        lift = 0.17 if name == "plain, 8 layers" else 0.0
        left.text(len(losses) + 2, smooth[-1] + lift, name, color=colours[name], va="center")
    left.set(xlabel="step", ylabel="training loss, nats", xlim=(0, 1.5 * len(losses)), ylim=(0, 2.6))
    left.set_title("Your run")
    for row, (name, values) in enumerate(card.items()):
        right.plot(100 * np.array(values), [-row] * len(values), "o", color=colours[name], markersize=10)
    right.set_yticks([-row for row in range(len(card))], list(card))
    row = -list(card).index("plain, 44 layers")
    prediction(right, predicted, row, (0, -12))
    right.set(
        xlabel="training digits named right, %",
        xlim=(min(68, (predicted or 100) - 4), 102),
        ylim=(-len(card) + 0.3, 0.5),
    )
    right.set_title("After 1,200 steps, three seeds")
    return fig


def transfer(
    card: Mapping[str, Float[np.ndarray, "seeds counts"]],
    spread: Mapping[str, Float[np.ndarray, "seeds counts"]],
    counts: Sequence[int],
    yours: Mapping[int, Mapping[str, float]],
    predicted: float | None = None,
) -> Figure:
    """Accuracy against the number of labels for each way: lines from the card, marks from the learner's draw."""
    fig, axes = figure(12.2, 5.2)
    across = np.arange(len(counts))
    ends = sorted(card, key=lambda way: card[way].mean(0)[-1])
    height: dict[str, float] = {}
    for way in ends:
        wanted = 100 * card[way].mean(0)[-1]
        height[way] = max(wanted, max(height.values(), default=0) + 4.5)
    for way, values in card.items():
        mean, wide = 100 * values.mean(0), 100 * spread[way].mean(0)
        axes.fill_between(across, mean - wide, mean + wide, color=COLOURS[way], alpha=0.15, linewidth=0)
        axes.plot(across, mean, "-", color=COLOURS[way], linewidth=4 if way == "rates by layer" else 2.5)
        axes.text(across[-1] + 0.08, height[way], way, color=COLOURS[way], fontsize=14, va="center")
        here = [(counts.index(count), 100 * found[way]) for count, found in yours.items() if way in found]
        axes.plot(*zip(*here, strict=True), "D", color=COLOURS[way], markersize=9, markeredgecolor="white")
    axes.axhline(25, color=GREY, linestyle=":", linewidth=1.5)
    axes.text(across[-1] + 0.08, 28.5, "guessing", color=GREY, va="center")
    prediction(axes, counts.index(40), predicted)
    axes.set_xticks(across, [str(count) for count in counts])
    axes.set(
        xlim=(-0.2, len(counts) - 0.2),
        ylim=(min(15, (predicted or 50) - 4), max(95, (predicted or 50) + 4)),
        xlabel="labels of the new task",
        ylabel="test scenes named right, %",
    )
    axes.set_title("With few labels the old network is far ahead")
    axes.text(
        0.02,
        0.97,
        "lines: means of three seeds, five draws each\nbands: spread of a draw; diamonds: your draw",
        transform=axes.transAxes,
        fontsize=12,
        color=GREY,
        va="top",
    )
    return fig


def patches(
    filters: Float[Tensor, "C k k"],
    found: Sequence[Sequence[Patches]],
    names: Sequence[str],
    fields: Sequence[Field],
    fractions: Sequence[float],
) -> Figure:
    """First-layer filters, and of each depth the patches that excite two channels most."""
    per_row = len(found[0][0].pictures)
    fig = figure(12.2, 6.0, layout=None)[0]
    fig.clear()
    shown = 8
    grid = fig.add_gridspec(2, shown // 2, left=0.01, right=0.17, top=0.82, bottom=0.58, wspace=0.12, hspace=0.3)
    largest = float(filters.abs().max())
    for number in range(shown):
        axes = fig.add_subplot(grid[divmod(number, shown // 2)])
        axes.imshow(filters[number].numpy(), cmap=DIVERGING, vmin=-largest, vmax=largest)
        bare(axes)
    fig.text(0.01, 0.85, "filters of the stem", fontsize=14, weight="bold")
    fig.text(0.01, 0.46, "orange: minus\npurple: plus", fontsize=12, color=GREY)
    for depth, channels in enumerate(found):
        left = 0.2 + 0.402 * (depth % 2)
        top = 0.9 - 0.49 * (depth // 2)
        size = fields[depth].size
        fig.text(
            left,
            top + 0.025,
            f"{names[depth]}: sees {f'{size} x {size} pixels' if size < 32 else 'everything'}, "
            f"top digit {100 * fractions[depth]:.0f} %",
            weight="bold",
        )
        grid = fig.add_gridspec(
            len(channels), per_row, left=left, right=left + 0.385, top=top, bottom=top - 0.37, wspace=0.05, hspace=0.05
        )
        for row, channel in enumerate(channels):
            for column, picture in enumerate(channel.pictures):
                axes = fig.add_subplot(grid[row, column])
                axes.set_facecolor("#dddddd")
                axes.imshow(picture[0].numpy(), cmap="gray", vmin=0, vmax=1)
                bare(axes)
    return fig


def dreams(found: Mapping[str, tuple[Tensor, Tensor]], names: Sequence[str]) -> Figure:
    """A picture for each class, without and with regularisers, and how probable the network finds it."""
    rows = {"nothing": "score\nalone", "regularised": "regularised"}
    fig, axes = figure(12.2, 4.6, rows=2, columns=len(names))
    for row, (kind, label) in enumerate(rows.items()):
        pictures, probable = found[kind]
        for column, panel in enumerate(axes[row]):
            panel.imshow(pictures[column].numpy(), cmap="gray", vmin=0, vmax=1)
            bare(panel)
            panel.set_title(f"{names[column]}: {100 * float(probable[column]):.0f} %", loc="center", fontsize=13)
            if not column:
                panel.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=14, labelpad=8)
    return fig


def occlusion(
    picture: Float[Tensor, "H W"], fallen: Float[Tensor, "h w"], size: int, hits: float, chance: float
) -> Figure:
    """A picture, how much a grey square at each place costs, and where the worst place is, over many scenes."""
    fig, (left, middle, right) = figure(12.2, 4.2, columns=3)
    left.imshow(picture.numpy(), cmap="gray", vmin=0, vmax=1)
    bare(left)
    left.set_title("the picture", loc="center")
    drawn = middle.imshow(fallen.numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)
    bare(middle)
    middle.set_title(f"loss of probability, square of {size}", loc="center")
    fig.colorbar(drawn, ax=middle, shrink=0.8)
    right.bar([0, 1], [100 * chance, 100 * hits], color=[GREY, HERO], width=0.6)
    for position, share in enumerate((chance, hits)):
        right.text(position, 100 * share + 1.5, f"{100 * share:.0f} %", ha="center", fontsize=14)
    right.set_xticks([0, 1], ["a place at\nrandom", "the worst\nplace"])
    right.grid(visible=False, axis="x")
    right.set(ylim=(0, 112))
    right.set_title("in the digit's box, 60 scenes", loc="center")
    return fig


def probes(
    found: Mapping[str, Sequence[float]], target: Mapping[str, Sequence[float]], names: Sequence[str], predicted=None
) -> Figure:
    """By depth, what a linear probe finds: the digit and the brightness of its ink; and source against target."""
    fig, (left, right) = figure(12.2, 4.8, columns=2)
    across = np.arange(len(names))
    for key, colour, label, position in (
        ("digit", HERO, "which digit?", (2.35, 22)),
        ("brighter", OTHER, "ink brighter\nthan ground?", (1.2, 91)),
    ):
        left.plot(across, 100 * np.array(found[key]), "o-", color=colour, linewidth=3.5)
        left.text(*position, label, color=colour, fontsize=14, va="center")
    left.axhline(100 * found["brighter, always the commonest"][0], color=OTHER, linestyle=":", linewidth=1.5)
    left.text(
        0,
        100 * found["brighter, always the commonest"][0] - 2,
        "always the commoner answer",
        color=OTHER,
        fontsize=11,
        va="top",
    )
    prediction(left, across[-1], predicted, (-12, 0))
    left.set_title("One is learned, one forgotten")
    for values, colour, label, y in (
        (target["source"], THIRD, "its own digits, 0 to 5", 4),
        (target["target"], HERO, "new digits, 6 to 9", -6),
    ):
        right.plot(across, 100 * np.array(values), "o-", color=colour, linewidth=3)
        right.text(0.3, 88 + 1.1 * y, label, color=colour, fontsize=14)
    right.set_title("Both rise to the last stage")
    for axes in (left, right):
        axes.set_xticks(across, names)
        axes.set(ylim=(0, 103), ylabel="named right by a probe, %")
    return fig


def accidents(found: Mapping[str, Mapping]) -> Figure:
    """What each of three accidents costs, in the accuracy on the old task; the third on the new one, too."""
    fig, panels = figure(12.2, 4.6, columns=3)
    for axes, key, title in ((panels[0], "norms", "Norms that go on"), (panels[1], "pixels", "Other normalisation")):
        for row, (name, value) in enumerate(found[key].items()):
            axes.barh(-row, 100 * value, height=0.45, color=HERO if not row else OTHER)
            axes.text(1, -row + 0.27, name, va="bottom")
            axes.text(100 * value - 2, -row, f"{100 * value:.0f}", color="white", va="center", ha="right")
        axes.set_yticks([])
        axes.set(xlim=(0, 103), ylim=(-len(found[key]) + 0.6, 0.75), xlabel="old task, % right")
        axes.set_title(title)
    rates = list(found["rates"])
    for number, (name, colour) in enumerate((("new task", HERO), ("old task", OTHER))):
        values = [100 * found["rates"][rate][number] for rate in rates]
        panels[2].plot(range(len(rates)), values, "o-", color=colour, linewidth=3)
        panels[2].text(
            *((1.05, values[1] + 5) if not number else (0.12, values[0] + 3)), name, color=colour, fontsize=14
        )
    panels[2].set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
    panels[2].set(ylim=(0, 103), xlabel="learning rate of all layers", ylabel="% right")
    panels[2].set_title("Rates too high")
    return fig
