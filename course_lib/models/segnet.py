"""SegNet: the decoder gets from the encoder not its maps, but where each maximum was.

Badrinarayanan, Kendall & Cipolla, "SegNet: a deep convolutional encoder-decoder architecture for image segmentation",
TPAMI 39(12), 2017, arXiv 1511.00561.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.images import COURSE_PIXELS, Normalisation, max_pool, max_unpool
from course_lib.layers.convolution import channels_last
from course_lib.layers.segmentation import convs
from course_lib.layers.sizes import plain_integers


@dataclass(frozen=True, kw_only=True)
class SegNetConfig:
    """The convolutions of VGG-16 and their mirror image by default, section 3."""

    in_channels: int = 3
    num_classes: int = 11
    widths: tuple[int, ...] = (64, 128, 256, 512, 512)  # channels at each resolution, fine to coarse
    depths: tuple[int, ...] = (2, 2, 3, 3, 3)  # convolutions at each resolution, on the way down as on the way up

    def __post_init__(self):
        plain_integers(self)
        if len(self.widths) != len(self.depths) or min(self.widths + self.depths, default=0) < 1:
            raise ValueError(f"widths {self.widths} and depths {self.depths} must be as many, each at least 1")


class SegNet(nn.Module):
    """Figure 2: convolutions and pooling down, unpooling to the remembered positions and convolutions up.

    An unpooled map is sparse: the convolutions after it fill the gaps. What a pooled map has lost of a row or column
    that filled no window comes back as zeros, so that the image may have any size that can be pooled.
    Raises ValueError for settings that do not fit together and, when called, for images that are too small.
    """

    normalisation: Normalisation | None = COURSE_PIXELS  # what it expects of pixels; None: nobody knows

    def __init__(self, config: SegNetConfig):
        super().__init__()
        self.config = config
        widths, depths = config.widths, config.depths
        ins = (config.in_channels, *widths)
        self.encoder = nn.ModuleList(convs(a, b, count=depth) for a, b, depth in zip(ins, widths, depths, strict=False))
        finer = (widths[0], *widths)  # what the last convolution at a resolution returns
        self.decoder = nn.ModuleList(
            nn.Sequential(*convs(b, b, count=depth - 1), *convs(b, a, count=1))
            for a, b, depth in reversed(list(zip(finer, widths, depths, strict=False)))
        )
        self.head = nn.Conv2d(widths[0], config.num_classes, 1)

    def forward(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K H W"]:
        """The logits of the classes of every pixel."""
        height, width = image.shape[-2:]
        if min(height, width) < 1 << len(self.encoder):
            raise ValueError(
                f"an image of {height} x {width} pixels cannot be halved {len(self.encoder)} times: it needs "
                f"{1 << len(self.encoder)} a side"
            )
        x, remembered = channels_last(image), []
        for block in self.encoder:
            x = block(x)
            size = x.shape[-2:]
            x, positions = max_pool(x)
            remembered.append((positions, *size))
        for block in self.decoder:
            x = block(max_unpool(x, *remembered.pop()))
        return self.head(x)


def segnet(**overrides) -> SegNet:
    """SegNet of 2017: 29.5 M parameters, 14.7 M of them in the encoder."""
    return SegNet(SegNetConfig(**overrides))
