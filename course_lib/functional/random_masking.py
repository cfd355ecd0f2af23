"""Which patches of an image are hidden: a random choice that can be replayed.

He et al., "Masked autoencoders are scalable vision learners", CVPR 2022, arXiv 2111.06377, section 3.
"""

from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor


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
            f"a ratio of {ratio:g} leaves {num_keep} of {num_patches} patches visible: choose one from 0 to "
            f"{1 - 1 / max(num_patches, 1):g}"
        )
    shuffle = noise.argsort(dim=1)
    restore = shuffle.argsort(dim=1)
    return RandomMask(shuffle[:, :num_keep], restore, masked=restore >= num_keep)


def take_patches(patches: Float[Tensor, "B M D"], places: Int[Tensor, "B K"]) -> Float[Tensor, "B K D"]:
    """The patches at these places, in each image others."""
    return patches.gather(1, places[..., None].expand(-1, -1, patches.shape[-1]))
