"""Lesson 06: the solutions as the library's Transformer, and what is measured."""

import ast
import math
from types import SimpleNamespace

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.data.translation import translate as gold_translation
from course_lib.lessons.lesson_06 import learner, official, results
from course_lib.lessons.lesson_06.models import opened, some_pairs
from course_lib.lessons.lesson_06.recipes import translator, tricks
from course_lib.lessons.lesson_06.recipes.translator import TransformerSettings
from course_lib.lessons.lesson_06.tasks import TASKS
from course_lib.lessons.lesson_06.transformer import Place, stream_words, translate
from course_lib.training.translation import splits
from tests.lessons.answered import notebook_of

SOLUTION = {name: task.module or task.reference for name, task in TASKS.items()}
SIZES = {"source_vocab": 228, "target_vocab": 330, "dim": 16, "depth": 1, "num_heads": 2, "mlp_dim": 32}


@pytest.mark.parametrize("checkpoint", ["translator", "translator_tricks"])
def test_the_shipped_model_in_the_solution_is_the_library_s(checkpoint):
    source, valid, target = some_pairs()
    ours = load_trained(checkpoint).model.eval()
    with torch.no_grad():
        made, wanted = opened(checkpoint)(source, valid, target), ours(source, target, source_valid=valid)
    torch.testing.assert_close(made, wanted, rtol=0, atol=1e-3)


def test_greedy_decoding_is_that_of_the_library():
    pairs = splits().test[:10]
    said = learner.translate(opened("translator"), SOLUTION["greedy"], [" ".join(p.english) for p in pairs])
    ours = load_trained("translator").model
    assert [tuple(words) for words in said] == [
        translate(ours, " ".join(pair.english), place=Place(0), num_beams=1).target for pair in pairs
    ]


def test_words_are_streamed_as_they_would_be_written_at_once():
    model = translator.build(translator.TransformerSettings(dim=8, depth=1)).eval()
    text = " ".join(splits().train[0].english)
    words = list(stream_words(model, text))
    assert tuple(words) == translate(model, text, place=Place(0), num_beams=1).target[: len(words)]


def test_before_training_the_vectors_of_pre_norm_grow_and_those_of_post_norm_do_not():
    sizes = learner.residual_sizes(SOLUTION["transformer"], SIZES, splits().train[:8], depth=4)
    assert abs(sizes["post-norm"][-1] - 1) < 0.01 and sizes["pre-norm"][-1] > sizes["pre-norm"][0]


def test_the_page_s_beam_search_with_one_beam_is_greedy():
    (cell,) = (cell.source for cell in notebook_of("06").cells if "def beam_search(" in cell.source)
    (search,) = (node for node in ast.parse(cell).body if getattr(node, "name", "") == "beam_search")
    names = {"torch": torch, "math": math, "beam_step": SOLUTION["beam_step"]}
    exec(ast.unparse(search), names)
    model, sentences = opened("translator_tricks"), [" ".join(pair.english) for pair in splits().test[:5]]
    one = learner.each_sentence(lambda *given: names["beam_search"](*given, k=1))
    with torch.no_grad():
        found = [learner.translate(model, decode, sentences) for decode in (one, SOLUTION["greedy"])]
    assert found[0] == found[1]


def test_with_one_block_the_last_mlp_is_the_first(monkeypatch):
    monkeypatch.setattr(learner, "DEPTHS", (1, 2))

    def loss_of(model, source, valid, target, real):
        return SOLUTION["smoothed_loss"](model(source, valid, target[:, :-1]), target[:, 1:], 0.1, real[:, 1:])

    found = learner.gradient_norms(SOLUTION["transformer"], loss_of, SIZES, splits().train[:4])
    for name in ("post-norm", "pre-norm"):
        for last, first in zip(found["last"][name], found["first"][name], strict=True):
            assert last[0] == first[0] and last[1] != first[1]


def test_a_cache_saves_what_was_computed_before():
    model = translator.build(TransformerSettings(dim=8, depth=1)).eval()
    operations, seconds = results.cost_of_writing(model, gold_translation("the minister sees the law ."))
    assert all(many > few for many, few in zip(operations["no cache"], operations["cache"], strict=True))
    grown = [costs[-1] / costs[0] for costs in operations.values()]
    assert grown[0] > 5 * grown[1] > 5  # the cache's own cost grows, too: more keys to ask
    assert all(len(times) == len(results.LENGTHS) for times in seconds.values())


def test_the_plateau_is_the_entropy_of_the_words_where_train_and_test_are_alike(monkeypatch):
    pairs = [SimpleNamespace(french=("le", "juge")), SimpleNamespace(french=("le", "juge"))]
    monkeypatch.setattr(results, "splits", lambda: SimpleNamespace(train=pairs, test=pairs))
    assert math.isclose(results.unigram_loss(), math.log(3))  # le, juge and the end, each a third


def card(**by_name):
    """Of the validation values of each seed, by name."""
    rows = zip(*by_name.values(), strict=True)
    return {"seeds": [{"validation": dict(zip(by_name, of_seed, strict=True))} for of_seed in rows]}


def test_the_learning_rate_is_chosen_by_validation_over_all_seeds():
    losses = {1e-3: (1.0, 3.0), 3e-3: (1.5, 1.5), 1e-2: (2.0, 2.0)}
    found = card(**{f"loss, pre-norm, depth 1, rate {rate:g}": both for rate, both in losses.items()})
    assert results.best_rate(found, "pre-norm", 1) == 3e-3
    assert results.best_rate(found, "pre-norm with warm-up", 1) is None


def test_marian_is_opened_by_both_libraries():
    said = official.opened_by_both().splitlines()
    assert len(said) == 2 and all(line.endswith(": True") for line in said)


def test_the_peaks_are_listed_with_the_best_of_each_variant_in_bold():
    peak = tricks.PEAK
    found = {"paper": {peak / 2: 70.0, peak: 80.04}, "no warm-up": {peak / 4: 85.5, peak / 2: 2.0}}
    assert results.peak_list(found).splitlines() == [
        "- baseline: 70.0 at half, **80.0 at the full peak**",
        "- no warm-up: **85.5 at a quarter**, 2.0 at half",
    ]


def test_the_scores_at_each_peak_come_from_both_cards_by_seed():
    quarter, half = tricks.OTHER_PEAKS["paper"]
    tuned = {f"BLEU, paper, peak {quarter:g}": [84.0, 83.0], f"BLEU, paper, peak {half:g}": [66.0, 67.0]}
    found = results.bleu_by_peak(card(**{"BLEU, paper": [79.0, 90.0]}), card(**tuned), "paper")
    assert found == {quarter: [84.0, 83.0], half: [66.0, 67.0], tricks.PEAK: [79.0, 90.0]}
