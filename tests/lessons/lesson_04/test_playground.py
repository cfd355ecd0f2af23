"""The playgrounds of lesson 04 do what their cells do, and know when a goal is reached."""

import numpy as np
import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.recurrent import LSTMState, lstm_step
from course_lib.lessons.lesson_04 import playground as play
from course_lib.viz.style import GREY
from tests.lessons.common import reached

OWN = "We read the whole text again. It takes a long time to finish. Nothing else has to be done."


@pytest.fixture(scope="module")
def machine():
    return play.machine()


@pytest.fixture(scope="module")
def reader():
    return play.reader(load_trained("lstm_characters").model)


def test_the_machine_is_an_lstm_whose_gates_stand_still(machine):
    state = machine.state(f=0.8, i=0.6, o=0.3, signal="up, then down")
    biases = torch.logit(torch.tensor([0.6, 0.8, 0.5, 0.3]))
    biases[2] = 0  # the proposal comes from x alone
    weights, its = torch.tensor([[0.0], [0.0], [1.0], [0.0]]), LSTMState(torch.zeros(1, 1), torch.zeros(1, 1))
    cells, outputs = [], []
    for g in play.SIGNALS["up, then down"]:
        x = torch.atanh(torch.tensor([[g]], dtype=torch.float32))
        its = lstm_step(x, its, weights, torch.zeros(4, 1), biases)
        cells.append(its.c.item())
        outputs.append(its.h.item())
    found = play.run(state)
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
