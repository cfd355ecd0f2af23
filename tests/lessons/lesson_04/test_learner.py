"""What a learner writes is what the library computes, opens the trained weights, and is shown while it learns."""

import linecache

import pytest
import torch

from course_lib.classroom import carried
from course_lib.classroom.using import use
from course_lib.lessons.lesson_04 import learner, remember
from course_lib.lessons.lesson_04.tasks import TASKS

ROWS = remember.held_out(9, count=3)


def character_model(hidden_dim=6):
    torch.manual_seed(0)
    return TASKS["character_model"].module(10, 10, hidden_dim)


def test_the_cell_states_shown_while_it_learns_are_those_of_the_model():
    model = character_model()
    kept = learner.cell_states(model, ROWS.tokens)
    assert kept.shape == (3, 9, 6)
    with torch.no_grad():
        torch.testing.assert_close(kept[:, -1], model(ROWS.tokens)[1][1])
    assert learner.showing(ROWS, units=4)(model.requires_grad_(False)).axes


def test_a_layer_of_four_parts_costs_four_times_as_much():
    def layer(units):
        head = 2 * units * 10
        return learner.operations(character_model(units)) - head

    assert layer(16) == 4 * 2 * 16 * (10 + 16)
    assert 0 <= learner.accuracy(character_model(), ROWS) <= 1
    assert learner.smoothed([1.0, 3.0, 5.0, 7.0], 2) == [2.0, 6.0]


@pytest.mark.parametrize("written", [True, False])
def test_her_layer_is_kept_with_the_step_that_the_page_gave_it(written):
    step = TASKS["lstm_cell"].solution if written else "def lstm_cell(a, c):\n    return None\n"
    text = f"import torch\nfrom torch import nn\n{step}\n{TASKS['lstm'].solution}"
    file, names = f"<a cell, {written}>", {"__name__": "__main__"}
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    names["lstm_cell"] = use("04", "lstm_cell", TASKS["lstm_cell"], names["lstm_cell"])
    kept = carried.written(names["LSTM"])
    del linecache.cache[file]
    assert carried.brought(kept, TASKS["lstm"], where="<kept>").__name__ == "LSTM"
