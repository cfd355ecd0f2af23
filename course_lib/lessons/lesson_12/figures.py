"""The figures of lesson 12: windows that move, who may attend, how far that reaches and what it costs."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, PREDICTION, bare, image, patch_lines, prediction, seed_dots
from course_lib.viz.style import DIVERGING, GREY, PALETTE, SEQUENTIAL, figure

PIECES = ListedColormap([PALETTE[name] for name in ("sky", "orange", "green", "purple")])


def guesses(
    pictures: Float[Tensor, "B H W"], probs: Float[Tensor, "B classes"], labels: Sequence[int] | Tensor
) -> Figure:
    """A row of pictures, under each the likeliest class and its share; a wrong one says so."""
    fig, panels = figure(7.2, 1.9, columns=len(pictures), layout=None)
    fig.subplots_adjust(left=0.01, right=0.99, top=0.98, bottom=0.3, wspace=0.08)
    for axes, picture, row, label in zip(panels, pictures, probs, labels, strict=True):
        best = int(row.argmax())
        image(axes, picture)
        wrong = "" if best == int(label) else "\nwrong"
        axes.set_xlabel(f"{best}: {100 * row[best]:.0f} %{wrong}", fontsize=12, labelpad=2)
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
    titles = ("Cut into windows", "Stage 1: 8 x 8", "Stage 2: 4 x 4", "It says")
    for title, axes in zip(titles, panels[0], strict=True):
        axes.set_title(title, fontsize=14)
    for row, picture, found, share, name in zip(panels, pictures, stages, probs, names, strict=True):
        image(row[0], picture)
        patch_lines(row[0], picture.shape[0], 8, width=0.6)
        patch_lines(row[0], picture.shape[0], 2, width=3)
        row[0].set_ylabel(name, fontsize=13)
        for axes, stage in zip(row[1:3], found, strict=True):
            axes.imshow(stage.numpy(), cmap=SEQUENTIAL)
            bare(axes)
        best = int(share.argmax())
        row[3].bar(range(10), 100 * share.numpy(), color=[HERO if digit == best else GREY for digit in range(10)])
        row[3].set_xticks(range(10))
        row[3].set(ylim=(0, 105), ylabel="%")
    return fig


def cost(
    sides: Sequence[int],
    operations: Mapping[str, Sequence[float]],
    seconds: Mapping[str, Sequence[float]],
    predicted: float | None = None,
) -> Figure:
    """Operations and milliseconds for one picture against its side; the prediction is what ViT's work grows by."""
    fig, panels = figure(12, 4.6, columns=2)
    scaled = (1e-9, operations), (1e3, seconds)
    for axes, (factor, curves) in zip(panels, scaled, strict=True):
        for (name, values), colour in zip(curves.items(), (OTHER, HERO), strict=True):
            axes.plot(sides, [factor * value for value in values], "o-", color=colour)
            axes.text(sides[-1] * 1.08, factor * values[-1], name, color=colour, va="center", fontsize=14)
        axes.set(xscale="log", yscale="log", xlabel="side of the picture, pixels")
        axes.set_xticks(sides, [str(side) for side in sides])
        axes.minorticks_off()
        axes.set_xlim(right=sides[-1] * 1.6)
    panels[0].set(title="Counted: Swin's line has slope 2", ylabel="operations, thousand million")
    panels[1].set(title="Timed, here and now", ylabel="milliseconds for one picture")
    if predicted is not None:
        guess = predicted * operations["ViT"][sides.index(64)] * 1e-9
        prediction(panels[0], 256, guess, (-12, 0))
    return fig


def mechanism(
    picture: Float[Tensor, "H W"],
    rolled: Float[Tensor, "H W"],
    pieces: Int[Tensor, "h w"],
    masks: Bool[Tensor, "nW M2 M2"],
) -> Figure:
    """Windows before the shift, after it, rolled together; and for each window which of its places may attend."""
    fig = figure(12.2, 4.7, layout=None)[0]
    fig.clear()
    side, patches = picture.shape[0], len(pieces)
    for number, title in enumerate(("1  four windows", "2  moved: nine pieces", "3  rolled: four again")):
        axes = fig.add_axes((0.01 + 0.25 * number, 0.17, 0.235, 0.66))
        image(axes, rolled if number == 2 else picture)
        axes.set_title(title, fontsize=14)
        if number:
            shown = pieces if number == 2 else pieces.roll((2, 2), dims=(0, 1))
            coloured = np.kron(shown.numpy(), np.ones((side // patches,) * 2))
            axes.imshow(coloured, cmap=PIECES, vmin=0, vmax=3, alpha=0.45)
        patch_lines(axes, side, patches, width=0.4)
        borders = (side // 4, 3 * side // 4) if number == 1 else (side // 2,)
        for border in borders:
            axes.axhline(border - 0.5, color=PALETTE["yellow"], linewidth=3.5)
            axes.axvline(border - 0.5, color=PALETTE["yellow"], linewidth=3.5)
    text = "one square: a patch of 4 x 4 pixels       one colour: what came from one side of the picture"
    fig.text(0.01, 0.08, text, fontsize=12, color=GREY)
    fig.text(0.77, 0.925, "4  who may attend", fontsize=14, weight="bold")
    fig.text(0.77, 0.865, "query (row), key (column)", fontsize=12, color=GREY)
    for number, mask in enumerate(masks):
        row, column = divmod(number, 2)
        axes = fig.add_axes((0.77 + 0.118 * column, 0.57 - 0.37 * row, 0.105, 0.27))
        axes.imshow(mask.numpy(), cmap=ListedColormap(["#DDDDDD", HERO]), vmin=0, vmax=1)
        bare(axes)
        name = ("top left", "top right", "bottom left", "bottom right")[number]
        axes.set_xlabel(f"{name}: {int(mask.sum())}", fontsize=11, labelpad=2)
    fig.text(0.77, 0.01, "blue pairs of 256; before the\nshift all of them are blue", fontsize=12, color=GREY)
    return fig


def reads(yours: float, seeds: Sequence[float], steps: int, all_steps: int, pictures, probs) -> Figure:
    """Left: what was trained here beside longer trainings; right: test digits with the surest wrong answers last."""
    fig = figure(12, 3.9, layout=None)[0]
    fig.clear()
    axes = fig.add_axes((0.07, 0.17, 0.27, 0.68))
    axes.plot([0], [100 * yours], "*", color=HERO, markersize=20)
    seed_dots(axes, 1, [100 * value for value in seeds], markersize=10)
    axes.set_xticks([0, 1], [f"yours,\n{steps} steps", f"three seeds,\n{all_steps:,} steps"])
    axes.set(xlim=(-0.5, 1.5), ylim=(60, 101), ylabel="% of test digits right")
    axes.set_title("It reads, windows only")
    for number, (picture, row) in enumerate(zip(pictures.pixels[:, 0], probs, strict=True)):
        line, position = divmod(number, 5)
        axes = fig.add_axes((0.4 + 0.12 * position, 0.54 - 0.47 * line, 0.11, 0.34))
        image(axes, picture)
        best, label = int(row.argmax()), int(pictures.labels[number])
        said = f"{best}: {100 * row[best]:.0f} %" + ("" if best == label else f", is {label}")
        axes.set_xlabel(said, fontsize=12, labelpad=3, color="black" if best == label else OTHER)
    fig.text(0.4, 0.92, "The first five, and the five of which it was least sure", fontsize=15, weight="bold")
    return fig


def reach(
    plain: Sequence[Bool[Tensor, "H W"]], shifted: Sequence[Bool[Tensor, "H W"]], predicted: float | None = None
) -> Figure:
    """Which patches reach one, for each number of blocks, without shifts and with them."""
    fig, panels = figure(11.5, 5.5, rows=2, columns=len(plain))
    for row, name, colour, reached in zip(
        panels, ("never moved", "moved"), (OTHER, HERO), (plain, shifted), strict=True
    ):
        for number, (axes, map_) in enumerate(zip(row, reached, strict=True), start=1):
            axes.imshow(map_.numpy(), cmap=ListedColormap(["#E6E6E6", colour]), vmin=0, vmax=1)
            axes.plot([3], [3], "o", color="white", markersize=9)
            patch_lines(axes, 8, 8, width=0.6, colour="white")
            bare(axes)
            axes.set_title(f"{number} block{'s' if number > 1 else ''}: {int(map_.sum())}", fontsize=14)
        row[0].set_ylabel(f"windows {name}", fontsize=14)
    if predicted is not None:
        panels[1][2].set_xlabel(f"your prediction: {predicted:.0f}", color=PREDICTION, fontsize=14)
    return fig


def shifted(
    picture: Float[Tensor, "H W"],
    losses: Mapping[str, Sequence[float]],
    right: Mapping[str, float],
    digits: Mapping[str, Sequence[float]],
    predicted: float | None = None,
) -> Figure:
    """Marks on either side of a border: a picture, and two trainings; on the right digits, three seeds of each."""
    fig, panels = figure(12.2, 4.4, columns=3, gridspec_kw={"width_ratios": (0.62, 1.2, 1)})
    image(panels[0], picture)
    patch_lines(panels[0], picture.shape[0], 2, width=3)
    panels[0].set_title("Alike or not?")
    panels[0].set_xlabel("windows: yellow lines", fontsize=12)
    for (name, values), colour in zip(losses.items(), (HERO, OTHER), strict=True):
        smooth = np.array(values[: len(values) // 10 * 10]).reshape(-1, 10).mean(axis=1)
        panels[1].plot(np.arange(len(smooth)) * 10 + 5, smooth, "-", color=colour)
        y = smooth[-1] + (0.05 if name == "moved" else -0.07)
        text = f"{name}: {100 * right[name]:.0f} % right"
        panels[1].text(len(values), y, text, color=colour, ha="right")
    panels[1].axhline(np.log(2), color=GREY, linestyle=":", linewidth=1.5)
    panels[1].set(title="Marks, trained here", xlabel="step", ylabel="loss, nats", ylim=(0, 0.8))
    pairs = list(zip(digits["never moved"], digits["moved"], strict=True))
    for pair in pairs:
        panels[2].plot([0, 1], [100 * value for value in pair], "-", color=GREY, linewidth=1)
    for position, (name, colour) in enumerate((("never moved", OTHER), ("moved", HERO))):
        seed_dots(panels[2], position, [100 * value for value in digits[name]], colour, markersize=11)
    panels[2].set_xticks([0, 1], ["never moved", "moved"])
    panels[2].set(title="Digits, three seeds", xlim=(-0.5, 1.4), ylim=(40, 100), ylabel="% right")
    if predicted is not None:
        prediction(panels[2], 0, predicted, (-12, 0))
        panels[2].set_xlim(left=-1.1)
    return fig


def bias(tables: Sequence[Float[Tensor, "offsets offsets"]], names: Sequence[str]) -> Figure:
    """Each head's learned bias by offset, the key's place seen from the query in the middle."""
    fig, panels = figure(12, 4.5, rows=2, columns=(len(tables) + 1) // 2)
    largest = max(float(table.abs().max()) for table in tables)
    reach = (tables[0].shape[0] - 1) // 2
    for axes, table, name in zip(panels.T.flat, tables, names, strict=True):
        drawn = axes.imshow(table.numpy(), cmap=DIVERGING, vmin=-largest, vmax=largest)
        axes.plot([reach], [reach], "o", color="black", markersize=5)
        axes.set_title(name, fontsize=12)
        bare(axes)
    fig.colorbar(drawn, ax=panels, shrink=0.8, label="added to the score")
    return fig


def switches(right: Mapping[str, float], predicted: float | None = None) -> Figure:
    """Bars: digits named right with one part at a time taken away."""
    fig, axes = figure(10, 4.2)
    names = list(right)[::-1]
    values = [100 * right[name] for name in names]
    axes.barh(names, values, color=[HERO if name == "as it is" else OTHER for name in names], height=0.62)
    for position, value in enumerate(values):
        axes.text(value + 1, position, f"{value:.0f}", va="center", fontsize=14)
    axes.set(xlim=(0, 108), xlabel="% of test digits right, nothing trained anew")
    axes.set_title("What this net leans on")
    axes.grid(visible=False, axis="y")
    if predicted is not None:
        position = names.index("mask off")
        axes.plot([predicted], [position], "*", color=PREDICTION, markersize=18)
        axes.text(
            predicted - 2 if predicted > 15 else predicted + 2,
            position,
            "your prediction",
            color="white",
            va="center",
            ha="right" if predicted > 15 else "left",
        )
    return fig
