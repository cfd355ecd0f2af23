"""Boltzmann machines: two layers of coins that learn which pictures are likely, and a stack of them.

Smolensky, "Information processing in dynamical systems: foundations of harmony theory", 1986 (the machine). Hinton,
"Training products of experts by minimizing contrastive divergence", Neural Computation 14, 2002. Tieleman, "Training
restricted Boltzmann machines using approximations to the likelihood gradient", ICML 2008 (persistent chains). Hinton,
Osindero & Teh, "A fast learning algorithm for deep belief nets", Neural Computation 18, 2006 (the stack). First weights
are of Hinton, "A practical guide to training restricted Boltzmann machines", 2010, section 8.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.functional.boltzmann import clamped_chain
from course_lib.layers.sizes import plain_integers

LARGEST = 20  # units of the smaller layer, up to which all of its states are gone through


@dataclass(frozen=True, kw_only=True)
class RBMConfig:
    """Two layers of units that are 0 or 1. Raises ValueError for a size below 1."""

    num_visible: int
    num_hidden: int
    num_chains: int = 0  # persistent ones; 0: none, and contrastive divergence begins at the data

    def __post_init__(self):
        plain_integers(self)
        if min(self.num_visible, self.num_hidden) < 1 or self.num_chains < 0:
            raise ValueError(f"an RBM needs units in both layers, and 0 chains or more; got {self}")


class RBM(nn.Module):
    """p(v, h) = exp(-E(v, h)) / Z with E(v, h) = -b^T v - c^T h - h^T W v: no unit is tied to one of its own layer.

    So each layer, given the other, is a row of independent coins. Noise is uniform in [0, 1), and may come from outside
    so that a test can replay it: a unit is 1 where its noise is below its probability.
    """

    def __init__(self, config: RBMConfig):
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(0.01 * torch.randn(config.num_hidden, config.num_visible))  # W
        self.visible_bias = nn.Parameter(torch.zeros(config.num_visible))  # b
        self.hidden_bias = nn.Parameter(torch.zeros(config.num_hidden))  # c
        chains = torch.rand(config.num_chains, config.num_visible).round()
        self.register_buffer("chains", chains, persistent=len(chains) > 0)

    def forward(self, v: Float[Tensor, "*B V"]) -> Float[Tensor, "*B"]:
        """F(v) = -ln sum_h exp(-E(v, h)) = -b^T v - sum_j ln(1 + exp(c_j + W_j v)), the free energy of each row."""
        return -(v @ self.visible_bias) - F.softplus(F.linear(v, self.weight, self.hidden_bias)).sum(dim=-1)

    def energy(self, v: Float[Tensor, "*B V"], h: Float[Tensor, "*B H"]) -> Float[Tensor, "*B"]:
        """E(v, h)."""
        return -(v @ self.visible_bias) - h @ self.hidden_bias - (F.linear(v, self.weight) * h).sum(dim=-1)

    def features(self, v: Float[Tensor, "*B V"]) -> Float[Tensor, "*B H"]:
        """p(h_j = 1 | v) = sigmoid(c_j + W_j v)."""
        return F.linear(v, self.weight, self.hidden_bias).sigmoid()

    def visible(self, h: Float[Tensor, "*B H"]) -> Float[Tensor, "*B V"]:
        """p(v_i = 1 | h) = sigmoid(b_i + h^T W_i)."""
        return F.linear(h, self.weight.T, self.visible_bias).sigmoid()

    @torch.no_grad()
    def gibbs(self, v: Float[Tensor, "B V"], noise: Float[Tensor, "B HV"] | None = None) -> Float[Tensor, "B V"]:
        """One step of the chain: hidden units drawn given v, then visible ones given them."""
        if noise is None:
            noise = torch.rand(len(v), self.config.num_hidden + self.config.num_visible, device=v.device, dtype=v.dtype)
        of_hidden, of_visible = noise.split([self.config.num_hidden, self.config.num_visible], dim=1)
        h = (of_hidden < self.features(v)).to(v.dtype)
        return (of_visible < self.visible(h)).to(v.dtype)

    def dream(
        self, v: Float[Tensor, "B V"], steps: int, *, clamped: Bool[Tensor, " V"] | None = None
    ) -> Float[Tensor, "B V"]:
        """The probabilities of the visible units after so many Gibbs steps; `clamped` units keep their values."""
        return clamped_chain(self.features, self.visible, v, steps, clamped=clamped)

    def contrast(self, data: Float[Tensor, "B V"], fantasy: Float[Tensor, "N V"]) -> Float[Tensor, ""]:
        """mean F(data) - mean F(fantasy): minus its gradient for W is <h v>_data - <h v>_fantasy, Hinton 2002.

        h are probabilities given v. Only gradients count: the value says nothing of how good the model is.
        """
        return self(data).mean() - self(fantasy).mean()

    def loss(self, v: Float[Tensor, "B V"], *, steps: int = 1) -> Float[Tensor, ""]:
        """CD-k, k = `steps`: the contrast with what k Gibbs steps make of the data, or, persistent, of the chains.

        Raises ValueError for fewer than one step.
        """
        if steps < 1:
            raise ValueError(f"contrastive divergence takes 1 step or more, got {steps}")
        fantasy = self.chains if self.config.num_chains else v
        for _ in range(steps):
            fantasy = self.gibbs(fantasy)
        if self.config.num_chains:
            self.chains.copy_(fantasy)
        return self.contrast(v, fantasy)

    def pseudo_log_likelihood(self, v: Float[Tensor, "B V"], flipped: Int[Tensor, " B"]) -> Float[Tensor, " B"]:
        """V ln p(v_i | all others), in nats, for one unit i = `flipped` of each row: ln p is ln sigmoid(F(v~i) - F(v)).

        In expectation over i this is the pseudo-log-likelihood of Besag 1975, a sum of conditionals that needs no Z.
        """
        other = v.scatter(1, flipped[:, None], 1 - v.gather(1, flipped[:, None]))
        return self.config.num_visible * F.logsigmoid(self(other) - self(v))

    def log_partition(self) -> Float[Tensor, ""]:
        """ln Z, exactly, by going through all states of the smaller layer. Raises ValueError if they are too many."""
        units = min(self.config.num_hidden, self.config.num_visible)
        if units > LARGEST:
            raise ValueError(f"2^{units} states are too many to sum over: the smaller layer may have {LARGEST} units")
        states = torch.arange(2**units, device=self.weight.device)[:, None] >> torch.arange(units) & 1
        states = states.to(self.weight.dtype)
        if units == self.config.num_visible:
            return (-self(states)).logsumexp(dim=0)
        given = F.linear(states, self.weight.T, self.visible_bias)
        return (states @ self.hidden_bias + F.softplus(given).sum(dim=1)).logsumexp(dim=0)

    def log_prob(self, v: Float[Tensor, "*B V"]) -> Float[Tensor, "*B"]:
        """ln p(v) = -F(v) - ln Z, in nats; for tiny machines, as `log_partition`."""
        return -self(v) - self.log_partition()


@dataclass(frozen=True, kw_only=True)
class DBNConfig:
    """The units of each layer from the pixels up, and classes to tell apart if any.

    Raises ValueError for fewer than two layers or a size below 1.
    """

    dims: tuple[int, ...]
    num_classes: int | None = None  # None: features alone

    def __post_init__(self):
        plain_integers(self)
        if len(self.dims) < 2 or min(self.dims) < 1 or (self.num_classes is not None and self.num_classes < 1):
            raise ValueError(f"a stack needs two layers or more, of 1 unit or more, and 1 class or more; got {self}")


class DBN(nn.Module):
    """A deep belief net: RBMs, each of which learns what the one below makes of the data, Hinton et al. 2006, sec. 4.

    The top two layers are an RBM, those below are read downwards when it dreams, and upwards for `features`. Differs
    from the paper in that labels come in by a linear head and backpropagation (Hinton & Salakhutdinov, Science 2006)
    and not in the top RBM, and that weights stay tied: no wake-sleep follows.
    """

    def __init__(self, config: DBNConfig):
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(RBM(RBMConfig(num_visible=v, num_hidden=h)) for v, h in pairwise(config.dims))
        self.head = None if config.num_classes is None else nn.Linear(config.dims[-1], config.num_classes)

    def forward(self, v: Float[Tensor, "*B V"]) -> Float[Tensor, "*B classes"]:
        """The logits of each class, or without a head the features."""
        return self.features(v) if self.head is None else self.head(self.features(v))

    def features(self, v: Float[Tensor, "*B V"]) -> Float[Tensor, "*B H"]:
        """The probabilities of the top layer's units."""
        return self.below(v, len(self.layers))

    def below(self, v: Float[Tensor, "*B V"], layer: int) -> Float[Tensor, "*B H"]:
        """What RBM number `layer` sees of the data: probabilities from layer to layer."""
        for rbm in self.layers[:layer]:
            v = rbm.features(v)
        return v

    def layer_loss(self, v: Float[Tensor, "B V"], layer: int, *, steps: int = 1) -> Float[Tensor, ""]:
        """CD of one RBM on units drawn by what the layers under it say, which get no gradient: greedy learning."""
        with torch.no_grad():
            v = self.below(v, layer)
            v = (torch.rand_like(v) < v).to(v.dtype)
        return self.layers[layer].loss(v, steps=steps)

    @torch.no_grad()
    def dream(self, v: Float[Tensor, "B V"], steps: int) -> Float[Tensor, "B V"]:
        """So many Gibbs steps of the top RBM from the data `v`, then down to the pixels' probabilities."""
        *lower, top = self.layers
        v = self.below(v, len(lower))
        for _ in range(steps):
            v = top.gibbs(v)
        for rbm in reversed(lower):
            v = rbm.visible(v)
        return v
