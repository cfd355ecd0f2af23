"""An image as a sequence of patches: cut, hidden, put together again, and embedded.

Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, arXiv 2010.11929, section 3.1. He et al., "Masked
autoencoders are scalable vision learners", CVPR 2022, arXiv 2111.06377, section 3, whose released code orders a patch
like this. Xiao et al., "Early convolutions help transformers see better", NeurIPS 2021, arXiv 2106.14881.
"""

from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


def patchify(image: Float[Tensor, "B C H W"], patch_size: int) -> Float[Tensor, "B N P"]:
    """The pixels of each patch, row by row: N = (H / p) (W / p) patches of P = p p C numbers.

    Within a patch the row counts slowest, then the column, then the channel, so that a pixel's channels stay together.
    Raises ValueError if the image is no whole number of patches of `patch_size` pixels high and wide.
    """
    height, width = image.shape[-2:]
    _check_size(height, width, patch_size)
    return rearrange(image, "b c (h p) (w q) -> b (h w) (p q c)", p=patch_size, q=patch_size)


def unpatchify(patches: Float[Tensor, "B N P"], patch_size: int, height: int, width: int) -> Float[Tensor, "B C H W"]:
    """The image of `height` by `width` pixels whose patches these are: the inverse of `patchify`.

    Raises ValueError if the number of patches or their length fits no such image.
    """
    _check_size(height, width, patch_size)
    rows, area = height // patch_size, patch_size**2
    if patches.shape[1] != rows * (width // patch_size) or patches.shape[2] % area:
        raise ValueError(
            f"an image of {height} x {width} pixels has {rows * (width // patch_size)} patches with a multiple of "
            f"{area} numbers each, got {patches.shape[1]} patches with {patches.shape[2]} numbers"
        )
    return rearrange(patches, "b (h w) (p q c) -> b c (h p) (w q)", h=rows, p=patch_size, q=patch_size)


def patch_statistics(patches: Float[Tensor, "B N P"]) -> tuple[Float[Tensor, "B N 1"], Float[Tensor, "B N 1"]]:
    """Mean and spread of the numbers in each patch: He et al. 2022, section 3, "Reconstruction target".

    As in the released code the variance is the unbiased one, over P - 1, and 1e-6 is added to it before the root.
    """
    variance, mean = torch.var_mean(patches, dim=-1, keepdim=True)
    return mean, (variance + 1e-6).sqrt()


def _check_size(height: int, width: int, patch_size: int) -> None:
    if patch_size < 1 or height % patch_size or width % patch_size or 0 in (height, width):
        raise ValueError(
            f"an image of {height} x {width} pixels is no whole number of patches of {patch_size} x {patch_size}: "
            "crop, pad or resize it"
        )


class RandomMask(NamedTuple):
    """K of N patches stay visible: which ones, and how to find all of them again in a shuffled list."""

    keep: Int[Tensor, "B K"]  # places of the visible patches, in shuffled order
    restore: Int[Tensor, "B N"]  # where each patch lies in the list of visible, then hidden ones
    masked: Bool[Tensor, "B N"]  # True where a patch is hidden


def random_mask(noise: Float[Tensor, "B N"], ratio: float) -> RandomMask:
    """Keeps int(N (1 - ratio)) patches, those with the smallest noise: section 3, "Masking".

    Nothing is drawn here: from the same `noise`, such as torch.rand(B, N), comes the same mask.
    Raises ValueError if no patch would stay visible, or `ratio` is negative.
    """
    num_patches = noise.shape[1]
    num_keep = int(num_patches * (1 - ratio))
    if not 1 <= num_keep <= num_patches:
        raise ValueError(
            f"a ratio of {ratio:g} leaves {num_keep} of {num_patches} patches visible: choose one from 0 to below "
            f"{1 - 1 / max(num_patches, 1):g}"
        )
    shuffle = noise.argsort(dim=1)
    restore = shuffle.argsort(dim=1)
    return RandomMask(shuffle[:, :num_keep], restore, masked=restore >= num_keep)


def block_noise(middles: Float[Tensor, "B 2"], grid: tuple[int, int]) -> Float[Tensor, "B N"]:
    """Noise with which `random_mask` hides one block: the patches nearest to a middle (row, column), ring by ring.

    He et al. 2022, table 1 (f), compare blocks with patches hidden at random; theirs come from BEiT and are several.
    """
    rows, columns = torch.meshgrid(torch.arange(grid[0]), torch.arange(grid[1]), indexing="ij")
    positions = torch.stack([rows.flatten(), columns.flatten()], dim=1)
    away = (positions - middles[:, None]).abs()
    return -away.amax(dim=2) - 1e-3 * away.sum(dim=2)  # within a ring the corners stay visible longest


def take_patches(patches: Float[Tensor, "B M D"], positions: Int[Tensor, "B K"]) -> Float[Tensor, "B K D"]:
    """The patches at these places, in each image others."""
    return patches.gather(1, positions[..., None].expand(-1, -1, patches.shape[-1]))


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
    if image.ndim != 4:
        raise ValueError(
            f"images must be (batch, channels, height, width), got shape {tuple(image.shape)}: one is image[None]"
        )
    channels, height, width = image.shape[1:]
    if channels != in_channels:
        raise ValueError(
            f"an image of {in_channels} channel(s) was expected, got {channels}: shape {tuple(image.shape)}"
        )
    if height % patch_size or width % patch_size or 0 in (height, width):
        raise ValueError(
            f"an image of {height} x {width} pixels is no whole number of patches of {patch_size} x "
            f"{patch_size}: crop, pad or resize it"
        )
