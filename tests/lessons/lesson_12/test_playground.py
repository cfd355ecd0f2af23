"""The playgrounds of lesson 12 show what the network says and who can reach whom, and know when a goal is reached."""

import numpy as np
import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_12 import looking
from course_lib.lessons.lesson_12 import playground as play
from tests.lessons.common import reached


@pytest.mark.parametrize("shifted", [True, False])
@pytest.mark.parametrize("blocks", [1, 2, 3, 4])
def test_the_rule_of_reach_is_what_a_gradient_finds(blocks, shifted):
    found = looking.reach(blocks, shifted=shifted)
    assert torch.equal(play.reach(3 * 8 + 3, blocks, side=8, shifted=shifted), found)


def test_reach_has_three_goals_and_each_can_be_reached():
    explorer = play.reached_by()
    assert reached(explorer) == [False, False, False]
    assert reached(explorer, blocks=4) == [True, False, False]
    assert reached(explorer, patch=1, blocks=2) == [False, True, False]
    assert reached(explorer, patch=6, blocks=2, stage=4) == [False, False, True]
    assert reached(explorer, patch=1, blocks=2, shift=False) == [False, False, False]


def test_a_position_beyond_a_small_map_is_its_last():
    explorer = play.reached_by()
    assert "Position 16 (row 4, column 4) of stage 2" in explorer.frame({"patch": 60, "stage": 4}).alt
    assert explorer.frame().html.count("<img") == 64
    assert explorer.stepper().count("<details") == 8


@pytest.fixture(scope="module")
def reader():
    return play.reader(load_trained("swin").model)


def test_the_examples_are_read_right_and_need_their_preparation(reader):
    for name, digit in {"a three": 3, "a seven": 7, "a four": 4}.items():
        drawing = play.on_the_pad(play.EXAMPLES[name])
        assert f"Prepared, it says {digit}" in reader.frame({"pad": drawing}).alt
    assert reader.stepper().count("<details") == 3


def test_empty_paper_reaches_no_goal_and_is_told(reader):
    paper = np.zeros((play.PAD, play.PAD), np.uint8)
    assert reached(reader, pad=paper) == [False, False]
    assert "Draw a digit" in reader.frame({"pad": paper}).alt
