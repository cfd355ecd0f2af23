"""What one plays with in lesson 15: a walker that gets the return it is asked for."""

from functools import lru_cache

import numpy as np
import torch
from matplotlib.figure import Figure

from course_lib.classroom.widgets import Choice, Explorer, Goal, Slider
from course_lib.data import mazes
from course_lib.data.mazes import Walks
from course_lib.lessons.lesson_15 import figures, learner
from course_lib.lessons.lesson_15.recipes import control
from course_lib.models.decision_transformer import DecisionTransformer
from course_lib.viz.style import figure

PAIRS = {f"pair {number}": number - 1 for number in range(1, 8)}
RETURNS = -torch.arange(control.LENGTH + 1.0)  # that can be asked for: 0, -1, ...


def walker(model: DecisionTransformer) -> Explorer:
    """Ask for a return, and see the trajectory: the most probable action at each step."""

    @lru_cache(maxsize=64)  # to draw, to say and to judge
    def walk_of(asked: float, pair: int) -> Walks:
        return learner.walk(model, asked, pair=pair)

    def walk(state) -> Walks:
        return walk_of(float(state["asked"]), int(state["pair"]))

    def words(state) -> str:
        its = walk(state)
        end = "at the goal" if its.reached[0] else "not at the goal"
        return f"Asked for {state['asked']:.0f}, it got {float(its.returns[0]):.0f}, and ended {end}."

    def picture(state) -> Figure:
        fig, axes = figure(3.6, 3.4)
        its = walk(state)
        figures.draw_walk(axes, control.maze(), its, 0, f"got {float(its.returns[0]):.0f}")
        return fig

    return Explorer(
        name="walker",
        title="Ask for a return",
        controls=[
            Slider(name="asked", label="return asked for", low=-40, high=0, step=1, value=-10),
            Choice(name="pair", label="start and goal", options=PAIRS),
        ],
        draw=picture,
        alt=words,
        beside=True,
        goals=(
            Goal("asked for a long trajectory, it takes 20 steps or more, at least twice the shortest way, and arrives",
                 lambda state: bool(walk(state).reached[0]) and float(walk(state).returns[0]) <= -20),
            Goal("it does not reach the goal", lambda state: not walk(state).reached[0]),
            Goal("asked for more than any trajectory can obtain, it still takes a shortest way",
                 lambda state: state["asked"] > -10 and float(walk(state).returns[0]) == -10),
        ),
        steps={"asked": (-10, -22, -34)},
        script="agent",
        config=_config(),
        answers={"trajectories": lambda asked: trajectories(model, **asked).ravel()},
    )  # fmt: skip


def _config() -> dict:
    """The maze: walls, each cell's row and column and what each action leads to, and the goals of the training."""
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
    walks = mazes.rollout(control.maze(), policy, pairs, length=control.LENGTH, greedy=True)
    count, ahead = walks.valid.sum(dim=1)[:, None], torch.arange(control.LENGTH + 1)
    behind = control.maze().after[walks.cells[:, -1], walks.actions[:, -1]]
    last = torch.where(walks.reached, walks.goals, behind)[:, None]
    cells = torch.cat([walks.cells, last], dim=1)
    return torch.where(ahead < count, cells, torch.where(ahead == count, last, -1)).int().numpy()
