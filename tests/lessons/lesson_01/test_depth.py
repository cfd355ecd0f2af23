from dataclasses import replace

import numpy as np
import pytest
import torch

from course_lib.lessons.lesson_01 import depth as task
from course_lib.lessons.lesson_01.depth import DepthRecipe, TrainedNet, build, score, train_net
from course_lib.training import vision
from course_lib.training.history import History
from course_lib.training.registry import find_recipe

TINY = DepthRecipe(num_layers=8, width=4, steps=20, batch_size=8)


@pytest.fixture
def few(monkeypatch):
    nets = {
        "plain, 8 layers": replace(TINY, kind="plain", steps=4),
        task.SHIPPED: replace(TINY, num_layers=14, steps=5),
    }
    monkeypatch.setattr(task, "NETS", nets)
    monkeypatch.setattr(task, "SPLIT_IMAGES", dict.fromkeys(task.SPLIT_IMAGES, 50))


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


def test_digits_to_learn_from_are_drawn_afresh_and_are_not_those_of_the_scores(monkeypatch):
    seen = []

    def fit(model, batch_at, *, steps, **others):
        seen.extend(batch_at(step)[0] for step in range(steps))
        assert vision.STEPS_OF_A_SEED > steps
        return History.blank(steps, [])

    monkeypatch.setattr(task, "fit_classifier", fit)
    for seed in (0, 1):
        train_net(replace(TINY, seed=seed))
    seen.append(task.digits(TINY, "train", 100, task.SEED_OF_SCORES).pixels)
    pixels = torch.cat(seen).flatten(1)
    assert len(pixels) == 2 * 20 * 8 + 100 == len(pixels.unique(dim=0))


def test_last_losses_are_those_of_the_last_tenth_and_of_the_tenth_before():
    history = History.blank(20, [])
    history.losses[:] = np.arange(20)
    assert TrainedNet(recipe=TINY, model=build(TINY), history=history).last_losses() == (18.5, 16.5)


def test_the_recipe_scores_every_net_and_ships_the_deepest_residual_one(few, tmp_path):
    trained = find_recipe("depth").train(2, tmp_path, None)
    assert set(trained.validation) == {f"{name}, accuracy" for name in task.NETS}
    assert len(trained.test) == 4 * len(task.NETS)
    recipe = DepthRecipe(**trained.extra["recipe"])
    assert recipe == replace(task.NETS[task.SHIPPED], seed=2)
    assert trained.model.config.residual and trained.model.config.depths == (2, 2, 2)
    net = TrainedNet(recipe=recipe, model=trained.model, history=trained.history)
    name = task.SHIPPED
    assert trained.test[f"{name}, accuracy"] == score(net, "test")
    assert trained.test[f"{name}, accuracy on training digits"] == score(net, "train")
    assert trained.test[f"{name}, training loss"] == net.last_losses()[0]
    assert trained.validation[find_recipe("depth").chosen_by] == score(net, "validation")
    again = find_recipe("depth").train(2, tmp_path, None)  # goes on where it ended
    assert again.test == trained.test and again.history.cpu_seconds[-1] == trained.history.cpu_seconds[-1]
