"""The agent of lesson 16 gets the return that is asked for, and its goals can be reached."""

import pytest

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_16.control_playground import PAIRS, agent, trajectories
from course_lib.lessons.lesson_16.recipes import control


@pytest.fixture(scope="module")
def asked():
    return agent(load_trained("mazes").model)


def reached(explorer, **state):
    return [goal(explorer.state(**state)) for goal in explorer.goals]


def test_the_agent_is_asked_and_goals_can_be_reached(asked):
    assert "Asked for -10, it got -" in asked.alt(asked.state())
    states = [{"asked": want, "pair": pair} for want in (-40, -34, -28, -22, 0) for pair in range(len(PAIRS))]
    found = [reached(asked, **state) for state in states]
    assert [any(column) for column in zip(*found, strict=True)] == [True, True, True]
    assert reached(asked) == [False, False, False]


def test_all_returns_at_once_give_the_trajectory_of_each(asked):
    start, goal = control.pairs()["test"][0].tolist()
    cells = trajectories(load_trained("mazes").model, start, goal)
    assert cells.shape == (41, 41) and (cells[:, 0] == start).all()
    steps = int((cells[10] >= 0).sum()) - 1
    assert f"it got {-steps}," in asked.alt(asked.state(asked=-10, pair=0))
