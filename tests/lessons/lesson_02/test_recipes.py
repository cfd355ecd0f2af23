import statistics
from dataclasses import replace

import pytest
import torch

from course_lib.functional.losses import nt_xent
from course_lib.lessons.lesson_02 import recipes as task
from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.training import vision
from course_lib.training.probes import Labelled, few_label_accuracies

ENCODER = ResNetConfig(
    in_channels=1, num_classes=None, stem="small", stem_channels=4, widths=(4, 8), depths=(1, 1), block="basic"
)
TINY = task.ContrastiveSettings(encoder=ENCODER, steps=4, batch_size=6, projection_dim=3)
UNCHANGED = replace(TINY, augmentation=task.Augmentation(crop=0, flip=0, brightness=0, contrast=0, colour=0, blur=0))


def test_views_are_pairs_of_images_that_no_step_and_no_other_seed_shows_again():
    batch, changed = task.views_at(UNCHANGED, 5), task.views_at(TINY, 5)
    first, second = batch.pixels.chunk(2)
    assert len(first) == 6 and torch.equal(first, second) and torch.equal(*batch.labels.chunk(2))
    views = changed.pixels.flatten(1)
    assert torch.equal(changed.labels, batch.labels) and len(views.unique(dim=0)) == 12
    assert torch.equal(views, task.views_at(TINY, 5).pixels.flatten(1))
    seen = [task.views_at(replace(UNCHANGED, seed=seed), step).pixels[:6] for seed in (0, 1) for step in range(3)]
    assert len(torch.cat(seen).flatten(1).unique(dim=0)) == 2 * 3 * 6
    assert vision.STEPS_OF_A_SEED > task.ContrastiveSettings().steps


def test_the_loss_compares_the_two_views_of_each_image():
    model, batch = task.build(TINY).eval(), task.views_at(TINY, 0)
    z = model((batch.pixels - 0.5) / 0.25)
    expected = nt_xent(z[:6], z[6:], temperature=0.1)
    torch.testing.assert_close(task.contrastive_loss(model, batch, 0.1), expected)


def test_pretraining_uses_the_temperature_and_never_the_labels(monkeypatch):
    losses = task.train(TINY).history.losses
    assert losses[0] != task.train(replace(TINY, temperature=1.0)).history.losses[0]
    views = task.views_at
    monkeypatch.setattr(task, "views_at", lambda *a: views(*a)._replace(labels=None))
    assert (task.train(TINY).history.losses == losses).all()


def test_supervision_has_the_same_encoder_and_probes_see_every_variant_and_what_it_has_to_beat():
    trained = {"SimCLR": task.train(TINY), "supervised": task.train(replace(TINY, supervised=True))}
    run = trained["supervised"]
    assert isinstance(run.model, ResNet) and run.model.config == replace(ENCODER, num_classes=10)
    assert len(run.history.losses) == TINY.steps
    encoders, pixels = task.encoders_of(trained), torch.rand(3, 1, 28, 28)
    assert list(encoders) == ["SimCLR", "SimCLR's projection", "random", "pixels", "supervised"]
    assert [encode(pixels).shape[1] for encode in encoders.values()] == [8, 3, 8, 28 * 28, 8]
    assert torch.equal(encoders["random"](pixels), task.encoder_of(task.build(TINY))(pixels))
    assert not torch.equal(encoders["random"](pixels), encoders["SimCLR"](pixels))


def test_short_trainings_leave_out_one_change_each():
    recipe = task.ContrastiveSettings(steps=100, seed=2)
    short = task.short_trainings(recipe)
    assert len(short) == 1 + len(task.CHANGES) and "short training, all changes" in short
    assert {each.steps for each in short.values()} == {round(100 * task.SHORT)}
    for name, settings in task.CHANGES.items():
        changed = short[f"short training, without {name}"].augmentation
        used = {setting: getattr(recipe.augmentation, setting) for setting in settings}
        assert min(used.values()) > 0 == max(getattr(changed, setting) for setting in settings)
        assert replace(changed, **used) == recipe.augmentation
        assert short[f"short training, without {name}"].seed == 2


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(task, "SPLITS", {"train": 150, "validation": 40, "test": 50})
    monkeypatch.setattr(task, "DRAWS", 2)
    task.images.cache_clear()
    yield
    task.images.cache_clear()


def test_scores_are_means_and_spreads_over_draws_of_labels(few):
    pixels = {"pixels": lambda pixels: pixels.flatten(1)}
    sets = {split: Labelled(task.images(split).pixels.flatten(1), task.images(split).labels) for split in task.SPLITS}
    known = (sets["train"], sets["validation"])
    for split in ("validation", "test"):
        scores = task.probe_scores(pixels, split)
        assert len(scores) == 2 * 2 * 2
        for probe, tuned in task.PROBES.items():
            accuracies = few_label_accuracies(*known, sets[split], per_class=5, draws=2, tuned=tuned)
            name = f"{probe}, 50 labels, pixels"
            assert scores[name] == statistics.mean(accuracies)
            assert scores[f"{name}, spread"] == statistics.stdev(accuracies) > 0
    assert len({len(one.labels) for one in sets.values()}) == 3
