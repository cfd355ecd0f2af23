"""An image as a sequence of patches.

Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, arXiv 2010.11929.
"""

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn


class PatchEmbed(nn.Module):
    """x_p^n E for all patches n = 1 ... N: eq. (1) of Dosovitskiy et al. 2021, with a bias.

    Patches of `patch_size` pixels a side do not overlap, so that E is a convolution whose stride is its width.
    Raises ValueError, in `forward`, if the image is no whole number of patches high and wide.
    """

    def __init__(self, patch_size: int, in_channels: int, dim: int):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Conv2d(in_channels, dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, image: Float[Tensor, "B C height width"]) -> Float[Tensor, "B N D"]:
        """The patches row by row, N = (height / patch_size) (width / patch_size) of them."""
        height, width = image.shape[-2:]
        if height % self.patch_size or width % self.patch_size or 0 in (height, width):
            raise ValueError(
                f"an image of {height} x {width} pixels is no whole number of patches of {self.patch_size} x "
                f"{self.patch_size}: crop, pad or resize it"
            )
        return rearrange(self.proj(image), "b d h w -> b (h w) d")
