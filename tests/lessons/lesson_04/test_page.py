"""The page with a learner's answers: as a plain file, and in two kernels."""

import math

from tests.lessons.answered import alone, kernels, unsaid

TEXT = "the cat sat on the mat and the dog sat on the log. "
DRIVER = f"""
class Screen:
    stopped = False
    def update(self, *args, **kwargs):
        pass

class tokenizer:
    encode = staticmethod(lambda text: list(text.encode()))
    decode = staticmethod(lambda ids: bytes(ids).decode())

rows = torch.tensor(list(({TEXT!r} * 90).encode()))[:4400].view(2, 2200)
for layer in (LSTM, GRU):
    torch.manual_seed(0)
    model = CharacterModel(128, 16, 32, layer)
    losses = train(model, 0.02, Screen(), steps=40)
    print(losses[0], losses[-1])
Screen.stopped = True
print(len(train(model, 0.02, Screen())))
model = CharacterModel(10, 10, 4)
open_gates(model, 4.0)
gates = (model.rnn.ih.bias + model.rnn.hh.bias).view(4, 4)
print(gates[0].unique().item(), gates[1].unique().item(), len(write(model, "", 1.0, 0)))
"""


def test_a_plain_file_of_the_solutions_and_the_cells_trains_without_the_course(tmp_path):
    parts = {"solutions": "lstm_cell lstm gru character_model", "cells": "detached train write open_gates"}
    *trained, stopped, closed, opened, written = map(float, alone(tmp_path, "04", driver=DRIVER, lines=150, **parts))
    for first, last in (trained[:2], trained[2:]):
        assert abs(first - math.log(128)) < 0.3 and last < 2
    assert (stopped, closed, opened, written) == (1, -2, 4, 0)


def test_her_classes_open_the_trained_weights_and_train_in_a_second_kernel(tmp_path, monkeypatch):
    few = (("steps=200", "steps=4"), ("range(300)", "range(3)"))
    first, second = kernels(tmp_path, monkeypatch, "04", end='page.result("highway")', shorter=few)
    both = "LSTM CharacterModel"
    assert not unsaid(first, "the page runs on your model", passes=both, runs_on=both, opens="CharacterModel")
    assert not unsaid(second, goes_on=both, runs_on="GRU my_long_bias")
