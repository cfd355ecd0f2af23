"""ResNet: blocks that learn what to add to their input, so that depth helps instead of harming.

He, Zhang, Ren & Sun, "Deep residual learning for image recognition", CVPR 2016, arXiv 1512.03385.
"""

from dataclasses import dataclass
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.images import COURSE_PIXELS, Normalisation
from course_lib.layers.convolution import BasicBlock, Bottleneck, ConvNorm, channels_last
from course_lib.layers.sizes import plain_integers


@dataclass(frozen=True, kw_only=True)
class ResNetConfig:
    """ResNet-50 by default, table 1."""

    in_channels: int = 3
    num_classes: int | None = 1000  # None: no head, `forward` returns features
    stem: str = "imagenet"  # 7 x 7 at stride 2 and a pooling; "small": 3 x 3, for small images, section 4.2
    stem_channels: int = 64
    widths: tuple[int, ...] = (256, 512, 1024, 2048)  # channels that each stage returns
    depths: tuple[int, ...] = (3, 4, 6, 3)  # blocks of each stage
    block: str = "bottleneck"  # or "basic", figure 5
    residual: bool = True  # False: the plain net, without shortcuts
    shortcut: str = "projection"  # where a block changes the shape: option B; "padding": option A
    activation: str = "relu"  # of stem and sums; inside a block always ReLU, as in Hugging Face's class
    stride_in_first_stage: bool = False  # stage 1, too, halves height and width
    stride_first: bool = False  # a bottleneck's stride on its first convolution, as published; else on the 3 x 3

    def __post_init__(self):
        plain_integers(self)
        if len(self.widths) != len(self.depths) or min(self.widths + self.depths, default=0) < 1:
            raise ValueError(f"widths {self.widths} and depths {self.depths} must be as many, each at least 1")
        if self.stem not in ("imagenet", "small") or self.block not in ("basic", "bottleneck"):
            raise ValueError(
                f"stem must be 'imagenet' or 'small' and block 'basic' or 'bottleneck', got {self.stem!r} and "
                f"{self.block!r}"
            )


class ResNet(nn.Module):
    """Stem, stages of blocks, mean over all places, linear head: figure 3 on the right, or in the middle if plain.

    Each stage but the first begins with a block of stride 2.
    Raises ValueError for settings that do not fit together.
    """

    normalisation: Normalisation | None = COURSE_PIXELS  # what it expects of pixels; None: nobody knows

    def __init__(self, config: ResNetConfig):
        super().__init__()
        self.config = config
        stem = partial(ConvNorm, config.in_channels, config.stem_channels, activation=config.activation)
        large = config.stem == "imagenet"
        self.stem = stem(kernel_size=7, stride=2) if large else stem()
        self.pool = nn.MaxPool2d(3, stride=2, padding=1) if large else nn.Identity()
        block = BasicBlock if config.block == "basic" else partial(Bottleneck, stride_first=config.stride_first)
        block = partial(block, shortcut=config.shortcut if config.residual else None, activation=config.activation)
        self.stages, channels = nn.ModuleList(), config.stem_channels
        for width, depth in zip(config.widths, config.depths, strict=True):
            stride = 2 if self.stages or config.stride_in_first_stage else 1
            first, others = block(channels, width, stride=stride), (block(width, width) for _ in range(depth - 1))
            self.stages.append(nn.Sequential(first, *others))
            channels = width
        self.head = None if config.num_classes is None else nn.Linear(channels, config.num_classes)
        self._frozen: tuple[nn.Module, ...] = ()

    def feature_maps(self, image: Float[Tensor, "B C H W"]) -> list[Float[Tensor, "B _ _ _"]]:
        """What each stage returns, fine to coarse."""
        x, maps = self.pool(self.stem(channels_last(image))), []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return maps

    def features(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D"]:
        """The mean of the last map over all places, D = widths[-1]."""
        return self.feature_maps(image)[-1].mean(dim=(-2, -1))

    def forward(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D"]:
        """Logits, or features if there is no head."""
        features = self.features(image)
        return features if self.head is None else self.head(features)

    def freeze(self, num_parts: int | None = None) -> "ResNet":
        """The first parts of stem, stage 1, stage 2 ... keep weights and statistics in training; the others learn.

        All parts but the head without `num_parts`; 0 lets all of them learn again. Returns the model.
        """
        parts = (self.stem, *self.stages)
        self._frozen = parts[:num_parts]
        for part in parts:
            part.requires_grad_(part not in self._frozen)
        return self.train(self.training)

    def train(self, mode: bool = True) -> "ResNet":
        """As every module's, but what is frozen stays in evaluation mode: its norms go on using what they remember."""
        super().train(mode)
        for part in self._frozen:
            part.eval()
        return self


BASIC = {"block": "basic", "widths": (64, 128, 256, 512)}


def resnet18(**overrides) -> ResNet:
    """ResNet-18, 11.7 M parameters, table 1."""
    return ResNet(ResNetConfig(**BASIC | {"depths": (2, 2, 2, 2)} | overrides))


def resnet34(**overrides) -> ResNet:
    """ResNet-34, 21.8 M parameters, table 1."""
    return ResNet(ResNetConfig(**BASIC | {"depths": (3, 4, 6, 3)} | overrides))


def resnet50(**overrides) -> ResNet:
    """ResNet-50, 25.6 M parameters, table 1."""
    return ResNet(ResNetConfig(**overrides))


def resnet101(**overrides) -> ResNet:
    """ResNet-101, 44.5 M parameters, table 1."""
    return ResNet(ResNetConfig(**{"depths": (3, 4, 23, 3)} | overrides))


def resnet152(**overrides) -> ResNet:
    """ResNet-152, 60.2 M parameters, table 1."""
    return ResNet(ResNetConfig(**{"depths": (3, 8, 36, 3)} | overrides))


def small_resnet(num_layers: int, **overrides) -> ResNet:
    """A ResNet for small images with `num_layers` = 6n + 2, section 4.2: 8, 14, 20, 32, 44, 56, 110.

    Three stages of n basic blocks with 16, 32 and 64 channels; shortcuts without parameters, so that the plain net has
    exactly as many. Raises ValueError for another number of layers.
    """
    blocks, rest = divmod(num_layers - 2, 6)
    if rest or blocks < 1:
        raise ValueError(f"num_layers must be 6n + 2, such as 8, 14, 20, 32, 44 or 56, got {num_layers}")
    small = {"stem": "small", "stem_channels": 16, "block": "basic", "widths": (16, 32, 64), "num_classes": 10}
    return ResNet(ResNetConfig(**small | {"depths": 3 * (blocks,), "shortcut": "padding"} | overrides))


def resnet8(**overrides) -> ResNet:
    """The smallest of section 4.2's kind, n = 1, 75 thousand parameters."""
    return small_resnet(8, **overrides)


def resnet20(**overrides) -> ResNet:
    """ResNet-20 of section 4.2, n = 3, 0.27 M parameters."""
    return small_resnet(20, **overrides)


def resnet56(**overrides) -> ResNet:
    """ResNet-56 of section 4.2, n = 9, 0.85 M parameters."""
    return small_resnet(56, **overrides)
