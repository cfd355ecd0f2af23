"""The playgrounds of lesson 15 show what the models do, and know when a goal is reached."""

import pytest

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_15 import playground
from course_lib.lessons.lesson_15.walker import walker


@pytest.fixture(scope="module")
def takeover():
    return playground.takeover_map()


@pytest.fixture(scope="module")
def asked():
    return walker(load_trained("mazes").model)


def reached(explorer, **state):
    return [goal(explorer.state(**state)) for goal in explorer.goals]


@pytest.mark.parametrize("field", list(playground.FIELDS))
def test_every_field_has_an_old_system_and_its_successor_on_the_same_input(takeover, field):
    state = takeover.state(field=field, noise=0.8)
    its = playground.FIELDS[field](0, 0.8)
    for words in (its.given, its.old_name, its.old, its.new_name, its.new):
        assert words and words in takeover.alt(state)


def test_the_goals_of_the_map_can_be_reached_and_are_not_at_the_start(takeover):
    assert reached(takeover) == reached(takeover, field="pictures and words") == [False, False, False, False]
    assert reached(takeover, field="speech", noise=0.8) == [True, False, False, False]
    assert reached(takeover, field="speech", noise=3.0) == [False, True, False, False]
    assert reached(takeover, field="control") == [False, False, True, False]
    third = list(takeover.controls[1].options.values())[2]
    assert reached(takeover, field="pictures and words", number=third) == [False, False, False, True]
    assert reached(takeover, field="translation") == [False, False, False, False]


def test_without_noise_the_nearest_tone_is_the_right_one_but_equal_tones_are_one():
    assert playground.hearing(0, 0.0).old == "C E G c"
    assert playground.hearing(1, 0.0).old == "C D E"


def test_the_walker_is_asked_and_goals_can_be_reached(asked):
    assert "Asked for -10, it got -" in asked.alt(asked.state())
    states = [{"asked": want, "pair": pair} for want in (-40, -34, -28, -22, 0) for pair in range(7)]
    found = [reached(asked, **state) for state in states]
    assert [any(column) for column in zip(*found, strict=True)] == [True, True, True]
    assert reached(asked) == [False, False, False]
