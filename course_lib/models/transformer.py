"""The Transformer: an encoder and a decoder of attention alone.

Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv 1706.03762; pre-norm as in Xiong et al. 2020,
arXiv 2002.04745.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import repeat

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.functional.attention import key_mask
from course_lib.layers.cache import ALONE, DecoderCache, Placed, TargetLanguageModel
from course_lib.layers.transformer import (
    DecoderBlock,
    FeedForward,
    LearnedPositions,
    MultiHeadAttention,
    SinusoidalPositions,
    TokenEmbedding,
    TransformerBlock,
    check_sizes,
)

POSITIONS = {"sinusoidal": SinusoidalPositions, "learned": LearnedPositions}
HEADS = ("tied", "linear", None)


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The base model of table 3 by default. Raises ValueError for a size below 1 and for a name that is no option."""

    vocab_size: int | tuple[int, int]  # tokens; one number: source and target share a table, section 3.4
    dim: int = 512  # d_model
    depth: int = 6  # N, blocks of the encoder, and of the decoder
    num_heads: int = 8  # h
    mlp_dim: int = 2048  # d_ff
    context_length: int = 1024  # tokens
    activation: str = "relu"
    pre_norm: bool = False
    positions: str = "sinusoidal"  # or "learned": table 3, row (E)
    dropout: float = 0.1  # of embeddings and sublayers, section 5.4
    head: str | None = "tied"  # logits from the target's table, "linear": from a matrix of their own; None: features

    def __post_init__(self):
        check_sizes(self, "vocab_size", "dim", "depth", "num_heads", "mlp_dim", "context_length")
        for name, options in (("positions", tuple(POSITIONS)), ("head", HEADS)):
            if getattr(self, name) not in options:
                raise ValueError(f"{name} must be one of {options}, got {getattr(self, name)!r}")


class Transformer(nn.Module):
    """p(y | x) = prod_i p(y_i | y_<i, x): figure 1.

    Embeddings start with standard deviation d_model^-0.5, so that sqrt(d_model) makes them 1. Differs from the paper
    in that attention projections and logits have a bias, and that pre-norm stacks end with a norm.
    Raises ValueError for sizes that do not fit together and, when called, for more than `context_length` tokens.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config, self.scale = config, config.dim**0.5
        attend = partial(MultiHeadAttention, config.dim, config.num_heads)
        ffn = partial(FeedForward, config.dim, config.mlp_dim, activation=config.activation)
        norm = partial(nn.LayerNorm, config.dim)
        settings = {"pre_norm": config.pre_norm, "dropout": config.dropout}
        self.add_embeddings(POSITIONS[config.positions])
        self.encoder = nn.ModuleList(TransformerBlock(attend(), ffn(), norm, **settings) for _ in range(config.depth))
        self.decoder = nn.ModuleList(
            DecoderBlock(attend(), attend(), ffn(), norm, **settings) for _ in range(config.depth)
        )
        self.encoder_norm, self.decoder_norm = (norm() if config.pre_norm else nn.Identity() for _ in "xy")
        self.add_head()

    def forward(
        self,
        source: Int[Tensor, "B T_k"],
        target: Int[Tensor, "B T_q"],
        *,
        source_valid: Bool[Tensor, "B T_k"] | None = None,
        target_valid: Bool[Tensor, "B T_q"] | None = None,
    ) -> Float[Tensor, "B T_q V"]:
        """Teacher forcing: the logits of y_1 ... y_n (features without a head), given `target` = <s>, y_1 ... y_{n-1}.

        `source_valid` and `target_valid` are True at real tokens; the latter may be left out where padding comes last:
        no earlier token sees it.
        """
        return self.logits(self.features(source, target, source_valid=source_valid, target_valid=target_valid))

    def features(
        self,
        source: Int[Tensor, "B T_k"],
        target: Int[Tensor, "B T_q"],
        *,
        source_valid: Bool[Tensor, "B T_k"] | None = None,
        target_valid: Bool[Tensor, "B T_q"] | None = None,
    ) -> Float[Tensor, "B T_q D"]:
        """What the logits of each next token are made of; arguments as in `forward`."""
        context = self.encode(self.embed(source), source_valid)
        return self.decode(self.embed_target(target), context, source_valid=source_valid, mask=key_mask(target_valid))

    def embed(self, source: Int[Tensor, "B T_k"]) -> Float[Tensor, "B T_k D"]:
        """sqrt(d_model) E[token] + PE(pos), sections 3.4 and 3.5, with dropout: what the first block is given."""
        return self.dropout(self.source_pos(self.source_embed(source) * self.scale))

    def embed_target(self, target: Int[Tensor, "B T_q"], placed: Placed = ALONE) -> Float[Tensor, "B T_q D"]:
        """The same for the decoder, whose tokens may be `placed` behind others."""
        x = self.target_embed(target) * self.scale
        return self.dropout(self.target_pos(x, start=placed.start, positions=placed.positions))

    def encode(
        self, x: Float[Tensor, "B T_k D"], valid: Bool[Tensor, "B T_k"] | None = None
    ) -> Float[Tensor, "B T_k D"]:
        """Each embedded source token in the light of all others."""
        for block in self.encoder:
            x = block(x, mask=key_mask(valid))
        return self.encoder_norm(x)

    def decode(
        self,
        x: Float[Tensor, "B T_q D"],
        context: Float[Tensor, "B T_k D"] | None = None,
        *,
        source_valid: Bool[Tensor, "B T_k"] | None = None,
        mask: Bool[Tensor, "B 1 1 T"] | None = None,
        cache: DecoderCache | None = None,
    ) -> Float[Tensor, "B T_q D"]:
        """Embedded target tokens, each in the light of those before it and of the source, or of a `cache` of both."""
        for block, layer in zip(self.decoder, repeat(None) if cache is None else cache.layers, strict=False):
            x = block(x, context, context_mask=key_mask(source_valid), mask=mask, cache=layer)
        return self.decoder_norm(x)

    def logits(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """The head; without one the features themselves."""
        return x if self.head is None else self.head(x)

    def given(
        self, source: Int[Tensor, "B T_k"], source_valid: Bool[Tensor, "B T_k"] | None = None
    ) -> TargetLanguageModel:
        """p(y | x) for these sources, to write y token by token."""
        return TargetLanguageModel(self, source, source_valid)

    def add_embeddings(self, positions: Callable[[int, int], nn.Module]) -> None:
        """Tables of words and positions, one for source and target where `vocab_size` is one number."""
        config, sizes = self.config, self.config.vocab_size
        is_shared = isinstance(sizes, int)
        tables = [TokenEmbedding(size, config.dim) for size in (2 * [sizes] if is_shared else sizes)]
        for table in tables:
            nn.init.normal_(table.weight, std=config.dim**-0.5)
        self.source_embed, self.target_embed = tables
        if is_shared:
            self.target_embed.weight = self.source_embed.weight
        self.source_pos, self.target_pos = (positions(config.dim, config.context_length) for _ in "xy")
        self.dropout = nn.Dropout(config.dropout)

    def add_head(self) -> None:
        """The layer that makes the logits."""
        table = self.target_embed.weight
        self.head = None if self.config.head is None else nn.Linear(*reversed(table.shape))
        if self.head is not None:
            nn.init.zeros_(self.head.bias)
        if self.config.head == "tied":
            self.head.weight = table


def transformer_base(**overrides) -> Transformer:
    """The base model of table 3, at the 37,000 tokens of English-German: 63.1 M parameters here, 65 M in the table."""
    return Transformer(TransformerConfig(**{"vocab_size": 37_000} | overrides))


def transformer_big(**overrides) -> Transformer:
    """The big model of table 3, at 37,000 tokens: 214 M parameters here, 213 M in the table."""
    sizes = {"dim": 1024, "num_heads": 16, "mlp_dim": 4096, "dropout": 0.3}
    return Transformer(TransformerConfig(**{"vocab_size": 37_000} | sizes | overrides))
