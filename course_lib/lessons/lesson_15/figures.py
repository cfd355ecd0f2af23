"""The figures of lesson 15: who took over what, tones under CTC, walks through a maze, gates, costs and dreams."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.data.mazes import Maze, Walks
from course_lib.viz.marks import HERO, OTHER, PREDICTION
from course_lib.viz.style import GREY, PALETTE, SEQUENTIAL, figure

FIELDS = (  # field, what did it before with its year, the Transformers that took over
    ("translation", (("LSTM", 2014),), (("Transformer", 2017.45),)),
    ("language", (("word vectors", 2013),), (("BERT", 2018.8), ("T5", 2019.8))),
    ("pictures", (("AlexNet", 2012), ("ResNet", 2015.9)), (("ViT", 2020.8), ("Swin", 2021.9))),
    ("speech", (("hidden Markov models", 2006), ("deep RNN + CTC", 2013)), (("Conformer", 2020.4),)),
    ("control", (("GAIL", 2016),), (("Decision Transformer", 2021.4),)),
    ("pictures, words", (("CNN + LSTM", 2015),), (("ViLBERT", 2019.6), ("Flamingo", 2022.3))),
    ("no labels", (("stacks of RBMs", 2006),), (("GPT", 2018.4), ("MAE", 2021.9))),
)
KINDS = {"softmax": GREY, "local": PALETTE["orange"], "linear": HERO}


def timeline() -> Figure:
    """A row for each field: what did the work before, and the Transformers that took over."""
    fig, axes = figure(12.2, 5.6)
    for row, (name, before, after) in enumerate(FIELDS):
        y = len(FIELDS) - row
        axes.plot([before[0][1], after[0][1]], [y, y], color=GREY, linewidth=3, linestyle="-", alpha=0.5)
        axes.plot([after[0][1], 2023.6], [y, y], color=HERO, linewidth=6, linestyle="-")
        for marks, colour in ((before, GREY), (after, HERO)):
            for label, year in marks:
                axes.plot([year], [y], "o", color=colour, markersize=11)
                axes.text(year, y + 0.2, label, ha="center", va="bottom", color=colour)
        axes.text(2004.6, y, name, ha="right", va="center", fontsize=14)
    axes.axvline(2017.45, color=GREY, linewidth=1, linestyle=":")
    axes.set(xlim=(2004.8, 2024), ylim=(0.5, len(FIELDS) + 0.9), yticks=[], xticks=range(2006, 2024, 2))
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.set_title("Where Transformers came in, and what was there before")
    return fig


def spikes(
    frames: Float[Tensor, "T F"], probs: Float[Tensor, "t V"], names: Sequence[str], begins: Sequence[int]
) -> Figure:
    """A melody as it is heard, and what the network says in each frame."""
    fig, (above, below) = figure(12.2, 5.0, rows=2)
    above.imshow(frames.T.numpy(), origin="lower", aspect="auto", cmap=SEQUENTIAL)
    above.set(title="What is heard: 24 bands, a frame each 10 ms", yticks=[], ylabel="pitch")
    above.grid(visible=False)
    for position in begins:
        above.axvline(position, color="white", linewidth=1, linestyle=":")
    times = 4 * np.arange(len(probs)) + 1.5
    below.fill_between(times, 0, probs[:, 0].numpy(), color=GREY, alpha=0.25, linewidth=0)
    below.text(times[-1], 0.86, "blank", color=GREY, ha="right")
    colours = [PALETTE[name] for name in ("blue", "sky", "green", "orange", "purple", "black", "yellow", "vermilion")]
    for label, name in enumerate(names, start=1):
        peak = probs[:, label].numpy()
        if peak.max() < 0.3:
            continue
        colour = colours[(label - 1) % len(colours)]
        below.plot(times, peak, color=colour, linestyle="-")
        for t in range(len(peak)):
            before, after = peak[t - 1] if t else 0, peak[t + 1] if t + 1 < len(peak) else 0
            if peak[t] > 0.3 and peak[t] >= before and peak[t] > after:
                below.text(times[t], 1.03, name, color=colour, ha="center", fontsize=14, weight="bold")
    below.set(xlim=above.get_xlim(), ylim=(0, 1.25), xlabel="frames of 10 ms", ylabel="probability")
    below.set_title("What it writes: a few frames for each tone, blank between them")
    return fig


def draw_maze(axes: Axes, maze: Maze) -> None:
    """Walls and ways."""
    axes.imshow(np.where(maze.walls.numpy(), 0.25, 0.97), cmap="gray", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def draw_walk(axes: Axes, maze: Maze, walks: Walks, row: int, title: str, colour: str = HERO) -> None:
    """One walk through the maze, and its goal."""
    draw_maze(axes, maze)
    length = int(walks.valid[row].sum())
    cells = walks.cells[row, :length].tolist()
    if walks.reached[row]:
        cells.append(int(walks.goals[row]))
    y, x = maze.cells[cells].T.numpy() + np.linspace(-0.22, 0.22, len(cells))
    axes.plot(x, y, color=colour, linestyle="-", linewidth=2.5)
    axes.plot(x[0], y[0], "o", color=colour, markersize=11, linestyle="none")
    goal = maze.cells[walks.goals[row]].tolist()
    axes.plot(goal[1], goal[0], "*", color=PALETTE["orange"], markersize=20, markeredgecolor="black")
    axes.set_title(title, fontsize=14)


def walking(maze: Maze, shown: Sequence[tuple[str, Walks]]) -> Figure:
    """While it trains: the same start and goal, asked for several returns."""
    fig, panels = figure(6.4, 2.6, columns=len(shown))
    for axes, (title, walks) in zip(panels, shown, strict=True):
        draw_walk(axes, maze, walks, 0, title)
    return fig


def asked(
    maze: Maze,
    shown: Sequence[tuple[str, Walks]],
    wanted: Sequence[float],
    got: Sequence[Sequence[float]],
    reached: Mapping[str, Sequence[float]],
    predicted: float | None,
) -> Figure:
    """Walks by what was asked for; return got against return asked for; who reaches the goal."""
    fig, panels = figure(12.2, 5.0, columns=3, width_ratios=(0.9, 1.05, 1.25))
    draw_walk(panels[0], maze, shown[-1][1], 0, shown[-1][0], OTHER)
    draw_walk(panels[0], maze, shown[0][1], 0, f"blue: {shown[0][0]}\nred: {shown[-1][0]}")
    axes = panels[1]
    axes.plot(wanted, wanted, color=GREY, linestyle=":", linewidth=1.5)
    for values in got:
        axes.plot(wanted, values, "o-", color=HERO, linewidth=2, alpha=0.7)
    axes.set(xlabel="return asked for", ylabel="return got", title="It gets what it is asked for")
    axes = panels[2]
    for row, (name, values) in enumerate(reversed(reached.items())):
        hero = name == "Decision Transformer"
        axes.plot([100 * value for value in values], [row] * len(values), "o", color=HERO if hero else OTHER, ms=10)
    axes.set_yticks(range(len(reached)), [name.replace(", best", ",\nbest") for name in reversed(reached)])
    axes.set(xlim=(0, 103), xlabel="walks that reach the goal, %", title="Three seeds each")
    if predicted is not None:
        axes.axvline(predicted, color=PREDICTION, linestyle="--")
        axes.text(predicted + 2, 0.5, "your prediction", color=PREDICTION)
    return fig


def gates(
    pictures: Float[Tensor, "N S S"], said: Sequence[tuple[str, str, str]], factors: Sequence[float],
    right: Mapping[str, Sequence[float]],
) -> Figure:  # fmt: skip
    """Scenes with what is written with shut and with open gates; words right as the gates open."""
    fig, panels = figure(12.2, 5.2, columns=2, width_ratios=(1.5, 1))
    panels[0].axis("off")
    for row, (picture, (true, blind, seeing)) in enumerate(zip(pictures, said, strict=True)):
        y = 1 - (row + 1) / len(said)
        inset = panels[0].inset_axes((0.0, y + 0.02, 0.2, 1 / len(said) - 0.04))
        inset.imshow(picture.numpy(), cmap="gray", vmin=0, vmax=1)
        inset.set(xticks=[], yticks=[])
        inset.grid(visible=False)
        height = 1 / len(said)
        for position, (label, text, colour) in enumerate(
            (("true", true, "black"), ("shut", blind, GREY), ("open", seeing, HERO if seeing == true else OTHER))
        ):
            panels[0].text(0.24, y + height * (0.78 - 0.28 * position), f"{label}:", color=colour, va="center")
            panels[0].text(0.35, y + height * (0.78 - 0.28 * position), text, color=colour, va="center")
    axes = panels[1]
    colours = {"digit": HERO, "ink": PALETTE["green"], "place": PALETTE["orange"], "size": PALETTE["purple"]}
    for name, values in right.items():
        axes.plot(factors, [100 * value for value in values], "o-", color=colours[name], linewidth=2.5)
        lift = {"digit": 3, "ink": -3, "place": 2, "size": -3}[name]  # so that names do not cover each other
        axes.text(factors[-1] + 0.03, 100 * values[-1] + lift, name, color=colours[name], va="center")
    axes.set(xlim=(-0.03, max(factors) + 0.28), ylim=(0, 103), ylabel="words right, %")
    axes.set(xlabel="gates, as a share of what was learned", title="The gates let the picture in")
    return fig


def cheap(
    lengths: Sequence[int], counted: Mapping[str, Sequence[float]], bits: Mapping[str, Sequence[float]],
    pays: int, predicted: float | None,
) -> Figure:  # fmt: skip
    """Operations for each character against length; bits for each character, three seeds."""
    fig, (left, right) = figure(12.2, 4.8, columns=2, width_ratios=(1.4, 1))
    for name, values in counted.items():
        left.plot(lengths, [value / 1000 for value in values], "o-", color=KINDS[name], linewidth=3)
        low = {"linear": 1.13, "local": 0.86, "softmax": 1.0}[name]
        left.text(lengths[-1] * 1.1, low * values[-1] / 1000, name, color=KINDS[name], va="center", fontsize=14)
    left.axvline(pays, color=HERO, linestyle=":", linewidth=1.5)
    left.text(1.08 * pays, 190, f"{pays}", color=HERO, fontsize=14)
    if predicted is not None:
        left.axvline(max(predicted, 1), color=PREDICTION, linestyle="--", linewidth=2)
        left.text(1.1 * max(predicted, 1), 1500, "your prediction", color=PREDICTION)
    left.set(xscale="log", yscale="log", xlim=(lengths[0] * 0.7, lengths[-1] * 3.2), xlabel="characters read at once")
    left.set(ylabel="thousand operations a character", title="Linear attention pays where texts are long")
    left.set_xticks(lengths, [f"{length:,}" for length in lengths])
    left.set_ylim(170, 3000)
    left.set_yticks((250, 500, 1000, 2000), ("250", "500", "1,000", "2,000"))
    left.minorticks_off()
    for row, (name, values) in enumerate(reversed(bits.items())):
        right.plot(values, [row] * len(values), "o", color=KINDS[name], markersize=11)
    right.set_yticks(range(len(bits)), list(reversed(bits)))
    right.set(ylim=(-0.6, len(bits) - 0.4), xlabel="bits for each character (lower is better)")
    right.set_title("What it costs, three seeds")
    return fig


def dreams(weights: Float[Tensor, "N 8 8"], steps: Mapping[str, Float[Tensor, "M 8 8"]]) -> Figure:
    """What some hidden units look for, and what becomes of noise."""
    fig, panels = figure(12.2, 4.3, columns=1 + len(steps), width_ratios=(1.2, *[1] * len(steps)))
    extent = float(weights.abs().quantile(0.98))
    panels[0].imshow(_sheet(weights, 6), cmap="PuOr", vmin=-extent, vmax=extent)
    panels[0].set_title("What 36 hidden\nunits look for")
    for axes, (name, pictures) in zip(panels[1:], steps.items(), strict=True):
        axes.imshow(_sheet(pictures, 4), cmap="gray", vmin=0, vmax=1)
        axes.set_title(name)
    for axes in panels:
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
    return fig


def _sheet(pictures: Float[Tensor, "N 8 8"], columns: int) -> np.ndarray:
    """Small pictures beside each other, a gap between them."""
    height, width = pictures.shape[1:]
    rows = -(-len(pictures) // columns)
    sheet = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
    for number, picture in enumerate(pictures):
        top, left = number // columns * (height + 1), number % columns * (width + 1)
        sheet[top : top + height, left : left + width] = picture.numpy()
    return sheet
