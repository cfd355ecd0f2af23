"""The trainings on icons: what a batch is, and that every network learns with the best of its learning rates."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.cost import count_flops
from course_lib.lessons.lesson_11 import icon_recipes as task
from course_lib.lessons.lesson_11.icon_recipes import IconSettings, batches, build, score, train
from course_lib.lessons.lesson_11.tasks import TASKS
from course_lib.models.resnet import ResNet
from course_lib.models.swin import Swin
from course_lib.models.vit import ViT

TINY = IconSettings(dim=8, depth=1, num_heads=2, patch_size=8, steps=2, warmup=1, batch_size=8)


def test_the_compared_networks_cost_about_the_same_and_an_unknown_one_is_refused():
    kinds = {"ViT": ViT, "ResNet": ResNet, "Swin": Swin}
    models = {name: build(settings) for name, settings in task.NETWORKS.items()}
    assert {name: type(model) for name, model in models.items()} == kinds
    image = torch.zeros(1, 3, 32, 32)
    costs = [count_flops(lambda model=model: model.eval()(image)) for model in models.values()]
    assert max(costs) < 1.2 * min(costs)
    with pytest.raises(ValueError, match="net must be one of vit, resnet, swin, mixer, got 'mlp'"):
        build(replace(TINY, net="mlp"))


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
def test_two_steps_change_a_network_and_it_is_scored(net):
    settings = replace(TINY, net=net, drawings=16, dim=32)
    trained, fresh = train(settings), build(settings)
    assert any(not torch.equal(a, b) for a, b in zip(trained.model.parameters(), fresh.parameters(), strict=True))
    assert {"accuracy"} == set(score(trained, "validation")) < set(score(trained, "test"))


def test_the_variants_differ_in_what_their_names_say():
    full, *others = task.AUGMENTATION.values()
    assert all(sum(a != b for a, b in zip(vars(full).values(), vars(one).values(), strict=True)) == 1 for one in others)
    assert len({(one.steps, one.batch_size, one.augmented, one.mixup) for one in task.BY_DATA.values()}) == 1


def test_a_prediction_quotes_the_accuracy_of_the_card():
    card = load_trained("vit_augmentation").card
    reached = fmean(seed["test"]["accuracy, training drawings, whole recipe"] for seed in card["seeds"])
    asked = (Path(task.__file__).parent / "questions.md").read_text(encoding="utf-8")
    assert f"it classifies about {100 * reached:.0f} % of these drawings correctly" in asked
