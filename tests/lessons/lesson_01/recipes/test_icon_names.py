"""Lesson 01: the network of icon names learns from views that are those of the exercise."""

from dataclasses import replace

import torch

from course_lib.data.icons import icons
from course_lib.lessons.lesson_01.recipes import icon_names
from course_lib.lessons.lesson_01.tasks import TASKS


def test_views_are_those_of_the_exercise():
    drawings, generator = icons("test").take(torch.arange(12)), torch.Generator().manual_seed(0)
    given = (
        torch.rand(12, generator=generator) < 0.5,
        torch.randint(0, 9, (12, 2), generator=generator),
        torch.rand(12, 3, generator=generator),
    )
    rgba = torch.cat([drawings.pixels, drawings.alpha], dim=1)
    assert torch.allclose(icon_names.views(drawings, *given), TASKS["augment"].reference(rgba, *given), atol=1e-6)


def test_classes_are_the_things_of_the_training():
    for split in ("train", "validation", "test", "new designer"):
        drawings, labels = icon_names.with_classes(icons(split))
        assert torch.equal(icon_names.known_names()[labels], drawings.names)


def test_a_training_runs_and_is_scored():
    trained = icon_names.train(replace(icon_names.SETTINGS, steps=2, batch_size=4))
    assert set(icon_names.score(trained, "test")) == {
        "accuracy",
        "accuracy, coloured ground",
        "accuracy, new designer",
        "accuracy, training drawings",
    }
