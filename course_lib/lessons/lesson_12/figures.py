"""The figures of lesson 12: cost, shifted windows and their mask, receptive fields, and what a network relies on."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, PREDICTION, bare, image, patch_lines, prediction, seed_dots
from course_lib.viz.style import DIVERGING, GREY, SEQUENTIAL, figure

NINE = ("#BFDDF2", "#F6C28B", "#A9DFC8", "#F1B8D3", "#F6F1A7", "#C9C2EA", "#E4E4E4", "#F4A79A", "#8FB8DE")


def guesses(
    pictures: Float[Tensor, "B H W"], probs: Float[Tensor, "B classes"], labels: Sequence[int] | Tensor
) -> Figure:
    """A row of images, under each the most probable class with its probability; a wrong one says so."""
    fig, panels = figure(7.2, 1.9, columns=len(pictures), layout=None)
    fig.subplots_adjust(left=0.01, right=0.99, top=0.98, bottom=0.3, wspace=0.08)
    for axes, picture, row, label in zip(panels, pictures, probs, labels, strict=True):
        best = int(row.argmax())
        image(axes, picture)
        wrong = "" if best == int(label) else "\nwrong"
        axes.set_xlabel(f"{best}: {100 * row[best]:.0f} %{wrong}", labelpad=2)
    return fig


def maps(
    pictures: Sequence[Float[Tensor, "H W"]],
    stages: Sequence[Sequence[Float[Tensor, "h w"]]],
    probs: Sequence[Float[Tensor, " classes"]],
    names: Sequence[str],
) -> Figure:
    """A row for each picture: cut into windows, what each stage's map holds of it, and the class."""
    fig, panels = figure(
        11,
        2.55 * len(pictures),
        rows=len(pictures),
        columns=4,
        squeeze=False,
        gridspec_kw={"width_ratios": (1, 1, 1, 1.45)},
    )
    titles = ("Four windows", "Stage 1: 8 x 8", "Stage 2: 4 x 4", "Predicted class")
    for title, axes in zip(titles, panels[0], strict=True):
        axes.set_title(title, fontsize=12)
    for row, picture, found, share, name in zip(panels, pictures, stages, probs, names, strict=True):
        image(row[0], picture)
        patch_lines(row[0], picture.shape[0], 8, width=0.6)
        patch_lines(row[0], picture.shape[0], 2, width=3)
        row[0].set_ylabel(name)
        for axes, stage in zip(row[1:3], found, strict=True):
            axes.imshow(stage.numpy(), cmap=SEQUENTIAL)
            bare(axes)
        best = int(share.argmax())
        row[3].bar(range(10), 100 * share.numpy(), color=[HERO if digit == best else GREY for digit in range(10)])
        row[3].set_xticks(range(10))
        row[3].set(ylim=(0, 105), ylabel="probability, %")
    return fig


def cost(
    sides: Sequence[int],
    operations: Mapping[str, Sequence[float]],
    seconds: Mapping[str, Sequence[float]],
    predicted: float | None = None,
) -> Figure:
    """Operations and milliseconds for an image against its side; the prediction is the growth of the ViT."""
    fig, panels = figure(12, 4.6, columns=2)
    scaled = (1e-9, operations), (1e3, seconds)
    for axes, (factor, curves) in zip(panels, scaled, strict=True):
        for (name, values), colour in zip(curves.items(), (OTHER, HERO), strict=True):
            axes.plot(sides, [factor * value for value in values], "o-", color=colour)
            axes.text(sides[-1] * 1.13, factor * values[-1], name, color=colour, va="center")
        axes.set(xscale="log", yscale="log", xlabel="side of the image, pixels")
        axes.set_xticks(sides, [str(side) for side in sides])
        axes.minorticks_off()
        axes.set_xlim(right=sides[-1] * 1.6)
    panels[0].set(title="Counted: the slope of Swin is 2", ylabel="operations, billions")
    panels[1].set(title="Timed on this machine", ylabel="milliseconds for an image")
    if predicted is not None:
        guess = predicted * operations["ViT"][sides.index(64)] * 1e-9
        prediction(panels[0], 256, guess, (-12, 0))
    return fig


def mechanism(pieces: Int[Tensor, "h w"], size: int, shift: int, masks: Bool[Tensor, "nW M2 M2"]) -> Figure:
    """Nine pieces of a feature map before and after the roll, and which pairs may attend in each rolled window."""
    fig = figure(12.2, 6.0, layout=None)[0]
    fig.clear()
    side = len(pieces)
    shown = (pieces, pieces, pieces.roll((-shift, -shift), dims=(0, 1)))
    cuts = ((size,), (shift, size + shift), (size,))
    titles = ("1  four windows", "2  shifted: nine pieces", "3  rolled: four windows")
    for number, (map_, borders, title) in enumerate(zip(shown, cuts, titles, strict=True)):
        axes = fig.add_axes((0.01 + 0.275 * number, 0.42, 0.25, 0.508))
        axes.imshow(map_.numpy(), cmap=ListedColormap(NINE), vmin=0, vmax=8)
        for row in range(side):
            for column in range(side):
                letter = "ABCDEFGHI"[map_[row, column]]
                axes.text(column, row, letter, ha="center", va="center")
        patch_lines(axes, side, side, width=0.6, colour="white")
        for border in borders:
            axes.axhline(border - 0.5, color="black", linewidth=3.5)
            axes.axvline(border - 0.5, color="black", linewidth=3.5)
        bare(axes)
        axes.set_title(title, fontsize=12)
    told = "a square:\na position\n\na letter:\na piece of the\nshifted partition\n\nblack: borders\nof windows"
    fig.text(0.825, 0.928, told, color=GREY, va="top")
    fig.text(0.01, 0.335, "4  pairs that may attend", weight="bold", va="top")
    fig.text(0.01, 0.26, "query (row), key (column)\nblue: allowed,\nof 256 pairs", color=GREY, va="top")
    for number, mask in enumerate(masks):
        axes = fig.add_axes((0.312 + 0.179 * number, 0.08, 0.124, 0.252))
        axes.imshow(mask.numpy(), cmap=ListedColormap(["#DDDDDD", HERO]), vmin=0, vmax=1)
        bare(axes)
        name = ("top left", "top right", "bottom left", "bottom right")[number]
        axes.set_xlabel(f"{name}: {int(mask.sum())}", labelpad=3)
    return fig


def reads(yours: float, seeds: Sequence[float], steps: int, all_steps: int, pictures, probs) -> Figure:
    """Left: the network trained here beside longer trainings; right: test digits, the least confident ones last."""
    fig = figure(12, 4.6, layout=None)[0]
    fig.clear()
    axes = fig.add_axes((0.08, 0.17, 0.26, 0.72))
    axes.plot([0], [100 * yours], "*", color=HERO, markersize=18)
    seed_dots(axes, 1, [100 * value for value in seeds], markersize=10)
    axes.set_xticks([0, 1], [f"yours,\n{steps} steps", f"shipped recipe,\n{all_steps:,} steps"])
    axes.set(xlim=(-0.5, 1.5), ylim=(60, 101), ylabel="accuracy, % of test digits")
    axes.set_title("Trained on the page")
    for number, (picture, row) in enumerate(zip(pictures.pixels[:, 0], probs, strict=True)):
        line, position = divmod(number, 5)
        axes = fig.add_axes((0.39 + 0.122 * position, 0.57 - 0.44 * line, 0.115, 0.3))
        image(axes, picture)
        best, label = int(row.argmax()), int(pictures.labels[number])
        said = f"{best}: {100 * row[best]:.0f} %" + ("" if best == label else f"\nis {label}")
        axes.set_xlabel(said, labelpad=3, color="black" if best == label else OTHER)
    fig.text(0.39, 0.92, "The first five digits, and the five least confident", fontsize=13, weight="bold")
    return fig


def reach(
    plain: Sequence[Bool[Tensor, "H W"]], shifted: Sequence[Bool[Tensor, "H W"]], predicted: float | None = None
) -> Figure:
    """The theoretical receptive field of a position for each number of blocks, without shifts and with them."""
    fig, panels = figure(11.5, 5.9, rows=2, columns=len(plain))
    for row, name, colour, reached in zip(
        panels, ("never shifted", "shifted"), (OTHER, HERO), (plain, shifted), strict=True
    ):
        for number, (axes, map_) in enumerate(zip(row, reached, strict=True), start=1):
            axes.imshow(map_.numpy(), cmap=ListedColormap(["#E6E6E6", colour]), vmin=0, vmax=1)
            axes.plot([3], [3], "o", color="white", markersize=9)
            patch_lines(axes, 8, 8, width=0.6, colour="white")
            bare(axes)
            axes.set_title(f"{number} block{'s' if number > 1 else ''}: {int(map_.sum())}", fontsize=12)
        row[0].set_ylabel(name)
    if predicted is not None:
        panels[1][2].set_xlabel(f"your prediction: {predicted:.0f}", color=PREDICTION)
    return fig


def shifted(
    picture: Float[Tensor, "H W"],
    losses: Mapping[str, Sequence[float]],
    right: Mapping[str, float],
    digits: Mapping[str, Sequence[float]],
    predicted: float | None = None,
) -> Figure:
    """Marks on either side of a border: an image, and two trainings; on the right digits, three seeds of each."""
    fig, panels = figure(12.2, 4.4, columns=3, gridspec_kw={"width_ratios": (0.7, 1.2, 1)})
    image(panels[0], picture)
    patch_lines(panels[0], picture.shape[0], 2, width=3)
    panels[0].set_title("Equal or not?")
    panels[0].set_xlabel("yellow: borders\nof windows")
    for (name, values), colour in zip(losses.items(), (HERO, OTHER), strict=True):
        smooth = np.array(values[: len(values) // 10 * 10]).reshape(-1, 10).mean(axis=1)
        panels[1].plot(np.arange(len(smooth)) * 10 + 5, smooth, "-", color=colour)
        above, gap = (0.13, "\n") if name == "shifted" else (0.05, " ")
        text = f"{name}:{gap}{100 * right[name]:.0f} % right"
        panels[1].text(len(values), smooth[-1] + above, text, color=colour, ha="right")
    panels[1].axhline(np.log(2), color=GREY, linestyle=":", linewidth=1.5)
    panels[1].set(title="Marks, trained here", xlabel="step", ylabel="loss, nats", ylim=(0, 0.8))
    pairs = list(zip(digits["never shifted"], digits["shifted"], strict=True))
    for pair in pairs:
        panels[2].plot([0, 1], [100 * value for value in pair], "-", color=GREY, linewidth=1)
    for position, (name, colour) in enumerate((("never shifted", OTHER), ("shifted", HERO))):
        seed_dots(panels[2], position, [100 * value for value in digits[name]], colour)
    panels[2].set_xticks([0, 1], ["never\nshifted", "shifted"])
    panels[2].set(title="Digits, three seeds", xlim=(-0.5, 1.4), ylim=(40, 100), ylabel="accuracy, %")
    if predicted is not None:
        prediction(panels[2], 0, predicted, (-12, 0), "your\nprediction")
        panels[2].set_xlim(left=-1.4)
    return fig


def effective(
    fields: Mapping[str, Float[Tensor, "h w"]], positions: Mapping[str, tuple[float, float]], reached: int
) -> Figure:
    """The theoretical receptive field of a position, and effective ones in percent of their sum."""
    fig, panels = figure(12, 4.5, columns=1 + len(fields))
    side = next(iter(fields.values())).shape[0]
    panels[0].imshow(np.ones((side, side)), cmap=ListedColormap([HERO]))
    panels[0].set_title(f"theoretical: {reached} of {side**2}", fontsize=12)
    for axes, (name, field) in zip(panels[1:], fields.items(), strict=True):
        axes.imshow(field.numpy(), cmap=SEQUENTIAL, vmin=0, vmax=float(field.max()))
        for row in range(side):
            for column in range(side):
                value = float(field[row, column])
                ink = "white" if value < 0.5 * float(field.max()) else "black"
                axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=ink)
        axes.set_title(name, fontsize=12)
    for axes, (row, column) in zip(panels, [next(iter(positions.values())), *positions.values()], strict=True):
        half = 1 if row % 1 else 0.5  # a position of stage 2 has 2 x 2 patches
        place = (column - half, row - half)
        axes.add_patch(Rectangle(place, 2 * half, 2 * half, facecolor="none", edgecolor=OTHER, linewidth=2.5))
        bare(axes)
    return fig


def networks(
    accuracy: Mapping[str, Sequence[float]],
    facts: Mapping[str, Sequence[str]],
    headings: Sequence[str],
    predicted: float | None = None,
) -> Figure:
    """A row for each network: what it costs, its feature maps, and the accuracy of each seed."""
    fig = figure(12.2, 3.6, layout=None)[0]
    fig.clear()
    axes = fig.add_axes((0.61, 0.24, 0.37, 0.62))
    for row, (name, values) in enumerate(accuracy.items()):
        y = len(accuracy) - 1 - row
        axes.plot([100 * value for value in values], [y] * len(values), "o", color=HERO, markersize=9)
        height = 0.24 + 0.62 * (y + 0.5) / len(accuracy)
        for x, text in zip((0.01, 0.11, 0.27, 0.43), (name, *facts[name]), strict=True):
            fig.text(x, height, text, va="center", weight="bold" if x == 0.01 else "normal")
    for x, text in zip((0.11, 0.27, 0.43), headings, strict=True):
        fig.text(x, 0.93, text, va="center", color=GREY)
    axes.set(ylim=(-0.5, len(accuracy) - 0.5), yticks=[], xlabel="accuracy on new drawings, %", xlim=(0, 75))
    if predicted is not None:
        prediction(axes, predicted, len(accuracy) - 1 - list(accuracy).index("Swin"), (0, 12))
    return fig


def bias(
    tables: Sequence[Float[Tensor, "offsets offsets"]],
    names: Sequence[str],
    rings: Float[Tensor, "heads rings"],
    shown: Sequence[int],
) -> Figure:
    """The learned bias of a few heads by offset, and its mean by distance for all heads."""
    fig = figure(12.2, 4.2)[0]
    fig.clear()
    grid = fig.add_gridspec(1, 2, width_ratios=(1.9, 1))
    panels = [fig.add_subplot(cell) for cell in (*grid[0].subgridspec(1, len(shown)), grid[1])]
    largest = max(float(tables[number].abs().max()) for number in shown)
    middle = (tables[0].shape[0] - 1) // 2
    for axes, number in zip(panels, shown, strict=False):
        drawn = axes.imshow(tables[number].numpy(), cmap=DIVERGING, vmin=-largest, vmax=largest)
        axes.plot([middle], [middle], "o", color="black", markersize=5)
        axes.set_title(names[number].replace(", head", ",\nhead"), fontsize=12, loc="center", weight="normal")
        bare(axes)
    fig.colorbar(
        drawn,
        ax=panels[:-1],
        shrink=0.8,
        pad=0.04,
        ticks=(-0.5, 0, 0.5),
        location="bottom",
        label="added to the score",
    )
    for row in rings:
        panels[-1].plot(range(len(row)), row.tolist(), "-o", color=GREY, linewidth=1, markersize=4)
    panels[-1].plot(range(rings.shape[1]), rings.mean(dim=0).tolist(), "-o", color=HERO, linewidth=3)
    panels[-1].axhline(0, color=GREY, linewidth=1, linestyle=":")
    panels[-1].set(title=f"{len(rings)} heads, mean in blue", xlabel="distance of the key", ylabel="mean bias")
    panels[-1].set_xticks(range(rings.shape[1]))
    return fig


def switches(right: Mapping[str, float], predicted: float | None = None) -> Figure:
    """Bars: the accuracy on digits with one part at a time removed."""
    fig, axes = figure(10, 4.2)
    names = list(right)[::-1]
    values = [100 * right[name] for name in names]
    axes.barh(names, values, color=[HERO if name == "as trained" else OTHER for name in names], height=0.62)
    for position, value in enumerate(values):
        axes.text(value + 1, position, f"{value:.0f}", va="center")
    axes.set(xlim=(0, 108), xlabel="accuracy on test digits, %, no retraining")
    axes.set_title("Parts removed from the trained network")
    axes.grid(visible=False, axis="y")
    if predicted is not None:
        position = names.index("no mask")
        axes.plot([predicted], [position], "*", color=PREDICTION, markersize=18)
        axes.text(
            predicted - 2 if predicted > 35 else predicted + 2,
            position,
            "your prediction",
            color="white",
            va="center",
            ha="right" if predicted > 35 else "left",
        )
    return fig
