"""An image cut into patches of raw pixels, and put together again.

Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, arXiv 2010.11929, section 3.1. He et al., "Masked
autoencoders are scalable vision learners", CVPR 2022, arXiv 2111.06377, whose released code orders a patch like this.
"""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor


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
