"""Contrastive learning: two views of one image are to look alike, views of different images are not.

Chen, Kornblith, Norouzi & Hinton, "A simple framework for contrastive learning of visual representations", ICML 2020,
arXiv 2002.05709.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def nt_xent(
    first: Float[Tensor, "B D"], second: Float[Tensor, "B D"], *, temperature: float = 0.5
) -> Float[Tensor, ""]:
    """The mean over all 2B views i of -ln [exp(s_ij / t) / sum_{k != i} exp(s_ik / t)], Chen et al. 2020, eq. (1).

    Row n of `first` and row n of `second` are the projections of two views of image n: i's other view is j. s is the
    cosine of the angle between two projections and t the `temperature`. In nats; ln(2B - 1) for a guess.
    Raises ValueError for fewer than two images, or a temperature that is not positive.
    """
    if len(first) < 2:
        raise ValueError(f"a view needs other images to be told from: two or more, got {len(first)}")
    if temperature <= 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    z = F.normalize(torch.cat([first, second]), dim=-1)
    similarity = (z @ z.T / temperature).fill_diagonal_(-torch.inf)  # k != i
    other_view = torch.arange(len(z), device=z.device).roll(len(first))
    return F.cross_entropy(similarity, other_view)
