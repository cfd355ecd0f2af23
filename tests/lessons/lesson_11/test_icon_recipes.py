"""The trainings on icons: what a batch is, and that every network learns with the best of its learning rates."""

from dataclasses import replace

import pytest
import torch

from course_lib.data.icons import icons
from course_lib.lessons.lesson_11 import icon_recipes as task
from course_lib.lessons.lesson_11.icon_recipes import IconSettings, batches, build, score, train
from course_lib.lessons.lesson_11.tasks import TASKS
from course_lib.models.mixer import Mixer
from course_lib.models.resnet import ResNet
from course_lib.models.vit import ViT

TINY = IconSettings(dim=8, depth=1, num_heads=2, patch_size=8, steps=2, warmup=1, batch_size=8)


def test_the_nets_are_of_about_one_size_and_an_unknown_one_is_refused():
    kinds = {"vit": ViT, "hybrid": ViT, "mixer": Mixer, "resnet": ResNet}
    sizes = {net: sum(p.numel() for p in build(IconSettings(net=net)).parameters()) for net in kinds}
    assert all(type(build(replace(TINY, net=net))) is kind for net, kind in kinds.items())
    assert 160_000 < min(sizes.values()) and max(sizes.values()) < 320_000
    with pytest.raises(ValueError, match="net must be one of vit, hybrid, mixer, resnet, got 'swin'"):
        build(replace(TINY, net="swin"))


def test_a_view_is_a_window_of_the_padded_drawing_on_its_ground():
    some, ground = icons("test").take(torch.arange(3)), torch.rand(3, 3)
    middle = torch.full((3, 2), task.SHIFT)
    still = task.views(some, torch.zeros(3, dtype=torch.bool), middle, ground)
    torch.testing.assert_close(still, some.on(ground[:, :, None, None]))
    turned = task.views(some, torch.ones(3, dtype=torch.bool), middle, ground)
    torch.testing.assert_close(turned, still.flip(3))
    moved = task.views(some, torch.zeros(3, dtype=torch.bool), middle + torch.tensor([2, -3]), ground)
    torch.testing.assert_close(moved[..., :-2, 3:], still[..., 2:, :-3])


def test_targets_of_a_batch_are_distributions_and_without_mixup_labels():
    images, targets = batches(TINY)(0)
    assert images.shape == (8, 3, 32, 32) and targets.shape == (8, 6)
    torch.testing.assert_close(targets.sum(dim=1), torch.ones(8))
    plain, labels = batches(replace(TINY, mixup=0.0, augmented=False))(0)
    assert (labels.amax(dim=1) == 1).all() and (plain.amax(dim=(1, 2, 3)) == 1).all()
    assert not torch.equal(batches(TINY)(1)[0], images) and torch.equal(batches(TINY)(0)[0], images)


def test_blends_are_those_of_the_exercise():
    x, y, partner = torch.rand(4, 3, 5, 5), torch.eye(4), torch.tensor([2, 0, 3, 1])
    weight = torch.tensor([0.1, 0.4, 0.5, 1.0])
    wanted = TASKS["mixup"].reference(x, y, partner, weight)
    for ours, right in zip(task.blended(x, y, partner, weight), wanted, strict=True):
        torch.testing.assert_close(ours, right)


def test_each_seed_has_its_own_drawings_and_both_nets_the_same():
    few = replace(TINY, drawings=20)
    vit, resnet, other = (task.subset(one).names for one in (few, replace(few, net="resnet"), replace(few, seed=1)))
    assert len(vit) == 20 and torch.equal(vit, resnet) and not torch.equal(vit, other)


@pytest.mark.parametrize("net", task.NETS)
def test_two_steps_keep_the_learning_rate_that_validates_best(net, monkeypatch):
    values = iter([0.2, 0.7])
    monkeypatch.setattr(task, "on_split", lambda model, split: next(values, 0.1))
    trained = train(replace(TINY, net=net, drawings=16))
    assert trained.extra["learning_rate"] == 2e-3 and trained.settings == replace(TINY, net=net, drawings=16)
    fresh = build(replace(TINY, net=net))
    assert any(not torch.equal(a, b) for a, b in zip(trained.model.parameters(), fresh.parameters(), strict=True))
    assert {"accuracy", "learning rate"} == set(score(trained, "validation")) < set(score(trained, "test"))


def test_the_variants_differ_in_what_their_names_say():
    full, *others = task.INGREDIENTS.values()
    assert all(sum(a != b for a, b in zip(vars(full).values(), vars(one).values(), strict=True)) == 1 for one in others)
    steps = {
        (one.steps, one.batch_size, one.augmented, one.mixup, len(one.learning_rates)) for one in task.BY_DATA.values()
    }
    assert len(steps) == 1
