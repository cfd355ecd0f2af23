import os
from dataclasses import replace

import pytest
import torch
from torch import nn

from course_lib.training import FitConfig, checkpoints, fit
from course_lib.training.averaging import load_mean, mean_weights

CONFIG = FitConfig(steps=12, learning_rate=0.05, checkpoint_every=3, keep_weights=3)


def new_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))


def train(folder, config=CONFIG):
    """A run, and the weights that it went through, by step."""
    model, seen = new_model(), {}

    def batch_at(step):
        seen[step] = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        return torch.randn(8, 3, generator=torch.Generator().manual_seed(step))

    fit(model, batch_at, lambda model, x: (model(x) - x.sum(1, keepdim=True)).square().mean(),
        config=config, checkpoint=folder)  # fmt: skip
    seen[config.steps] = model.state_dict()
    return seen


def test_the_mean_is_taken_tensor_by_tensor_and_counters_are_the_last_ones():
    pairs = (([1.0, 2.0], 4), ([3.0, 8.0], 7))
    states = [{"w": torch.tensor(w), "n": torch.tensor(n)} for w, n in pairs]
    mean = mean_weights(states)
    assert mean["w"].tolist() == [2.0, 5.0] and mean["n"].item() == 7
    assert states[1]["w"].tolist() == [3.0, 8.0]


def test_a_run_keeps_its_last_weights_and_their_mean_is_loaded(tmp_path):
    seen = train(tmp_path)
    assert [path.name for path in checkpoints.kept_weights(tmp_path)] == [f"weights-{s:08d}.pt" for s in (6, 9, 12)]
    model = new_model()
    assert load_mean(tmp_path, model, last=2) == [9, 12]
    parameters = dict(model.named_parameters())
    for name, parameter in parameters.items():
        expected = (seen[9][name].double() + seen[12][name].double()) / 2
        torch.testing.assert_close(parameter.double(), expected, rtol=0, atol=1e-7)
    assert load_mean(tmp_path, model) == [6, 9, 12]
    assert model[1].num_batches_tracked == 12


def test_nothing_is_kept_unless_asked_for(tmp_path):
    train(tmp_path, replace(CONFIG, keep_weights=0))
    assert not checkpoints.kept_weights(tmp_path)


def test_a_run_that_was_killed_keeps_the_same_weights(tmp_path, monkeypatch):
    train(tmp_path / "whole")
    real, calls = os.replace, 0

    class Killed(BaseException):
        pass

    def stop_at_each_call_once(*arguments):
        nonlocal calls
        calls += 1
        if calls in (3, 6, 10):
            raise Killed
        return real(*arguments)

    monkeypatch.setattr(os, "replace", stop_at_each_call_once)
    lives = 1
    while True:
        try:
            train(tmp_path / "killed")
            break
        except Killed:
            lives += 1
    assert lives == 4
    whole, killed = (checkpoints.kept_weights(tmp_path / name) for name in ("whole", "killed"))
    assert [path.name for path in whole] == [path.name for path in killed]
    for one, other in zip(whole, killed, strict=True):
        one, other = checkpoints.read(one)["weights"], checkpoints.read(other)["weights"]
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_how_many_are_kept_may_change_while_a_run_goes_on(tmp_path):
    train(tmp_path, replace(CONFIG, keep_weights=1))
    train(tmp_path, CONFIG)


def test_too_few_checkpoints_are_named(tmp_path):
    train(tmp_path)
    with pytest.raises(FileNotFoundError, match="keeps the weights of 3 checkpoints, 4 are needed"):
        load_mean(tmp_path, new_model(), last=4)
    with pytest.raises(FileNotFoundError, match="of 0 checkpoints, one or more are needed"):
        load_mean(tmp_path / "elsewhere", new_model())


def test_weights_of_another_model_are_refused(tmp_path):
    train(tmp_path)
    with pytest.raises(ValueError, match="made by another model"):
        load_mean(tmp_path, nn.Linear(3, 4))
