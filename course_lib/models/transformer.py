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
from course_lib.layers.transformer import DecoderBlock, EncoderBlock, FeedForward, LearnedPositions, SinusoidalPositions

Source, Target = Int[Tensor, "B T_k"], Int[Tensor, "B T_q"]
Context, Features = Float[Tensor, "B T_k D"], Float[Tensor, "B T_q D"]
SourceValid, TargetValid = Bool[Tensor, "B T_k"] | None, Bool[Tensor, "B T_q"] | None  # True at real tokens
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
    dropout: float | Sequence[float] = 0.1  # of sublayers; or of sublayers, attention weights and inner units
    head: str | None = "tied"  # logits from the target's table, "linear": from a matrix of their own; None: features

    def __post_init__(self):
        dropout = self.dropout if isinstance(self.dropout, Sequence) else (self.dropout, 0.0, 0.0)
        pairs = {name: _pair(getattr(self, name)) for name in ("depth", "num_heads", "mlp_dim")}
        vocab = self.vocab_size if isinstance(self.vocab_size, int) else tuple(self.vocab_size)
        for name, value in (pairs | {"vocab_size": vocab, "dropout": tuple(dropout)}).items():
            object.__setattr__(self, name, value)  # frozen; what comes from JSON are lists
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
        self.scale = config.dim**0.5 if config.scale_embedding else 1.0
        sizes = [config.vocab_size] if isinstance(config.vocab_size, int) else config.vocab_size
        tables = [nn.Embedding(size, config.dim) for size in sizes]
        for table in tables:
            nn.init.normal_(table.weight, std=config.dim**-0.5)
        self.source_embed, self.target_embed = tables[0], tables[-1]  # one and the same if they share
        self.source_pos, self.target_pos = (POSITIONS[config.positions](config.dim, config.max_length) for _ in "xy")
        self.dropout = nn.Dropout(config.dropout[0])
        self.encoder = nn.ModuleList(build_block(config, decoder=False) for _ in range(config.depth[0]))
        self.decoder = nn.ModuleList(build_block(config, decoder=True) for _ in range(config.depth[1]))
        final = nn.LayerNorm if config.pre_norm else nn.Identity
        self.encoder_norm, self.decoder_norm = final(config.dim), final(config.dim)
        self.head = None if config.head is None else nn.Linear(config.dim, sizes[-1])
        if self.head is not None:
            nn.init.zeros_(self.head.bias)
        if config.head == "tied":
            self.head.weight = self.target_embed.weight

    def forward(
        self, source: Source, target: Target, *, source_valid: SourceValid = None, target_valid: TargetValid = None
    ) -> Float[Tensor, "B T_q V"]:
        """Teacher forcing: the logits of y_1 ... y_n (features without a head), given `target` = <s>, y_1 ... y_{n-1}.

        `target_valid` may be left out where padding comes last: no earlier token sees it.
        """
        x = self.decode(target, self.encode(source, source_valid), source_valid, target_valid)
        return x if self.head is None else self.head(x)

    def encode(self, source: Source, valid: SourceValid = None) -> Context:
        """Each source token in the light of all others."""
        x = self.enter(self.source_embed(source), self.source_pos)
        for block in self.encoder:
            x = block(x, mask=_mask(valid))
        return self.encoder_norm(x)

    def decode(
        self, target: Target, context: Context, source_valid: SourceValid = None, valid: TargetValid = None
    ) -> Features:
        """The features that the logits of each next token are made of."""
        x = self.enter(self.target_embed(target), self.target_pos)
        for block in self.decoder:
            x = block(x, context, context_mask=_mask(source_valid), mask=_mask(valid))
        return self.decoder_norm(x)

    def enter(self, rows: Float[Tensor, "B T D"], pos: nn.Module, **place) -> Float[Tensor, "B T D"]:
        """sqrt(d_model) E[token] + PE(pos), sections 3.4 and 3.5, with dropout: what the first block is given."""
        return self.dropout(pos(rows * self.scale, **place))

    def align(
        self, source: Source, target: Target, *, source_valid: SourceValid = None
    ) -> Float[Tensor, "L B H T_q T_k"]:
        """The cross-attention behind `forward`, by layer and head: row i says where it looks while it writes y_i."""
        context, context_mask = self.encode(source, source_valid), _mask(source_valid)
        x = self.enter(self.target_embed(target), self.target_pos)
        maps = []
        for block in self.decoder:
            query = block.residual(x, block.norm1, partial(block.attn, causal=True))
            query = block.norm2(query) if block.pre_norm else query
            maps.append(block.cross_attn.weights(query, context, mask=context_mask))
            x = block(x, context, context_mask=context_mask)
        return torch.stack(maps)

    def given(self, source: Source, source_valid: SourceValid = None) -> "TargetLanguageModel":
        """p(y | x) for these sources, to write y token by token."""
        return TargetLanguageModel(self, source, source_valid)


class TargetLanguageModel:
    """A Transformer with its source fixed, for `course_lib.generation`. Raises ValueError if it has no head."""

    @torch.no_grad()
    def __init__(self, model: Transformer, source: Source, source_valid: SourceValid = None):
        if model.head is None:
            raise ValueError("a model with head=None makes features, no logits to write with")
        self.model, self.context, self.context_mask = model, model.encode(source, source_valid), _mask(source_valid)

    def new_cache(self, max_length: int) -> DecoderCache:
        """Room for `max_length` tokens, and each layer's memory of the source."""
        memories = [block.cross_attn.remember(self.context) for block in self.model.decoder]
        return DecoderCache(len(memories), max_length, memories=memories, memory_mask=self.context_mask)

    def next_logits(self, tokens: Target, cache: DecoderCache, *, valid: TargetValid = None) -> Float[Tensor, "B V"]:
        """Appends `tokens` (`valid`: the real ones, padding at the left) and returns the logits of the next one."""
        model, new = self.model, cache.admit(tokens, valid)
        x = model.enter(model.target_embed(tokens), model.target_pos, start=new.start, positions=new.positions)
        for block, memory, layer in zip(model.decoder, cache.memories, cache.layers, strict=True):
            x = block(x, memory=memory, context_mask=cache.memory_mask, mask=new.mask, cache=layer)
        return model.head(model.decoder_norm(x[:, -1]))


def build_block(config: TransformerConfig, *, decoder: bool) -> EncoderBlock | DecoderBlock:
    """One block of either stack."""
    dropout, of_weights, of_inner = config.dropout
    attend = partial(MultiHeadAttention, config.dim, config.num_heads[decoder], dropout=of_weights)
    ffn = FeedForward(config.dim, config.mlp_dim[decoder], activation=config.activation, dropout=of_inner)
    settings = {"norm": partial(nn.LayerNorm, config.dim), "pre_norm": config.pre_norm, "dropout": dropout}
    return DecoderBlock(attend(), attend(), ffn, **settings) if decoder else EncoderBlock(attend(), ffn, **settings)


def _pair(value: int | Sequence[int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


def _mask(valid: Tensor | None) -> Tensor | None:
    return None if valid is None else valid[:, None, None, :]


def transformer_base(**overrides) -> Transformer:
    """The base model of table 3, at the 37,000 tokens of English-German: 63.1 M parameters here, 65 M in the table."""
    return Transformer(TransformerConfig(**{"vocab_size": 37_000} | overrides))


def transformer_big(**overrides) -> Transformer:
    """The big model of table 3, at 37,000 tokens: 214 M parameters here, 213 M in the table."""
    sizes = {"dim": 1024, "num_heads": 16, "mlp_dim": 4096, "dropout": 0.3}
    return Transformer(TransformerConfig(**{"vocab_size": 37_000} | sizes | overrides))
