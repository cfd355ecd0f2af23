"""What one plays with in lesson 16's first half: an agent that is asked for a return, between a start and a goal."""

from functools import lru_cache

import numpy as np
import torch
from matplotlib.figure import Figure

from course_lib.classroom.widgets import Choice, Explorer, Goal, Slider
from course_lib.data import mazes
from course_lib.data.mazes import Walks
from course_lib.lessons.lesson_16 import control_figures as figures
from course_lib.lessons.lesson_16 import control_learner as learner
from course_lib.lessons.lesson_16.recipes import control
from course_lib.models.decision_transformer import DecisionTransformer
from course_lib.viz.style import figure

PAIRS = {f"pair {number}": number - 1 for number in range(1, 8)}
RETURNS = -torch.arange(control.LENGTH + 1.0)  # that can be asked for: 0, -1, ...
LONG = 20  # steps


def agent(model: DecisionTransformer) -> Explorer:
    """Ask for a return, and get the trajectory: the most probable action at each step."""

    @lru_cache(maxsize=64)  # for figure, words and goals
    def found(asked: float, pair: int) -> Walks:
        return learner.trajectory(model, asked, pair=pair)

    def trajectory(state) -> Walks:
        return found(float(state["asked"]), int(state["pair"]))

    def words(state) -> str:
        its = trajectory(state)
        end = "at the goal" if its.reached[0] else "not at the goal"
        return f"Asked for {state['asked']:.0f}, it got {float(its.returns[0]):.0f}, and ended {end}."

    def drawn(state) -> Figure:
        fig, axes = figure(3.6, 3.4)
        figures.draw_maze(axes, control.maze())
        figures.draw_trajectory(axes, control.maze(), trajectory(state))
        axes.set_title(f"return {float(trajectory(state).returns[0]):.0f}", fontsize=12)
        return fig

    return Explorer(
        name="agent",
        title="Ask for a return",
        controls=[
            Slider(name="asked", label="Return asked for", low=-40, high=0, step=1, value=-10),
            Choice(name="pair", label="Start and goal", options=PAIRS),
        ],
        draw=drawn,
        alt=words,
        beside=True,
        goals=(
            Goal(
                f"a trajectory of {LONG} steps or more, at least twice the shortest way, that reaches the goal",
                lambda state: bool(trajectory(state).reached[0]) and float(trajectory(state).returns[0]) <= -LONG,
            ),
            Goal("a trajectory that does not reach the goal", lambda state: not trajectory(state).reached[0]),
            Goal(
                "a higher return is asked for than any trajectory can have, and the agent takes a shortest way",
                lambda state: (
                    state["asked"] > -control.DISTANCE
                    and float(trajectory(state).returns[0]) == -control.DISTANCE
                    and bool(trajectory(state).reached[0])
                ),
            ),
        ),
        steps={"asked": (-10, -22, -34)},
        script="agent",
        config=_config(),
        answers={"trajectories": lambda asked: trajectories(model, **asked).ravel()},
    )


def _config() -> dict:
    """The maze: walls, the row and column of each cell, the cell behind each action, and the goals of the training."""
    maze, held_out = control.maze(), control.pairs()["test"][: len(PAIRS)].tolist()
    targets = torch.cat(list(control.pairs().values()))[:, 1].unique().tolist()
    return {
        "models": ["mazes"],
        "walls": ["".join(".#"[wall] for wall in row) for row in maze.walls.tolist()],
        "cells": maze.cells.tolist(),
        "after": maze.after.tolist(),
        "targets": targets,
        "distances": {goal: maze.distances[goal].tolist() for goal in targets},
        "pairs": held_out,
        "length": control.LENGTH,
    }


@torch.no_grad()
def trajectories(model: DecisionTransformer, start: int, goal: int) -> np.ndarray:
    """The cells that the model passes for each of RETURNS, (41, 41), with -1 behind the end."""

    def policy(states, actions, rewards):
        return model.act(RETURNS / control.LENGTH, states, actions, rewards / control.LENGTH)

    pairs = torch.tensor([start, goal]).expand(len(RETURNS), 2)
    found = mazes.rollout(control.maze(), policy, pairs, length=control.LENGTH, greedy=True)
    count, ahead = found.valid.sum(dim=1)[:, None], torch.arange(control.LENGTH + 1)
    behind = control.maze().after[found.cells[:, -1], found.actions[:, -1]]
    last = torch.where(found.reached, found.goals, behind)[:, None]
    cells = torch.cat([found.cells, last], dim=1)
    return torch.where(ahead < count, cells, torch.where(ahead == count, last, -1)).int().numpy()


PLAYGROUNDS = {"agent": agent}
