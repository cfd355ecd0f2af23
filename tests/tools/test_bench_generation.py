import pytest
import torch

from course_lib.tools import bench_generation
from course_lib.tools.bench_generation import Rate, Setting, main, measure, pair, runs
from course_lib.tools.race import Race

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


def test_rates_are_tokens_of_all_rows_in_a_second(models, monkeypatch):
    monkeypatch.setattr(
        bench_generation, "race", lambda *_, **__: Race(seconds={"ours": [1.0, 2.0, 4.0], "theirs": [8.0, 8.0, 8.0]})
    )
    assert measure(TINY, *models) == Rate(ours=4.0, theirs=1.0, ratio=4.0, rounds=3)


@pytest.mark.parametrize(("ratio", "code"), [(2.0, 0), (1.9, 1)])
def test_the_benchmark_fails_where_a_target_is_missed(ratio, code, monkeypatch, capsys):
    monkeypatch.setattr(bench_generation, "SETTINGS", (TINY, TINY))
    monkeypatch.setattr(bench_generation, "measure", lambda *_: Rate(ours=ratio, theirs=1.0, ratio=ratio, rounds=9))
    assert main() == code
    assert capsys.readouterr().out.count("MISSED") == 2 * code
