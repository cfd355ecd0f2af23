import math
from types import SimpleNamespace

from course_lib.data.translation import translate
from course_lib.lessons.lesson_06 import official, results
from course_lib.lessons.lesson_06.recipes import translator
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
