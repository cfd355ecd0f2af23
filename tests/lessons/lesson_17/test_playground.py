"""The machine that dreams: its goals can be reached, and its words say what is shown."""

import pytest

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_17 import playground as play


@pytest.fixture(scope="module")
def dream():
    return play.dream(load_trained("boltzmann").model)


def reached(explorer, **state):
    return [goal.reached(explorer.state(**state)) for goal in explorer.goals]


def test_each_goal_can_be_reached(dream):
    assert reached(dream, label=play.NONE, steps=1) == [False, False, False]
    assert reached(dream, label=0, steps=100)[0]
    assert reached(dream, label=0, start=8, steps=300)[1] and not reached(dream, label=8, start=8, steps=300)[1]
    assert reached(dream, label=play.NONE, start=8, steps=300)[2]
    assert not reached(dream, label=play.NONE, start=0, steps=1)[2]


def test_it_says_how_the_chains_are_classified(dream):
    alt = dream.frame(dream.state(label=0, steps=100)).alt
    assert alt.startswith("The label 0 is clamped. After 100 Gibbs steps") and " as 0" in alt
    assert dream.frame(dream.state(label=play.NONE)).alt.startswith("No label is clamped.")


def test_a_page_without_a_kernel_has_its_frames(dream):
    assert dream.stepper().count("<details") == 6


def test_costs_are_counted_by_hand_for_a_short_text():
    assert play.attention_costs(play.SOFTMAX, 3, 2, 1) == (2 * 2 * 6, 9, 12)
    assert play.attention_costs(play.FLASH, 100, 8, 1)[:2] == (2 * 8 * 5050, 6400)
    assert play.attention_costs(play.LOCAL, 3, 2, 1) == (2 * 2 * (1 + 2 + 2), 6, 8)
    assert play.attention_costs(play.LINEAR, 3, 2, 1) == (3 * 2 * 6, 0, 6)


def test_goals_of_the_costs_can_be_reached_and_none_is_at_the_start():
    scores = play.scores()
    assert reached(scores) == [False] * 3
    assert reached(scores, kind=play.LINEAR, length=16) == [True, False, False]
    assert reached(scores, kind=play.LOCAL, length=4096)[1]
    assert reached(scores, kind=play.LINEAR, length=16384)[2]
