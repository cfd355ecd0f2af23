from dataclasses import replace

import pytest
import torch

from course_lib.lessons.lesson_12 import learner, recipes
from course_lib.lessons.lesson_12.tasks import TASKS
from course_lib.models.swin import Swin, SwinConfig

NAMES = {"in_windows": "in_windows", "mask": "shift_mask", "index": "position_index", "merging": "patch_merging"}
PARTS = {name: TASKS[task].reference for name, task in NAMES.items()}


def model(**settings):
    torch.manual_seed(0)
    sizes = {"in_channels": 1, "num_classes": 3, "dim": 8, "depths": (2, 2), "num_heads": (2, 2), "window_size": 4}
    swin = Swin(SwinConfig(**sizes | settings))
    for parameter in swin.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return swin.eval()


def images(side=32):
    return torch.randn(2, 1, side, side, generator=torch.Generator().manual_seed(1))


def test_our_own_functions_change_nothing_and_keep_all_names():
    ours = learner.with_yours(model(), **PARTS)
    torch.testing.assert_close(ours(images()), model()(images()))
    assert list(ours.state_dict()) == list(model().state_dict())


def test_a_map_smaller_than_a_window_comes_out_the_same():
    torch.testing.assert_close(learner.with_yours(model(), **PARTS)(images(16)), model()(images(16)))


@pytest.mark.parametrize("part", NAMES)
def test_each_of_the_four_functions_runs_inside_the_model(part):
    called = []

    def watched(*arguments):
        called.append(part)
        return PARTS[part](*arguments)

    learner.with_yours(model(), **PARTS | {part: watched})(images())
    assert called


def test_a_short_training_changes_a_model_on_functions_of_ones_own_and_leaves_it_ready_for_use(monkeypatch):
    small = replace(recipes.SETTINGS, dim=8, depths=(2,), num_heads=(2,), batch_size=8, drop_path=0.0)
    monkeypatch.setattr(recipes, "SETTINGS", small)
    fresh, learned = learner.fresh(4, **PARTS), learner.learn(learner.fresh(4, **PARTS), 4)
    assert not learned.training
    assert not torch.equal(fresh.head.weight, learned.head.weight)


def test_what_is_watched_shows_a_few_digits_of_a_network_that_knows_nothing():
    figure = learner.showing(learner.test_digits(50))(model(num_classes=10))
    assert len(figure.axes) == 6
