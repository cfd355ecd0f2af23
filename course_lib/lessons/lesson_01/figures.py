"""The figures of lesson 01: depth, few labels, and what each stage of a network looks for."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.functional.visualisation import Field, Patches
from course_lib.viz.marks import HERO, OTHER, THIRD, bare, image, prediction
from course_lib.viz.style import DIVERGING, GREY, PALETTE, SEQUENTIAL, figure

COLOURS = {  # of a way to learn from few labels
    "scratch": GREY,
    "frozen, random weights": "#8B5A2B",
    "frozen": THIRD,
    "fine-tuned": OTHER,
    "fine-tuned, not augmented": PALETTE["orange"],
    "head first, then all": PALETTE["sky"],
    "learning rates by layer": HERO,
}


def drawings(
    pixels: Float[Tensor, "N 3 H W"], titles: Sequence[str], right: Sequence[bool], columns: int = 8
) -> Figure:
    """Drawings with the name that a network gives to each, and a mark at those that are wrong."""
    rows = -(-len(titles) // columns)
    fig, panels = figure(12.2, 2.05 * rows, columns=columns, rows=rows)
    for axes, pixel, title, good in zip(np.ravel(panels), pixels, titles, right, strict=True):
        image(axes, pixel.permute(1, 2, 0).clamp(0, 1).numpy())
        axes.set_title(title, fontsize=12, loc="center", weight="normal", color=HERO if good else OTHER)
    return fig


def views(pixels: Float[Tensor, "R N 3 H W"]) -> Figure:
    """Drawings on white in the first column, and random views of each beside them."""
    rows, columns = pixels.shape[:2]
    fig, panels = figure(12.2, 1.55 * rows, columns=columns, rows=rows)
    for row, several in zip(panels, pixels, strict=True):
        for axes, pixel in zip(row, several, strict=True):
            image(axes, pixel.permute(1, 2, 0).clamp(0, 1).numpy())
    panels[0][0].set_title("as drawn", fontsize=12, loc="center", weight="normal")
    panels[0][1].set_title("random views", fontsize=12, loc="left", weight="normal")
    return fig


def augmentation(found: Mapping[str, Mapping[str, Float[np.ndarray, " seeds"]]]) -> str:
    """A table of accuracies on each kind of drawings, by way of training: means over seeds, lowest and highest."""
    ways = list(next(iter(found.values())))
    head = "".join(f'<th scope="col">{way}</th>' for way in ("accuracy on", *ways))
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left">{kind}</th>'
        + "".join(f"<td>{each.mean():.0f} % ({each.min():.0f} to {each.max():.0f})</td>" for each in of.values())
        + "</tr>"
        for kind, of in found.items()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def depth(
    yours: Mapping[str, Sequence[float]], card: Mapping[str, Sequence[float]], predicted: float | None = None
) -> Figure:
    """Losses of the learner's trainings, and how many training digits the nets name right in the end, by seed."""
    fig, (left, right) = figure(12.2, 4.8, columns=2, width_ratios=(5, 4))
    colours = {"plain, 8 layers": GREY, "plain, 20 layers": PALETTE["sky"], "plain, 44 layers": OTHER,
               "residual, 8 layers": THIRD, "residual, 20 layers": PALETTE["orange"],
               "residual, 44 layers": HERO}  # fmt: skip
    for name, losses in yours.items():
        width = 10
        smooth = np.convolve(losses, np.ones(width) / width, mode="valid")
        left.plot(np.arange(len(smooth)) + width, smooth, "-", color=colours[name], linewidth=3)
        lift = 0.22 if name == "plain, 8 layers" else 0.0
        left.text(len(losses) + 4, max(0.12, smooth[-1]) + lift, name, color=colours[name], va="center")
    left.set(xlabel="step", ylabel="training loss, nats", xlim=(0, 2.1 * len(losses)), ylim=(0, 2.6))
    left.set_xticks(range(0, len(losses) + 1, 50))
    left.set_title("Your run")
    for row, (name, values) in enumerate(card.items()):
        right.plot(100 * np.array(values), [-row] * len(values), "o", color=colours[name], markersize=10)
    right.set_yticks([-row for row in range(len(card))], list(card))
    row = -list(card).index("plain, 44 layers")
    prediction(right, predicted, row, (-12 if (predicted or 0) > 85 else 12, -12))
    right.set(
        xlabel="training accuracy (%)",
        xlim=(min(68, (predicted or 100) - 4), 102),
        ylim=(-len(card) + 0.3, 0.5),
    )
    right.set_title("After 1,200 steps, three seeds", loc="right")
    return fig


def few_labels(
    found: Mapping[str, Float[np.ndarray, "draws counts"]],
    counts: Sequence[int],
    yours: Mapping[str, float],
    predicted: float | None = None,
) -> Figure:
    """Accuracy by the number of labelled drawings: means and standard errors over draws, and the learner's own draw."""
    fig, axes = figure(12.2, 5.8)
    across, ways = np.arange(len(counts)), sorted(found, key=lambda way: found[way].mean(0)[-1])
    apart = 5.5 * np.arange(len(ways))  # the labels, as near to the ends of their lines as this allows
    free = np.array([found[way].mean(0)[-1] for way in ways]) - apart
    heights = (np.maximum.accumulate(free) + np.minimum.accumulate(free[::-1])[::-1]) / 2 + apart
    for way, values in found.items():
        colour, error = COLOURS[way], values.std(axis=0, ddof=1) / len(values) ** 0.5
        axes.errorbar(across, values.mean(0), error, fmt="o-", color=colour, linewidth=2.5, capsize=4)
        end, height = values.mean(0)[-1], heights[ways.index(way)]
        axes.plot(across[-1] + np.array([0, 0.12]), [end, height], "-", color=colour, linewidth=1)
        axes.text(across[-1] + 0.14, height, way, color=colour, va="center")
        if way in yours:
            axes.plot(counts.index(2), yours[way], "D", color=colour, markersize=9, markeredgecolor="white")
    axes.axhline(2, color=GREY, linestyle=":", linewidth=1.5)
    axes.text(-0.15, 3, "chance", color=GREY, va="bottom")
    prediction(axes, counts.index(2), predicted)
    axes.set_xticks(across, [str(count) for count in counts])
    axes.set(
        xlim=(-0.2, len(counts) + 0.2),
        ylim=(0, None),
        xlabel="labelled drawings of each of 50 new things, at most",
        ylabel="test accuracy (%)",
    )
    return fig


def by_depth(found: Mapping[str, Float[np.ndarray, "seeds parts"]], parts: Sequence[str]) -> Figure:
    """Test accuracy by how many parts were copied and frozen, from either half; means and single seeds."""
    fig, axes = figure(10.0, 4.8)
    across = np.arange(len(parts))
    for name, style, text in (
        ("B, from scratch", ":", "B from scratch"),
        ("from A, trained, too", "--", "all parts from A, trained, too"),
    ):
        level = float(np.mean(found[name]))
        axes.axhline(level, color=GREY, linestyle=style, linewidth=2)
        axes.text(-0.15, level + 0.1, text, color=GREY, va="bottom")
    for name, colour in (("from B, frozen", OTHER), ("from A, frozen", HERO)):
        values = found[name]
        axes.plot(across, values.mean(0), "-", color=colour, linewidth=3)
        axes.plot(across, values.T, "o", color=colour, markersize=5)
        axes.text(across[-1] + 0.1, values.mean(0)[-1], name, color=colour, va="center")
    axes.set_xticks(across, [f"{part}" if number == 0 else f"+ {part}" for number, part in enumerate(parts)])
    axes.set(xlim=(-0.2, len(parts) - 0.2), ylabel="accuracy on things of B (%)", xlabel="copied parts, frozen")
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
    fig = figure(12.2, 5.4, layout=None)[0]
    fig.clear()
    shown = 8
    grid = fig.add_gridspec(2, shown // 2, left=0.01, right=0.16, top=0.81, bottom=0.61, wspace=0.12, hspace=0.2)
    largest = float(filters.abs().max())
    for number in range(shown):
        axes = fig.add_subplot(grid[divmod(number, shown // 2)])
        axes.imshow(filters[number].numpy(), cmap=DIVERGING, vmin=-largest, vmax=largest)
        bare(axes)
    fig.text(0.01, 0.84, "filters of\nthe stem", weight="bold")
    fig.text(0.01, 0.47, "orange: minus\npurple: plus", color=GREY)
    for depth, channels in enumerate(found):
        left = 0.2 + 0.405 * (depth % 2)
        top = 0.87 - 0.5 * (depth // 2)
        size = fields[depth].size
        fig.text(
            left,
            top + 0.02,
            f"{names[depth]}: sees {f'{size} x {size} pixels' if size < 32 else 'everything'},\n"
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
                axes.spines[:].set(visible=True, linewidth=0.5)
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
            panel.set_title(f"{names[column]}: {100 * float(probable[column]):.0f} %", loc="center", fontsize=12)
            if not column:
                panel.set_ylabel(label, rotation=0, ha="right", va="center", labelpad=8)
    return fig


def occlusion(
    picture: Float[Tensor, "H W"], fallen: Float[Tensor, "h w"], size: int, hits: float, chance: float
) -> Figure:
    """A picture, how much a grey square at each place costs, and where the worst place is, over many scenes."""
    fig, (left, middle, right) = figure(12.2, 4.6, columns=3)
    left.imshow(picture.numpy(), cmap="gray", vmin=0, vmax=1)
    bare(left)
    left.set_title("the image", loc="center")
    drawn = middle.imshow(fallen.numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)
    bare(middle)
    middle.set_title(f"loss of probability,\nsquare of {size}", loc="center")
    fig.colorbar(drawn, ax=middle, shrink=0.8)
    right.bar([0, 1], [100 * chance, 100 * hits], color=[GREY, HERO], width=0.6)
    for position, share in enumerate((chance, hits)):
        right.text(position, 100 * share + 2.5, f"{100 * share:.0f} %", ha="center")
    right.set_xticks([0, 1], ["a random\nposition", "the worst\nposition"])
    right.grid(visible=False, axis="x")
    right.set(ylim=(0, 115))
    right.set_title("in the digit's box,\n60 scenes", loc="center")
    return fig


def probes(
    found: Mapping[str, Sequence[float]], target: Mapping[str, Sequence[float]], names: Sequence[str], predicted=None
) -> Figure:
    """By depth, what a linear probe finds: the digit and the brightness of its ink; and source against target."""
    fig, (left, right) = figure(12.2, 5.2, columns=2)
    across = np.arange(len(names))
    for key, colour, label, position in (
        ("digit", HERO, "which digit?", (2.35, 22)),
        ("brighter", OTHER, "ink brighter\nthan ground?", (0.0, 80)),
    ):
        left.plot(across, 100 * np.array(found[key]), "o-", color=colour, linewidth=3.5)
        left.text(*position, label, color=colour, va="center")
    left.axhline(100 * found["brighter, always the commonest"][0], color=OTHER, linestyle=":", linewidth=1.5)
    left.text(
        0,
        100 * found["brighter, always the commonest"][0] - 2,
        "always the more\nfrequent answer",
        color=OTHER,
        va="top",
    )
    prediction(left, across[-1], predicted, text="your\nprediction")
    left.set_title("Two questions, by depth")
    for values, colour, label, y in (
        (target["source"], THIRD, "its own digits, 0 to 5", 4),
        (target["target"], HERO, "new digits, 6 to 9", -6),
    ):
        right.plot(across, 100 * np.array(values), "o-", color=colour, linewidth=3)
        right.text(0.3, 88 + 1.1 * y, label, color=colour)
    right.set_title("Both rise to the last stage")
    for axes in (left, right):
        axes.set_xticks(across, [name.replace(" ", "\n") for name in names])
        axes.set(ylim=(0, 103), ylabel="accuracy of a linear probe (%)")
    return fig


def accidents(found: Mapping[str, Mapping]) -> Figure:
    """What each of three accidents costs, in the accuracy on the old task; the third on the new one, too."""
    fig, panels = figure(12.2, 5.0, columns=3)
    for axes, key, title in (
        (panels[0], "norms", "Batch norms\nthat change"),
        (panels[1], "pixels", "Other\nnormalisation"),
    ):
        for row, (name, value) in enumerate(found[key].items()):
            axes.barh(-row, value, height=0.45, color=HERO if not row else OTHER)
            axes.text(1, -row + 0.27, name, va="bottom")
            inside = value > 12
            place = {"x": value - 2, "color": "white", "ha": "right"} if inside else {"x": value + 2, "color": OTHER}
            axes.text(s=f"{value:.0f}", y=-row, va="center", **place)
        axes.set(yticks=[], xticks=(0, 40, 80))
        axes.set(xlim=(0, 103), ylim=(-len(found[key]) + 0.6, 0.75), xlabel="accuracy, old task (%)")
        axes.set_title(title)
    rates = list(found["rates"])
    for number, (name, colour) in enumerate((("new task", HERO), ("old task", OTHER))):
        values = [found["rates"][rate][number] for rate in rates]
        panels[2].plot(range(len(rates)), values, "o-", color=colour, linewidth=3)
        panels[2].text(1.05, values[1] + 5, name, color=colour)
    panels[2].set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
    panels[2].set(ylim=(0, 103), xlabel="learning rate of all layers", ylabel="accuracy (%)")
    panels[2].set_title("Learning rate\ntoo high")
    return fig
