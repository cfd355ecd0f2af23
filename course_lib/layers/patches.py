"""An image as a sequence of patches.

Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, arXiv 2010.11929. Xiao et al., "Early convolutions help
transformers see better", NeurIPS 2021, arXiv 2106.14881.
"""

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn


class PatchEmbed(nn.Module):
    """x_p^n E for all patches n = 1 ... N: eq. (1) of Dosovitskiy et al. 2021, with a bias.

    Patches of `patch_size` pixels a side do not overlap, so that E is a convolution whose stride is its width.
    Raises ValueError, in `forward`, if the image has other channels or is no whole number of patches high and wide.
    """

    def __init__(self, patch_size: int, in_channels: int, dim: int):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Conv2d(in_channels, dim, kernel_size=patch_size, stride=patch_size)
        nn.init.normal_(self.proj.weight, std=(in_channels * patch_size**2) ** -0.5)  # keeps the variance of pixels
        nn.init.zeros_(self.proj.bias)

    def forward(self, image: Float[Tensor, "B C height width"]) -> Float[Tensor, "B N D"]:
        """The patches row by row, N = (height / patch_size) (width / patch_size) of them."""
        check_image(image, self.patch_size, self.proj.in_channels)
        return rearrange(self.proj(image), "b d h w -> b (h w) d")


class ConvStem(nn.Module):
    """A small CNN that makes a token of each patch: a hybrid of Dosovitskiy et al. 2021, section 3.1, with 1x1 patches.

    As in Xiao et al. 2021, section 4: 3x3 convolutions of stride 2 with batch norm and ReLU, whose channels double up
    to `dim`, until a feature stands for `patch_size` pixels a side; then a 1x1 convolution.
    Raises ValueError if `patch_size` is no power of two or `dim` cannot be halved that often, and as `PatchEmbed`.
    """

    def __init__(self, patch_size: int, in_channels: int, dim: int):
        super().__init__()
        halvings = patch_size.bit_length() - 1
        if patch_size != 2**halvings or halvings < 1 or dim % 2 ** (halvings - 1):
            raise ValueError(
                "a convolutional stem halves the image until a patch is one feature: patch_size must be 2, 4, 8 ... "
                f"and dim a multiple of half of it, got patch_size={patch_size}, dim={dim}"
            )
        self.patch_size, self.in_channels = patch_size, in_channels
        widths = [in_channels] + [dim // 2**i for i in reversed(range(halvings))]
        self.convs = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv2d(width, wider, kernel_size=3, stride=2, padding=1, bias=False),
                    nn.BatchNorm2d(wider),
                    nn.ReLU(),
                )
                for width, wider in zip(widths, widths[1:], strict=False)
            )
        )
        self.proj = nn.Conv2d(dim, dim, kernel_size=1)

    def forward(self, image: Float[Tensor, "B C height width"]) -> Float[Tensor, "B N D"]:
        """The tokens of the patches row by row, as those of `PatchEmbed`."""
        check_image(image, self.patch_size, self.in_channels)
        return rearrange(self.proj(self.convs(image)), "b d h w -> b (h w) d")


def check_image(image: Tensor, patch_size: int, in_channels: int) -> None:
    """Raises ValueError if the image has other channels or is no whole number of patches high and wide."""
    channels, height, width = image.shape[-3:]
    if channels != in_channels:
        raise ValueError(
            f"an image of {in_channels} channel(s) was expected, got {channels}: shape {tuple(image.shape)}"
        )
    if height % patch_size or width % patch_size or 0 in (height, width):
        raise ValueError(
            f"an image of {height} x {width} pixels is no whole number of patches of {patch_size} x "
            f"{patch_size}: crop, pad or resize it"
        )
