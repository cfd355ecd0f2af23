"""T5: every task is text in, text out, for one encoder-decoder with relative positions.

Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text Transformer", JMLR 2020,
arXiv 1910.10683. Zhang & Sennrich, "Root mean square layer normalization", NeurIPS 2019, arXiv 1910.07467.
T5 1.1 is the authors' later release, with gated GELUs of Shazeer 2020, arXiv 2002.05202, and a head of its own.
"""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.layers.attention import MultiHeadAttention
from course_lib.layers.cache import DecoderCache
from course_lib.layers.transformer import DecoderBlock, EncoderBlock, FeedForward, RelativePositionBias

HEADS = ("tied", "tied_unscaled", "linear", None)


@dataclass(frozen=True, kw_only=True)
class T5Config:
    """T5-small by default; a pair gives the encoder's value and the decoder's.

    Raises ValueError for a `head` that is none of the options.
    """

    vocab_size: int = 32_128  # 32,000 SentencePiece tokens, 100 sentinels, and padding up to a multiple of 128
    dim: int = 512  # d_model
    depth: int | tuple[int, int] = 6  # blocks
    num_heads: int = 8
    head_dim: int = 64  # d_kv
    mlp_dim: int = 2048  # d_ff
    activation: str = "relu"  # or "gated_" before its name: "gated_gelu_tanh" in T5 1.1
    num_buckets: int = 32  # of relative positions
    max_distance: int = 128  # tokens from which on all distances share a bucket
    norm_eps: float = 1e-6  # of RMSNorm
    dropout: float = 0.1  # of embeddings, attention weights, inner units, sublayers and both stacks' output
    head: str | None = (
        "tied"  # x E^T / sqrt(d_model); "linear": a matrix of its own (1.1); "tied_unscaled"; None: features
    )

    def __post_init__(self):
        if self.head not in HEADS:
            raise ValueError(f"head must be one of {HEADS}, got {self.head!r}")


class T5(nn.Module):
    """p(y | x) = prod_i p(y_i | y_<i, x): section 2.1.

    Pre-norm with RMSNorm, no bias anywhere, no 1/sqrt(d) in attention: the first weights make up for it, as in the
    released code. All blocks of a stack share one relative position bias. Differs from the paper's section 2.1 in that
    each stack has its own bias, as in the released code.
    Raises ValueError for sizes that do not fit together.
    """

    def __init__(self, config: T5Config):
        super().__init__()
        self.config, self.is_tied = config, config.head in ("tied", "tied_unscaled")
        depth, decoder_depth = config.depth if isinstance(config.depth, tuple) else (config.depth, config.depth)
        norm = partial(nn.RMSNorm, config.dim, eps=config.norm_eps)
        buckets = {"num_buckets": config.num_buckets, "max_distance": config.max_distance}
        self.token_embed = nn.Embedding(config.vocab_size, config.dim)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder_bias = RelativePositionBias(config.num_heads, **buckets)
        self.decoder_bias = RelativePositionBias(config.num_heads, **buckets, bidirectional=False)
        self.encoder = nn.ModuleList(build_block(config, decoder=False) for _ in range(depth))
        self.decoder = nn.ModuleList(build_block(config, decoder=True) for _ in range(decoder_depth))
        self.encoder_norm, self.decoder_norm = norm(), norm()
        self.head = None if config.head is None else nn.Linear(config.dim, config.vocab_size, bias=False)
        if self.is_tied:
            self.head.weight = self.token_embed.weight
        self._first_weights()

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
        return x if self.head is None else self.logits(x)

    def encode(
        self, source: Int[Tensor, "B T_k"], source_valid: Bool[Tensor, "B T_k"] | None = None
    ) -> Float[Tensor, "B T_k D"]:
        """Each source token in the light of all others."""
        x = self.dropout(self.token_embed(source))
        mask, bias = _mask(source_valid), self.encoder_bias(source.shape[1])
        for block in self.encoder:
            x = block(x, mask=mask, score_bias=bias)
        return self.dropout(self.encoder_norm(x))

    def decode(
        self,
        target: Int[Tensor, "B T_q"],
        context: Float[Tensor, "B T_k D"],
        *,
        source_valid: Bool[Tensor, "B T_k"] | None = None,
        target_valid: Bool[Tensor, "B T_q"] | None = None,
    ) -> Float[Tensor, "B T_q D"]:
        """The features that the logits of each next token are made of."""
        x = self.dropout(self.token_embed(target))
        context_mask, mask, bias = _mask(source_valid), _mask(target_valid), self.decoder_bias(target.shape[1])
        for block in self.decoder:
            x = block(x, context, context_mask=context_mask, mask=mask, score_bias=bias)
        return self.dropout(self.decoder_norm(x))

    def logits(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """The head; a tied one divides by sqrt(d_model), since embeddings start with standard deviation 1."""
        return self.head(x * self.config.dim**-0.5 if self.config.head == "tied" else x)

    @torch.no_grad()
    def given(
        self, source: Int[Tensor, "B T_k"], source_valid: Bool[Tensor, "B T_k"] | None = None
    ) -> "TargetLanguageModel":
        """p(y | x) for these sources, to write y token by token; each source is encoded once."""
        return TargetLanguageModel(self, self.encode(source, source_valid), _mask(source_valid))

    @torch.no_grad()
    def _first_weights(self) -> None:
        """As in the released code: N(0, 1 / inputs), queries divided by sqrt(d_kv), embeddings N(0, 1)."""
        for name, weight in self.named_parameters():
            if name.endswith("_proj.weight"):
                queries = self.config.head_dim if ".q_proj" in name else 1
                nn.init.normal_(weight, std=(weight.shape[1] * queries) ** -0.5)
        nn.init.normal_(self.token_embed.weight)
        for table in (self.encoder_bias.table, self.decoder_bias.table):
            nn.init.normal_(table, std=self.config.dim**-0.5)


class TargetLanguageModel:
    """A T5 with its source fixed, as `course_lib.generation` asks for it. Raises ValueError without a head."""

    def __init__(self, model: T5, context: Float[Tensor, "B T_k D"], context_mask: Bool[Tensor, "B 1 1 T_k"] | None):
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
        x, bias = model.token_embed(tokens), model.decoder_bias(tokens.shape[1], cache.length)
        for block, memory, layer in zip(model.decoder, cache.memories, cache.layers, strict=True):
            x = block(x, memory=memory, context_mask=cache.memory_mask, mask=new.mask, score_bias=bias, cache=layer)
        return model.logits(model.decoder_norm(x[:, -1]))


def build_block(config: T5Config, *, decoder: bool) -> EncoderBlock | DecoderBlock:
    """One block of either stack."""
    heads = {"head_dim": config.head_dim, "bias": False, "scale": 1.0, "dropout": config.dropout}
    attend = partial(MultiHeadAttention, config.dim, config.num_heads, **heads)
    activation = config.activation.removeprefix("gated_")
    inner = {"activation": activation, "gated": activation != config.activation}
    ffn = FeedForward(config.dim, config.mlp_dim, **inner, bias=False, dropout=config.dropout)
    norm = partial(nn.RMSNorm, config.dim, eps=config.norm_eps)
    parts = (attend(), attend(), ffn) if decoder else (attend(), ffn)
    return (DecoderBlock if decoder else EncoderBlock)(*parts, norm, dropout=config.dropout)


def _mask(valid: Tensor | None) -> Tensor | None:
    return None if valid is None else valid[:, None, None, :]


def t5_small(**overrides) -> T5:
    """T5-small, 60.5 M parameters (section 3.7 says about 60 M)."""
    return T5(T5Config(**overrides))


def t5_base(**overrides) -> T5:
    """T5-base, 223 M parameters (section 3.1.2 says about 220 M)."""
    return T5(T5Config(**{"dim": 768, "depth": 12, "num_heads": 12, "mlp_dim": 3072} | overrides))


def t5_large(**overrides) -> T5:
    """T5-large, 738 M parameters (section 3.7 says 770 M)."""
    return T5(T5Config(**{"dim": 1024, "depth": 24, "num_heads": 16, "mlp_dim": 4096} | overrides))
