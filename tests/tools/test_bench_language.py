from dataclasses import replace

import pytest
import torch
from torch import nn

from course_lib.tools import bench_language as module
from course_lib.tools.bench_language import CONTESTS, Contest, Row, geometric_mean, main, pair, row, runs
from course_lib.tools.race import Race

TINY = {
    "GPT": lambda: module.gpt2(n_embd=8, n_layer=1, n_head=2, vocab_size=20, n_positions=16),
    "BERT": lambda: module.bert(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=20
    ),
    "Transformer": lambda: module.marian(8, 16, 1, 2, 20),
    "T5": lambda: module.t5(d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2, vocab_size=20),
}


def contest(name, **settings):
    """A contest of the benchmark's own kind, at a size that takes milliseconds."""
    like = next(each for each in CONTESTS if each.name.startswith(name))
    return replace(like, official=TINY[name], B=2, T=5, vocab_size=20, **settings)


@pytest.mark.parametrize("name", TINY)
def test_both_models_of_a_contest_compute_the_same(name):
    contestants = runs(contest(name))
    logits = [contestants[who]() for who in ("ours", "theirs")]
    torch.testing.assert_close(*logits, atol=1e-5, rtol=1e-5)
    assert logits[0].shape == (2, 5, 20)


def test_a_contest_between_different_models_is_refused(monkeypatch):
    def different(contest):
        ours, theirs = pair(contest)
        nn.init.normal_(next(ours.parameters()))
        return ours, theirs

    monkeypatch.setattr(module, "pair", different)
    with pytest.raises(ValueError, match="differ by .* in a logit"):
        runs(contest("GPT"))


def test_forward_alone_leaves_no_gradients(monkeypatch):
    models = []
    monkeypatch.setattr(module, "pair", lambda contest: models.append(pair(contest)) or models[0])
    runs(contest("GPT", backward=False))["ours"]()
    assert all(parameter.grad is None for model in models[0] for parameter in model.parameters())


def test_a_row_says_the_typical_times_and_their_ratio():
    made = row("x", Race(seconds={"ours": [1.0, 2.0, 9.0], "theirs": [2.0, 2.0, 3.0]}), target=1.0)
    assert (made.ours, made.theirs, made.ratio) == (2000.0, 2000.0, 1.0) and made.reached
    assert not replace(made, ratio=1.01).reached and replace(made, ratio=9.0, target=None).reached


def test_the_geometric_mean_of_opposite_ratios_is_one():
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0) and geometric_mean([0.8, 0.8]) == pytest.approx(0.8)


def rows(*ratios):
    def made():
        yield from (Row(what=f"row {ratio}", ours=ratio, theirs=1.0, ratio=ratio, target=1.0) for ratio in ratios)

    return made


@pytest.mark.parametrize(
    ("ratios", "code", "verdict"),
    [
        ([0.8, 0.8], 0, "Every target was reached."),
        ([0.5, 1.1], 1, "1 target(s) missed."),
        ([0.9, 0.95], 1, "1 target(s) missed."),  # the mean
    ],
)
def test_the_benchmark_fails_where_a_target_is_missed(ratios, code, verdict, monkeypatch, capsys):
    model_rows = rows(*ratios)
    monkeypatch.setattr(module, "model_rows", model_rows)
    monkeypatch.setattr(module, "SECTIONS", {"Models": model_rows, "Others": rows(1.0)})
    assert main() == code
    printed = capsys.readouterr().out
    assert verdict in printed and printed.count("row ") == 3 and "geometric mean" in printed
    assert ("MISSED" in printed) == (max(ratios) > 1)


def test_every_model_has_a_lesson_size_and_a_published_one():
    names = [each.name for each in CONTESTS]
    assert len(set(names)) == len(names) == 8 and sum("lesson size" in name for name in names) == 4
    assert all(isinstance(each, Contest) for each in CONTESTS)
