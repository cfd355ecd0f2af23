"""The layouts of one text-to-text model: masks, sizes, and what may see what."""

import pytest
import torch

from course_lib.lessons.lesson_15.recipes import t5_layouts as layouts
from course_lib.lessons.lesson_15.recipes import text_to_text


@pytest.fixture(autouse=True)
def few_sentences(monkeypatch):
    monkeypatch.setattr(text_to_text, "PLAIN", 60)
    text_to_text.tokenizer.cache_clear()
    yield
    text_to_text.tokenizer.cache_clear()


def built(layout):
    settings = layouts.LayoutSettings(layout=layout, dim=16, depth=2, num_heads=2, head_dim=8, mlp_dim=16)
    return layouts.build(settings).eval()


def batch():
    return text_to_text.as_batch(text_to_text.few(text_to_text.TextSettings(per_task=2)))


@pytest.mark.parametrize("layout", [layouts.PREFIX, layouts.CAUSAL, layouts.ENCODER_DECODER])
@torch.no_grad()
def test_padding_and_later_target_tokens_change_nothing(layout):
    model, data = built(layout), batch()
    read = torch.cat([torch.zeros_like(data.target[:, :1]), data.target[:, :-1]], dim=1)
    logits = model(data.source, read, source_valid=data.source_valid)
    length = int(data.source_valid[0].sum())
    alone = model(data.source[:1, :length], read[:1], source_valid=data.source_valid[:1, :length])
    torch.testing.assert_close(logits[:1], alone, rtol=1e-4, atol=1e-5)
    changed = read.clone()
    changed[:, 2:] = 5
    torch.testing.assert_close(model(data.source, changed, source_valid=data.source_valid)[:, :2], logits[:, :2])


@pytest.mark.parametrize("layout", [layouts.PREFIX, layouts.CAUSAL])
def test_answers_are_generated_token_by_token_and_gradients_are_finite(layout):
    model, data = built(layout), batch()
    sources = [one.source for one in text_to_text.few(text_to_text.TextSettings(per_task=1))]
    assert len(text_to_text.answers(model, sources)) == len(sources)
    text_to_text.loss(model, data).backward()
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters())


def test_two_stacks_have_more_than_twice_the_parameters_of_one():
    counts = [
        sum(weight.numel() for weight in layouts.build(settings).parameters())
        - len(text_to_text.tokenizer()) * settings.dim
        for settings in layouts.VARIANTS.values()
    ]
    both, prefix, causal = counts  # a decoder's block has cross-attention, too
    assert both == pytest.approx(2.5 * prefix, rel=0.01) and prefix == pytest.approx(causal, rel=0.01)


def test_all_layouts_have_the_same_examples_and_steps():
    budgets = {(each.steps, each.batch_size, each.per_task, each.pretraining) for each in layouts.VARIANTS.values()}
    assert len(budgets) == 1
