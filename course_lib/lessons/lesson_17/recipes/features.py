"""Lesson 17: two other ways to learn features without labels, an autoencoder with one hidden layer, and k-means.

Coates, Lee & Ng, "An analysis of single-layer networks in unsupervised feature learning", AISTATS 2011 (k-means).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.training.batches import shuffled_batches
from course_lib.training.seeding import seeded

ROUNDS = 50  # of k-means
STEPS, BATCH, RATE = 4000, 50, 1e-3  # of the autoencoder's training by Adam


class Autoencoder(nn.Module):
    """h = sigmoid(W x + c), and x again from h by a second matrix: no energy, no sampling."""

    def __init__(self, num_visible: int, num_hidden: int):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(num_visible, num_hidden), nn.Linear(num_hidden, num_visible)

    def features(self, x: Float[Tensor, "*B V"]) -> Float[Tensor, "*B H"]:
        return self.encoder(x).sigmoid()

    def loss(self, x: Float[Tensor, "B V"]) -> Float[Tensor, ""]:
        """The cross-entropy of the reconstructed pixels, in nats per image."""
        return F.binary_cross_entropy_with_logits(self.decoder(self.features(x)), x, reduction="sum") / len(x)


class KMeans(nn.Module):
    """Centroids; feature k is how much nearer centroid k is than the average one, Coates et al. 2011, section 3.2.2."""

    def __init__(self, centroids: Float[Tensor, "H V"]):
        super().__init__()
        self.register_buffer("centroids", centroids)

    def features(self, x: Float[Tensor, "B V"]) -> Float[Tensor, "B H"]:
        """max(0, mean of the distances - distance to centroid k), the "triangle"."""
        distances = torch.cdist(x, self.centroids)
        return (distances.mean(dim=1, keepdim=True) - distances).clamp(min=0)


def train_autoencoder(x: Float[Tensor, "N V"], num_hidden: int, *, seed: int) -> Autoencoder:
    """Learns to reconstruct the pixels, each drawn as ink or paper by its grey value, as the Boltzmann machines do."""
    with seeded(seed):
        model = Autoencoder(x.shape[1], num_hidden)
        indices_at = shuffled_batches(len(x), BATCH, seed)
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        for step in range(STEPS):
            probs = x[indices_at(step)]
            optimizer.zero_grad()
            model.loss((torch.rand_like(probs) < probs).to(x.dtype)).backward()
            optimizer.step()
    return model.eval()


@torch.no_grad()
def fit_kmeans(x: Float[Tensor, "N V"], num_hidden: int, *, seed: int) -> KMeans:
    """Lloyd's algorithm from random examples; a centroid without examples stays where it is."""
    with seeded(seed):
        centroids = x[torch.randperm(len(x))[:num_hidden]]
    for _ in range(ROUNDS):
        members = F.one_hot(torch.cdist(x, centroids).argmin(dim=1), num_hidden).to(x.dtype)
        counts = members.sum(dim=0)[:, None]
        centroids = torch.where(counts > 0, members.T @ x / counts.clamp(min=1), centroids)
    return KMeans(centroids)
