import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.functional import images
from course_lib.functional.images import fully_connected_as_convolution

IMAGE = torch.tensor([[[[120.0, 150, 120], [100, 50, 110], [25, 25, 10]]]])


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_without_overlaps_unpooling_equals_torch_s_at_odd_sizes_too(memory_format):
    image = torch.randn(2, 3, 7, 9, generator=torch.Generator().manual_seed(0)).to(memory_format=memory_format)
    values, positions = images.max_pool(image)
    assert torch.equal(
        images.max_unpool(values, positions, 7, 9), F.max_unpool2d(values, positions, 2, output_size=(7, 9))
    )
    assert torch.equal(values, F.max_pool2d(image, 2))


def test_unpooling_is_the_gradient_of_pooling():
    generator = torch.Generator().manual_seed(1)
    image = torch.randn(2, 3, 8, 6, dtype=torch.float64, generator=generator).requires_grad_()
    values, positions = images.max_pool(image, 3, stride=2)
    flowing_back = torch.randn(values.shape, dtype=torch.float64, generator=generator)
    (gradient,) = torch.autograd.grad(values, image, flowing_back)
    torch.testing.assert_close(images.max_unpool(flowing_back, positions, 8, 6), gradient, rtol=0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(*[st.integers(1, 3)] * 5, st.integers(1, 4), st.integers(1, 4)),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(0, 2),
)
def test_stamping_equals_torch_s_transposed_convolution(sizes, stride, padding, output_padding):
    B, C_in, C_out, h, w, rows, columns = sizes
    generator = torch.Generator().manual_seed(sum(sizes))
    image = torch.randn(B, C_in, h, w, dtype=torch.float64, generator=generator)
    kernel = torch.randn(C_in, C_out, rows, columns, dtype=torch.float64, generator=generator)
    bias = torch.randn(C_out, dtype=torch.float64, generator=generator)
    how = {"stride": stride, "padding": padding, "output_padding": output_padding}
    smallest = min((h - 1) * stride + rows, (w - 1) * stride + columns) - 2 * padding + output_padding
    if output_padding >= stride or smallest < 1:
        with pytest.raises(ValueError, match=f"stride={stride}, padding={padding}, output_padding={output_padding}"):
            images.readable_transposed_convolution(image, kernel, bias, **how)
        return
    for each in (bias, None):
        ours = images.readable_transposed_convolution(image, kernel, each, **how)
        torch.testing.assert_close(ours, F.conv_transpose2d(image, kernel, each, **how), rtol=0, atol=1e-12)


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
def test_the_bilinear_kernel_interpolates(stride):
    image = torch.randn(1, 1, 6, 5, generator=torch.Generator().manual_seed(2))
    kernel = images.bilinear_kernel(stride)
    padding = (len(kernel) - stride) // 2
    ours = F.conv_transpose2d(image, kernel[None, None], stride=stride, padding=padding)
    wanted = F.interpolate(image, scale_factor=stride, mode="bilinear", align_corners=False)
    assert ours.shape == wanted.shape
    inside = slice(stride, -stride)  # at the border interpolation repeats the last pixel, stamping ends
    torch.testing.assert_close(ours[..., inside, inside], wanted[..., inside, inside], rtol=0, atol=1e-6)


def test_a_normalisation_has_a_number_for_all_channels_or_one_for_each():
    pixels = torch.rand(2, 3, 4, 5)
    assert torch.equal(images.COURSE_PIXELS(pixels), images.standardise(pixels))
    imagenet = images.Normalisation(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    expected = (pixels[:, 1] - 0.456) / 0.224
    torch.testing.assert_close(imagenet(pixels)[:, 1], expected)
    torch.testing.assert_close(imagenet(pixels[0])[1], expected[0])
    assert str(images.COURSE_PIXELS) == "(pixels - 0.5) / 0.25"


def test_a_pixel_may_be_a_rounding_beyond_its_end():
    pixels = torch.full((1, 1, 1, 1), 1 + 1e-6)
    assert torch.equal(images.COURSE_PIXELS(pixels), images.standardise(pixels))


def test_the_same_weights_give_the_same_answer_and_a_map_of_answers_on_a_larger_image():
    torch.manual_seed(0)
    layer, image = nn.Linear(3 * 4 * 5, 7).double(), torch.randn(2, 3, 6, 8, dtype=torch.float64)
    kernel = fully_connected_as_convolution(layer.weight, 4, 5)
    answers = F.conv2d(image, kernel, layer.bias)
    assert answers.shape == (2, 7, 3, 4)
    for row in range(3):
        for column in range(4):
            window = image[:, :, row : row + 4, column : column + 5]
            torch.testing.assert_close(answers[:, :, row, column], layer(window.flatten(1)), rtol=0, atol=1e-12)
