"""The Decision Transformer: to act is to continue a sequence that begins with the return one asks for.

Chen, Lu, Rajeswaran, Lee, Grover, Laskin, Abbeel, Srinivas & Mordatch, "Decision Transformer: reinforcement learning
via sequence modeling", NeurIPS 2021, arXiv 2106.01345.
"""

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.functional.attention import key_mask
from course_lib.layers.transformer import (
    FeedForward,
    LearnedPositions,
    MultiHeadAttention,
    TransformerBlock,
    check_sizes,
    normal_weights,
)


@dataclass(frozen=True, kw_only=True)
class DecisionTransformerConfig:
    """The one for OpenAI Gym by default, appendix A. Raises ValueError for a size below 1."""

    state_dim: int = 17  # S
    action_dim: int = 4  # A: numbers of an action, or kinds of it, given as a one among zeros
    tanh: bool = True  # actions are numbers from -1 to 1; False: what comes out are logits of the kinds
    context_steps: int = 20  # K, steps that it sees when it acts: 3 K tokens
    max_steps: int = 4096  # of an episode
    dim: int = 128
    depth: int = 3  # blocks
    num_heads: int = 1
    mlp_dim: int | None = None  # None: 4 dim
    activation: str = "relu"
    norm_eps: float = 1e-5  # of the blocks' LayerNorms
    dropout: float = 0.1

    def __post_init__(self):
        sizes = ("state_dim", "action_dim", "context_steps", "max_steps", "dim", "depth", "num_heads", "mlp_dim")
        check_sizes(self, *sizes)


class DecisionTransformer(nn.Module):
    """Three tokens a step, R_t, s_t, a_t, through GPT's blocks; at the token of s_t it says a_t: figure 1, algorithm 1.

    R_t = sum of r_t' over t' >= t is the return-to-go, section 3. Positions are the episode's steps, one vector for all
    three tokens of a step. Differs from the released code for Gym in that no state or return is predicted: the paper
    found no use in it (section 3).
    Raises ValueError for sizes that do not fit together and, when called, for a step of `max_steps` or more.
    """

    def __init__(self, config: DecisionTransformerConfig):
        super().__init__()
        self.config = config
        norm = partial(nn.LayerNorm, config.dim, eps=config.norm_eps)
        self.return_embed = nn.Linear(1, config.dim)  # embed_R
        self.state_embed = nn.Linear(config.state_dim, config.dim)  # embed_s
        self.action_embed = nn.Linear(config.action_dim, config.dim)  # embed_a
        self.time_embed = LearnedPositions(config.dim, config.max_steps)  # embed_t
        self.embed_norm = nn.LayerNorm(config.dim)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                MultiHeadAttention(config.dim, config.num_heads, dropout=config.dropout),
                FeedForward(config.dim, config.mlp_dim or 4 * config.dim, activation=config.activation),
                norm,
                dropout=config.dropout,
            )
            for _ in range(config.depth)
        )
        self.norm = norm()
        self.head = nn.Linear(config.dim, config.action_dim)  # pred_a
        normal_weights(self)

    def forward(
        self,
        to_go: Float[Tensor, "B T"],
        states: Float[Tensor, "B T S"],
        actions: Float[Tensor, "B T A"],
        times: Int[Tensor, "B T"] | None = None,
        *,
        valid: Bool[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T A"]:
        """The action of each step, given its state, the return that is to go, and the steps before.

        `times` counts from the start of the episode: 0, 1, ... if not given. `valid` is False at padding, which may be
        left unsaid where it comes last. The last action is not seen: zeros may stand for it.
        """
        said = self.head(self.features(to_go, states, actions, times, valid=valid)[:, 1::3])  # at the states' tokens
        return said.tanh() if self.config.tanh else said

    def features(
        self,
        to_go: Float[Tensor, "B T"],
        states: Float[Tensor, "B T S"],
        actions: Float[Tensor, "B T A"],
        times: Int[Tensor, "B T"] | None = None,
        *,
        valid: Bool[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B 3*T D"]:
        """What the blocks make of each token."""
        mask = None if valid is None else key_mask(valid.repeat_interleave(3, dim=1))
        return self.encode(self.embed(to_go, states, actions, times), mask=mask)

    def embed(
        self,
        to_go: Float[Tensor, "B T"],
        states: Float[Tensor, "B T S"],
        actions: Float[Tensor, "B T A"],
        times: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B 3*T D"]:
        """R_1, s_1, a_1, R_2, s_2, a_2, ...: each a linear map of its own and its step's vector, then LayerNorm."""
        kinds = self.return_embed(to_go[..., None]), self.state_embed(states), self.action_embed(actions)
        placed = [self.time_embed(kind, positions=times) for kind in kinds]
        return self.dropout(self.embed_norm(torch.stack(placed, dim=2).flatten(1, 2)))

    def encode(
        self, x: Float[Tensor, "B N D"], *, mask: Bool[Tensor, "B 1 1 N"] | None = None
    ) -> Float[Tensor, "B N D"]:
        """Any tokens through all blocks, each seeing those before it."""
        for block in self.blocks:
            x = block(x, mask=mask, causal=True)
        return self.norm(x)

    @torch.no_grad()
    def act(
        self,
        asked: Float[Tensor, " B"],
        states: Float[Tensor, "B T S"],
        actions: Float[Tensor, "B T1 A"],
        rewards: Float[Tensor, "B T1"],
    ) -> Float[Tensor, "B A"]:
        """The next action, from T states and the T - 1 actions and rewards before: algorithm 1, "evaluation loop".

        `asked` is the return wanted of the whole episode; what was got is taken off, step by step. It sees the last
        `context_steps` steps. Raises ValueError unless there is one state more than actions and rewards.
        """
        count, taken = states.shape[1], (actions.shape[1], rewards.shape[1])
        if taken != (count - 1, count - 1):
            raise ValueError(f"{count} states need {count - 1} actions and rewards before them, got {taken}")
        to_go = asked[:, None] - F.pad(rewards.cumsum(dim=1), (1, 0))
        times = torch.arange(count, device=states.device).expand(len(states), -1)
        seen = (to_go, states, F.pad(actions, (0, 0, 0, 1)), times)
        return self(*(each[:, -self.config.context_steps :] for each in seen))[:, -1]


def decision_transformer_gym(state_dim: int, action_dim: int, **overrides) -> DecisionTransformer:
    """The model for OpenAI Gym, section 4.2 and appendix A."""
    sizes = {"state_dim": state_dim, "action_dim": action_dim}
    return DecisionTransformer(DecisionTransformerConfig(**sizes | overrides))
