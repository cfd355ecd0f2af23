"""A plain convolutional network: simple patterns first, then patterns of patterns.

LeCun et al., "Gradient-based learning applied to document recognition", 1998, for the idea; Simonyan & Zisserman, "Very
deep convolutional networks for large-scale image recognition", ICLR 2015, arXiv 1409.1556, for stages of 3 x 3
convolutions that end in a pooling. With batch normalisation, which is younger.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.images import COURSE_PIXELS, Normalisation
from course_lib.layers.convolution import ConvNorm, channels_last
from course_lib.layers.sizes import plain_integers


@dataclass(frozen=True, kw_only=True)
class CNNConfig:
    """A net for small grey images by default."""

    image_size: int = 32  # pixels a side; only pool="none" depends on it
    in_channels: int = 1
    num_classes: int | None = 10  # None: no head, `forward` returns features
    widths: tuple[int, ...] = (16, 32, 64)  # channels of each stage; between stages height and width halve
    depths: tuple[int, ...] = (2, 2, 2)  # convolutions of each stage
    pool: str = "mean"  # what the head sees of the last map: its mean, or with "none" all of it, place by place

    def __post_init__(self):
        plain_integers(self)
        if len(self.widths) != len(self.depths) or min(self.widths + self.depths, default=0) < 1:
            raise ValueError(f"widths {self.widths} and depths {self.depths} must be as many, each at least 1")
        if self.pool not in ("mean", "none"):
            raise ValueError(f"pool must be 'mean' or 'none', got {self.pool!r}")


class CNN(nn.Module):
    """Stages of conv-BN-ReLU with 2 x 2 max-pooling between them, and one linear layer.

    Raises ValueError for settings that do not fit together and, when called, for images that are too small or, with
    pool="none", of another size than `image_size`.
    """

    normalisation: Normalisation | None = COURSE_PIXELS  # what it expects of pixels; None: nobody knows

    def __init__(self, config: CNNConfig):
        super().__init__()
        self.config = config
        self.stages, channels = nn.ModuleList(), config.in_channels
        for width, depth in zip(config.widths, config.depths, strict=True):
            sizes = [channels] + [width] * depth
            self.stages.append(nn.Sequential(*(ConvNorm(a, b) for a, b in zip(sizes, sizes[1:], strict=False))))
            channels = width
        self.pool = nn.MaxPool2d(2)
        self.map_size = config.image_size >> len(config.widths) - 1  # pixels a side of the last map
        self.num_features = channels * (self.map_size**2 if config.pool == "none" else 1)
        self.head = None if config.num_classes is None else nn.Linear(self.num_features, config.num_classes)

    def feature_maps(self, image: Float[Tensor, "B C H W"]) -> list[Float[Tensor, "B _ _ _"]]:
        """The last map of each stage, fine to coarse."""
        smallest = 1 << len(self.stages) - 1
        if min(image.shape[-2:]) < smallest:
            raise ValueError(
                f"an image of {image.shape[-2]} x {image.shape[-1]} pixels is too small for {len(self.stages)} stages: "
                f"it needs {smallest} a side"
            )
        x, maps = channels_last(image), []
        for stage in self.stages:
            x = stage(self.pool(x) if maps else x)
            maps.append(x)
        return maps

    def features(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D"]:
        """What the head sees: the last map's mean, or all its numbers, channel by channel."""
        last = self.feature_maps(image)[-1]
        if self.config.pool == "mean":
            return last.mean(dim=(-2, -1))
        if tuple(last.shape[-2:]) != (self.map_size, self.map_size):
            size, (height, width) = self.config.image_size, image.shape[-2:]
            raise ValueError(f"with pool='none' images must have {size} x {size} pixels, got {height} x {width}")
        return last.flatten(1)

    def forward(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D"]:
        """Logits, or features if there is no head."""
        features = self.features(image)
        return features if self.head is None else self.head(features)
