"""Convolutions with batch or group normalisation, and the residual blocks made of them.

He, Zhang, Ren & Sun, "Deep residual learning for image recognition", CVPR 2016, arXiv 1512.03385. Ioffe & Szegedy,
"Batch normalization", ICML 2015, arXiv 1502.03167. He et al., "Delving deep into rectifiers", ICCV 2015, arXiv
1502.01852, for the first weights. Wu & He, "Group normalization", ECCV 2018, arXiv 1803.08494.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.layers.transformer import ACTIVATIONS

FEW_CHANNELS = 8  # fewer need a SkippingConv
EXPANSION = 4  # of a bottleneck: its outer channels for each inner one


class SkippingConv(nn.Conv2d):
    """A 1 x 1 convolution with a stride, as one without a stride on the pixels that it reads.

    On processors without AVX-512 the backward pass of PyTorch's own corrupts memory where the input has fewer than 8
    channels: github.com/uxlfoundation/oneDNN/issues/6035.
    """

    def forward(self, x: Float[Tensor, "B C_in height width"]) -> Float[Tensor, "B C_out h w"]:
        down, across = self.stride
        return F.conv2d(x[:, :, ::down, ::across], self.weight, self.bias)


class ConvNorm(nn.Module):
    """act(norm(W * x)): a convolution, a normalisation in place of its bias, and an activation or None.

    With `norm_groups` = 0 it is batch normalisation, else group normalisation with so many groups of channels. The
    padding keeps height and width at `stride` 1. Weights start from N(0, 2 / (k^2 C_out)), He et al. 2015, eq. 14.
    Raises ValueError for an unknown `activation`, an even `kernel_size` or channels that are no multiple of the groups.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        kernel_size: int = 3,
        stride: int = 1,
        activation: str | None = "relu",
        norm_groups: int = 0,
    ):
        super().__init__()
        if norm_groups and out_channels % norm_groups:
            raise ValueError(f"{out_channels} channels are no multiple of {norm_groups} groups")
        if activation is not None and activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)} or None, got {activation!r}")
        if kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be odd, so that the padding is the same on both sides: {kernel_size}")
        conv = SkippingConv if kernel_size == 1 and stride > 1 and in_channels < FEW_CHANNELS else nn.Conv2d
        self.conv = conv(in_channels, out_channels, kernel_size, stride=stride, padding=kernel_size // 2, bias=False)
        self.norm = nn.GroupNorm(norm_groups, out_channels) if norm_groups else nn.BatchNorm2d(out_channels)
        self.activation = activation
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")
        self.to(memory_format=torch.channels_last)  # the order that suits `channels_last` images

    def forward(self, x: Float[Tensor, "B C_in height width"]) -> Float[Tensor, "B C_out h w"]:
        x = self.norm(self.conv(x))
        return x if self.activation is None else ACTIVATIONS[self.activation](x)


class PaddedShortcut(nn.Module):
    """Every `stride`-th pixel, with channels of zeros on both sides: option A of He et al. 2016, without parameters."""

    def __init__(self, in_channels: int, out_channels: int, *, stride: int):
        super().__init__()
        if out_channels < in_channels:
            raise ValueError(f"zeros can only be added to channels, not make {out_channels} of {in_channels}")
        self.stride, self.new_channels = stride, out_channels - in_channels

    def forward(self, x: Float[Tensor, "B C_in height width"]) -> Float[Tensor, "B C_out h w"]:
        before = self.new_channels // 2
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.new_channels - before))


class ResidualBlock(nn.Module):
    """act(F(x) + shortcut(x)), He et al. 2016, eqs. (1) and (2); without a shortcut act(F(x)), a part of the plain net.

    The shortcut is x itself where F keeps its shape, and else a 1 x 1 convolution ("projection", option B) or zeros in
    new channels ("padding", option A).
    Raises ValueError for another `shortcut`.
    """

    def __init__(
        self,
        convs: nn.Sequential,
        in_channels: int,
        out_channels: int,
        *,
        stride: int,
        shortcut: str | None,
        activation: str,
    ):
        super().__init__()
        if shortcut not in ("projection", "padding", None):
            raise ValueError(f"shortcut must be 'projection', 'padding' or None (the plain net), got {shortcut!r}")
        self.convs, self.activation = convs, activation
        if shortcut is None:
            self.shortcut = None
        elif stride == 1 and in_channels == out_channels:
            self.shortcut = nn.Identity()
        elif shortcut == "padding":
            self.shortcut = PaddedShortcut(in_channels, out_channels, stride=stride)
        else:
            self.shortcut = ConvNorm(in_channels, out_channels, kernel_size=1, stride=stride, activation=None)

    def forward(self, x: Float[Tensor, "B C_in height width"]) -> Float[Tensor, "B C_out h w"]:
        y = self.convs(x)
        return ACTIVATIONS[self.activation](y if self.shortcut is None else y + self.shortcut(x))


class BasicBlock(ResidualBlock):
    """Two 3 x 3 convolutions, the first with the stride: He et al. 2016, figure 5 on the left."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        stride: int = 1,
        shortcut: str | None = "projection",
        activation: str = "relu",
    ):
        convs = nn.Sequential(
            ConvNorm(in_channels, out_channels, stride=stride),
            ConvNorm(out_channels, out_channels, activation=None),
        )
        super().__init__(convs, in_channels, out_channels, stride=stride, shortcut=shortcut, activation=activation)


class Bottleneck(ResidualBlock):
    """1 x 1, 3 x 3 and 1 x 1 convolutions with a quarter of the channels inside: He et al. 2016, figure 5 on the right.

    The stride is the 3 x 3 convolution's, as in torchvision ("ResNet v1.5"), or with `stride_first` that of the first
    1 x 1, as in the paper, which skips three of four pixels.
    Raises ValueError if `out_channels` is no multiple of 4.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        stride: int = 1,
        stride_first: bool = False,
        shortcut: str | None = "projection",
        activation: str = "relu",
    ):
        if out_channels % EXPANSION:
            raise ValueError(f"out_channels of a bottleneck must be a multiple of {EXPANSION}, got {out_channels}")
        inner = out_channels // EXPANSION
        convs = nn.Sequential(
            ConvNorm(in_channels, inner, kernel_size=1, stride=stride if stride_first else 1),
            ConvNorm(inner, inner, stride=1 if stride_first else stride),
            ConvNorm(inner, out_channels, kernel_size=1, activation=None),
        )
        super().__init__(convs, in_channels, out_channels, stride=stride, shortcut=shortcut, activation=activation)


def channels_last(image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
    """The image with all channels of a pixel side by side in memory.

    Convolutions, norms and poolings keep this order, in which they are faster. Raises ValueError for another number of
    axes.
    """
    if image.ndim != 4:
        raise ValueError(
            f"images must be (batch, channels, height, width), got shape {tuple(image.shape)}: one is image[None]"
        )
    if image.shape[1] == 1:  # both orders in one: the strides must say which
        return image[:, 0].contiguous()[..., None].permute(0, 3, 1, 2)
    return image.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)  # as memory_format=..., which vmap does not know
