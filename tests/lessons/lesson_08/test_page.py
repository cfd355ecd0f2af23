"""The page with a learner's answers: as a plain file, in three kernels, and with a cache."""

import math
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.lessons.lesson_08.tasks import TASKS
from tests.lessons.answered import alone, kernels, notebook_of, unsaid

DRIVER = """
TEXT = "the cat sat on the mat and the dog sat on the log. " * 40
torch.manual_seed(0)
loss, text = my_shifted_loss, torch.tensor(list(TEXT.encode()))
model = MyGPT(vocab_size=128, context_length=32, dim=32, depth=2, num_heads=2)
init_weights(model)
first = loss(model(batch(text, 8)), batch(text, 8)).item()
last = train(model, lambda: batch(text, 8), loss, steps=300, peak=4e-3)
with torch.no_grad():
    written = generate(model, text[None, :12], 20, temperature=0.1)
print(first, last, bytes(written[0].tolist()).decode())
"""


def test_a_plain_file_of_the_solutions_and_the_cells_trains_and_writes_without_the_course(tmp_path):
    parts = {"solutions": "attention block gpt shifted_loss", "cells": "batch init_weights train generate"}
    first, last, *written = alone(tmp_path, "08", driver=DRIVER, lines=150, **parts)
    assert abs(float(first) - math.log(128)) < 0.1 and float(last) < 1
    assert "on the mat and the" in " ".join(written)


def test_her_model_is_built_of_her_parts_trains_samples_and_caches_in_new_kernels(tmp_path, monkeypatch):
    few = (("steps=2000", "steps=20"), ("steps=300", "steps=200"), ("count=40", "count=2"), ("ids, 30)", "ids, 2)"))
    told = 'first["GPT-2\'s weights"] = loss(model(tokens), tokens).item()'
    few += ((told, f"{told}\nprint('with GPT-2:', first[\"GPT-2's weights\"])"),)
    few += (("tokenized_dictionary(2048)", "tokenized_dictionary()"),)  # characters: no tokenizer is trained
    few += (("lengths = [16, 64, 256, 1024]", "print('cached and slow:', torch.equal(fast, slow))"),)
    left_out = ("ByteLevelBPE", "mean_loss", "n_gram", "stems_copied", "held_out")
    cut = {"end": "import contextmanager", "left_out": left_out, "shorter": few}
    first, second, third = kernels(tmp_path, monkeypatch, "08", **cut)
    parts, opened = "CausalSelfAttention Block MyGPT", "the page runs on your model"
    assert not unsaid(first, opened, passes=parts, runs_on=parts, opens="MyGPT")
    assert not unsaid(second, goes_on="MyGPT", runs_on="my_shifted_loss")
    losses = [float(loss) for loss in re.findall(r"with GPT-2: ([\d.]+)", second)]
    assert losses == [pytest.approx(7.62, abs=0.1)]
    assert float(re.search(r"one batch after 300 steps: ([\d.]+)", second)[1]) < 1
    assert not unsaid(third, opened, "cached and slow: True", goes_on="MyGPT", runs_on="my_top_p my_cached_step")


def test_with_the_page_s_cache_parts_of_a_text_give_the_logits_of_the_whole():
    names = {"torch": torch, "nn": nn, "F": F, "math": math}
    for task in ("attention", "block", "gpt", "cached_step"):
        exec(TASKS[task].solution, names)
    names["step"] = names["my_cached_step"]
    (cell,) = (cell.source for cell in notebook_of("08").cells if "def cached_block(" in cell.source)
    exec(cell[cell.index("def cached_block") :], names)

    torch.manual_seed(0)
    model = names["MyGPT"](vocab_size=50, context_length=32, dim=16, depth=2, num_heads=4)
    tokens = torch.randint(50, (3, 20))
    cache = [(torch.zeros(3, 4, 0, 4), torch.zeros(3, 4, 0, 4)) for _ in model.blocks]
    parts = [names["cached_logits"](model, part, cache) for part in tokens.split((7, 1, 4, 8), dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(tokens), atol=1e-5, rtol=1e-5)
