"""What one plays with in lesson 01: each goal can be reached, and every drawing gets an answer."""

import numpy as np
import pytest

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_01 import playground


@pytest.fixture(scope="module")
def stages():
    return playground.stages(load_trained("resnet").model)


def drawings():
    blank = np.zeros((playground.PAD, playground.PAD), np.uint8)
    hook, box = blank.copy(), blank.copy()
    hook[10:14, 10:46] = hook[10:46, 42:46] = 255
    box[10:46, 10:46] = 255
    checks = (np.indices(blank.shape).sum(0) // 6 % 2 * 255).astype(np.uint8)
    return [*playground.examples().values(), hook, box, checks]


def test_each_goal_can_be_reached_and_none_by_an_empty_pad(stages):
    states = [stages.state(pad=drawing) for drawing in drawings()]
    reached = [any(goal.reached(state) for state in states) for goal in stages.goals]
    assert reached == [True, True, True]
    assert not any(goal.reached(stages.state(pad=0 * drawings()[0])) for goal in stages.goals)


def test_six_digits_are_known_and_a_seven_gets_another_name():
    six = playground.six(load_trained("transfer").model)
    said = {name: six.frame(six.state(pad=drawing)).alt for name, drawing in playground.examples().items()}
    assert "says 0" in said["a zero"] and all("knows 0 to 5" in words for words in said.values())


def test_an_empty_pad_gets_an_answer(stages):
    frame = stages.frame(stages.state(pad=0 * drawings()[0]))
    assert "A probe at each depth reads" in frame.alt
