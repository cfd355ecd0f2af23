from dataclasses import replace

import numpy as np
import pytest
import torch

from course_lib.lessons.lesson_01.recipes import depth as task
from course_lib.lessons.lesson_01.recipes.depth import DepthSettings, build, last_losses, score, train
from course_lib.training.history import History
from course_lib.training.recipe import Trained

TINY = DepthSettings(num_layers=8, width=4, steps=20, batch_size=8)


@pytest.mark.parametrize("layers", (8, 20, 44))
def test_plain_and_residual_nets_differ_in_their_shortcuts_alone(layers):
    plain, residual = (build(replace(task.SETTINGS, kind=kind, num_layers=layers)) for kind in task.KINDS)
    assert not plain.config.residual and residual.config.residual
    assert plain.state_dict().keys() == residual.state_dict().keys()
    assert all(torch.equal(tensor, residual.state_dict()[name]) for name, tensor in plain.state_dict().items())


def test_nets_are_what_their_names_say_and_else_differ_in_the_learning_rate_alone():
    for name, recipe in task.NETS.items():
        kind, layers, *twice = name.split(", ")
        rate = {"learning_rate": recipe.learning_rate}
        expected = replace(task.SETTINGS, kind=kind, num_layers=int(layers.split()[0]), **rate)
        assert recipe == (replace(expected, steps=2 * expected.steps) if twice else expected)


def test_an_unknown_kind_is_named():
    with pytest.raises(ValueError, match="kind must be one of plain, residual, got 'dense'"):
        build(replace(TINY, kind="dense"))


def test_last_losses_are_those_of_the_last_tenth_and_of_the_tenth_before():
    history = History.blank(20, [])
    history.losses[:] = np.arange(20)
    assert last_losses(Trained(settings=TINY, model=build(TINY), history=history)) == (18.5, 16.5)


def test_digits_that_are_scored_as_training_digits_were_not_trained_on(monkeypatch):
    seen, digits = [], task.digits

    def spy(*args):
        seen.append(digits(*args))
        return seen[-1]

    monkeypatch.setattr(task, "digits", spy)
    train(replace(TINY, steps=3))
    scored = digits(TINY, "train", 100, task.SEED_OF_SCORES)
    pixels = torch.cat([images.pixels for images in (*seen, scored)]).flatten(1)
    assert len(pixels) == 3 * 8 + 100 == len(pixels.unique(dim=0))


def test_the_test_also_scores_the_digits_that_were_learned(monkeypatch):
    monkeypatch.setattr(task, "right", lambda trained, split: {"train": 0.9, "validation": 0.8, "test": 0.7}[split])
    history = History.blank(20, [])
    history.losses[:] = np.arange(20)
    trained = Trained(settings=TINY, model=build(TINY), history=history)
    assert score(trained, "validation") == {"accuracy": 0.8}
    assert score(trained, "test") == {
        "accuracy": 0.7,
        "accuracy on training digits": 0.9,
        "training loss": 18.5,
        "training loss, a tenth of the steps before": 16.5,
    }
