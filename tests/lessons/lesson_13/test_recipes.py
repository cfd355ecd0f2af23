import statistics
from dataclasses import replace

import pytest
import torch

from course_lib.data.digits import CleanDigits
from course_lib.lessons.lesson_13 import recipes as task
from course_lib.models.mae import encoder_of

TINY = task.PretrainingSettings(dim=16, depth=1, num_heads=2, decoder_dim=8, steps=6, batch_size=4)
QUICK = task.FineTuningSettings(learning_rate=1e-3, steps=3, batch_size=8)


@pytest.fixture(scope="module")
def pretrained():
    return task.pretrain(TINY).model


@pytest.fixture(autouse=True)
def few_images(monkeypatch):
    monkeypatch.setattr(task, "SPLIT_IMAGES", {"validation": 40, "test": 40})
    monkeypatch.setattr(task, "POOL_IMAGES", 400)


def test_a_batch_depends_on_the_seed_and_the_split_alone():
    one, same = (task.hidden_batch(TINY, "train", 5, seed=3) for _ in range(2))
    assert torch.equal(one.pixels, same.pixels) and torch.equal(one.noise, same.noise)
    assert one.pixels.shape == (5, 1, 28, 28) and one.noise.shape == (5, 49)
    for split, seed in (("train", 4), ("test", 3)):
        assert not torch.equal(task.hidden_batch(TINY, split, 5, seed=seed).pixels, one.pixels)
    assert not torch.equal(task.hidden_batch(TINY, "train", 5, seed=4).noise, one.noise)


def test_no_batch_is_seen_twice_by_one_seed_or_by_two(monkeypatch):
    seen, hidden_batch = [], task.hidden_batch
    spy = lambda *args, seed: seen.append((args[1], seed)) or hidden_batch(*args, seed=seed)  # noqa: E731
    monkeypatch.setattr(task, "hidden_batch", spy)
    for seed in (0, 1):
        task.pretrain(replace(TINY, seed=seed))
    seeds = [seed for split, seed in seen if split == "train"]
    assert len(seeds) == len(set(seeds)) == 12


def test_no_digit_of_one_split_is_drawn_in_another():
    for split in ("train", "validation", "test"):
        assert task.digits(split) == CleanDigits(split=split, **task.GEOMETRY)


def test_pretraining_learns_to_paint_what_is_hidden():
    recipe = replace(TINY, dim=32, steps=120, batch_size=16, learning_rate=5e-3)
    history = task.pretrain(recipe).history
    assert history.losses[-10:].mean() < 0.8 * history.losses[:10].mean()
    assert history.validation_values[-1] == history.validation_values.min()


def test_labels_are_dealt_out_evenly_and_each_draw_gets_others():
    one, same, other = (task.few_labels(20, draw, "validation") for draw in (0, 0, 1))
    assert one.given.labels.bincount().tolist() == [2] * 10
    assert torch.equal(one.given.pixels, same.given.pixels)
    assert not torch.equal(one.given.pixels, other.given.pixels)
    assert torch.equal(one.asked.pixels, one.validation.pixels) and torch.equal(one.asked.pixels, other.asked.pixels)
    assert not torch.equal(task.few_labels(20, 0).asked.pixels, one.asked.pixels)


def test_fine_tuning_starts_from_the_given_weights_and_trains_all_of_them(pretrained):
    given = task.few_labels(20, 0).given
    start = encoder_of(pretrained, num_classes=10)
    still = task.fine_tune(encoder_of(pretrained, num_classes=10), given, replace(QUICK, learning_rate=1e-12))
    tuned = task.fine_tune(encoder_of(pretrained, num_classes=10), given, QUICK)
    for name, tensor in start.state_dict().items():
        torch.testing.assert_close(still.state_dict()[name], tensor, rtol=0, atol=1e-9)
        assert not torch.equal(tuned.state_dict()[name], tensor), name


def test_four_variants_learn_from_the_same_labels(pretrained, monkeypatch):
    monkeypatch.setattr(task, "FINE_TUNING", {"fine-tuned": QUICK, "scratch": replace(QUICK, steps=2)})
    seen, fine_tune, learned = [], task.fine_tune, pretrained.encoder.blocks[0].ffn.up_proj.weight

    def spy(model, given, recipe):
        seen.append((given.pixels, torch.equal(model.blocks[0].ffn.up_proj.weight, learned), recipe.steps, recipe.seed))
        return fine_tune(model, given, recipe)

    monkeypatch.setattr(task, "fine_tune", spy)
    scores = [task.compare(pretrained, count=20, draw=draw, split="validation") for draw in (0, 0, 1)]
    assert scores[0] == scores[1] != scores[2]
    assert list(scores[0]) == ["fine-tuned", "scratch", "linear probe", "pixels"]
    assert all(0 <= score <= 1 for score in scores[0].values())
    assert all(torch.equal(pixels, seen[0][0]) for pixels, *_ in seen[:4])
    told = [(started, steps, seed) for _, started, steps, seed in seen]
    assert told == [(True, 3, 0), (False, 2, 0)] * 2 + [(True, 3, 1), (False, 2, 1)]


def test_the_probe_reads_the_mean_of_all_patches(pretrained):
    posed = task.few_labels(50, 0, "validation")
    encoder = encoder_of(pretrained)
    features = task.pooled_features(encoder, posed.asked.pixels)
    expected = pretrained.features(task.standardise(posed.asked.pixels)).mean(dim=1)
    torch.testing.assert_close(features, expected.detach())
    assert task.probe_accuracy(posed, lambda pixels: torch.eye(10)[[0] * len(pixels)]) <= 0.25  # no feature, no skill


def test_scores_are_means_and_spreads_over_the_draws(pretrained, monkeypatch):
    constants = {"FINE_TUNING": {"fine-tuned": QUICK, "scratch": QUICK}, "COUNTS": (20,), "DRAWS": 2}
    for name, value in constants.items():
        monkeypatch.setattr(task, name, value)
    one, other = (task.compare(pretrained, count=20, draw=draw) for draw in (0, 1))
    scores = task.few_label_scores(pretrained)
    for name, both in {name: (one[name], other[name]) for name in one}.items():
        assert scores[f"accuracy, 20 labels, {name}"] == pytest.approx(statistics.mean(both))
        assert scores[f"accuracy, 20 labels, {name}, spread"] == pytest.approx(statistics.stdev(both))
