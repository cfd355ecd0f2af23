import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.layers import segmentation
from course_lib.layers.segmentation import UpBlock, bilinear_upsampling, convs, pad_to_multiple


def test_convolutions_keep_the_size_and_have_a_norm_or_a_bias():
    with_norm, without = convs(2, 5, count=3), convs(2, 5, count=3, norm=False)
    assert with_norm(torch.randn(2, 2, 7, 6)).shape == without(torch.randn(2, 2, 7, 6)).shape == (2, 5, 7, 6)
    for block, norms, biases in ((with_norm, 3, 0), (without, 0, 3)):
        kinds = list(block.modules())
        assert sum(isinstance(kind, nn.BatchNorm2d) for kind in kinds) == norms
        assert sum(isinstance(kind, nn.Conv2d) and kind.bias is not None for kind in kinds) == biases
        assert (block(torch.randn(2, 2, 7, 6)) >= 0).all()


@pytest.mark.parametrize("up", ["transposed", "bilinear"])
def test_an_up_block_is_twice_as_large_and_uses_its_skip(up):
    torch.manual_seed(0)
    block = UpBlock(6, 4, skip_channels=3, up=up).eval()
    x, skip = torch.randn(1, 6, 3, 5), torch.randn(1, 3, 6, 10)
    result = block(x, skip)
    assert result.shape == (1, 4, 6, 10)
    assert not torch.allclose(result, block(x, skip.roll(1, dims=-1)))
    torch.testing.assert_close(result, block.convs(torch.cat([skip, block.up(x)], dim=1)))
    assert UpBlock(6, 4, skip_channels=0, up=up)(x).shape == (1, 4, 6, 10)


def test_wide_layers_compute_the_same_in_another_order_of_memory(monkeypatch):
    results, x, skip = [], torch.randn(2, 6, 4, 5), torch.randn(2, 3, 8, 10)
    for wide in (512, 4):
        monkeypatch.setattr(segmentation, "WIDE", wide)
        torch.manual_seed(0)
        block = UpBlock(6, 4, skip_channels=3)
        results.append(block(x, skip))
        order = torch.channels_last if wide == 512 else torch.contiguous_format
        assert all(p.is_contiguous(memory_format=order) for p in block.parameters() if p.ndim == 4)
        assert results[-1].is_contiguous(memory_format=order)
    torch.testing.assert_close(results[0], results[1])


def test_bilinear_upsampling_starts_as_interpolation_of_each_channel():
    image = torch.randn(2, 3, 5, 6, generator=torch.Generator().manual_seed(0))
    for stride in (2, 3, 4):
        ours = bilinear_upsampling(3, stride)(image)
        wanted = F.interpolate(image, scale_factor=stride, mode="bilinear", align_corners=False)
        inside = (..., slice(stride, -stride), slice(stride, -stride))
        assert ours.shape == wanted.shape
        torch.testing.assert_close(ours[inside], wanted[inside], rtol=0, atol=1e-6)


def test_padding_repeats_the_last_row_and_column_and_only_where_needed():
    image = torch.arange(6.0).view(1, 1, 2, 3)
    assert pad_to_multiple(image, 4)[0, 0].tolist() == [[0, 1, 2, 2], [3, 4, 5, 5], [3, 4, 5, 5], [3, 4, 5, 5]]
    assert pad_to_multiple(image, 1) is image
