"""Llama: a GPT of today, with rotary positions, RMSNorm, SwiGLU and, in its largest, shared keys and values.

Touvron et al., "LLaMA: open and efficient foundation language models", 2023, arXiv 2302.13971 (Llama 1).
Touvron et al., "Llama 2: open foundation and fine-tuned chat models", 2023, arXiv 2307.09288 (Llama 2).
"""

from dataclasses import dataclass
from functools import partial
from itertools import repeat

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.layers.cache import DecoderCache, place
from course_lib.layers.transformer import (
    FeedForward,
    MultiHeadAttention,
    RotaryPositions,
    TokenEmbedding,
    TransformerBlock,
    check_sizes,
    normal_weights,
)

HEADS = ("linear", "tied", None)


@dataclass(frozen=True, kw_only=True)
class LlamaConfig:
    """The smallest Llama of Touvron et al. 2023, arXiv 2302.13971, table 2, by default.

    Raises ValueError for a size below 1, and a `head` that is none of the options.
    """

    vocab_size: int = 32_000  # SentencePiece tokens
    context_length: int = 2048  # tokens; Llama 2: 4096
    dim: int = 4096  # d
    depth: int = 32  # blocks
    num_heads: int = 32
    num_kv_heads: int | None = None  # that a cache keeps; None: as many as heads
    head_dim: int | None = None  # None: dim / num_heads
    mlp_dim: int = 11_008  # 2/3 of 4 d, for three matrices instead of two, rounded up to a multiple of 256
    activation: str = "silu"  # of the gate: SwiGLU
    norm_eps: float = 1e-6  # of RMSNorm; Llama 2: 1e-5
    rotary_base: float = 10_000.0  # theta: how slowly the slowest pair turns
    head: str | None = "linear"  # logits from a matrix of its own, "tied": from the token embedding; None: features

    def __post_init__(self):
        check_sizes(self, "vocab_size", "context_length", "dim", "depth", "num_heads", "mlp_dim")
        if self.head not in HEADS:
            raise ValueError(f"head must be one of {HEADS}, got {self.head!r}")


class Llama(nn.Module):
    """p(x) = prod_i p(x_i | x_<i) by causal pre-norm blocks without a bias: arXiv 2302.13971, section 2.2.

    Weights start from N(0, 0.02^2), which the papers do not say: as in Hugging Face's code.
    Raises ValueError for sizes that do not fit together and, when called, for more than `context_length` tokens.
    """

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.config = config
        norm = partial(nn.RMSNorm, config.dim, eps=config.norm_eps)
        head_dim = config.head_dim or config.dim // config.num_heads
        rotary = RotaryPositions(head_dim, config.context_length, base=config.rotary_base)
        heads = {"num_kv_heads": config.num_kv_heads, "head_dim": config.head_dim, "bias": False, "rotary": rotary}
        self.token_embed = TokenEmbedding(config.vocab_size, config.dim)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                MultiHeadAttention(config.dim, config.num_heads, **heads),
                FeedForward(config.dim, config.mlp_dim, activation=config.activation, gated=True, bias=False),
                norm,
            )
            for _ in range(config.depth)
        )
        self.norm = norm()
        self.head = None if config.head is None else nn.Linear(config.dim, config.vocab_size, bias=False)
        if config.head == "tied":
            self.head.weight = self.token_embed.weight
        normal_weights(self)

    def forward(
        self, tokens: Int[Tensor, "B T"], *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T V"]:
        """The logits of each next token, or without a head the features (B, T, D) that they are made of.

        `valid` is True at real tokens. It may be left out where padding comes last: no earlier token sees it. Padding
        at the left changes nothing; between tokens it would make them farther from one another.
        """
        return self.logits(self.features(tokens, valid=valid))

    def features(
        self,
        tokens: Int[Tensor, "B T"],
        *,
        valid: Bool[Tensor, "B T"] | None = None,
        cache: DecoderCache | None = None,
    ) -> Float[Tensor, "B T D"]:
        """What the blocks make of each token. With a `cache` the tokens follow those in it."""
        placed = place(tokens, valid, cache)
        return self.encode(self.embed(tokens), mask=placed.mask, cache=cache)

    def embed(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """The vectors of tokens: where they stand is told to queries and keys, in each block."""
        return self.token_embed(tokens)

    def encode(
        self,
        x: Float[Tensor, "B T D"],
        *,
        mask: Bool[Tensor, "B 1 1 T_k"] | None = None,
        cache: DecoderCache | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Any vectors through all blocks, those of tokens or others in their place."""
        for block, layer in zip(self.blocks, repeat(None) if cache is None else cache.layers, strict=False):
            x = block(x, mask=mask, causal=True, cache=layer)
        return self.norm(x)

    def logits(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """The head; without one the features themselves."""
        return x if self.head is None else self.head(x)

    def new_cache(self, max_length: int) -> DecoderCache:
        """Room for `max_length` tokens, the prompt's and new ones.

        Raises ValueError for more than there are positions for (the last new token is not read, and needs none), and
        for a model without a head.
        """
        if self.head is None:
            raise ValueError("this model has head=None: it makes features, no logits to write with")
        if max_length > self.config.context_length + 1:
            raise ValueError(
                f"this model reads at most {self.config.context_length} tokens, room for {max_length} was asked for: "
                "shorten the prompt or write fewer tokens"
            )
        return DecoderCache(len(self.blocks), max_length)

    def next_logits(
        self, tokens: Int[Tensor, "B T"], cache: DecoderCache, *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B V"]:
        """Appends `tokens` (`valid`: the real ones, padding at the left) and returns the logits of the next one.

        Raises ValueError for padding behind tokens that were read before: rotary positions would count it as distance.
        """
        if cache.length > 0 and valid is not None and not valid.all():
            raise ValueError(
                f"padding may stand before a row's first token only, but follows {cache.length} tokens in the cache: "
                "append rows of one length"
            )
        return self.logits(self.features(tokens, valid=valid, cache=cache)[:, -1])


def llama_7b(**overrides) -> Llama:
    """The smallest Llama 1, arXiv 2302.13971, table 2: 6.7 B parameters."""
    return Llama(LlamaConfig(**overrides))


def llama_13b(**overrides) -> Llama:
    """The second Llama 1, table 2: 13.0 B parameters."""
    return Llama(LlamaConfig(**{"dim": 5120, "depth": 40, "num_heads": 40, "mlp_dim": 13_824} | overrides))


def llama_33b(**overrides) -> Llama:
    """The third Llama 1, table 2: 32.5 B parameters."""
    return Llama(LlamaConfig(**{"dim": 6656, "depth": 60, "num_heads": 52, "mlp_dim": 17_920} | overrides))


def llama_65b(**overrides) -> Llama:
    """The largest Llama 1, table 2: 65.3 B parameters (the table says 65.2 B)."""
    return Llama(LlamaConfig(**{"dim": 8192, "depth": 80, "num_heads": 64, "mlp_dim": 22_016} | overrides))


def llama2_7b(**overrides) -> Llama:
    """The smallest Llama 2, arXiv 2307.09288, table 1: Llama 1's, for twice the context."""
    return llama_7b(**LLAMA2 | overrides)


def llama2_13b(**overrides) -> Llama:
    """The second Llama 2, arXiv 2307.09288, table 1."""
    return llama_13b(**LLAMA2 | overrides)


def llama2_70b(**overrides) -> Llama:
    """The largest Llama 2, table 1: 69.0 B parameters, 8 key and value heads for 64 query heads."""
    return llama_65b(**LLAMA2 | {"num_kv_heads": 8, "mlp_dim": 28_672} | overrides)


LLAMA2 = {"context_length": 4096, "norm_eps": 1e-5}
