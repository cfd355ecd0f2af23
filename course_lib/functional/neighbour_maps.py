"""Maps of many-dimensional points in the plane that keep neighbours together: t-SNE.

van der Maaten & Hinton, "Visualizing data using t-SNE", JMLR 9, 2008.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

EXAGGERATED = 100  # first steps, in which all p_ij are multiplied, so that groups gather before they spread out


def neighbour_shares(points: Float[Tensor, "N D"], perplexity: float) -> Float[Tensor, "N N"]:
    """p_ij, how much i and j are each other's neighbours; all of them sum to 1 (equations 1 and section 3.1).

    The width of each point's bell curve is chosen so that exp(entropy) of its neighbours is `perplexity`: about how
    many neighbours count. Raises ValueError unless 1 < perplexity < N - 1.
    """
    count = len(points)
    if not 1 < perplexity < count - 1:
        raise ValueError(f"perplexity must lie between 1 and N - 1 = {count - 1}, got {perplexity}")
    points = points.double()
    itself = torch.eye(count, dtype=torch.bool)
    distances = torch.cdist(points, points).square()
    scaled = distances / distances[~itself].mean()
    low, high = scaled.new_full((count, 1), -20.0), scaled.new_full((count, 1), 20.0)  # ln of the curves' sharpness
    for _ in range(50):
        middle = (low + high) / 2
        probs = (-middle.exp() * scaled).masked_fill(itself, -torch.inf).softmax(dim=1)
        entropy = torch.special.entr(probs).sum(dim=1, keepdim=True)
        too_wide = entropy > math.log(perplexity)
        low, high = torch.where(too_wide, middle, low), torch.where(too_wide, high, middle)
    return (probs + probs.T) / (2 * count)


def tsne(
    points: Float[Tensor, "N D"], *, perplexity: float = 20.0, steps: int = 500, rate: float | None = None
) -> Float[Tensor, "N 2"]:
    """Places in the plane whose neighbourhoods, by Student's t (q_ij, equation 4), are most like those of the points.

    Minimises KL(p || q) by its gradient (equation 5) with momentum, from the points' two principal components, so that
    the same points give the same map. Distances between far groups mean little. `rate` is N / 12, at least 10, if not
    given (Belkina et al. 2019).
    """
    probs = neighbour_shares(points, perplexity)
    positions = 1e-4 * _principal(points.double())
    step, gains = torch.zeros_like(positions), torch.ones_like(positions)
    rate = max(len(points) / 12, 10.0) if rate is None else rate
    for number in range(steps):
        early = number < EXAGGERATED
        slope = kl_slope(12 * probs if early else probs, positions)
        gains = torch.where(slope * step < 0, gains + 0.2, gains * 0.8).clamp_min(0.01)  # Jacobs 1988
        step = (0.5 if early else 0.8) * step - rate * gains * slope
        positions = positions + step
        positions = positions - positions.mean(dim=0)
    return positions.float()


def kl_slope(probs: Float[Tensor, "N N"], positions: Float[Tensor, "N 2"]) -> Float[Tensor, "N 2"]:
    """4 sum_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|²), equation 5."""
    kernel = 1 / (1 + torch.cdist(positions, positions).square())
    kernel.fill_diagonal_(0)
    pull = (probs - kernel / kernel.sum()) * kernel
    return 4 * (pull.sum(dim=1, keepdim=True) * positions - pull @ positions)


def _principal(points: Float[Tensor, "N D"]) -> Float[Tensor, "N 2"]:
    """The two leading principal components, the first of spread 1; the longest end of each axis is positive."""
    left, sizes, _ = torch.linalg.svd(points - points.mean(dim=0), full_matrices=False)
    found = left[:, :2] * sizes[:2]
    ends = found.gather(0, found.abs().argmax(dim=0, keepdim=True))
    return found * ends.sign() / found[:, 0].std()
