"""The trainings on digits, scenes and icons: what a batch is, and what each network and score is."""

from dataclasses import replace

import pytest
import torch

from course_lib.functional.cost import count_flops
from course_lib.lessons.lesson_11 import icon_recipes
from course_lib.lessons.lesson_11 import recipes as task
from course_lib.lessons.lesson_11.icon_recipes import IconSettings
from course_lib.lessons.lesson_11.recipes import ImageSettings, batches, build, source
from course_lib.lessons.lesson_11.tasks import TASKS
from course_lib.models.mixer import Mixer
from course_lib.models.resnet import ResNet
from course_lib.models.swin import Swin
from course_lib.models.vit import ViT

TINY = ImageSettings(size=14, depth=1, steps=4, batch_size=8)
TINY_ICONS = IconSettings(dim=8, depth=1, num_heads=2, patch_size=8, steps=2, warmup=1, batch_size=8)


def test_every_net_names_ten_digits():
    for net, kind in {"vit": ViT, "hybrid": ViT, "mixer": Mixer, "resnet": ResNet}.items():
        model = build(replace(TINY, net=net, patch_size=2))
        assert type(model) is kind and model.eval()(torch.randn(3, 1, 14, 14)).shape == (3, 10)
        assert net != "hybrid" or model.config.stem == "conv"


def test_first_weights_depend_on_the_seed_alone_and_positions_are_as_large_as_patches():
    one, other = build(replace(TINY, depth=2)), build(replace(TINY, depth=2, steps=9, images=50))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not torch.equal(one.pos_embed, build(replace(TINY, depth=2, seed=1)).pos_embed)
    assert build(replace(TINY, size=28)).pos_embed.std().item() == pytest.approx(1.0, rel=0.1)


def test_fixed_images_come_once_an_epoch():
    batch_at = batches(replace(TINY, images=20))
    first, second = (torch.cat([batch_at(3 * epoch + step)[0] for step in range(3)]).flatten(1) for epoch in (0, 1))
    assert len(first.unique(dim=0)) == 20
    assert torch.equal(first.unique(dim=0), second.unique(dim=0)) and not torch.equal(first, second)
    other = batches(replace(TINY, images=20, seed=1))(0)[0].flatten(1)
    assert not (other[:, None] == first).all(dim=-1).any()


def test_scenes_are_scored_at_three_strengths_of_clutter():
    recipe, roughness = replace(TINY, scenes=True, size=32), []
    for clutter in (None, *task.CLUTTER.values()):
        pixels, labels = source(recipe, "test", clutter)(200, 0)
        assert labels.shape == (200,)
        roughness.append(pixels.var(dim=(1, 2, 3)).median().item())
    assert roughness[1] < roughness[2] < roughness[3] and roughness[1] < roughness[0] < roughness[3]


def test_a_trained_net_has_the_weights_that_validated_best(monkeypatch):
    monkeypatch.setattr(task, "SPLIT_IMAGES", {"validation": 30, "test": 40})
    values, snapshots = iter([0.1, 0.9, 0.3, 0.2]), []

    def fake_score(model, settings, split):
        snapshots.append(model.head.weight.detach().clone())
        return {"accuracy": next(values)}

    monkeypatch.setattr(task, "right", fake_score)
    run = task.train(TINY)
    assert torch.equal(run.model.head.weight, snapshots[1]) and not torch.equal(run.model.head.weight, snapshots[3])
    assert run.history.best_value == 0.9


# ------------------------------------------------------------------ icons


def test_the_compared_networks_cost_about_the_same():
    models = {name: icon_recipes.build(settings) for name, settings in icon_recipes.NETWORKS.items()}
    assert {name: type(model) for name, model in models.items()} == {"ViT": ViT, "ResNet": ResNet, "Swin": Swin}
    image = torch.zeros(1, 3, 32, 32)
    costs = [count_flops(lambda model=model: model.eval()(image)) for model in models.values()]
    assert max(costs) < 1.2 * min(costs)


def test_targets_of_a_batch_are_distributions_and_without_mixup_labels():
    batch_at = icon_recipes.batches(TINY_ICONS)
    images, targets = batch_at(0)
    assert images.shape == (8, 3, 32, 32) and targets.shape == (8, 6)
    torch.testing.assert_close(targets.sum(dim=1), torch.ones(8))
    plain, labels = icon_recipes.batches(replace(TINY_ICONS, mixup=0.0, augmented=False))(0)
    assert (labels.amax(dim=1) == 1).all() and (plain.amax(dim=(1, 2, 3)) == 1).all()
    assert not torch.equal(batch_at(1)[0], images) and torch.equal(icon_recipes.batches(TINY_ICONS)(0)[0], images)


def test_blends_are_those_of_the_exercise():
    x, y, partner = torch.rand(4, 3, 5, 5), torch.eye(4), torch.tensor([2, 0, 3, 1])
    weight = torch.tensor([0.1, 0.4, 0.5, 1.0])
    wanted = TASKS["mixup"].reference(x, y, partner, weight)
    torch.testing.assert_close(tuple(icon_recipes.blended(x, y, partner, weight)), tuple(wanted))


def test_each_seed_has_its_own_drawings_and_both_nets_the_same():
    few = replace(TINY_ICONS, drawings=20)
    settings = (few, replace(few, net="resnet"), replace(few, seed=1))
    vit, resnet, other = (icon_recipes.subset(one).names for one in settings)
    assert len(vit) == 20 and torch.equal(vit, resnet) and not torch.equal(vit, other)


@pytest.mark.parametrize("net", icon_recipes.NETS)
def test_two_steps_change_a_network_and_it_is_scored(net):
    settings = replace(TINY_ICONS, net=net, drawings=16, dim=32)
    trained, fresh = icon_recipes.train(settings), icon_recipes.build(settings)
    assert any(not torch.equal(a, b) for a, b in zip(trained.model.parameters(), fresh.parameters(), strict=True))
    scores = [set(icon_recipes.score(trained, split)) for split in ("validation", "test")]
    assert {"accuracy"} == scores[0] < scores[1]


def test_the_variants_differ_in_what_their_names_say():
    full, *others = icon_recipes.AUGMENTATION.values()
    assert all(sum(a != b for a, b in zip(vars(full).values(), vars(one).values(), strict=True)) == 1 for one in others)
    by_data = icon_recipes.BY_DATA.values()
    assert len({(one.steps, one.batch_size, one.augmented, one.mixup) for one in by_data}) == 1
