"""What networks from images to images are made of.

Ronneberger, Fischer & Brox, "U-Net: convolutional networks for biomedical image segmentation", MICCAI 2015, arXiv
1505.04597, figure 1. Ho, Jain & Abbeel, "Denoising diffusion probabilistic models", NeurIPS 2020, arXiv 2006.11239,
appendix B (a condition inside the blocks). Long, Shelhamer & Darrell, CVPR 2015, arXiv 1411.4038, section 3.3 (learned
upsampling).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.images import bilinear_kernel
from course_lib.layers.convolution import ConvNorm, channels_last

WIDE = 512  # channels


def conv_relu(in_channels: int, out_channels: int, *, norm: bool = True, norm_groups: int = 0) -> nn.Module:
    """3 x 3 convolution and ReLU, with a normalisation between them or with a bias instead; keeps height and width.

    The normalisation is that of `norm_groups` groups of channels, or with 0 groups of the batch.

    Weights start from N(0, 2 / (9 C_in)), Ronneberger et al. 2015, section 3, or as those of `ConvNorm`.
    """
    if norm:
        return ConvNorm(in_channels, out_channels, norm_groups=norm_groups)
    conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
    nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
    nn.init.zeros_(conv.bias)
    return nn.Sequential(conv, nn.ReLU(inplace=True))


class ConvStack(nn.Sequential):
    """Convolutions one after the other, in the order of memory in which their width is faster."""

    def __init__(self, *layers: nn.Module, width: int):
        super().__init__(*layers)
        self.order = memory_order(width)
        self.to(memory_format=self.order)

    def forward(self, x: Float[Tensor, "B C_in H W"]) -> Float[Tensor, "B C_out H W"]:
        return super().forward(channels_last(x) if self.order == torch.channels_last else x.contiguous())


def memory_order(width: int) -> torch.memory_format:
    """channels_last, except where weights outweigh the maps: bringing large weights' gradients into it costs more."""
    return torch.contiguous_format if width >= WIDE else torch.channels_last


def convs(in_channels: int, out_channels: int, *, count: int = 2, norm: bool = True, norm_groups: int = 0) -> ConvStack:
    """`count` 3 x 3 convolutions, each with its ReLU."""
    sizes = [in_channels] + [out_channels] * count
    layers = (conv_relu(a, b, norm=norm, norm_groups=norm_groups) for a, b in zip(sizes, sizes[1:], strict=False))
    return ConvStack(*layers, width=out_channels)


class ConditionedConvs(nn.Module):
    """Two 3 x 3 convolutions with group normalisation, and between them a condition: a vector for each image.

    ReLU(norm(W_1 * x) + A c + a) goes into the second convolution, so c shifts the channels. Ho et al. 2020, appendix
    B, add the step's embedding in the same way.
    """

    def __init__(self, in_channels: int, out_channels: int, *, condition_dim: int, norm_groups: int):
        super().__init__()
        self.first = ConvNorm(in_channels, out_channels, activation=None, norm_groups=norm_groups)
        self.condition = nn.Linear(condition_dim, out_channels)
        self.second = ConvNorm(out_channels, out_channels, norm_groups=norm_groups)

    def forward(self, x: Float[Tensor, "B C_in H W"], condition: Float[Tensor, "B D"]) -> Float[Tensor, "B C_out H W"]:
        return self.second(F.relu(self.first(channels_last(x)) + self.condition(condition)[:, :, None, None]))


def two_convs(
    in_channels: int, out_channels: int, *, norm: bool, norm_groups: int, condition_dim: int
) -> ConvStack | ConditionedConvs:
    """The convolutions of one resolution of a U-Net, with a condition between them if `condition_dim` is not 0."""
    if condition_dim:
        return ConditionedConvs(in_channels, out_channels, condition_dim=condition_dim, norm_groups=norm_groups)
    return convs(in_channels, out_channels, norm=norm, norm_groups=norm_groups)


class UpBlock(nn.Module):
    """Twice the height and width, the encoder's map of that size beside it (if there is one), and two convolutions.

    The map grows by a transposed convolution ("transposed"), or by interpolation and a 1 x 1 convolution ("bilinear").
    Without a skip (`skip_channels` = 0) all that the block knows came through the smaller map.
    Raises ValueError for another `up`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        skip_channels: int,
        up: str = "transposed",
        norm: bool = True,
        norm_groups: int = 0,
        condition_dim: int = 0,
    ):
        super().__init__()
        if up == "transposed":
            self.up = nn.ConvTranspose2d(in_channels, out_channels, 2, stride=2)
        elif up == "bilinear":
            enlarge = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
            self.up = nn.Sequential(nn.Conv2d(in_channels, out_channels, 1), enlarge)  # cheaper on the smaller map
        else:
            raise ValueError(f"up must be 'transposed' or 'bilinear', got {up!r}")
        self.up.to(memory_format=memory_order(in_channels))  # as the map that comes in
        self.convs = two_convs(
            out_channels + skip_channels,
            out_channels,
            norm=norm,
            norm_groups=norm_groups,
            condition_dim=condition_dim,
        )

    def forward(
        self,
        x: Float[Tensor, "B C_in h w"],
        skip: Float[Tensor, "B C_skip H W"] | None = None,
        *condition: Float[Tensor, "B D"],
    ) -> Float[Tensor, "B C_out H W"]:
        x = self.up(x)
        return self.convs(x if skip is None else torch.cat([skip, x], dim=1), *condition)


def bilinear_upsampling(channels: int, stride: int) -> nn.ConvTranspose2d:
    """A transposed convolution that interpolates each channel bilinearly, until it has learned something better.

    Height and width grow `stride` times.
    """
    kernel = bilinear_kernel(stride)
    size = len(kernel)
    layer = nn.ConvTranspose2d(channels, channels, size, stride=stride, padding=(size - stride) // 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(channels)[:, :, None, None] * kernel)
    return layer


def pad_to_multiple(image: Float[Tensor, "B C H W"], multiple: int) -> Float[Tensor, "B C _ _"]:
    """The image with its last row and column repeated until height and width are multiples; crop the result to H x W.

    Raises ValueError for an image without pixels.
    """
    height, width = image.shape[-2:]
    if min(height, width) < 1:
        raise ValueError(f"an image of {height} x {width} pixels has none to repeat")
    right, below = -width % multiple, -height % multiple
    return F.pad(image, (0, right, 0, below), mode="replicate") if right or below else image
