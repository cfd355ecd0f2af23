"""The Transformer: an encoder and a decoder of attention alone.

Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv 1706.03762. Options cover its kin in the Marian toolkit
(Junczys-Dowmunt et al., ACL 2018, arXiv 1804.00344) and pre-norm (Xiong et al. 2020, arXiv 2002.04745).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.layers.attention import MultiHeadAttention
from course_lib.layers.cache import DecoderCache
from course_lib.layers.positions import LearnedPositions, SinusoidalPositions
from course_lib.layers.transformer import DecoderBlock, EncoderBlock, FeedForward

POSITIONS = {
    "sinusoidal": SinusoidalPositions,
    "sinusoidal_halves": partial(SinusoidalPositions, halves=True),  # Marian: sines first, then cosines
    "learned": LearnedPositions,  # table 3, row (E)
}


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The base model of table 3 by default; a pair gives the encoder's value and the decoder's.

    Raises ValueError for a size below 1 and for a name that is none of the options.
    """

    vocab_size: int | Sequence[int]  # tokens; one number: source and target share a table, section 3.4
    dim: int = 512  # d_model
    depth: int | Sequence[int] = 6  # N, blocks
    num_heads: int | Sequence[int] = 8  # h
    mlp_dim: int | Sequence[int] = 2048  # d_ff
    max_length: int = 1024  # tokens
    activation: str = "relu"
    pre_norm: bool = False
    positions: str = "sinusoidal"  # "sinusoidal_halves": Marian's order; "learned"
    scale_embedding: bool = True  # times sqrt(d_model), section 3.4
    dropout: float | Sequence[float] = 0.1  # of sublayers; or also of attention weights and inner units
    head: str | None = "tied"  # logits from the target's table, "linear": from a matrix of their own; None: features

    def __post_init__(self):
        for name in ("vocab_size", "depth", "num_heads", "mlp_dim", "dropout"):  # a list where it comes from JSON
            value = getattr(self, name)
            object.__setattr__(self, name, tuple(value) if isinstance(value, Sequence) else value)
        for name in ("vocab_size", "dim", "depth", "num_heads", "mlp_dim", "max_length"):
            if min(_pair(getattr(self, name))) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")
        for name, options in (("positions", tuple(POSITIONS)), ("head", ("tied", "linear", None))):
            if getattr(self, name) not in options:
                raise ValueError(f"{name} must be one of {options}, got {getattr(self, name)!r}")


class Transformer(nn.Module):
    """p(y | x) = prod_i p(y_i | y_<i, x): figure 1.

    Embeddings start with standard deviation d_model^-0.5, so that sqrt(d_model) makes them 1. Differs from the paper
    in that attention projections and logits have a bias, and that pre-norm stacks end with a norm.
    Raises ValueError for sizes that do not fit together and, when called, for more than `max_length` tokens.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        (source_vocab, target_vocab), (depth, decoder_depth) = _pair(config.vocab_size), _pair(config.depth)
        shared = isinstance(config.vocab_size, int)
        self.scale = config.dim**0.5 if config.scale_embedding else 1.0
        self.dropout = nn.Dropout(_dropouts(config)[0])
        norm = partial(nn.LayerNorm, config.dim)

        self.source_embed = nn.Embedding(source_vocab, config.dim)
        self.target_embed = self.source_embed if shared else nn.Embedding(target_vocab, config.dim)
        for table in (self.source_embed, self.target_embed):
            nn.init.normal_(table.weight, std=config.dim**-0.5)
        self.source_pos, self.target_pos = (POSITIONS[config.positions](config.dim, config.max_length) for _ in "xy")
        self.encoder = nn.ModuleList(build_block(config, decoder=False) for _ in range(depth))
        self.decoder = nn.ModuleList(build_block(config, decoder=True) for _ in range(decoder_depth))
        self.encoder_norm, self.decoder_norm = (norm() if config.pre_norm else nn.Identity() for _ in "xy")
        self.head = None if config.head is None else nn.Linear(config.dim, target_vocab)
        if self.head is not None:
            nn.init.zeros_(self.head.bias)
        if config.head == "tied":
            self.head.weight = self.target_embed.weight

    def forward(
        self,
        source: Int[Tensor, "B T_k"],
        target: Int[Tensor, "B T_q"],
        *,
        source_valid: Bool[Tensor, "B T_k"] | None = None,
        target_valid: Bool[Tensor, "B T_q"] | None = None,
    ) -> Float[Tensor, "B T_q V"]:
        """Teacher forcing: the logits of y_1 ... y_n (features without a head), given `target` = <s>, y_1 ... y_{n-1}.

        `target_valid` may be left out where padding comes last: no earlier token sees it.
        """
        context = self.encode(source, source_valid)
        x = self.decode(target, context, source_valid=source_valid, target_valid=target_valid)
        return x if self.head is None else self.head(x)

    def encode(
        self, source: Int[Tensor, "B T_k"], source_valid: Bool[Tensor, "B T_k"] | None = None
    ) -> Float[Tensor, "B T_k D"]:
        """Each source token in the light of all others."""
        x = self.dropout(self.source_pos(self.source_embed(source) * self.scale))
        mask = _mask(source_valid)
        for block in self.encoder:
            x = block(x, mask=mask)
        return self.encoder_norm(x)

    def decode(
        self,
        target: Int[Tensor, "B T_q"],
        context: Float[Tensor, "B T_k D"],
        *,
        source_valid: Bool[Tensor, "B T_k"] | None = None,
        target_valid: Bool[Tensor, "B T_q"] | None = None,
    ) -> Float[Tensor, "B T_q D"]:
        """The features that the logits of each next token are made of."""
        x = self.dropout(self.target_pos(self.target_embed(target) * self.scale))
        context_mask, mask = _mask(source_valid), _mask(target_valid)
        for block in self.decoder:
            x = block(x, context, context_mask=context_mask, mask=mask)
        return self.decoder_norm(x)

    def align(
        self,
        source: Int[Tensor, "B T_k"],
        target: Int[Tensor, "B T_q"],
        *,
        source_valid: Bool[Tensor, "B T_k"] | None = None,
    ) -> Float[Tensor, "L B H T_q T_k"]:
        """The cross-attention behind `forward`, by layer and head: row i says where it looks while it writes y_i."""
        context, context_mask = self.encode(source, source_valid), _mask(source_valid)
        x = self.dropout(self.target_pos(self.target_embed(target) * self.scale))
        maps = []
        for block in self.decoder:
            query = block.residual(x, block.norm1, partial(block.attn, causal=True))
            query = block.norm2(query) if block.pre_norm else query
            maps.append(block.cross_attn.weights(query, context, mask=context_mask))
            x = block(x, context, context_mask=context_mask)
        return torch.stack(maps)

    @torch.no_grad()
    def given(
        self, source: Int[Tensor, "B T_k"], source_valid: Bool[Tensor, "B T_k"] | None = None
    ) -> "TargetLanguageModel":
        """p(y | x) for these sources, to write y token by token; each source is encoded once."""
        return TargetLanguageModel(self, self.encode(source, source_valid), _mask(source_valid))


class TargetLanguageModel:
    """A Transformer with its source fixed, as `course_lib.generation` asks for it. Raises ValueError without a head."""

    def __init__(
        self, model: Transformer, context: Float[Tensor, "B T_k D"], context_mask: Bool[Tensor, "B 1 1 T_k"] | None
    ):
        if model.head is None:
            raise ValueError("this model has head=None: it makes features, no logits to write with")
        self.model, self.context, self.context_mask = model, context, context_mask

    def new_cache(self, max_length: int) -> DecoderCache:
        """Room for `max_length` tokens, and what each layer remembers of the source."""
        memories = [block.cross_attn.remember(self.context) for block in self.model.decoder]
        return DecoderCache(len(memories), max_length, memories=memories, memory_mask=self.context_mask)

    def next_logits(
        self, tokens: Int[Tensor, "B T"], cache: DecoderCache, *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B V"]:
        """Appends `tokens` (`valid`: the real ones, padding at the left) and returns the logits of the next one."""
        model, new = self.model, cache.admit(tokens, valid)
        x = model.target_pos(model.target_embed(tokens) * model.scale, start=new.start, positions=new.positions)
        for block, memory, layer in zip(model.decoder, cache.memories, cache.layers, strict=True):
            x = block(x, memory=memory, context_mask=cache.memory_mask, mask=new.mask, cache=layer)
        return model.head(model.decoder_norm(x[:, -1]))


def build_block(config: TransformerConfig, *, decoder: bool) -> EncoderBlock | DecoderBlock:
    """One block of either stack."""
    num_heads, mlp_dim = _pair(config.num_heads)[decoder], _pair(config.mlp_dim)[decoder]
    dropout, of_weights, of_inner = _dropouts(config)
    attend = partial(MultiHeadAttention, config.dim, num_heads, dropout=of_weights)
    ffn = FeedForward(config.dim, mlp_dim, activation=config.activation, dropout=of_inner)
    parts = (attend(), attend(), ffn) if decoder else (attend(), ffn)
    kind = DecoderBlock if decoder else EncoderBlock
    return kind(*parts, partial(nn.LayerNorm, config.dim), pre_norm=config.pre_norm, dropout=dropout)


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)


def _dropouts(config: TransformerConfig) -> tuple[float, float, float]:
    return config.dropout if isinstance(config.dropout, tuple) else (config.dropout, 0.0, 0.0)


def _mask(valid: Tensor | None) -> Tensor | None:
    return None if valid is None else valid[:, None, None, :]


def transformer_base(**overrides) -> Transformer:
    """The base model of table 3, at the 37,000 tokens of English-German: 63.1 M parameters here, 65 M in the table."""
    return Transformer(TransformerConfig(**{"vocab_size": 37_000} | overrides))


def transformer_big(**overrides) -> Transformer:
    """The big model of table 3, at 37,000 tokens: 214 M parameters here, 213 M in the table."""
    sizes = {"dim": 1024, "num_heads": 16, "mlp_dim": 4096, "dropout": 0.3}
    return Transformer(TransformerConfig(**{"vocab_size": 37_000} | sizes | overrides))
