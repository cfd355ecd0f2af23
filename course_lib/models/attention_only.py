"""Attention alone: the smallest Transformer in which one head can build on another.

Elhage et al., "A mathematical framework for Transformer circuits", 2021, transformer-circuits.pub (attention-only
models). Olsson et al., "In-context learning and induction heads", 2022, arXiv 2209.11895.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.layers.transformer import LearnedPositions, MultiHeadAttention, TokenEmbedding, check_sizes


@dataclass(frozen=True, kw_only=True)
class AttentionOnlyConfig:
    """Two layers of one head each by default. Raises ValueError for a size below 1."""

    vocab_size: int = 64
    context_length: int = 48  # tokens
    dim: int = 64
    depth: int = 2  # layers of attention
    num_heads: int = 1  # in a layer
    head_dim: int | None = None  # None: dim / num_heads
    position_std: float = 0.5  # of the first positions: with GPT's 0.02 a head needs long to find its neighbour

    def __post_init__(self):
        check_sizes(self, "vocab_size", "context_length", "dim", "depth", "num_heads")


class AttentionOnly(nn.Module):
    """x_l = x_{l-1} + Attention_l(norm(x_{l-1})): causal, without a feed-forward network and without biases.

    Elhage et al. 2021. Differs in that positions are added to the tokens, and in LayerNorms, as GPT has them.
    Raises ValueError for sizes that do not fit together and, when called, for more than `context_length` tokens.
    """

    def __init__(self, config: AttentionOnlyConfig):
        super().__init__()
        self.config = config
        self.token_embed = TokenEmbedding(config.vocab_size, config.dim)
        self.pos_embed = LearnedPositions(config.dim, config.context_length, std=config.position_std)
        self.norms = nn.ModuleList(nn.LayerNorm(config.dim) for _ in range(config.depth))
        self.layers = nn.ModuleList(
            MultiHeadAttention(config.dim, config.num_heads, head_dim=config.head_dim, bias=False)
            for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(config.dim)
        self.head = nn.Linear(config.dim, config.vocab_size, bias=False)

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """The logits of each next token."""
        return self.head(self.features(tokens))

    def features(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """What the layers make of each token."""
        return self.encode(self.embed(tokens))

    def embed(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """The token's vector and that of its position, added."""
        return self.pos_embed(self.token_embed(tokens))

    def encode(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Any vectors through all layers."""
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(norm(x), causal=True)
        return self.norm(x)
