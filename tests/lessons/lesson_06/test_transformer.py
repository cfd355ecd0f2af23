from dataclasses import asdict

import pytest
import torch

from course_lib.lessons.lesson_06 import transformer as task
from course_lib.training.registry import find_recipe
from course_lib.training.translation import attention_error_rate, splits, vocabularies
from course_lib.weights import own

TINY = {"steps": 40, "warmup": 10, "dim": 8, "depth": 1, "batch_size": 4, "train_pairs": 100}


@pytest.fixture(scope="module")
def trained():
    return task.train_transformer(task.TransformerRecipe(**TINY))


@pytest.fixture(scope="module")
def fluent():
    """Twenty pairs, learned by heart."""
    recipe = task.TransformerRecipe(
        steps=240, warmup=40, dim=32, depth=1, batch_size=10, train_pairs=20, smoothing=0.0, averaged=3
    )
    return task.train_transformer(recipe).model


def test_the_same_recipe_gives_the_same_translator_bit_for_bit(trained, tmp_path):
    again = task.train_transformer(trained.recipe, checkpoint=tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(trained.model.parameters(), again.model.parameters(), strict=True))


def test_what_remains_is_the_mean_of_the_last_checkpoints(trained, tmp_path):
    last = task.train_transformer(task.TransformerRecipe(**TINY | {"averaged": 0})).model
    means = task.train_transformer(trained.recipe, checkpoint=tmp_path).model
    states = [torch.load(tmp_path / f"weights-{step:08d}.pt")["weights"] for step in range(36, 41)]
    for name, tensor in means.state_dict().items():
        expected = torch.stack([state[name] for state in states]).mean(dim=0)
        torch.testing.assert_close(tensor, expected, rtol=0, atol=1e-6)
    assert torch.equal(states[-1]["head.weight"], last.head.weight)
    assert not torch.equal(means.head.weight, last.head.weight)


def test_the_rate_is_the_paper_s():
    config = task.fit_config(task.TransformerRecipe(steps=1000))
    for step in (0, 100, 399, 900):
        t = step + 1
        expected = 64**-0.5 * min(t**-0.5, t * 400**-1.5)  # eq. (3)
        assert config.learning_rate * config.learning_rate_factors()[step] == pytest.approx(expected, rel=1e-9)


def test_padding_does_not_count_in_the_loss(trained):
    pairs = sorted(splits(100).train, key=lambda pair: len(pair.french))
    pairs = [pairs[0], pairs[-1]]
    batch = task.encode_pairs(pairs)
    words = batch[3][:, 1:].sum(dim=1)
    with torch.no_grad():
        alone = torch.stack([task.translation_loss(trained.model, task.encode_pairs([pair])) for pair in pairs])
        together = task.translation_loss(trained.model, batch)
    torch.testing.assert_close(together, (alone * words).sum() / words.sum(), rtol=0, atol=1e-6)


def test_twenty_pairs_can_be_learned_by_heart_and_are_then_scored_so(fluent):
    pairs = splits(20).train
    scores = task.scores(fluent, pairs)
    assert scores["bleu"] > 95 and scores["beam"] > 95 and scores["loss"] < 0.1
    source, valid, target, _ = task.encode_pairs(pairs)
    maps = task.alignments(fluent, source, target[:, :-1], valid)[:, 0].mean(dim=1)
    assert scores["layer_error_rate"] == pytest.approx(attention_error_rate(maps, pairs), abs=1e-12)


def test_the_place_that_follows_the_gold_alignment_is_the_best_one(monkeypatch):
    pairs = [pair for pair in splits(100).train if len(pair.alignment) == len(pair.french)][:5]

    def alignments(model, source, target, source_valid):
        maps = torch.rand(len(source), 2, 4, target.shape[1], source.shape[1]) * source_valid[:, None, None, None]
        for row, pair in enumerate(pairs):
            for i, j in pair.alignment:
                maps[row, 1, 2, j, i] = 1.1  # enough for that head, and not for the mean
                maps[row, 0, :, j, i] += 0.4  # better than nothing in each head, and better in their mean
        return maps

    torch.manual_seed(0)
    model = task.build_transformer(task.TransformerRecipe(depth=2))
    monkeypatch.setattr(task, "alignments", alignments)
    rates = task.error_rates(model, pairs)
    assert len(rates) == 10
    assert task.best_place(rates) == task.Place(1, 2) and rates[task.Place(1, 2)] == 0
    assert task.best_place(rates, whole_layers=True) == task.Place(0)
    scores = task.scores(model, pairs, place=task.Place(1, 3), layer=task.Place(1))
    assert 0 < scores["layer_error_rate"] < 1 and 0 < scores["error_rate"] < 1


def test_the_loss_is_a_mean_over_words_and_not_over_batches(trained, monkeypatch):
    pairs = splits(100).validation[:7]
    whole = task.held_out_loss(trained.model, pairs)
    monkeypatch.setattr(task, "ROWS", 3)
    assert task.held_out_loss(trained.model, pairs) == pytest.approx(whole, abs=1e-5)


def test_a_translation_shows_where_one_layer_looked(fluent):
    pair = splits(20).train[0]
    answer = task.translate(fluent, " ".join(pair.english), place=task.Place(0, 1))
    assert answer.target == pair.french and answer.source == pair.english and not answer.unknown
    source, valid, target, _ = task.encode_pairs([pair])
    maps = task.alignments(fluent, source, target[:, :-1], valid)
    torch.testing.assert_close(answer.weights, maps[0, 0, 1, : len(pair.french)], rtol=0, atol=1e-6)


def test_a_text_without_a_word_is_refused(fluent):
    with pytest.raises(ValueError, match="no word"):
        task.translate(fluent, "  ", place=task.Place(0, 1))


def test_course_train_finds_it_and_what_it_returns_can_be_saved(monkeypatch, tmp_path):
    recipe = find_recipe("translator")
    assert recipe.settings == {k: v for k, v in asdict(task.TransformerRecipe()).items() if k != "seed"}
    tiny = task.TransformerRecipe(**TINY)
    monkeypatch.setattr(task, "TransformerRecipe", lambda seed: tiny)
    monkeypatch.setattr(task, "splits", lambda pairs: _first(splits(pairs), 6))
    result = recipe.train(0, tmp_path / "run", None)
    assert recipe.chosen_by in result.validation and result.test.keys() == result.validation.keys()
    own.save(result.model, tmp_path / "model.safetensors", extra=result.extra)
    again = own.load(tmp_path / "model.safetensors")
    assert again.config == result.model.config
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), result.model.parameters(), strict=True))
    french = vocabularies()[1]
    assert type(french).from_state_dict(own.load_extra(tmp_path / "model.safetensors")["french"]) == french


def _first(whole, count):
    return type(whole)(**{name: getattr(whole, name)[:count] for name in ("train", "validation", "test")})
