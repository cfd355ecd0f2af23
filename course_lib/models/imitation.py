"""To act as somebody did: cloning their actions, and GAIL, which goes where they went.

Pomerleau, "ALVINN: an autonomous land vehicle in a neural network", NIPS 1988 (behaviour cloning). Ho & Ermon,
"Generative adversarial imitation learning", NIPS 2016, arXiv 1606.03476.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.layers.transformer import check_sizes

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}


@dataclass(frozen=True, kw_only=True)
class ImitationConfig:
    """Two hidden layers of 100 tanh units, Ho & Ermon 2016, section 6.

    Raises ValueError for a size below 1 or an unknown `activation`.
    """

    state_dim: int  # S
    action_dim: int  # A, kinds of action
    hidden_dim: int = 100
    depth: int = 2  # hidden layers
    activation: str = "tanh"  # or "relu"

    def __post_init__(self):
        check_sizes(self, "state_dim", "action_dim", "hidden_dim", "depth")
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {self.activation!r}")


class Policy(nn.Module):
    """pi(a | s) = softmax(MLP(s)): what behaviour cloning fits to (s, a) by maximum likelihood, and GAIL improves."""

    def __init__(self, config: ImitationConfig):
        super().__init__()
        self.config = config
        self.backbone = hidden_layers(config, config.state_dim)
        self.head = nn.Linear(config.hidden_dim, config.action_dim)

    def forward(self, states: Float[Tensor, "*B S"]) -> Float[Tensor, "*B A"]:
        """The logits of the action in each state."""
        return self.head(self.features(states))

    def features(self, states: Float[Tensor, "*B S"]) -> Float[Tensor, "*B D"]:
        """What the hidden layers make of each state."""
        return self.backbone(states)


class GAIL(nn.Module):
    """A policy and a discriminator D(s, a), the probability that the pair is the policy's: Ho & Ermon 2016, section 5.

    They seek a saddle point of E_pi[ln D(s, a)] + E_expert[ln(1 - D(s, a))] - lambda H(pi), eq. (16), by turns:
    algorithm 1. Differs in that it has a value function, for a policy that is improved by PPO (Schulman et al. 2017,
    arXiv 1707.06347) in place of TRPO.
    """

    def __init__(self, config: ImitationConfig):
        super().__init__()
        self.config = config
        self.policy = Policy(config)
        self.value = nn.Sequential(hidden_layers(config, config.state_dim), nn.Linear(config.hidden_dim, 1))
        inputs = config.state_dim + config.action_dim
        self.discriminator = nn.Sequential(hidden_layers(config, inputs), nn.Linear(config.hidden_dim, 1))

    def forward(self, states: Float[Tensor, "*B S"]) -> Float[Tensor, "*B A"]:
        """The logits of the policy's action in each state."""
        return self.policy(states)

    def features(self, states: Float[Tensor, "*B S"]) -> Float[Tensor, "*B D"]:
        """What the policy's hidden layers make of each state."""
        return self.policy.features(states)

    def values(self, states: Float[Tensor, "*B S"]) -> Float[Tensor, "*B"]:
        """V(s): the rewards that the policy may expect from each state on."""
        return self.value(states)[..., 0]

    def judge(self, states: Float[Tensor, "*B S"], actions: Float[Tensor, "*B A"]) -> Float[Tensor, "*B"]:
        """The logit of D(s, a); an action is a one among zeros."""
        return self.discriminator(torch.cat([states, actions], dim=-1))[..., 0]

    @torch.no_grad()
    def rewards(self, states: Float[Tensor, "*B S"], actions: Float[Tensor, "*B A"]) -> Float[Tensor, "*B"]:
        """-ln D(s, a): high where the expert would be, algorithm 1, line 5."""
        return -F.logsigmoid(self.judge(states, actions))

    def discriminator_loss(
        self,
        states: Float[Tensor, "B S"],
        actions: Float[Tensor, "B A"],
        expert_states: Float[Tensor, "E S"],
        expert_actions: Float[Tensor, "E A"],
    ) -> Float[Tensor, ""]:
        """-E_pi[ln D] - E_expert[ln(1 - D)], eq. (17); 2 ln 2 where it cannot tell them apart."""
        ours, theirs = self.judge(states, actions), self.judge(expert_states, expert_actions)
        return -F.logsigmoid(ours).mean() - F.logsigmoid(-theirs).mean()


def hidden_layers(config: ImitationConfig, inputs: int) -> nn.Sequential:
    """The hidden layers of a network."""
    widths = [inputs] + [config.hidden_dim] * config.depth
    pairs = zip(widths, widths[1:], strict=False)
    activation = ACTIVATIONS[config.activation]
    return nn.Sequential(*(part for pair in pairs for part in (nn.Linear(*pair), activation())))
