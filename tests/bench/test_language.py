from dataclasses import replace

import pytest
import torch
from torch import nn

from course_lib.bench import language as module
from course_lib.bench.language import CONTESTS, Contest, pair, runs

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
    variants = runs(contest(name))
    logits = [variants[who]() for who in ("ours", "theirs")]
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


def test_every_model_has_a_lesson_size_and_a_published_one():
    names = [each.name for each in CONTESTS]
    assert len(set(names)) == len(names) == 8 and sum("lesson size" in name for name in names) == 4
    assert all(isinstance(each, Contest) for each in CONTESTS)
