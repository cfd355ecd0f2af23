"""What a learner writes is what the library computes, opens the trained weights, and is shown while it learns."""

import linecache

import pytest
import torch

from course_lib.classroom import carried
from course_lib.classroom.opening import copy_weights
from course_lib.classroom.using import use
from course_lib.functional.recurrent import gru_step
from course_lib.layers import recurrent
from course_lib.lessons.lesson_04 import learner, remember
from course_lib.lessons.lesson_04.models import MODELS
from course_lib.lessons.lesson_04.tasks import LSTM, TASKS

ROWS = remember.held_out(9, count=3)


def character_model(hidden_dim=6):
    torch.manual_seed(0)
    return TASKS["character_model"].module(10, 10, hidden_dim)


def test_what_a_learner_assembles_is_the_trained_character_model():
    shipped = MODELS["character_model"]
    ours = shipped.model().eval()
    mine = TASKS["character_model"].module(**shipped.sizes(ours))
    assert copy_weights(ours, mine, shipped.names) == 595_653
    (tokens,) = shipped.inputs()
    torch.testing.assert_close(mine(tokens)[0], ours(tokens), atol=1e-4, rtol=1e-4)


def test_the_layers_of_the_solutions_are_those_of_the_library():
    x = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
    for name, cell_type in (("lstm", recurrent.LSTMCell), ("gru", recurrent.GRUCell)):
        layer, cell = TASKS[name].module(4, 6), cell_type(4, 6)
        values = (layer.ih.weight, layer.hh.weight, layer.ih.bias, layer.hh.bias)
        with torch.no_grad():
            for own, value in zip(cell.weights, values, strict=True):
                own.copy_(value)
        outputs, state = layer(x)
        expected, final = recurrent.scan(cell, x, cell.initial_state(3))
        torch.testing.assert_close(outputs, expected)
        torch.testing.assert_close(state, tuple(final) if name == "lstm" else final)


def test_a_learner_without_a_layer_gets_the_same_lstm():
    torch.manual_seed(0)
    layer, x = LSTM(4, 6), torch.randn(3, 5, 4)
    solution = TASKS["lstm"].module(4, 6)
    solution.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer(x), solution(x))


def test_the_gru_of_the_page_resets_after_the_product():
    layer, h = TASKS["gru"].module(4, 6), torch.randn(3, 6)
    x = torch.randn(3, 1, 4)
    weights = (layer.ih.weight, layer.hh.weight, layer.ih.bias, layer.hh.bias)
    torch.testing.assert_close(layer(x, h)[1], gru_step(x[:, 0], h, *weights))


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
