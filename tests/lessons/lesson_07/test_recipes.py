from dataclasses import replace

import pytest
import torch

from course_lib.lessons.lesson_07.recipes import few_labels as task
from course_lib.lessons.lesson_07.recipes import pretraining
from course_lib.lessons.lesson_07.recipes.pretraining import PretrainingSettings, build
from course_lib.models.bert_tasks import BERTForSequenceClassification, BERTForTokenClassification

TINY = {"dim": 16, "depth": 1, "num_heads": 2, "sentences": 80, "steps": 6, "batch_size": 8}


@pytest.fixture(scope="module")
def pretrained():
    return pretraining.pretrain(pretraining.PretrainingSettings(**TINY))


def words(encoded):
    return pretraining.vocabulary().decode(encoded.ids).split()


def test_two_sentences_are_framed_and_told_apart():
    ids, segments = pretraining.encode(["the", "law"], ["la", "loi"])
    assert pretraining.vocabulary().decode(ids) == "[CLS] the law [SEP] la loi [SEP]"
    assert segments == [0, 0, 0, 0, 1, 1, 1]


def test_no_sentence_is_read_in_both_languages():
    recipe = pretraining.PretrainingSettings(**TINY)
    pairs = pretraining.translation_splits(train=80, validation=pretraining.VALIDATION_SENTENCES, test=0).train
    texts = pretraining.texts(recipe)
    assert [words(text)[1:-1] for text in texts[:40]] == [list(pair.english) for pair in pairs[:40]]
    assert [words(text)[1:-1] for text in texts[40:]] == [list(pair.french) for pair in pairs[40:]]


def test_only_words_are_hidden_and_the_hidden_ones_are_asked():
    texts = pretraining.texts(pretraining.PretrainingSettings(**TINY))
    batch = pretraining.masked_batch(texts, seed=3)
    original, _ = pretraining.pad_batch([text.ids for text in texts])
    assert torch.equal(batch.hidden, original[batch.masked]) and batch.hidden.min() > 4
    assert torch.equal(batch.tokens[~batch.masked], original[~batch.masked])
    assert 0.1 < batch.masked.sum() / (original > 4).sum() < 0.2
    assert not torch.equal(batch.masked, pretraining.masked_batch(texts, seed=4).masked)


def test_pretraining_learns_to_fill_gaps():
    recipe = {**TINY, "dim": 32, "sentences": 16, "steps": 120, "batch_size": 16, "learning_rate": 5e-3}
    losses = pretraining.pretrain(pretraining.PretrainingSettings(**recipe)).history.losses
    assert losses[-10:].mean() < 0.6 * losses[0]


def test_gaps_are_filled_with_the_likeliest_words(pretrained):
    sentence = "les lois [MASK] difficiles [MASK]".split()
    first, second = pretraining.fill_in(pretrained.model, sentence, most=3)
    ids = torch.tensor([pretraining.encode(sentence).ids])
    expected = pretrained.model(ids)[0, 3].softmax(dim=-1).topk(3)
    assert [word for word, _ in first] == [pretraining.vocabulary().vocabulary[i] for i in expected.indices]
    assert [p for _, p in first] == pytest.approx(expected.values.tolist()) and len(second) == 3


QUICK = task.FineTuningSettings(steps=3, learning_rate=1e-3)


@pytest.fixture(scope="module")
def backbone():
    return build(PretrainingSettings(dim=16, depth=1, num_heads=2, seed=7)).eval()


@pytest.fixture(scope="module")
def tagged():
    return task.tagging_splits(train=20, validation=4, test=4)


def test_each_word_gets_its_tag_and_signs_get_none(tagged):
    example = tagged.train[0]
    classes = sorted(set(example.tags) - {example.tags[0]})
    batch = task.tagged_batch([example], classes)
    expected = [classes.index(tag) if tag in classes else len(classes) for tag in example.tags]
    assert batch.labels[0].tolist() == [task.NOT_SCORED, *expected, task.NOT_SCORED]
    assert batch.valid.all() and batch.tokens.shape == batch.labels.shape


def test_fine_tuning_starts_from_the_pretrained_backbone_unless_from_scratch(backbone, tagged):
    batch = task.tagged_batch(tagged.train[:2], ["DET|m|s", "NOUN|m|s"])
    words, sentences = batch._replace(labels=batch.labels.clamp(max=1)), batch._replace(labels=torch.tensor([0, 1]))
    still = task.FineTuningSettings(steps=1, learning_rate=1e-12)
    for kind, given in ((BERTForTokenClassification, words), (BERTForSequenceClassification, sentences)):
        posed = task.Task(kind, 2, given, given, 0.0)
        tuned, scratch = (task.fine_tune(backbone, posed, replace(still, scratch=fresh)) for fresh in (False, True))
        for name, tensor in backbone.bert.state_dict().items():
            torch.testing.assert_close(tuned.bert.state_dict()[name], tensor, rtol=0, atol=1e-9)
        fresh, learned = (model.bert.blocks[0].attn.q_proj.weight for model in (scratch, tuned))
        assert (fresh - learned).abs().max() > 1e-3


def test_a_tag_without_an_example_is_never_right(tagged):
    class Oracle(torch.nn.Module):
        def forward(self, tokens, *, valid):
            return torch.nn.functional.one_hot(torch.ones_like(tokens), 2).float()

    labels = torch.tensor([[task.NOT_SCORED, 1, 1, 2, 0, task.NOT_SCORED]])
    batch = task.LabelledBatch(torch.ones_like(labels), labels >= 0, labels)
    assert task.accuracy(Oracle(), batch) == 0.5


def test_the_tagging_baseline_sees_neighbours_and_endings(tagged):
    example = tagged.train[0]
    features, tags = task.windows_and_tags([example, example])
    word, following = example.words[:2]
    assert features[0] == [f"0={word}", f"1={following}", f"-{word[-1:]}", f"-{word[-2:]}", f"-{word[-3:]}"]
    assert len(features) == len(tags) == 2 * len(example.words) and tags[: len(example.tags)] == list(example.tags)


def make_quick(monkeypatch, tagged):
    genders = task.gender_splits(train=20, validation=4, test=4)
    monkeypatch.setattr(task, "tagged_sentences", lambda language: tagged)
    monkeypatch.setattr(task, "genders", lambda: genders)
    monkeypatch.setattr(task, "FINE_TUNING", {each: (QUICK, replace(QUICK, scratch=True)) for each in task.TASKS})


@pytest.mark.parametrize("name", task.TASKS)
def test_every_task_compares_three_learners_on_the_same_labels(name, backbone, monkeypatch, tagged):
    make_quick(monkeypatch, tagged)
    seeds, fine_tune = [], task.fine_tune
    monkeypatch.setattr(task, "fine_tune", lambda *args: seeds.append(args[2].seed) or fine_tune(*args))
    scores = [task.compare(backbone, name, count=6, draw=draw, split="validation") for draw in (0, 0, 1)]
    assert scores[0] == scores[1] and list(scores[0]) == ["pretrained", "scratch", "baseline"]
    assert seeds == [0, 0, 0, 0, 1, 1]
    assert all(0 <= share <= 1 for each in scores for share in each.values())
    posed = [task.TASKS[name](6, draw, "validation").given.tokens for draw in (0, 1)]
    assert posed[0].shape != posed[1].shape or not torch.equal(*posed)


def test_scores_are_means_and_spreads_over_the_draws(backbone, monkeypatch, tagged):
    make_quick(monkeypatch, tagged)
    monkeypatch.setattr(task, "COMPARISONS", (("tagging", 5),))
    monkeypatch.setattr(task, "DRAWS", 2)
    scores, name = task.few_label_scores(backbone), "tagging, 5 labelled sentences, pretrained"
    one, other = (task.compare(backbone, "tagging", count=5, draw=draw)["pretrained"] for draw in (0, 1))
    assert scores[name] == pytest.approx((one + other) / 2) and len(scores) == 6
    assert scores[f"{name}, spread"] == pytest.approx(abs(one - other) / 2**0.5)
