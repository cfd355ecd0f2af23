"""Maps in the plane: neighbours stay together, as in scikit-learn's."""

import pytest
import torch
from scipy.spatial.distance import squareform
from sklearn.manifold import TSNE
from sklearn.manifold._t_sne import _joint_probabilities
from sklearn.neighbors import NearestNeighbors

from course_lib.functional.neighbour_maps import kl_slope, neighbour_shares, tsne


def groups(seed: int = 0, count: int = 20, of: int = 5) -> torch.Tensor:
    """Groups of points in ten dimensions."""
    draws = torch.Generator().manual_seed(seed)
    centres = 6 * torch.randn(of, 1, 10, generator=draws)
    return (centres + torch.randn(of, count, 10, generator=draws)).flatten(0, 1)


def same_neighbours(points, places, k: int = 8) -> float:
    near = [NearestNeighbors(n_neighbors=k).fit(x).kneighbors(return_distance=False) for x in (points, places)]
    return sum(len(set(a) & set(b)) for a, b in zip(*near, strict=True)) / (k * len(points))


def test_shares_are_those_of_scikit_learn_and_sum_to_1():
    points = groups()
    shares = neighbour_shares(points, 12.0)
    squared = torch.cdist(points.double(), points.double()).square()
    theirs = squareform(_joint_probabilities(squared.float().numpy(), 12.0, 0))
    torch.testing.assert_close(shares, torch.from_numpy(theirs).double(), atol=2e-6, rtol=1e-2)
    assert shares.sum().item() == pytest.approx(1) and torch.equal(shares, shares.T)
    assert shares.diagonal().abs().max() == 0


def test_the_slope_is_that_of_the_divergence():
    shares = neighbour_shares(groups(count=4), 5.0)
    places = torch.randn(20, 2, dtype=torch.double, generator=torch.Generator().manual_seed(1)).requires_grad_()
    kernel = (1 / (1 + (places[:, None] - places).square().sum(2))).masked_fill(torch.eye(20, dtype=torch.bool), 0)
    divergence = (torch.special.xlogy(shares, shares) - shares * (kernel / kernel.sum() + 1e-300).log()).sum()
    (slope,) = torch.autograd.grad(divergence, places)
    torch.testing.assert_close(kl_slope(shares, places.detach()), slope, atol=1e-10, rtol=1e-8)


def test_neighbours_stay_neighbours_as_often_as_in_scikit_learns_map():
    points = groups()
    theirs = TSNE(perplexity=12, init="pca", random_state=0).fit_transform(points.numpy())
    ours = same_neighbours(points, tsne(points, perplexity=12.0))
    assert ours > 0.97 * same_neighbours(points, theirs) and ours > 1.3 * same_neighbours(points, points[:, :2])


def test_groups_are_apart():
    places = tsne(groups(), perplexity=10.0).view(5, 20, 2)
    centres = places.mean(dim=1)
    within = (places - centres[:, None]).norm(dim=2).max()
    assert torch.pdist(centres).min() > 2 * within
