import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.layers.convolution import BasicBlock, Bottleneck, ConvNorm, PaddedShortcut, channels_last


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def batch_norm(x, module):
    return F.batch_norm(x, None, None, module.weight, module.bias, training=True)


def randomised(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module


@pytest.mark.parametrize("kernel_size, stride", [(1, 1), (1, 2), (3, 1), (3, 2), (7, 2)])
def test_a_convolution_has_no_bias_a_norm_and_an_activation(kernel_size, stride):
    layer = randomised(ConvNorm(3, 4, kernel_size=kernel_size, stride=stride))
    x = torch.randn(2, 3, 9, 12)
    plain = F.conv2d(x, layer.conv.weight, None, stride=stride, padding=kernel_size // 2)
    torch.testing.assert_close(layer(x), batch_norm(plain, layer.norm).relu(), rtol=0, atol=1e-5)
    assert layer(x).shape == (2, 4, -(-9 // stride), -(-12 // stride))
    assert layer.conv.bias is None


def test_without_an_activation_values_may_be_negative():
    x = torch.randn(2, 3, 8, 8)
    assert ConvNorm(3, 4, activation=None)(x).min() < 0 <= ConvNorm(3, 4)(x).min()


def test_first_weights_keep_the_size_of_gradients():
    """He et al. 2015, eq. 14: the variance is 2 / (k^2 C_out)."""
    weight = ConvNorm(50, 200).conv.weight
    assert weight.var().item() == pytest.approx(2 / (9 * 200), rel=0.02)
    assert abs(weight.mean().item()) < 2e-4


def by_hand(block, x, strides):
    """F(x) out of single convolutions."""
    for i, (layer, stride) in enumerate(zip(block.convs, strides, strict=True)):
        x = batch_norm(F.conv2d(x, layer.conv.weight, stride=stride, padding=layer.conv.padding), layer.norm)
        x = x.relu() if i + 1 < len(block.convs) else x
    return x


@pytest.mark.parametrize(
    "block, strides",
    [
        (BasicBlock(8, 8), (1, 1)),
        (BasicBlock(8, 12, stride=2), (2, 1)),
        (Bottleneck(8, 8), (1, 1, 1)),
        (Bottleneck(8, 16, stride=2), (1, 2, 1)),
        (Bottleneck(8, 16, stride=2, stride_first=True), (2, 1, 1)),
    ],
)
def test_a_block_is_its_convolutions_plus_a_shortcut(block, strides):
    """Eqs. (1) and (2): x itself where the shape stays, and else a projection of it."""
    x = torch.randn(2, 8, 7, 10)
    shortcut = x
    if not isinstance(randomised(block).shortcut, nn.Identity):
        projected = F.conv2d(x, block.shortcut.conv.weight, stride=block.shortcut.conv.stride)
        shortcut = batch_norm(projected, block.shortcut.norm)
    torch.testing.assert_close(block(x), (by_hand(block, x, strides) + shortcut).relu(), rtol=0, atol=1e-5)


def test_a_plain_block_has_no_shortcut():
    block, x = randomised(BasicBlock(8, 8, shortcut=None)), torch.randn(2, 8, 7, 10)
    torch.testing.assert_close(block(x), by_hand(block, x, (1, 1)).relu(), rtol=0, atol=1e-5)


def test_the_activation_of_a_block_is_that_of_its_sum_and_not_of_its_inner_convolutions():
    block, x = randomised(BasicBlock(8, 8, activation="gelu")), torch.randn(2, 8, 7, 10)
    torch.testing.assert_close(block(x), F.gelu(by_hand(block, x, (1, 1)) + x), rtol=0, atol=1e-5)


def test_a_padded_shortcut_skips_pixels_and_adds_channels_of_zeros():
    x = torch.randn(2, 3, 5, 6)
    y = PaddedShortcut(3, 6, stride=2)(x)
    assert y.shape == (2, 6, 3, 3)
    assert torch.equal(y[:, 1:4], x[:, :, ::2, ::2])
    assert (y[:, [0, 4, 5]] == 0).all()


def test_padding_replaces_the_projection():
    block = BasicBlock(4, 6, stride=2, shortcut="padding")
    assert isinstance(block.shortcut, PaddedShortcut) and not list(block.shortcut.parameters())
    assert isinstance(BasicBlock(4, 4, shortcut="padding").shortcut, nn.Identity)


@pytest.mark.parametrize("channels", [1, 3])
def test_channels_last_changes_the_order_in_memory_and_no_value(channels):
    image = torch.rand(2, channels, 5, 7)
    ordered = channels_last(image)
    assert torch.equal(ordered, image)
    assert ordered.stride() == (5 * 7 * channels, 1, 7 * channels, channels)
    assert channels_last(ordered).data_ptr() == ordered.data_ptr()
