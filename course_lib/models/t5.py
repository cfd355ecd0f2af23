"""T5: every task is text in, text out, for one encoder-decoder with relative positions.

Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text Transformer", JMLR 2020,
arXiv 1910.10683. Zhang & Sennrich, "Root mean square layer normalization", NeurIPS 2019, arXiv 1910.07467.
T5 1.1 is the authors' later release, with gated GELUs of Shazeer 2020, arXiv 2002.05202, and a head of its own.
"""

from dataclasses import dataclass
from functools import partial
from itertools import repeat

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.functional.attention import key_mask
from course_lib.layers.cache import ALONE, DecoderCache, Placed
from course_lib.layers.sizes import plain_integers
from course_lib.layers.transformer import (
    DecoderBlock,
    FeedForward,
    MultiHeadAttention,
    RelativePositionBias,
    TokenEmbedding,
    TransformerBlock,
)
from course_lib.models.transformer import Transformer

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
    head: str | None = "tied"  # x E^T / sqrt(d_model), or "tied_unscaled"; "linear": its own matrix; None: features

    def __post_init__(self):
        plain_integers(self)
        if self.head not in HEADS:
            raise ValueError(f"head must be one of {HEADS}, got {self.head!r}")


class T5(Transformer):
    """p(y | x) = prod_i p(y_i | y_<i, x): section 2.1.

    Pre-norm with RMSNorm, no bias anywhere, no 1/sqrt(d) in attention: the first weights make up for it, as in the
    released code. All blocks of a stack share one relative position bias. Differs from the paper's section 2.1 in that
    each stack has its own bias, as in the released code.
    Raises ValueError for sizes that do not fit together.
    """

    config: T5Config

    def __init__(self, config: T5Config):
        nn.Module.__init__(self)
        self.config = config
        depth, decoder_depth = config.depth if isinstance(config.depth, tuple) else (config.depth, config.depth)
        norm = partial(nn.RMSNorm, config.dim, eps=config.norm_eps)
        buckets = {"num_buckets": config.num_buckets, "max_distance": config.max_distance}
        self.token_embed = TokenEmbedding(config.vocab_size, config.dim)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder_bias = RelativePositionBias(config.num_heads, **buckets)
        self.decoder_bias = RelativePositionBias(config.num_heads, **buckets, bidirectional=False)
        self.encoder = nn.ModuleList(build_block(config, decoder=False) for _ in range(depth))
        self.decoder = nn.ModuleList(build_block(config, decoder=True) for _ in range(decoder_depth))
        self.encoder_norm, self.decoder_norm = norm(), norm()
        self.head = None if config.head is None else nn.Linear(config.dim, config.vocab_size, bias=False)
        if config.head in ("tied", "tied_unscaled"):
            self.head.weight = self.token_embed.weight
        first_weights(self, config, self.encoder_bias, self.decoder_bias)

    def embed(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """The vectors of tokens, with dropout; positions come later, as biases."""
        return self.dropout(self.token_embed(tokens))

    def embed_target(self, target: Int[Tensor, "B T_q"], placed: Placed = ALONE) -> Float[Tensor, "B T_q D"]:
        """The same: where tokens are `placed` does not matter here."""
        return self.embed(target)

    def encode(
        self, x: Float[Tensor, "B T_k D"], valid: Bool[Tensor, "B T_k"] | None = None
    ) -> Float[Tensor, "B T_k D"]:
        """Each embedded source token in the light of all others."""
        bias = self.encoder_bias(x.shape[1])
        for block in self.encoder:
            x = block(x, mask=key_mask(valid), score_bias=bias)
        return self.dropout(self.encoder_norm(x))

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
        layers, length = (repeat(None), None) if cache is None else (cache.layers, cache.length)
        bias = self.decoder_bias(x.shape[1], length)
        for block, layer in zip(self.decoder, layers, strict=False):
            x = block(x, context, context_mask=key_mask(source_valid), mask=mask, score_bias=bias, cache=layer)
        return self.dropout(self.decoder_norm(x))

    def logits(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """The head; a tied one divides by sqrt(d_model), since embeddings start with standard deviation 1.

        Without a head the features themselves.
        """
        if self.head is None:
            return x
        return self.head(x * self.config.dim**-0.5 if self.config.head == "tied" else x)


@torch.no_grad()
def first_weights(model: nn.Module, config: T5Config, *biases: RelativePositionBias) -> None:
    """As in the released code: N(0, 1 / inputs), queries divided by sqrt(d_kv), embeddings N(0, 1)."""
    for name, weight in model.named_parameters():
        if name.endswith("_proj.weight"):
            queries = config.head_dim if ".q_proj" in name else 1
            nn.init.normal_(weight, std=(weight.shape[1] * queries) ** -0.5)
    nn.init.normal_(model.token_embed.weight)
    for bias in biases:
        nn.init.normal_(bias.table, std=config.dim**-0.5)


def build_block(config: T5Config, *, decoder: bool) -> TransformerBlock | DecoderBlock:
    """One block of either stack."""
    heads = {"head_dim": config.head_dim, "bias": False, "scale": 1.0, "dropout": config.dropout}
    attend = partial(MultiHeadAttention, config.dim, config.num_heads, **heads)
    activation = config.activation.removeprefix("gated_")
    inner = {"activation": activation, "gated": activation != config.activation}
    ffn = FeedForward(config.dim, config.mlp_dim, **inner, bias=False, dropout=config.dropout)
    norm = partial(nn.RMSNorm, config.dim, eps=config.norm_eps)
    parts = (attend(), attend(), ffn) if decoder else (attend(), ffn)
    return (DecoderBlock if decoder else TransformerBlock)(*parts, norm, dropout=config.dropout)


def t5_small(**overrides) -> T5:
    """T5-small, 60.5 M parameters (section 3.7 says about 60 M)."""
    return T5(T5Config(**overrides))


def t5_base(**overrides) -> T5:
    """T5-base, 223 M parameters (section 3.1.2 says about 220 M)."""
    return T5(T5Config(**{"dim": 768, "depth": 12, "num_heads": 12, "mlp_dim": 3072} | overrides))


def t5_large(**overrides) -> T5:
    """T5-large, 738 M parameters (section 3.7 says 770 M)."""
    return T5(T5Config(**{"dim": 1024, "depth": 24, "num_heads": 16, "mlp_dim": 4096} | overrides))
