"""The page with a learner's answers: as a plain file, and in two kernels; its data, and real slices."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from course_lib.lessons.lesson_14 import diffusion_recipes, icon_recipes, learner
from course_lib.lessons.lesson_14.tasks import TASKS
from tests.lessons.answered import kernels
from tests.lessons.modern import numbers_alone

DRIVER = """
augment, segmentation_loss, IGNORE = my_augment, my_segmentation_loss, 255

def squares(count):
    images, labels = 0.3 * torch.randn(count, 3, 32, 32), torch.zeros(count, 32, 32, dtype=torch.long)
    for image, label in zip(images, labels):
        top, left = torch.randint(4, 16, (2,)).tolist()
        image[:, top:top + 12, left:left + 12] += 1
        label[top:top + 12, left:left + 12] = 1
    return images, labels

known, known_labels = squares(60)
model, (new, new_labels) = UNet(3, 2, (8, 16, 32)), squares(20)
train(model, 150, screen)
predicted = model.eval()(new).argmax(dim=1)
print(losses[0], losses[-1], my_overlap(predicted, new_labels, 2)[0, 1].item())
"""


def test_a_plain_file_of_the_solutions_and_the_page_s_loop_learns_without_the_course(tmp_path):
    first, last, iou = numbers_alone(
        tmp_path,
        "14",
        solutions=("conv_block", "unet", "overlap", "augment", "segmentation_loss"),
        cells=("train",),
        driver=DRIVER,
        lines=200,
    )
    assert first > 1 and last < 0.5 and iou > 0.8, (first, last, iou)


def test_her_u_net_opens_both_models_and_goes_on_in_a_new_kernel(tmp_path, monkeypatch):
    few = (("steps=400", "steps=10"), ("steps=350", "steps=2"), ("range(40)", "range(12)"))
    few += (("reversed(range(len(betas)))", "reversed(range(3))"), ('"test", 300', '"test", 4'))
    few += (("steps=250", "steps=2"), ("batch(500", "batch(5"), ('"validation", 200', '"validation", 4'))
    first, second = kernels(tmp_path, monkeypatch, "14", end="opened_by_both", shorter=few)
    assert "your UNet passes its check" in first and "the page runs on your model" in first
    assert "UNet opens the trained weights. 482,788 parameters are copied" in first
    assert "Your UNet goes on here." in second and "73,848 + 47,320 + 18 = 121,186; counted: 121,186" in second
    assert "UNet opens the trained weights. 952,963 parameters are copied" in second


def test_scenes_have_an_icon_of_the_categories_and_new_ones_for_each_seed():
    images, labels = learner.scenes("train", 30)
    assert images.shape == (30, 3, 64, 64) and set(labels.unique().tolist()) == set(range(len(icon_recipes.CLASSES)))
    again, others = learner.scenes("train", 30)[1], learner.scenes("train", 30, seed=1)[1]
    assert torch.equal(labels, again) and not torch.equal(labels, others)


def test_drawings_go_from_minus_one_to_one_and_new_ones_are_not_known():
    new, known = learner.new_drawings(40), learner.known_drawings()
    assert new.amin() >= -1 and new.amax() <= 1 and len(known) > 2900
    assert not any((known == one).flatten(1).all(dim=1).any() for one in new)
    assert learner.random_drawings(5).shape == (5, 3, 32, 32)


def test_the_condition_says_the_step_and_the_category():
    told = learner.condition(torch.tensor([0, 3, 3]), torch.tensor([2, 2, 5]))
    steps, categories = told.split((diffusion_recipes.STEP_DIM, 6), dim=1)
    assert not torch.equal(steps[0], steps[1]) and torch.equal(steps[1], steps[2])
    assert categories.argmax(dim=1).tolist() == [2, 2, 5] and (categories.sum(dim=1) == 1).all()


def test_the_example_beside_the_training_has_a_row_for_each_scene():
    model = icon_recipes.build(icon_recipes.IconSegmentation(widths=(8, 16, 32)))
    assert len(learner.showing()(model).axes) == 6 and model.training


def dark_or_not():
    """A network that takes dark pixels for membranes."""
    network = nn.Conv2d(1, 2, 1)
    network.weight.data[:, 0, 0, 0], network.bias.data = torch.tensor([2.0, -2.0]), torch.zeros(2)
    return network


def stripes(count, size=160):
    """Slices whose membranes are dark lines."""
    membranes = (torch.arange(size) % 16 < 3).expand(count, size, size)
    return SimpleNamespace(pixels=torch.where(membranes, 0.2, 0.8)[:, None], membranes=membranes)


@pytest.mark.parametrize("here", [True, False])
def test_real_slices_are_learned_where_they_are(here, monkeypatch, capsys):
    monkeypatch.setattr(learner, "is_here", lambda name: here)
    monkeypatch.setattr(learner, "isbi2012", lambda: stripes(7))
    augment, loss = (TASKS[name].reference.changed() for name in ("augment", "segmentation_loss"))
    learner.membranes(dark_or_not, augment, loss, steps=3)
    said = capsys.readouterr().out
    assert ("Mean IoU" in said and float(said.split(":")[1].split()[0].rstrip(".")) > 0.9) == here
    assert ("course data fetch isbi2012" in said) != here
