import pytest
import torch

from course_lib.lessons.lesson_07.recipes import pretraining as task

TINY = {"dim": 16, "depth": 1, "num_heads": 2, "sentences": 80, "steps": 6, "batch_size": 8}


@pytest.fixture(scope="module")
def pretrained():
    return task.pretrain(task.PretrainingSettings(**TINY))


def words(encoded):
    return task.vocabulary().decode(encoded.ids).split()


def test_two_sentences_are_framed_and_told_apart():
    ids, segments = task.encode(["the", "law"], ["la", "loi"])
    assert task.vocabulary().decode(ids) == "[CLS] the law [SEP] la loi [SEP]"
    assert segments == [0, 0, 0, 0, 1, 1, 1]


def test_no_sentence_is_read_in_both_languages():
    recipe = task.PretrainingSettings(**TINY)
    pairs = task.translation_splits(train=80, validation=task.VALIDATION_SENTENCES, test=0).train
    texts = task.texts(recipe)
    assert [words(text)[1:-1] for text in texts[:40]] == [list(pair.english) for pair in pairs[:40]]
    assert [words(text)[1:-1] for text in texts[40:]] == [list(pair.french) for pair in pairs[40:]]


def test_only_words_are_hidden_and_the_hidden_ones_are_asked():
    texts = task.texts(task.PretrainingSettings(**TINY))
    batch = task.masked_batch(texts, seed=3)
    original, _ = task.pad_batch([text.ids for text in texts])
    assert torch.equal(batch.hidden, original[batch.masked]) and batch.hidden.min() > 4
    assert torch.equal(batch.tokens[~batch.masked], original[~batch.masked])
    assert 0.1 < batch.masked.sum() / (original > 4).sum() < 0.2
    assert not torch.equal(batch.masked, task.masked_batch(texts, seed=4).masked)


def test_pretraining_learns_to_fill_gaps():
    recipe = {**TINY, "dim": 32, "sentences": 16, "steps": 120, "batch_size": 16, "learning_rate": 5e-3}
    losses = task.pretrain(task.PretrainingSettings(**recipe)).history.losses
    assert losses[-10:].mean() < 0.6 * losses[0]


def test_gaps_are_filled_with_the_likeliest_words(pretrained):
    sentence = "les lois [MASK] difficiles [MASK]".split()
    first, second = task.fill_in(pretrained.model, sentence, most=3)
    ids = torch.tensor([task.encode(sentence).ids])
    expected = pretrained.model(ids)[0, 3].softmax(dim=-1).topk(3)
    assert [word for word, _ in first] == [task.vocabulary().vocabulary[i] for i in expected.indices]
    assert [p for _, p in first] == pytest.approx(expected.values.tolist()) and len(second) == 3
