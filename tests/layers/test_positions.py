import pytest
import torch

from course_lib.functional.positions import sinusoidal_positions
from course_lib.layers.attention import MultiHeadAttention
from course_lib.layers.positions import LearnedPositions, SinusoidalPositions

LAYERS = [SinusoidalPositions, LearnedPositions]


def test_sinusoids_are_added_and_not_learned():
    layer, x = SinusoidalPositions(6, 10), torch.randn(2, 4, 6)
    torch.testing.assert_close(layer(x), x + sinusoidal_positions(4, 6))
    assert not list(layer.parameters()) and not layer.state_dict()


def test_learned_positions_are_added_and_learned():
    layer, x = LearnedPositions(6, 10), torch.randn(2, 4, 6)
    output = layer(x)
    torch.testing.assert_close(output, x + layer.table[:4])
    output.sum().backward()
    assert (layer.table.grad[:4] == 2).all() and (layer.table.grad[4:] == 0).all()


@pytest.mark.parametrize("kind", LAYERS)
def test_a_later_start_gives_the_later_codes(kind):
    layer, x = kind(6, 10), torch.randn(2, 7, 6)
    torch.testing.assert_close(layer(x[:, 4:], start=4), layer(x)[:, 4:])


@pytest.mark.parametrize("kind", LAYERS)
def test_position_codes_break_permutation_equivariance(kind):
    torch.manual_seed(0)
    codes, attn, x = kind(16, 10), MultiHeadAttention(16, 4), torch.randn(1, 6, 16)
    order = torch.tensor([5, 4, 3, 2, 1, 0])
    torch.testing.assert_close(attn(x[:, order]), attn(x)[:, order], atol=1e-5, rtol=0)
    assert (attn(codes(x[:, order])) - attn(codes(x))[:, order]).abs().max() > 1e-3


@pytest.mark.parametrize("kind", LAYERS)
def test_positions_beyond_the_table_are_named(kind):
    layer, x = kind(6, 10), torch.randn(1, 4, 6)
    with pytest.raises(ValueError, match="positions 7 to 10 .* 0 to 9"):
        layer(x, start=7)
    with pytest.raises(ValueError, match="positions -1 to 2"):
        layer(x, start=-1)
