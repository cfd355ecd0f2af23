"""The short loop takes the steps of the long one."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.training import FitConfig, fit, simple_fit


@pytest.mark.parametrize("clip_norm", [1.0, 1e-2])
def test_the_short_loop_takes_the_same_steps_as_fit(clip_norm):
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    second = copy.deepcopy(first)
    batches = torch.randn(20, 5, 3)

    def loss(model, x):
        return F.mse_loss(model(x)[:, 0], x.prod(dim=1))

    settings = {"steps": 20, "learning_rate": 1e-2, "warmup": 3, "clip_norm": clip_norm}
    losses = simple_fit(first, batches.__getitem__, loss, **settings)
    history = fit(second, batches.__getitem__, loss, config=FitConfig(**settings))
    assert losses == pytest.approx(history.losses, rel=1e-5)
    for mine, theirs in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    assert not first.training
