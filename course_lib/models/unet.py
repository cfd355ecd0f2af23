"""U-Net: a contracting path that finds out what is there, an expanding one that says where, and skips between them.

Ronneberger, Fischer & Brox, "U-Net: convolutional networks for biomedical image segmentation", MICCAI 2015, arXiv
1505.04597. Normalisation, padding and backbones that were trained as classifiers came into use later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.images import COURSE_PIXELS, Normalisation
from course_lib.layers.convolution import channels_last
from course_lib.layers.segmentation import UpBlock, pad_to_multiple, two_convs
from course_lib.layers.sizes import plain_integers
from course_lib.models.resnet import ResNet, ResNetConfig


@dataclass(frozen=True, kw_only=True)
class UNetConfig:
    """The sizes of figure 1 by default, with batch normalisation."""

    in_channels: int = 1
    num_classes: int = 2  # or, where the result is an image, its channels
    widths: tuple[int, ...] = (64, 128, 256, 512, 1024)  # channels at each resolution, fine to coarse
    skips: bool = True  # False: an encoder and a decoder with nothing but the smallest map between them
    up: str = "transposed"  # or "bilinear"
    norm: bool = True  # normalisation; False, with biases instead, as in 2015
    norm_groups: int = 0  # groups of channels that are normalised together; 0: batch normalisation
    condition_dim: int = 0  # numbers of a vector that each image comes with, such as a diffusion step; needs groups
    backbone: ResNetConfig | None = None  # the encoder is this ResNet, whose widths and in_channels must be the same

    def __post_init__(self):
        plain_integers(self)
        widths, backbone = self.widths, self.backbone
        if len(widths) < 2 or min(widths) < 1:
            raise ValueError(f"widths need two resolutions or more, each with a channel or more, got {widths}")
        if self.condition_dim and (backbone is not None or not self.norm_groups):
            raise ValueError("a condition goes into blocks with norm_groups of 1 or more, and into no backbone")
        if backbone is not None and (backbone.widths, backbone.in_channels) != (widths, self.in_channels):
            raise ValueError(
                f"a backbone of widths {backbone.widths} and {backbone.in_channels} channels needs the same U-Net, "
                f"got {widths} and {self.in_channels}"
            )


class ContractingPath(nn.ModuleList):
    """The left half of figure 1: at each resolution two convolutions, then half the height and width.

    Its trained counterpart is a `ResNet` without its head, which has the same `feature_maps`.
    """

    def __init__(self, in_channels: int, widths: Sequence[int], **settings: Any):
        super().__init__(two_convs(a, b, **settings) for a, b in pairwise((in_channels, *widths)))

    def feature_maps(
        self, image: Float[Tensor, "B C H W"], *condition: Float[Tensor, "B D"]
    ) -> list[Float[Tensor, "B _ _ _"]]:
        """What it makes at each resolution, fine to coarse."""
        x, maps = channels_last(image), []
        for block in self:
            x = block(F.max_pool2d(x, 2) if maps else x, *condition)
            maps.append(x)
        return maps


class UNet(nn.Module):
    """Figure 1, but padded, so that every pixel gets its logits: the map is as large as the image.

    An image whose height or width is no multiple of the coarsest stride is padded inside, and the result cropped.
    A backbone with the large stem begins at a quarter of the image's height and width: the decoder goes on to full size
    by itself, with half as many channels at each doubling.
    Raises ValueError for settings that do not fit together.
    """

    normalisation: Normalisation | None = COURSE_PIXELS  # what it expects of pixels; None: nobody knows

    def __init__(self, config: UNetConfig):
        super().__init__()
        self.config = config
        widths, backbone = config.widths, config.backbone
        settings = {name: getattr(config, name) for name in ("norm", "norm_groups", "condition_dim")}
        extra = 0  # doublings from the backbone's finest map to the image
        if backbone is None:
            self.encoder = ContractingPath(config.in_channels, widths, **settings)
        else:
            self.backbone = ResNet(replace(backbone, num_classes=None))
            extra = (2 if backbone.stem == "imagenet" else 0) + backbone.stride_in_first_stage
        outs = list(reversed(widths[:-1])) + [max(widths[0] >> i, 1) for i in range(1, extra + 1)]
        self.num_skips = len(widths) - 1 if config.skips else 0
        self.decoder = nn.ModuleList(
            UpBlock(a, b, skip_channels=b if i < self.num_skips else 0, up=config.up, **settings)
            for i, (a, b) in enumerate(zip([widths[-1], *outs], outs, strict=False))
        )
        self.head = nn.Conv2d(outs[-1], config.num_classes, 1)
        self.stride = 1 << len(outs)  # of the coarsest map, in pixels

    def feature_maps(
        self, image: Float[Tensor, "B C H W"], *condition: Float[Tensor, "B D"]
    ) -> list[Float[Tensor, "B _ _ _"]]:
        """What the encoder makes at each resolution, fine to coarse; height and width are multiples of `stride`."""
        return (self.encoder if self.config.backbone is None else self.backbone).feature_maps(image, *condition)

    def forward(
        self, image: Float[Tensor, "B C H W"], condition: Float[Tensor, "B D"] | None = None
    ) -> Float[Tensor, "B K H W"]:
        """The logits of the classes of every pixel, or an image; with a `condition_dim`, given each image's condition.

        Raises ValueError for a condition that is missing or that there is no use for.
        """
        told = () if condition is None else (condition,)
        if bool(told) != bool(self.config.condition_dim):
            raise ValueError(f"condition_dim is {self.config.condition_dim}, and a condition was given: {bool(told)}")
        height, width = image.shape[-2:]
        *finer, x = self.feature_maps(pad_to_multiple(image, self.stride), *told)
        skips = finer[::-1] if self.config.skips else []
        for i, block in enumerate(self.decoder):
            x = block(x, skips[i] if i < len(skips) else None, *told)
        return self.head(x)[:, :, :height, :width]


def unet(**overrides) -> UNet:
    """U-Net of 2015, 31.0 M parameters: no batch normalisation."""
    return UNet(UNetConfig(**{"norm": False} | overrides))


def unet_from_classifier(classifier: ResNet, *, num_classes: int, **overrides) -> UNet:
    """A U-Net whose encoder is a copy of the trained classifier without its head; the decoder is fresh."""
    backbone = replace(classifier.config, num_classes=None)
    config = {
        "in_channels": backbone.in_channels,
        "widths": backbone.widths,
        "backbone": backbone,
        "num_classes": num_classes,
    }
    model = UNet(UNetConfig(**config | overrides))
    weights = {name: tensor for name, tensor in classifier.state_dict().items() if not name.startswith("head.")}
    model.backbone.load_state_dict(weights)
    return model
