from dataclasses import replace

import pytest
import torch

from course_lib.lessons.lesson_06 import transformer
from course_lib.lessons.lesson_06.recipes import translator as task
from course_lib.lessons.lesson_06.recipes import tricks
from course_lib.lessons.lesson_06.recipes.translator import TransformerSettings
from course_lib.lessons.lesson_06.transformer import Place
from course_lib.training.schedules import inverse_sqrt
from course_lib.training.translation import attention_error_rate, encode_pairs, splits, vocabularies

TINY = {"steps": 40, "warmup": 10, "dim": 8, "depth": 1, "batch_size": 4, "train_pairs": 100}


@pytest.fixture(scope="module")
def trained():
    return task.train_transformer(TransformerSettings(**TINY))


@pytest.fixture(scope="module")
def fluent():
    """Twenty pairs, learned by heart."""
    settings = {"warmup": 40, "dim": 32, "depth": 1, "batch_size": 10, "smoothing": 0.0, "averaged": 3}
    return task.train_transformer(TransformerSettings(steps=240, train_pairs=20, **settings)).model


def test_what_remains_is_the_mean_of_the_last_checkpoints(trained, tmp_path):
    last = task.train_transformer(TransformerSettings(**TINY | {"averaged": 0})).model
    means = task.train_transformer(trained.settings, checkpoint=tmp_path).model
    states = [torch.load(tmp_path / f"weights-{step:08d}.pt")["weights"] for step in range(36, 41)]
    for name, tensor in means.state_dict().items():
        expected = torch.stack([state[name] for state in states]).mean(dim=0)
        torch.testing.assert_close(tensor, expected, rtol=0, atol=1e-6)
    assert torch.equal(states[-1]["head.weight"], last.head.weight)
    assert not torch.equal(means.head.weight, last.head.weight)


def test_the_rate_is_the_paper_s(trained):
    rates = trained.history.learning_rates
    for step in (0, 4, 9, 39):
        t = step + 1
        assert rates[step] == pytest.approx(8**-0.5 * min(t**-0.5, t * 10**-1.5), rel=1e-9)  # eq. (3)
    assert task.peak(replace(trained.settings, learning_rate=0.3)) == 0.3


def test_padding_does_not_count_in_the_loss(trained):
    pairs = sorted(splits(100).train, key=lambda pair: len(pair.french))
    pairs = [pairs[0], pairs[-1]]
    batch = encode_pairs(pairs)
    words = batch[3][:, 1:].sum(dim=1)
    with torch.no_grad():
        alone = torch.stack([task.translation_loss(trained.model, encode_pairs([pair])) for pair in pairs])
        together = task.translation_loss(trained.model, batch)
    torch.testing.assert_close(together, (alone * words).sum() / words.sum(), rtol=0, atol=1e-6)


def test_twenty_pairs_can_be_learned_by_heart_and_are_then_scored_so(fluent):
    pairs = splits(20).train
    scores = task.scores(fluent, pairs, place=Place(0, 1), layer=Place(0))
    assert scores["bleu"] > 95 and scores["beam"] > 95 and scores["loss"] < 0.1
    source, valid, target, _ = encode_pairs(pairs)
    maps = transformer.alignments(fluent, source, target[:, :-1], valid)[:, 0].mean(dim=1)
    assert scores["layer_error_rate"] == pytest.approx(attention_error_rate(maps, pairs), abs=1e-12)


def test_the_loss_is_a_mean_over_words_and_not_over_batches(trained, monkeypatch):
    pairs = splits(100).validation[:7]
    whole = task.held_out_loss(trained.model, pairs)
    monkeypatch.setattr(task, "ROWS", 3)
    assert task.held_out_loss(trained.model, pairs) == pytest.approx(whole, abs=1e-5)


def test_the_place_that_follows_the_gold_alignment_is_the_best_one(monkeypatch):
    pairs = [pair for pair in splits(100).train if len(pair.alignment) == len(pair.french)][:5]

    def alignments(model, source, target, source_valid):
        maps = torch.rand(len(source), 2, 4, target.shape[1], source.shape[1]) * source_valid[:, None, None, None]
        for row, pair in enumerate(pairs):
            for i, j in pair.alignment:
                maps[row, 1, 2, j, i] = 1.1  # enough for that head, and not for the mean
                maps[row, 0, :, j, i] += 0.4  # better than nothing in each head, and better in their mean
        return maps

    model = task.build(TransformerSettings(depth=2))
    monkeypatch.setattr(transformer, "alignments", alignments)
    rates = transformer.error_rates(model, pairs)
    assert len(rates) == 10 and rates[Place(1, 2)] == 0
    assert [transformer.best_place(rates, whole_layers=whole) for whole in (False, True)] == [Place(1, 2), Place(0)]
    scores = task.scores(model, pairs, place=Place(1, 3), layer=Place(1))
    assert 0 < scores["layer_error_rate"] < 1 and 0 < scores["error_rate"] < 1


def test_a_translation_shows_where_one_layer_looked(fluent):
    pair = splits(20).train[0]
    answer = transformer.translate(fluent, " ".join(pair.english), place=Place(0, 1))
    assert answer.target == pair.french and answer.source == pair.english and not answer.unknown
    source, valid, target, _ = encode_pairs([pair])
    maps = transformer.alignments(fluent, source, target[:, :-1], valid)
    torch.testing.assert_close(answer.weights, maps[0, 0, 1, : len(pair.french)], rtol=0, atol=1e-6)


def test_the_place_is_chosen_on_validation_and_kept_with_the_vocabularies(monkeypatch):
    few = replace(splits(100), validation=splits(100).validation[:6], test=splits(100).test[:6])
    monkeypatch.setattr(task, "splits", lambda count: few)
    asked, error_rates = [], task.error_rates
    monkeypatch.setattr(task, "error_rates", lambda model, pairs: asked.append(pairs) or error_rates(model, pairs))
    trained = task.train(TransformerSettings(**TINY))
    assert asked == [few.validation]
    rates = error_rates(trained.model, few.validation)
    place, layer = trained.extra["place"], trained.extra["layer"]
    assert rates[place] == min(rates.values()) and layer == Place(0)
    assert task.score(trained, "test") == task.scores(trained.model, few.test, place=place, layer=layer)
    french = vocabularies()[1]
    assert type(french).from_state_dict(trained.extra["french"]) == french


FEW = {"steps": 3, "dim": 8, "depth": 1, "batch_size": 4, "train_pairs": 100, "averaged": 0, "warmup": 2}


def test_without_positions_the_encoder_is_blind_to_order_and_the_decoder_sees_the_words_before_as_a_set():
    source, _, target, _ = encode_pairs(splits(100).train[:1])
    shuffle, swapped = torch.randperm(source.shape[1]), target.clone()
    swapped[0, 1:3] = target[0, [2, 1]]
    blind = {"no positions": (True, True), "no positions in the decoder": (False, True), "paper": (False, False)}
    for variant, expected in blind.items():
        model = tricks.train(replace(tricks.VARIANTS[variant], **FEW)).model
        with torch.no_grad():
            straight, shuffled = (model.encode(model.embed(tokens)) for tokens in (source, source[:, shuffle]))
            one, two = (model(source, tokens[:, :4])[0, -1] for tokens in (target, swapped))
        in_encoder = torch.allclose(straight[:, shuffle], shuffled, atol=1e-5)
        assert (in_encoder, torch.allclose(one, two, atol=1e-5)) == expected, variant


def test_without_the_ramp_the_peak_comes_first_and_the_fall_is_the_paper_s():
    factors = [tricks.without_ramp(step, 100, 20) for step in range(100)]
    assert factors[:20] == [1.0] * 20
    assert factors[20:] == pytest.approx([inverse_sqrt(step, 100, 20) for step in range(20, 100)])
    history = tricks.train(replace(tricks.VARIANTS["no warm-up"], **FEW)).history
    assert history.learning_rates[0] == max(history.learning_rates)


def test_each_variant_changes_one_thing_and_another_peak_nothing_but_the_learning_rate():
    allowed = {"paper": 0, "constant rate": 3}  # another schedule needs its own rate, and no warm-up
    for name, settings in tricks.VARIANTS.items():
        if name not in ("GRU", "as long as the GRU"):
            changed = [field for field, value in vars(tricks.PAPER).items() if getattr(settings, field) != value]
            assert len(changed) == allowed.get(name, 1)
    for name, tried in tricks.OTHER_PEAKS.items():
        for rate in tried:
            settings = tricks.BY_PEAK[f"{name}, peak {rate:g}"]
            assert settings == replace(tricks.VARIANTS[name], learning_rate=rate) and rate != tricks.PEAK
    assert len(tricks.BY_PEAK) == 2 * len(tricks.OTHER_PEAKS)
