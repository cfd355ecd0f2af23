"""What the attention of a Vision Transformer looks at: how far, at which patches, and how alike its positions are.

Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, arXiv 2010.11929. Abnar & Zuidema, "Quantifying
attention flow in Transformers", ACL 2020, arXiv 2005.00928. Raghu et al., "Do Vision Transformers see like
convolutional neural networks?", NeurIPS 2021, arXiv 2108.08810.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def patch_distances(height: int, width: int, patch_size: float = 1.0) -> Float[Tensor, "N N"]:
    """Euclidean distance in pixels between the centres of all N = height x width patches, row by row.

    Raises ValueError for a size that is not positive.
    """
    if height < 1 or width < 1 or patch_size <= 0:
        raise ValueError(f"sizes must be positive, got {height} x {width} patches of {patch_size} pixels")
    places = torch.cartesian_prod(torch.arange(height), torch.arange(width)).float() * patch_size
    return torch.cdist(places, places, compute_mode="donot_use_mm_for_euclid_dist")


def attention_distance(
    weights: Float[Tensor, "*B T T"], height: int, width: int, patch_size: float = 1.0
) -> Float[Tensor, "*B"]:
    """How far a head looks, in pixels: the mean over queries q of sum_k w_qk |k - q|.

    Dosovitskiy et al. 2021, section 4.5 and figure 7; Raghu et al. 2021, section 4. The tokens are the patches of an
    image of `height` x `width` of them. A class token before them has no place: its row is left out, and the weights
    that the patches give each other are scaled to sum to one.
    Raises ValueError if there are neither as many tokens as patches nor one more.
    """
    distances = patch_distances(height, width, patch_size).to(weights)
    extra = weights.shape[-1] - len(distances)
    if extra not in (0, 1):
        raise ValueError(
            f"{height} x {width} patches and at most one class token were expected, got {weights.shape[-1]} tokens"
        )
    among_patches = weights[..., extra:, extra:]
    if extra:
        among_patches = among_patches / among_patches.sum(dim=-1, keepdim=True)
    return (among_patches * distances).sum(dim=-1).mean(dim=-1)


def attention_rollout(weights: Float[Tensor, "B L H T T"], *, residual: float = 0.5) -> Float[Tensor, "B T T"]:
    """How much of each input token has reached each output token: A~_L ... A~_1, Abnar & Zuidema 2020, eq. (1).

    A~_l = (1 - residual) W_l + residual I, where W_l is the mean over the heads of block l and the identity stands for
    the path around the attention. Row i holds the weights of output i, which sum to one.
    Raises ValueError if `residual` is not from 0 to 1, and for weights of another shape or with rows of another sum.
    """
    if weights.ndim != 5 or weights.shape[-1] != weights.shape[-2]:
        raise ValueError(f"weights must have the shape (B, L, H, T, T), got {tuple(weights.shape)}")
    sums = weights.sum(dim=-1)
    if not ((sums - 1).abs() <= 1e-3).all():
        raise ValueError(
            f"rows of the weights, of shape {tuple(weights.shape)}, must sum to one over the last axis: the sums are "
            f"from {sums.min():.4g} to {sums.max():.4g}"
        )
    if not 0.0 <= residual <= 1.0:
        raise ValueError(f"residual is the share that passes around the attention, from 0 to 1; got {residual}")
    identity = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    mixed = (1 - residual) * weights.mean(dim=2) + residual * identity  # (B, L, T, T)
    rollout, *later = mixed.unbind(dim=1)
    for block in later:
        rollout = block @ rollout
    return rollout


def position_similarity(positions: Float[Tensor, "h w D"]) -> Float[Tensor, "h w h w"]:
    """Cosine of the angle between the position embeddings of any two patches, Dosovitskiy et al. 2021, figure 7.

    Entry (i, j) is the map of the patch in row i and column j.
    """
    directions = F.normalize(positions, dim=-1)
    return torch.einsum("ijd,kld->ijkl", directions, directions)
