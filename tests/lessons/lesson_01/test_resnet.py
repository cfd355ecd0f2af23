from dataclasses import replace

import pytest
import torch

from course_lib.lessons.lesson_01 import resnet as task
from course_lib.lessons.lesson_01.resnet import SceneRecipe, build, score, train_classifier
from course_lib.models.cnn import CNN
from course_lib.models.resnet import ResNet
from course_lib.training import vision
from course_lib.training.history import History
from course_lib.training.registry import find_recipe

TINY = SceneRecipe(width=4, size=16, steps=6, batch_size=8)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(task, "SETTINGS", TINY)
    monkeypatch.setattr(task, "VALIDATION_SCENES", 40)
    monkeypatch.setattr(task, "TEST_SCENES", 60)


def num_parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_both_networks_have_about_the_same_size():
    with torch.device("meta"):
        ours, plain = build(SceneRecipe(net="resnet")), build(SceneRecipe(net="cnn"))
    assert isinstance(ours, ResNet) and isinstance(plain, CNN)
    assert num_parameters(plain) == pytest.approx(num_parameters(ours), rel=0.05)


def test_first_weights_depend_on_the_seed_alone():
    one, other = build(TINY), build(replace(TINY, steps=9))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not torch.equal(one.stem.conv.weight, build(replace(TINY, seed=1)).stem.conv.weight)


def test_an_unknown_network_is_named():
    with pytest.raises(ValueError, match="net must be one of resnet, cnn, got 'vgg'"):
        build(replace(TINY, net="vgg"))


def test_no_scene_is_seen_twice_nor_by_two_seeds(few, monkeypatch):
    seen = []

    def fit(model, batch_at, *, steps, **others):
        seen.extend(batch_at(step) for step in range(steps))
        assert vision.STEPS_OF_A_SEED > steps
        return History.blank(steps, [])

    monkeypatch.setattr(task, "fit_classifier", fit)
    for seed in (0, 1):
        train_classifier(replace(TINY, seed=seed))
    pixels = torch.cat([pixels for pixels, _ in seen]).flatten(1)
    assert len(pixels) == 2 * 6 * 8 == len(pixels.unique(dim=0))
    assert all(labels.shape == (8,) and labels.min() >= 0 and labels.max() <= 9 for _, labels in seen)


def test_a_score_is_that_of_its_split(few):
    class Knows(torch.nn.Module):
        """Gives every image of the test split its label, and others another one."""

        def forward(self, image):
            return 2.0 * torch.nn.functional.one_hot(answers, 10)[: len(image)]

    images = task.scenes(TINY, "test").batch(60, seed=0).classification()
    answers = images.labels
    assert score(Knows(), TINY, "test") == 1.0 and score(Knows(), TINY, "validation") < 0.5


def test_the_recipe_trains_both_and_ships_the_residual_net(few, tmp_path):
    trained = find_recipe("resnet").train(3, tmp_path, None)
    assert isinstance(trained.model, ResNet) and trained.extra["recipe"]["net"] == "resnet"
    assert trained.extra["recipe"]["seed"] == 3
    assert set(trained.validation) == {"accuracy", "accuracy, plain CNN"}
    assert set(trained.test) == {"accuracy", "accuracy, plain CNN", "CPU seconds, plain CNN"}
    assert trained.test["accuracy"] == score(trained.model, replace(TINY, seed=3), "test")
    assert len(trained.history.losses) == 6
    again = find_recipe("resnet").train(3, tmp_path, None)  # goes on where it ended
    assert again.history.cpu_seconds[-1] == trained.history.cpu_seconds[-1] and again.test == trained.test
