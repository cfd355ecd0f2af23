import pytest
import torch

from course_lib.functional.attention import relative_distance
from course_lib.functional.positions import relative_buckets, sinusoidal_positions
from course_lib.layers.transformer import (
    LearnedPositions,
    MultiHeadAttention,
    RelativePositionBias,
    SinusoidalPositions,
)

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


@pytest.mark.parametrize("kind", LAYERS)
def test_each_row_can_have_positions_of_its_own(kind):
    layer, x = kind(6, 10), torch.randn(2, 3, 6)
    positions = torch.tensor([[0, 0, 1], [7, 8, 9]])
    expected = torch.stack([x[0] + layer.table[[0, 0, 1]], layer(x, start=7)[1]])
    torch.testing.assert_close(layer(x, positions=positions), expected)
    with pytest.raises(ValueError, match="positions 0 to 10 .* 0 to 9"):
        layer(x, positions=positions + torch.tensor([[0], [1]]))


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("T_q", "T_k"), [(1, 1), (6, 6), (1, 9), (4, 9), (9, 4)])
def test_the_relative_bias_looks_up_every_pair_s_distance(T_q, T_k, bidirectional):
    torch.manual_seed(0)
    settings = {"num_buckets": 8, "max_distance": 5, "bidirectional": bidirectional}
    layer = RelativePositionBias(3, **settings)
    expected = layer.table[relative_buckets(relative_distance(T_q, T_k), **settings)].permute(2, 0, 1)[None]
    found = layer(T_q, T_k)
    assert torch.equal(found, expected)
    ours, wanted = (torch.autograd.grad(bias.sin().sum(), layer.table)[0] for bias in (found, expected))
    torch.testing.assert_close(ours, wanted)


def test_a_relative_bias_without_buckets_is_refused_at_once():
    with pytest.raises(ValueError, match="num_buckets=2"):
        RelativePositionBias(3, num_buckets=2)
