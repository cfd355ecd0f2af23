from dataclasses import replace

import pytest
import torch

from course_lib.lessons.lesson_07.recipes import few_labels as task
from course_lib.lessons.lesson_07.recipes.pretraining import PretrainingSettings, build
from course_lib.models.bert_tasks import BERTForSequenceClassification, BERTForTokenClassification

QUICK = task.FineTuningSettings(steps=3, learning_rate=1e-3)


@pytest.fixture(scope="module")
def pretrained():
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


def test_fine_tuning_starts_from_the_pretrained_backbone_unless_from_scratch(pretrained, tagged):
    batch = task.tagged_batch(tagged.train[:2], ["DET|m|s", "NOUN|m|s"])
    batch = batch._replace(labels=batch.labels.clamp(max=1))
    still = task.FineTuningSettings(steps=1, learning_rate=1e-12)
    for kind, given in (
        (BERTForTokenClassification, batch),
        (BERTForSequenceClassification, batch._replace(labels=torch.tensor([0, 1]))),
    ):
        posed = task.Task(kind, 2, given, given, 0.0)
        tuned = task.fine_tune(pretrained, posed, still)
        scratch = task.fine_tune(pretrained, posed, replace(still, scratch=True))
        for name, tensor in pretrained.bert.state_dict().items():
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
def test_every_task_compares_three_learners_on_the_same_labels(name, pretrained, monkeypatch, tagged):
    make_quick(monkeypatch, tagged)
    seeds, fine_tune = [], task.fine_tune
    monkeypatch.setattr(task, "fine_tune", lambda *args: seeds.append(args[2].seed) or fine_tune(*args))
    scores = [task.compare(pretrained, name, count=6, draw=draw, split="validation") for draw in (0, 0, 1)]
    assert scores[0] == scores[1] and list(scores[0]) == ["pretrained", "scratch", "baseline"]
    assert seeds == [0, 0, 0, 0, 1, 1]
    assert all(0 <= share <= 1 for each in scores for share in each.values())
    posed = [task.TASKS[name](6, draw, "validation").given.tokens for draw in (0, 1)]
    assert posed[0].shape != posed[1].shape or not torch.equal(*posed)


def test_scores_are_means_and_spreads_over_the_draws(pretrained, monkeypatch, tagged):
    make_quick(monkeypatch, tagged)
    monkeypatch.setattr(task, "COMPARISONS", (("tagging", 5),))
    monkeypatch.setattr(task, "DRAWS", 2)
    scores, name = task.few_label_scores(pretrained), "tagging, 5 labelled sentences, pretrained"
    one, other = (task.compare(pretrained, "tagging", count=5, draw=draw)["pretrained"] for draw in (0, 1))
    assert scores[name] == pytest.approx((one + other) / 2) and len(scores) == 6
    assert scores[f"{name}, spread"] == pytest.approx(abs(one - other) / 2**0.5)
