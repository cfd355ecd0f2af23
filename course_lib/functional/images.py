"""Pictures as tensors: their pixels, and maps made larger or smaller.

Zeiler & Fergus, "Visualizing and understanding convolutional networks", ECCV 2014, arXiv 1311.2901 (unpooling). Long,
Shelhamer & Darrell, "Fully convolutional networks for semantic segmentation", CVPR 2015, arXiv 1411.4038 (convolution
turned round; a fully connected layer is a convolution whose window is the whole map).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int, Shaped
from torch import Tensor

MEAN, STD = 0.5, 0.25  # of pixels from 0 to 1; the same for all data of the course, so that models can change places


def standardise(pixels: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """(pixels - 0.5) / 0.25, for pixels from 0 (black) to 1 (white)."""
    return (pixels - MEAN) / STD


def restore(standardised: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Pixels from 0 to 1 out of what `standardise` made of them."""
    return standardised * STD + MEAN


@dataclass(frozen=True, kw_only=True)
class Normalisation:
    """(pixels - mean) / std, which a model expects of pixels from 0 (black) to 1 (white): one number, or one a channel.

    Raises ValueError for numbers that make no sense and, when called, for pixels that are not from 0 to 1: bytes, or
    those that were normalised already.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self):
        if len(self.mean) != len(self.std) or not self.mean or not min(self.std) > 0:
            raise ValueError(f"need as many means as stds, and stds above 0, got {self.mean} and {self.std}")

    def __call__(self, pixels: Shaped[Tensor, "*B C H W"]) -> Float[Tensor, "*B C H W"]:
        check_pixels(pixels)
        if len(self.mean) == 1:
            return (pixels - self.mean[0]) / self.std[0]
        if pixels.shape[-3] != len(self.mean):
            raise ValueError(
                f"this normalisation is for {len(self.mean)} channels, the images have {pixels.shape[-3]} channel(s)"
            )
        mean, std = (pixels.new_tensor(each)[:, None, None] for each in (self.mean, self.std))
        return (pixels - mean) / std

    def __str__(self) -> str:
        mean, std = (f"{each[0]:g}" if len(each) == 1 else list(each) for each in (self.mean, self.std))
        return f"(pixels - {mean}) / {std}"


COURSE_PIXELS = Normalisation(mean=(MEAN,), std=(STD,))  # `standardise`, which refuses what are no pixels
ROUNDING = 1e-4  # by which a resized pixel may lie beyond 0 or 1


def check_pixels(pixels: Tensor) -> None:
    """Raises ValueError unless all pixels are floats from 0 to 1."""
    if not pixels.is_floating_point():
        raise ValueError(f"pixels must be floats from 0 (black) to 1 (white), got bytes, {pixels.dtype}: divide by 255")
    if torch.compiler.is_compiling() or not pixels.numel():
        return
    low, high = (end.item() for end in pixels.detach().aminmax())
    if not -ROUNDING <= low <= high <= 1 + ROUNDING:
        advice = "divide by 255" if low >= 0 and high > 1.5 else "give them as they are, they are normalised here"
        raise ValueError(f"pixels must lie from 0 (black) to 1 (white), got {low:g} to {high:g}: {advice}")


class Pooled(NamedTuple):
    """The maxima of the windows, and where in the image each of them stood."""

    values: Float[Tensor, "B C h w"]
    positions: Int[Tensor, "B C h w"]  # row * width + column of the image


def max_pool(image: Float[Tensor, "B C H W"], size: int = 2, *, stride: int | None = None) -> Pooled:
    """The maximum of every `size` x `size` window, and its position; of equal values the first one wins.

    Windows are `stride` pixels apart, which is `size` if not given: then they do not overlap. Rows and columns that
    fill no window are left out. Raises ValueError if not even one window fits.
    """
    stride = size if stride is None else stride
    if size < 1 or stride < 1 or min(image.shape[-2:]) < size:
        height, width = image.shape[-2:]
        raise ValueError(
            f"windows of {size} x {size} pixels at a stride of {stride} do not fit into {height} x {width} pixels"
        )
    return Pooled(*F.max_pool2d(image, size, stride=stride, return_indices=True))


def max_unpool(
    values: Float[Tensor, "B C h w"], positions: Int[Tensor, "B C h w"], height: int, width: int
) -> Float[Tensor, "B C {height} {width}"]:
    """Every value back at its remembered position of an image of zeros; values that share a position add up.

    The positions are those of `max_pool` on an image of this height and width. Windows that overlap can remember the
    same pixel: `torch.nn.functional.max_unpool2d` keeps one of their values there and loses the others; here all of
    them count, which is the transpose (and so the gradient) of pooling. Where windows do not overlap the two agree.
    Raises ValueError for positions outside the image.
    """
    image = values.new_zeros(*values.shape[:2], height * width)
    try:
        return image.scatter_add(2, positions.flatten(2), values.flatten(2)).unflatten(2, (height, width))
    except RuntimeError:
        if 0 <= int(positions.min()) <= int(positions.max()) < height * width:
            raise
        raise ValueError(
            f"positions run from {int(positions.min())} to {int(positions.max())}, an image of {height} x {width} "
            f"pixels has 0 to {height * width - 1}: give the size of the image that was pooled"
        ) from None


def readable_transposed_convolution(
    image: Float[Tensor, "B C_in h w"],
    kernel: Float[Tensor, "C_in C_out rows columns"],
    bias: Float[Tensor, " C_out"] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
) -> Float[Tensor, "B C_out H W"]:
    """Stamps the kernel once per pixel, `stride` apart, inked by the pixel's value; where stamps overlap they add.

    The textbook twin of `torch.nn.functional.conv_transpose2d`: H = (h - 1) stride + rows - 2 padding + output_padding.
    `padding` cuts a margin off on all four sides, `output_padding` adds rows below and columns to the right.
    Raises ValueError if nothing would be left, or unless 0 <= output_padding < stride.
    """
    (height, width), (rows, columns) = image.shape[-2:], kernel.shape[-2:]
    H = (height - 1) * stride + rows - 2 * padding + output_padding
    W = (width - 1) * stride + columns - 2 * padding + output_padding
    if stride < 1 or padding < 0 or not 0 <= output_padding < stride or min(H, W) < 1:
        raise ValueError(
            f"stride={stride}, padding={padding}, output_padding={output_padding} would make {H} x {W} pixels: a "
            "stride is at least 1, a padding not negative and leaves a pixel, and output_padding is below the stride"
        )
    canvas = image.new_zeros(len(image), kernel.shape[1], H + 2 * padding, W + 2 * padding)
    for row in range(height):
        for column in range(width):
            stamp = torch.einsum("bc,cdij->bdij", image[:, :, row, column], kernel)
            top, left = row * stride, column * stride
            canvas[:, :, top : top + rows, left : left + columns] += stamp
    result = canvas[:, :, padding : padding + H, padding : padding + W]
    return result if bias is None else result + bias[:, None, None]


def bilinear_kernel(stride: int) -> Float[Tensor, "size size"]:
    """The stamp with which a transposed convolution interpolates bilinearly, Long et al. 2015, section 3.3.

    k(i, j) = (1 - |i - c| / stride) (1 - |j - c| / stride) around its centre c, size = 2 stride - stride mod 2. With
    padding = (size - stride) / 2 the map grows `stride` times; away from the border it is then what
    `torch.nn.functional.interpolate(mode="bilinear")` makes. Raises ValueError for a stride below 1.
    """
    if stride < 1:
        raise ValueError(f"a map grows by a whole number of times, got stride={stride}")
    size = 2 * stride - stride % 2
    distance = (torch.arange(size) - (size - 1) / 2).abs()
    tent = 1 - distance / stride
    return tent[:, None] * tent[None, :]


def fully_connected_as_convolution(
    weight: Float[Tensor, "D_out D_in"], height: int, width: int
) -> Float[Tensor, "D_out C {height} {width}"]:
    """The kernel that does to a (C, height, width) map what the matrix does to the flattened map: the same numbers.

    On a larger map the convolution gives what the layer would say of every window of height x width. Flattening goes
    channel by channel, row by row, as `torch.flatten`; the bias stays as it is.
    Raises ValueError unless D_in is a whole number of channels of that size.
    """
    if height < 1 or width < 1 or weight.shape[1] % (height * width):
        raise ValueError(
            f"{weight.shape[1]} inputs are no whole number of channels of {height} x {width}: give the height and "
            "width of the map that the layer was trained on"
        )
    return rearrange(weight, "d (c h w) -> d c h w", h=height, w=width)
