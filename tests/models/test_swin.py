import pytest
import torch
from torch import nn

from course_lib.models.swin import Swin, SwinConfig


def make(seed=0, std=0.3, **overrides):
    """A tiny model with large random weights, in double precision and evaluation mode."""
    sizes = {"patch_size": 2, "in_channels": 2, "num_classes": 5, "window_size": 2}
    sizes |= {"dim": 6, "depths": (2, 2), "num_heads": (2, 3), "mlp_ratio": 2.0}
    torch.manual_seed(seed)
    model = Swin(SwinConfig(**sizes | overrides)).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=std)
    return model


def test_every_second_block_shifts_by_half_a_window_unless_told_not_to():
    for shifted, expected in ((True, [0, 2, 0]), (False, [0, 0, 0])):
        model = make(depths=(3, 3), window_size=5, shifted=shifted)
        assert [[block.attn.shift for block in stage] for stage in model.stages] == [expected, expected]


def test_stochastic_depth_grows_from_block_to_block():
    model = make(depths=(2, 3), drop_path=0.4)
    rates = [block.drop_path.rate for stage in model.stages for block in stage]
    assert rates == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert make(depths=(1,), num_heads=(2,), drop_path=0.4).stages[0][0].drop_path.rate == 0
