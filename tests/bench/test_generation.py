from dataclasses import replace

import pytest
import torch

from course_lib.bench import generation as bench_generation
from course_lib.bench.generation import Setting, measure, pair, rows, runs
from course_lib.bench.race import Race

SIZES = {"n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 20, "n_positions": 16}
TINY = Setting(name="tiny", B=2, T=3, new_tokens=4, target=2.0, sizes=SIZES)


@pytest.fixture(scope="module")
def models():
    return pair(SIZES)


def test_both_write_the_same_tokens(models):
    ours, theirs = (run() for run in runs(TINY, *models).values())
    assert ours.shape == (2, 4) and torch.equal(ours, theirs)


def test_models_that_write_different_tokens_do_not_race(models):
    ours, theirs = pair(SIZES)
    torch.nn.init.normal_(ours.pos_embed.table, std=9.0)
    with pytest.raises(ValueError, match="tiny: ours goes on with"):
        runs(TINY, ours, theirs)


def test_times_are_those_of_a_token_of_a_row(models, monkeypatch):
    times = {"ours": [1.0, 2.0, 4.0], "theirs": [8.0, 8.0, 8.0]}
    monkeypatch.setattr(bench_generation, "race", lambda *_, **__: Race(seconds=times))
    made = measure(TINY, *models)
    assert (made.ours, made.theirs, made.ratio, made.target) == (250.0, 1000.0, 0.25, 0.5) and made.reached


def test_every_setting_is_measured_with_the_models_of_its_size(monkeypatch):
    made, asked = [], []
    monkeypatch.setattr(bench_generation, "SETTINGS", (TINY, TINY, replace(TINY, sizes={})))
    monkeypatch.setattr(bench_generation, "pair", lambda sizes: made.append(sizes) or ("ours", sizes))
    monkeypatch.setattr(bench_generation, "measure", lambda setting, *models: asked.append(models))
    assert len(list(rows())) == 3
    assert made == [SIZES, {}] and asked == [("ours", SIZES), ("ours", SIZES), ("ours", {})]
