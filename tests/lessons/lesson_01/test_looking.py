"""Lesson 01: fields, patches and probes of its networks."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.data.scenes import DigitScenes
from course_lib.functional.visualisation import Field
from course_lib.lessons.lesson_01 import looking


@pytest.fixture(scope="module")
def model():
    return load_trained("transfer").model


def test_the_fields_are_those_that_a_gradient_measures(model):
    fields = looking.fields_of(model)
    assert fields == [Field(3, 1), Field(9, 2), Field(21, 4), Field(45, 8)]
    image = torch.randn(1, 1, 96, 96, requires_grad=True)
    for maps, field in zip([model.stem(image), *model.feature_maps(image)], fields, strict=True):
        middle = maps.shape[-1] // 2
        (gradient,) = torch.autograd.grad(maps[0, :, middle, middle].square().sum(), image, retain_graph=True)
        reached = gradient[0, 0].nonzero()
        assert (reached.amax(0) - reached.amin(0) + 1).max() <= field.size
        assert (reached.amin(0) >= middle * field.stride - field.size // 2).all()


def test_a_digit_brighter_than_its_ground_is_called_so():
    scenes = DigitScenes(split="test", clutter=0.0, noise=0.0).batch(20, 0)
    inverted = scenes._replace(pixels=1 - scenes.pixels)
    assert torch.equal(looking.ink_is_brighter(scenes), ~looking.ink_is_brighter(inverted))


def test_exciting_patches_come_for_each_depth(model):
    scenes = DigitScenes(split="test").batch(30, 0)
    found = looking.exciting(model, scenes.pixels, channels=2, count=3)
    assert [part[0].pictures[0].shape[-1] for part in found] == [3, 9, 21, 32]
    assert all(len(channel.pictures) == 3 for part in found for channel in part)


def test_a_score_is_the_logit_of_its_class(model):
    images = torch.randn(2, 1, 32, 32)
    with torch.no_grad():
        logits = model.eval()(images)
    score = looking.scoring(model, [5, 1])
    assert torch.equal(score(images), torch.stack([logits[0, 5], logits[1, 1]]))
