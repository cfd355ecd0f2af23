"""Marian, the translators of the opus-mt project: the Transformer as its toolkit builds it.

Junczys-Dowmunt et al., "Marian: fast neural machine translation in C++", ACL 2018, arXiv 1804.00344.
"""

from dataclasses import dataclass
from functools import partial

from torch import nn

from course_lib.layers.transformer import (
    DecoderBlock,
    FeedForward,
    MultiHeadAttention,
    SinusoidalPositions,
    TransformerBlock,
    check_sizes,
)
from course_lib.models.transformer import HEADS, Transformer


@dataclass(frozen=True, kw_only=True)
class MarianConfig:
    """opus-mt by default; a pair gives the encoder's value and the decoder's.

    Raises ValueError as `TransformerConfig`.
    """

    vocab_size: int | tuple[int, int]  # tokens; one number: source and target share a table
    dim: int = 512
    depth: tuple[int, int] = (6, 6)  # blocks
    num_heads: tuple[int, int] = (8, 8)
    mlp_dim: tuple[int, int] = (2048, 2048)
    context_length: int = 512  # tokens
    activation: str = "silu"
    scale_embedding: bool = True  # times sqrt(dim)
    dropout: float = 0.1  # of embeddings and sublayers
    attention_dropout: float = 0.0  # of weights
    inner_dropout: float = 0.0  # of the feed-forward networks' units
    head: str | None = "tied"  # as in TransformerConfig

    def __post_init__(self):
        check_sizes(self, "vocab_size", "dim", "depth", "num_heads", "mlp_dim", "context_length")
        if self.head not in HEADS:
            raise ValueError(f"head must be one of {HEADS}, got {self.head!r}")


class Marian(Transformer):
    """The post-norm Transformer with all sines before all cosines, and sizes of their own on each side."""

    def __init__(self, config: MarianConfig):
        nn.Module.__init__(self)
        self.config, self.scale = config, config.dim**0.5 if config.scale_embedding else 1.0
        self.add_embeddings(partial(SinusoidalPositions, halves=True))
        settings = {"norm": partial(nn.LayerNorm, config.dim), "pre_norm": False, "dropout": config.dropout}

        def attend(side: int) -> MultiHeadAttention:
            return MultiHeadAttention(config.dim, config.num_heads[side], dropout=config.attention_dropout)

        def ffn(side: int) -> FeedForward:
            inner = {"activation": config.activation, "dropout": config.inner_dropout}
            return FeedForward(config.dim, config.mlp_dim[side], **inner)

        self.encoder = nn.ModuleList(TransformerBlock(attend(0), ffn(0), **settings) for _ in range(config.depth[0]))
        self.decoder = nn.ModuleList(
            DecoderBlock(attend(1), attend(1), ffn(1), **settings) for _ in range(config.depth[1])
        )
        self.encoder_norm, self.decoder_norm = nn.Identity(), nn.Identity()
        self.add_head()
