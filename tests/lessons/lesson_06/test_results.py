import math
from types import SimpleNamespace

from course_lib.data.translation import translate
from course_lib.lessons.lesson_06 import official, results
from course_lib.lessons.lesson_06.recipes import translator, tricks
from course_lib.lessons.lesson_06.recipes.translator import TransformerSettings


def test_a_cache_saves_what_was_computed_before():
    model = translator.build(TransformerSettings(dim=8, depth=1)).eval()
    operations, seconds = results.cost_of_writing(model, translate("the minister sees the law ."))
    assert all(many > few for many, few in zip(operations["no cache"], operations["cache"], strict=True))
    grown = [costs[-1] / costs[0] for costs in operations.values()]
    assert grown[0] > 5 * grown[1] > 5  # the cache's own cost grows, too: more keys to ask
    assert all(len(times) == len(results.LENGTHS) for times in seconds.values())


def test_the_plateau_is_the_entropy_of_the_words_where_train_and_test_are_alike(monkeypatch):
    pairs = [SimpleNamespace(french=("le", "juge")), SimpleNamespace(french=("le", "juge"))]
    monkeypatch.setattr(results, "splits", lambda: SimpleNamespace(train=pairs, test=pairs))
    assert math.isclose(results.unigram_loss(), math.log(3))  # le, juge and the end, each a third


def test_the_learning_rate_is_chosen_by_validation_over_all_seeds():
    losses = {1e-3: (1.0, 3.0), 3e-3: (1.5, 1.5), 1e-2: (2.0, 2.0)}
    card = {
        "seeds": [
            {"validation": {f"loss, pre-norm, depth 1, rate {rate:g}": both[seed] for rate, both in losses.items()}}
            for seed in (0, 1)
        ]
    }
    assert results.best_rate(card, "pre-norm", 1) == 3e-3
    assert results.best_rate(card, "pre-norm with warm-up", 1) is None


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
    def card(**by_name):
        return {
            "seeds": [
                {"validation": dict(zip(by_name, of_seed, strict=True))}
                for of_seed in zip(*by_name.values(), strict=True)
            ]
        }

    quarter, half = tricks.OTHER_PEAKS["paper"]
    tuned = {f"BLEU, paper, peak {quarter:g}": [84.0, 83.0], f"BLEU, paper, peak {half:g}": [66.0, 67.0]}
    found = results.bleu_by_peak(card(**{"BLEU, paper": [79.0, 90.0]}), card(**tuned), "paper")
    assert found == {quarter: [84.0, 83.0], half: [66.0, 67.0], tricks.PEAK: [79.0, 90.0]}
