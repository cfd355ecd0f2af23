import pytest
import torch
from torch import nn

from course_lib.functional.positions import sinusoidal_positions
from course_lib.models.conformer import Conformer, ConformerConfig, SpeechTransformer

TINY = {"frame_dim": 6, "num_classes": 4, "dim": 8, "depth": 2, "num_heads": 2, "mlp_dim": 12, "kernel_size": 3}
both = pytest.mark.parametrize("kind", [Conformer, SpeechTransformer])


def tiny(kind=Conformer, **settings):
    """A model with large random weights and statistics."""
    torch.manual_seed(0)
    model = kind(ConformerConfig(**TINY | {"dropout": 0.0} | settings)).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    for name, statistic in model.named_buffers():
        if "running" in name:
            statistic.uniform_(0.5, 2)
    return model


def frames(batch=2, length=13, dim=6):
    return torch.randn(batch, length, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(length))


@both
@pytest.mark.parametrize(("halvings", "length", "expected"), [(1, 13, 7), (2, 13, 4), (2, 12, 3), (3, 1, 1)])
def test_each_halving_rounds_up(kind, halvings, length, expected):
    model, valid = tiny(kind, num_halvings=halvings), torch.ones(2, length, dtype=torch.bool)
    assert model(frames(length=length)).shape == (2, expected, 4)
    assert model.shorter(valid).shape == (2, expected)


@both
@pytest.mark.parametrize("length", [5, 6, 7, 8, 9])
def test_padding_changes_nothing_whatever_it_holds(kind, length):
    model, x = tiny(kind), frames()
    valid = torch.arange(13) < torch.tensor([[13], [length]])
    short = model.shorter(valid)[1]
    alone = model(x[1:, :length])
    for noise in (0.0, 9.0):
        x[1, length:] = noise
        torch.testing.assert_close(model(x, valid)[1:, short], alone, rtol=0, atol=1e-12)
    assert short.sum() == alone.shape[1]


def test_the_peer_adds_sinusoids_before_its_first_block():
    model, x = tiny(SpeechTransformer), frames(length=5, dim=8)
    expected = nn.Sequential(*model.blocks, model.norm)(x + sinusoidal_positions(5, 8))
    torch.testing.assert_close(model.encode(x), expected, rtol=0, atol=1e-12)
