"""Lesson 04: the task of remembering, what is shown while a cell learns, what its units know, and playgrounds."""

import linecache
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from course_lib.classroom import carried
from course_lib.classroom.using import use
from course_lib.data.checkpoints import load_trained
from course_lib.functional.recurrent import LSTMState, lstm_step
from course_lib.layers.recurrent import scan
from course_lib.lessons.lesson_04 import learner, remember, units
from course_lib.lessons.lesson_04 import playground as play
from course_lib.lessons.lesson_04.tasks import TASKS
from course_lib.viz.style import GREY
from tests.lessons.common import reached


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
    assert TASKS["long_bias"].reference(50, 0.55) == pytest.approx(remember.long_bias(50), abs=0.05)


def test_a_short_training_of_a_short_row_learns_it():
    settings = replace(remember.KINDS["LSTM, long bias"](5), steps=120, hidden_dim=16)
    trained = remember.train(settings)
    assert remember.accuracy(trained.model, remember.held_out(5, count=200)) > 0.9


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
    head = 2 * 16 * 10
    assert learner.operations(character_model(16)) - head == 4 * 2 * 16 * (10 + 16)
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


@pytest.fixture(scope="module")
def model():
    return load_trained("lstm_characters").model.eval()


def test_cells_and_gates_are_those_of_the_network_step_by_step(model):
    text = "It's a 'test'."
    reading = units.read_text(model, text)
    ids = torch.tensor([units.tokenized_prose().tokenizer.encode("\n" + text)])
    cell, x = model.rnn.cells[0], model.embed(ids)
    with torch.no_grad():
        _, final = scan(cell, x, cell.initial_state(1))
        gates = model.rnn.gates(x)
    torch.testing.assert_close(reading.inside[:, -1], final.c, atol=1e-4, rtol=1e-4)
    assert reading.inside.shape == (1, len(text), 344)
    for ours, theirs in zip(reading.gates, gates, strict=True):
        torch.testing.assert_close(ours, theirs[:, 1:], atol=1e-4, rtol=1e-4)


def test_a_sentence_ends_with_its_full_stop_and_a_paragraph_with_its_line():
    assert units.since_sentence("Ab. C\nd 1.5").tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4]


def test_an_apostrophe_is_no_quotation_mark_and_the_distance_begins_anew_at_each_mark():
    text = "it's 'one two' and 'x' isn't\nhere"
    inside, behind = units.quoted(text), units.behind_quotation(text)
    marked = ["".join(letter for letter, yes in zip(text, some, strict=True) if yes) for some in (inside, behind)]
    assert marked == ["'one two'x", "' and ' isn"] and not (inside & behind).any()
    assert units.since_mark("say 'ab' to us").tolist()[:11] == [0, 0, 0, 0, 0, 1, 2, 0, 1, 2, 3]


def test_correlation_and_auc_are_those_of_the_textbook():
    count, noise = torch.arange(100), torch.randn(100)
    r = units.correlation(torch.stack([2 * count + 1.0, -count + 3.0, noise], dim=1), count)
    of_noise = torch.corrcoef(torch.stack([noise, count.float()]))[0, 1].item()
    assert r.tolist() == pytest.approx([1, -1, of_noise], abs=1e-5)
    found = units.auc(torch.tensor([[1.0, 4], [2, 3], [3, 2], [4, 1]]), torch.tensor([False, True, False, True]))
    assert found.tolist() == pytest.approx([0.75, 0.25])


def test_a_unit_is_chosen_on_validation_text_and_graded_on_test_text(model, monkeypatch):
    texts = ["a" * 70 + ". " + "b" * 30, "c" * 90 + ". " + "d" * 10]
    count, noise = torch.stack([units.since_sentence(text) for text in texts]).float(), torch.randn(2, 102)
    inside = {"validation": torch.stack([count, noise], -1), "test": torch.stack([noise, count], -1)}
    monkeypatch.setattr(units, "read_split", lambda _, split, characters: units.Reading(texts, inside[split], None))
    found = units.search(model, units.since_sentence, units.correlation)
    assert found.unit == 0 and found.validation == pytest.approx(1) and abs(found.test) < 0.5


OWN = "We read the whole text again. It takes a long time to finish. Nothing else has to be done."


@pytest.fixture(scope="module")
def machine():
    return play.machine()


@pytest.fixture(scope="module")
def reader():
    return play.reader(load_trained("lstm_characters").model)


def test_the_machine_is_an_lstm_whose_gates_stand_still(machine):
    biases = torch.logit(torch.tensor([0.6, 0.8, 0.5, 0.3]))
    biases[2] = 0  # the proposal comes from x alone
    weights, its = torch.tensor([[0.0], [0.0], [1.0], [0.0]]), LSTMState(torch.zeros(1, 1), torch.zeros(1, 1))
    cells, outputs = [], []
    for g in play.SIGNALS["up, then down"]:
        its = lstm_step(torch.atanh(torch.tensor([[g]]).float()), its, weights, torch.zeros(4, 1), biases)
        cells.append(its.c.item())
        outputs.append(its.h.item())
    found = play.run(machine.state(f=0.8, i=0.6, o=0.3, signal="up, then down"))
    assert np.allclose(found.cell, cells, atol=1e-5) and np.allclose(found.output, outputs, atol=1e-5)


def test_the_goals_of_the_machine_can_be_reached_and_are_not_at_the_start(machine):
    assert reached(machine) == [False, False, False]
    assert reached(machine, f=1.0, open="first") == [True, False, False]
    assert reached(machine, f=1.0) == [False, False, False]  # noise is written over the message
    chance = [reached(machine, f=f / 100, i=i / 100) for f in range(101) for i in range(31, 101)]
    assert not any(goals[0] for goals in chance)  # nor does noise end by chance where the message was
    assert reached(machine, f=1.0, signal="a mark every ten steps") == [False, True, False]
    assert reached(machine, f=0.93) == [False, False, False]  # of what was written later more is left
    assert reached(machine, f=0.93, open="first") == [False, False, True]


def test_the_goals_of_the_reader_can_be_reached_and_are_not_at_the_start(reader):
    assert reached(reader) == [False, False, False]
    assert reached(reader, cell=play.SENTENCES) == [True, False, False]
    assert reached(reader, cell=play.LETTERS) == [False, True, False]
    assert reached(reader, cell=play.SENTENCES, text=OWN) == [True, False, True]
    assert not reached(reader, cell=0, text=OWN)[2]
    assert not reached(reader, cell=play.SENTENCES, text=OWN[: OWN.index(" Nothing")])[2]  # two sentences only
    assert not reached(reader, cell=play.SENTENCES, text=OWN.replace("It takes a long time to finish", "It ends"))[2]


def test_the_playgrounds_do_not_tell_which_unit_knows_quotations(reader):
    shown = " ".join(goal.text for goal in reader.goals) + str(reader.steps)
    assert "96" not in shown and "quot" not in shown


def test_the_still_form_of_the_machine_has_the_symbols_and_colours_of_the_page(machine):
    above, middle, below = machine.draw(machine.state()).axes
    assert middle.get_title("left") == "cell state c" and below.get_title("left") == "hidden state h = o · tanh c"
    assert below.lines[0].get_color() == GREY


def test_what_cannot_be_read_is_told(reader):
    assert "Write something" in reader.frame({"text": "  "}).alt
    assert reached(reader, text="") == [False, False, False]
    assert "500 characters" in reader.frame({"text": "x" * 500}).alt
    assert "<script>" not in reader.frame({"text": "<script> & 'quoted'"}).html
