"""The figures of lesson 16's first half: trajectories in a maze, errors, returns asked for, a gamble, GAIL."""

from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.data.mazes import Maze, Walks
from course_lib.viz.marks import HERO, OTHER, THIRD, arrow, band, bare, prediction
from course_lib.viz.style import GREY, PALETTE, figure

GOAL = PALETTE["orange"]
METHODS = {"Decision Transformer": HERO, "return-conditioned MLP": PALETTE["orange"]}


def draw_maze(axes: Axes, maze: Maze) -> None:
    """Walls are dark."""
    axes.imshow(np.where(maze.walls.numpy(), 0.25, 0.97), cmap="gray", vmin=0, vmax=1)
    bare(axes)


def draw_trajectory(axes: Axes, maze: Maze, walks: Walks, row: int = 0, colour: str = HERO, shift: float = 0.0) -> None:
    """One trajectory, a dot at its start and a star at its goal."""
    cells = walks.cells[row, : int(walks.valid[row].sum())].tolist()
    if walks.reached[row]:
        cells.append(int(walks.goals[row]))
    y, x = maze.cells[cells].T.numpy() + np.linspace(-0.22, 0.22, len(cells)) + shift
    axes.plot(x, y, color=colour, linestyle="-", linewidth=2.5)
    axes.plot(x[0], y[0], "o", color=colour, markersize=11, linestyle="none")
    goal = maze.cells[walks.goals[row]].tolist()
    axes.plot(goal[1], goal[0], "*", color=GOAL, markersize=20, markeredgecolor="black")


def training(maze: Maze, shown: Sequence[tuple[str, Walks]]) -> Figure:
    """During training: one start and goal, a panel for each return that is asked for."""
    fig, panels = figure(6.4, 2.6, columns=len(shown))
    for axes, (title, walks) in zip(panels, shown, strict=True):
        draw_maze(axes, maze)
        draw_trajectory(axes, maze, walks)
        axes.set_title(title, fontsize=12)
    return fig


def opening(maze: Maze, shown: Mapping[str, Walks], asked: Sequence[float], got: Sequence[float]) -> Figure:
    """Trajectories of one agent by the return it is asked for; the return obtained at each return asked for."""
    fig, panels = figure(12.2, 3.7, columns=len(shown) + 1, width_ratios=(*[1] * len(shown), 1.25))
    for axes, (title, walks) in zip(panels, shown.items(), strict=False):
        draw_maze(axes, maze)
        draw_trajectory(axes, maze, walks)
        axes.set_title(title, fontsize=12, loc="center", weight="normal")
    axes = panels[-1]
    axes.plot(asked, asked, color=GREY, linestyle=":", linewidth=1.5)
    axes.plot(asked, got, "o-", color=HERO)
    axes.set(xlabel="return asked for", ylabel="mean return obtained", title="Unseen pairs")
    return fig


def compounding(
    maze: Maze,
    paths: Sequence[Sequence[int]],
    goal: int,
    curves: Mapping[str, Mapping[str, Float[np.ndarray, "S T"]]],
    success: Mapping[str, tuple[Float[np.ndarray, " R"], Float[np.ndarray, "S R"]]],
    predicted: float | None = None,
) -> Figure:
    """Trajectories of a clone; errors and unseen states by the step; success by the number of labels."""
    fig, panels = figure(10.0, 4.1, columns=4, width_ratios=(1, 1, 1, 1.2))
    draw_maze(panels[0], maze)
    colours = {"behaviour cloning": OTHER, "DAgger": HERO}
    for colour, cells in zip((GREY, OTHER), paths, strict=True):
        y, x = maze.cells[list(cells)].T.numpy() + (0.15 if colour == OTHER else -0.15)
        panels[0].plot(x, y, color=colour, linestyle="-", linewidth=2)
        panels[0].plot(x[:1], y[:1], "o", color=colour, markersize=9)
        panels[0].plot(x[-1:], y[-1:], "s", color=colour, markersize=7)
    row, column = maze.cells[goal].tolist()
    panels[0].plot(column, row, "*", color=GOAL, markersize=18, markeredgecolor="black", clip_on=False)
    panels[0].set_title("grey: expert\nred: its clone", fontsize=12, loc="center", weight="normal")
    for axes, (title, methods) in zip(panels[1:3], curves.items(), strict=True):
        for name, values in methods.items():
            band(axes, range(values.shape[1]), 100 * values, colours[name])
        axes.set(title=fill(title, 16), xlabel="step", ylim=(0, 105))
    panels[1].set_ylabel("%")
    axes = panels[3]
    for name, (labels, values) in success.items():
        band(axes, labels, 100 * values, colours[name], marker="o", markersize=4, label=name)
    fig.legend(loc="outside upper right", ncols=2)
    if predicted is not None:
        prediction(axes, success["DAgger"][0][-1], predicted, (-12, 0))
    axes.set(title="Reaches\nthe goal, %", xlabel="expert's labels", xlim=(0, 400), ylim=(0, 105))
    return fig


def agents(reached: Mapping[str, Sequence[float]], returns: Mapping[str, Sequence[float]], predicted=None) -> Figure:
    """For each method the success and the mean return, a dot for each seed."""
    fig, panels = figure(12.2, 5.6, columns=2, sharey=True)
    for axes, scores, factor in zip(panels, (reached, returns), (100, 1), strict=True):
        for row, (name, values) in enumerate(scores.items()):
            colour = METHODS.get(name, PALETTE["black"])
            axes.plot([factor * value for value in values], [-row] * len(values), "o", color=colour, markersize=10)
    panels[0].set(xlim=(0, 103), xlabel="success of three seeds, %")
    panels[0].set_yticks([-row for row in range(len(reached))], [fill(name, 20) for name in reached])
    for tick, name in zip(panels[0].get_yticklabels(), reached, strict=True):
        tick.set_color(METHODS.get(name, PALETTE["black"]))
    panels[1].set(xlim=(-41, -9), xlabel="mean return (best: -10)", xticks=(-40, -30, -20, -10))
    if predicted is not None:
        prediction(panels[0], predicted, -1.0, (-12, 0) if predicted > 45 else (12, 0))
    return fig


def stitching(
    maze: Maze,
    letters: Mapping[str, int],
    data: Mapping[str, Walks],
    planned: Walks,
    wanted: Sequence[float],
    got: Mapping[str, Sequence[Sequence[float]]],
    best: float,
    seen: float,
) -> Figure:
    """The kinds of trajectories in the data, and the return from A against the return asked for."""
    fig, panels = figure(10.0, 4.1, columns=3, width_ratios=(1.25, 1, 1))
    draw_maze(panels[0], maze)
    for walks, colour, shift in zip(data.values(), (GREY, PALETTE["purple"], OTHER), (0.12, 0, -0.12), strict=True):
        draw_trajectory(panels[0], maze, walks, 0, colour, shift)
    draw_trajectory(panels[0], maze, planned, 0, THIRD, -0.3)
    for letter, cell in letters.items():
        row, column = maze.cells[cell].tolist()
        ink = "white" if row else "black"  # above the lower ones there is a wall
        panels[0].text(column, row - 0.8, letter, ha="center", va="center", weight="bold", color=ink)
    panels[0].set(ylim=(maze.walls.shape[0] - 0.5, -1.3))
    panels[0].set_title("green: Q-learning from A", fontsize=12, loc="center", weight="normal")
    for axes, (name, seeds) in zip(panels[1:], got.items(), strict=True):
        for values in seeds:
            axes.plot(wanted, values, "o-", color=METHODS[name], alpha=0.6, markersize=5)
        axes.axhline(best, color=THIRD, linestyle="-", linewidth=1.5)
        axes.axhline(seen, color=GREY, linestyle=":", linewidth=1.5)
        axes.axvline(best, color=THIRD, linestyle=":", linewidth=1.5)
        axes.text(-40, best + 0.6, "Q-learning", color=THIRD, va="bottom")
        axes.text(-40, seen + 0.6, "best from A\nin the data", color=GREY, va="bottom")
        axes.set(xlabel="return asked for", title=name.replace(" ", "\n"), ylim=(-42, -3))
    panels[1].set_ylabel("return obtained from A")
    return fig


def stochastic(
    pays: Mapping[str, Sequence[tuple[float, float]]],
    wanted: Float[Tensor, " W"],
    chosen: Float[Tensor, "S W"],
    exact: Mapping[float, float],
    expected: Float[Tensor, "S W"],
    values: Mapping[str, float],
    predicted: float | None = None,
) -> Figure:
    """The two actions; the probability of the gamble, and the expected return, by the return asked for."""
    fig, (tree, left, right) = figure(12.2, 4.2, columns=3, width_ratios=(0.9, 1, 1))
    bare(tree, (0, 9), (0, 10))
    tree.plot([1], [5], "o", color=HERO, markersize=12)
    y = 8.5
    for name, outcomes in pays.items():
        for chance, value in outcomes:
            arrow(tree, (1.3, 5), (3.6, y), shrinkA=6)
            tree.text(3.8, y, name if chance == 1 else f"{name}, p = {chance:g}", va="bottom")
            tree.text(3.8, y, f"return {value:g}", va="top")
            y -= 3.5
    left.plot(wanted, 100 * chosen.T, color=HERO, alpha=0.7, linestyle="-")
    left.plot(list(exact), [100 * value for value in exact.values()], "D", color=OTHER, markersize=9, linestyle="none")
    left.set(xlabel="return asked for", title="Gamble chosen, %", ylim=(-5, 105), yticks=(0, 50, 100))
    left.text(7.6, 50, "trained", color=HERO)
    left.text(4.65, 8, "exact", color=OTHER, ha="center")
    right.plot(wanted, wanted, color=GREY, linestyle=":", linewidth=1.5)
    right.plot(wanted, expected.T, color=HERO, alpha=0.7, linestyle="-")
    for (name, value), x, gap, side in zip(values.items(), (0, 4.2), (0.2, -0.2), ("bottom", "top"), strict=True):
        right.axhline(value, color=GREY, linewidth=1, linestyle="--")
        right.text(x, value + gap, f"{name}: {value:g}", color=GREY, va=side)
    if predicted is not None:
        prediction(right, float(wanted[-1]), predicted, (-8, 8))
    right.set(xlabel="return asked for", title="Expected return", yticks=(0, 5, 10))
    return fig


def gail(rounds: Sequence[int], accuracy: Sequence[float], success: Sequence[float]) -> Figure:
    """The discriminator's accuracy and the agent's success while both are trained."""
    fig, (left, right) = figure(10.5, 3.8, columns=2)
    left.plot(rounds, [100 * value for value in accuracy], color=OTHER, linestyle="-", marker="o", markersize=4)
    left.axhline(50, color=GREY, linestyle=":")
    left.set(title="Discriminator: accuracy, %", xlabel="round", ylim=(45, 103))
    left.text(rounds[-1], 51, "cannot tell them apart", color=GREY, ha="right", va="bottom")
    right.plot(rounds, [100 * value for value in success], color=HERO, linestyle="-", marker="o", markersize=4)
    right.set(title="Policy: reaches the goal, %", xlabel="round", ylim=(0, 103))
    return fig
