from dataclasses import replace

import pytest
import torch

from course_lib.bench import unet as bench_unet
from course_lib.bench.unet import CASES, measure, pair
from course_lib.models.unet import UNetConfig

TINY = UNetConfig(in_channels=2, num_classes=3, widths=(2, 4, 6))


@pytest.mark.parametrize("training", [False, True])
def test_the_plain_net_computes_the_same(training):
    ours, plain = (model.train(training) for model in pair(TINY))
    image = torch.randn(2, 2, 8, 12, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(plain(image), ours(image), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("backward", [False, True])
def test_both_nets_take_turns_and_only_there_and_back_makes_gradients(backward, monkeypatch):
    models = pair(TINY)
    monkeypatch.setattr(bench_unet, "pair", lambda config: models)
    result = measure(TINY, 1, 8, backward=backward, seconds=0.0)
    assert set(result.seconds) == {"ours", "theirs"} and result.rounds >= 7
    for model in models:
        assert model.training == backward
        assert all((weights.grad is not None) == backward for weights in model.parameters())


def test_the_cases_have_what_the_plain_net_has():
    assert all(
        replace(config, skips=True, up="transposed", norm=True, backbone=None) == config for _, config, _, _ in CASES
    )
