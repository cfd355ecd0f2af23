"""The task of lesson 04: its networks, and what comes back along the cells."""

import math
from dataclasses import replace

import pytest
import torch

from course_lib.lessons.lesson_04 import remember
from course_lib.lessons.lesson_04.tasks import TASKS


@pytest.mark.parametrize("kind", remember.KINDS)
def test_the_gate_that_keeps_starts_where_its_kind_says(kind):
    settings = remember.KINDS[kind](50)
    cell = remember.build(settings).rnn.cells[0]
    total = (cell.bias_ih + cell.bias_hh).view(-1, 64)
    if settings.keep is None:
        assert total.std() > 0
    else:
        torch.testing.assert_close(total[1], torch.full((64,), settings.keep))
    if kind == "LSTM, long bias":
        assert settings.keep == pytest.approx(math.log(50) + 0.5)
        torch.testing.assert_close(total[0], torch.full((64,), -settings.keep / 2))


def test_along_the_cells_a_gradient_is_multiplied_by_the_forget_gates_alone():
    backward = TASKS["forget_backward"].reference
    long, short = (remember.left_over(kind, 50, backward) for kind in ("LSTM, long bias", "LSTM, bias 1"))
    share = 1 / (1 + math.exp(-remember.long_bias(50)))
    assert long == pytest.approx(share**50, abs=0.03) and short < 1e-4


def test_the_bias_of_the_exercise_is_the_one_of_the_card():
    assert TASKS["long_bias"].reference(50, 0.55) == pytest.approx(remember.long_bias(50), abs=0.05)


def test_a_short_training_of_a_short_row_learns_it():
    settings = replace(remember.KINDS["LSTM, long bias"](5), steps=120, hidden_dim=16)
    trained = remember.train(settings)
    assert remember.accuracy(trained.model, remember.held_out(5, count=200)) > 0.9
