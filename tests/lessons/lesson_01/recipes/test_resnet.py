from dataclasses import replace

import pytest
import torch

from course_lib.lessons.lesson_01.recipes import resnet as task
from course_lib.lessons.lesson_01.recipes.resnet import SceneSettings, build, right
from course_lib.models.cnn import CNN
from course_lib.models.resnet import ResNet

TINY = SceneSettings(width=4, size=16, steps=6, batch_size=8)


def num_parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_both_networks_have_about_the_same_size():
    with torch.device("meta"):
        ours, plain = build(SceneSettings(net="resnet")), build(SceneSettings(net="cnn"))
    assert isinstance(ours, ResNet) and isinstance(plain, CNN)
    assert num_parameters(plain) == pytest.approx(num_parameters(ours), rel=0.05)


def test_an_unknown_network_is_named():
    with pytest.raises(ValueError, match="net must be one of resnet, cnn, got 'vgg'"):
        build(replace(TINY, net="vgg"))


def test_a_score_is_that_of_its_split(monkeypatch):
    monkeypatch.setattr(task, "SPLIT_SCENES", {"validation": 40, "test": 60})

    class Knows(torch.nn.Module):
        """Gives every image of the test split its label, and others another one."""

        def forward(self, image):
            return 2.0 * torch.nn.functional.one_hot(answers, 10)[: len(image)]

    images = task.scenes(TINY, "test").batch(60, seed=0).classification()
    answers = images.labels
    assert right(Knows(), TINY, "test") == 1.0 and right(Knows(), TINY, "validation") < 0.5
