import dataclasses

import pytest
import torch

from course_lib.training import translation as task

TINY = {"steps": 4, "width": 8, "train_pairs": 100}


def train(**settings):
    recipe = task.TranslatorRecipe(**settings)
    return task.train_translator(task.build_translator(recipe), recipe)


@pytest.fixture(scope="module")
def trained():
    return train(**TINY)


def test_the_same_recipe_gives_the_same_translator_bit_for_bit(trained):
    again = train(**TINY)
    assert all(torch.equal(a, b) for a, b in zip(trained.model.parameters(), again.model.parameters(), strict=True))


def test_the_seed_changes_first_weights_and_batches():
    first, second = (task.TranslatorRecipe(seed=seed, **TINY) for seed in (0, 1))
    models = [task.build_translator(recipe) for recipe in (first, second)]
    assert not torch.equal(models[0].readout[0].weight, models[1].readout[0].weight)
    pairs = task.splits(100).train
    batches = [task.batch_source(pairs, recipe)(0)[0] for recipe in (first, second)]
    assert batches[0].shape != batches[1].shape or not torch.equal(*batches)


def test_a_batch_pairs_each_source_with_its_own_translation():
    pairs = task.splits(100).train[:5]
    source, source_valid, target, target_valid = task.encode_pairs(pairs)
    english, french = task.vocabularies()
    for row, pair in enumerate(pairs):
        assert tuple(english.sentence(source[row, source_valid[row]])) == pair.english
        assert target[row, 0] == french.start_id and target[row, target_valid[row]][-1] == french.end_id
        assert tuple(french.sentence(target[row])) == pair.french


def test_padding_does_not_count_in_the_loss(trained):
    pairs = sorted(task.splits(100).train, key=lambda pair: len(pair.french))
    batch = task.encode_pairs([pairs[0], pairs[-1]])
    words = batch[3][:, 1:].sum(dim=1)
    alone = torch.stack([task.translation_loss(trained.model, task.encode_pairs([p])) for p in (pairs[0], pairs[-1])])
    torch.testing.assert_close(
        task.translation_loss(trained.model, batch), (alone * words).sum() / words.sum(), rtol=0, atol=1e-6
    )


def test_twenty_pairs_can_be_learned_by_heart_and_are_then_scored_so():
    recipe = {"steps": 150, "width": 32, "train_pairs": 20, "batch_size": 10, "learning_rate": 2e-2}
    model = train(**recipe).model
    scores = task.score_translator(model, task.splits(20).train)
    assert scores.bleu > 95
    assert scores.by_length[0].bleu.score > 95
    assert 0 <= scores.alignment_error_rate < 1


def test_without_attention_there_is_no_alignment_to_score():
    model = task.build_translator(task.TranslatorRecipe(attention="none", width=8))
    scores = task.score_translator(model, task.splits(100).validation[:5])
    assert scores.alignment_error_rate is None and len(scores.translations) == 5


def test_weights_that_follow_the_gold_alignment_have_no_error():
    pairs = [pair for pair in task.splits(100).validation if len(pair.alignment) == len(pair.french)][:5]
    weights = torch.zeros(5, 60, 60)
    for row, pair in enumerate(pairs):
        for i, j in pair.alignment:
            weights[row, j, i] = 1.0
    assert task.attention_error_rate(weights, pairs) == 0
    assert task.attention_error_rate(weights.roll(1, dims=2), pairs) > 0.9


def test_translate_takes_text_as_typed_and_names_the_words_it_does_not_know(trained):
    answer = task.translate(trained.model, "The minister doesn't sign the Zeppelin!")
    assert answer.source == ("the", "minister", "does", "not", "sign", "the", "zeppelin", ".")
    assert answer.unknown == ("zeppelin",)
    assert answer.weights.shape == (len(answer.target), len(answer.source))
    assert task.translate(trained.model, "Zeppelin the airship Zeppelin").unknown == ("zeppelin", "airship")


@pytest.mark.parametrize("attention", ["none", "additive", "dot", "general", "scaled"])
def test_every_kind_of_attention_can_be_built_and_trained(attention):
    run = train(attention=attention, **TINY)
    assert run.history.losses.shape == (4,) and dataclasses.asdict(run.recipe)["attention"] == attention
