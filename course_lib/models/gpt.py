"""GPT: a decoder that learns a language by predicting the next token.

Radford, Narasimhan, Salimans & Sutskever, "Improving language understanding by generative pre-training", 2018 (GPT-1).
Radford, Wu, Child, Luan, Amodei & Sutskever, "Language models are unsupervised multitask learners", 2019 (GPT-2).
"""

from dataclasses import dataclass
from functools import partial
from itertools import repeat

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.layers.cache import ALONE, DecoderCache, Placed, place
from course_lib.layers.transformer import (
    FeedForward,
    LearnedPositions,
    MultiHeadAttention,
    TokenEmbedding,
    TransformerBlock,
    check_sizes,
    normal_weights,
)

HEADS = ("tied", "linear", None)


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """The smallest GPT-2 of Radford et al. 2019, table 2, by default.

    Raises ValueError for a size below 1, and a `head` that is none of the options.
    """

    vocab_size: int = 50_257  # byte-level BPE tokens: 256 bytes, 50,000 merges, end of text
    context_length: int = 1024  # tokens
    dim: int = 768  # d_model
    depth: int = 12  # blocks
    num_heads: int = 12
    mlp_dim: int | None = None  # None: 4 dim
    activation: str = "gelu_tanh"  # of the released code; the exact "gelu" changes logits by 1e-3
    norm_eps: float = 1e-5  # of LayerNorm
    pre_norm: bool = True  # GPT-2; False: GPT-1, whose stack ends without a norm
    dropout: float = 0.1  # of sublayers
    embed_dropout: float | None = None  # of embeddings; None: as `dropout`
    attention_dropout: float | None = None  # of attention weights; None: as `dropout`
    head: str | None = "tied"  # logits from the token embedding, "linear": from a matrix of its own; None: features

    def __post_init__(self):
        check_sizes(self, "vocab_size", "context_length", "dim", "depth", "num_heads", "mlp_dim")
        if self.head not in HEADS:
            raise ValueError(f"head must be one of {HEADS}, got {self.head!r}")


class GPT(nn.Module):
    """p(x) = prod_i p(x_i | x_<i), Radford et al. 2019, eq. (1), by causal blocks: 2018, eqs. (1)-(2).

    Weights start from N(0, 0.02^2), biases from 0; the last matrix of each residual path is scaled by
    1/sqrt(2 depth), Radford et al. 2019, section 2.3.
    Raises ValueError for sizes that do not fit together and, when called, for more than `context_length` tokens.
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.config = config
        of_embedding = config.dropout if config.embed_dropout is None else config.embed_dropout
        of_weights = config.dropout if config.attention_dropout is None else config.attention_dropout
        norm = partial(nn.LayerNorm, config.dim, eps=config.norm_eps)
        self.token_embed = TokenEmbedding(config.vocab_size, config.dim)  # W_e
        self.pos_embed = LearnedPositions(config.dim, config.context_length)  # W_p
        self.dropout = nn.Dropout(of_embedding)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                MultiHeadAttention(config.dim, config.num_heads, dropout=of_weights),
                FeedForward(config.dim, config.mlp_dim or 4 * config.dim, activation=config.activation),
                norm,
                pre_norm=config.pre_norm,
                dropout=config.dropout,
            )
            for _ in range(config.depth)
        )
        self.norm = norm() if config.pre_norm else nn.Identity()
        self.head = None if config.head is None else nn.Linear(config.dim, config.vocab_size, bias=False)
        if config.head == "tied":
            self.head.weight = self.token_embed.weight
        normal_weights(self)
        for block in self.blocks:
            for last in (block.attn.o_proj, block.ffn.down_proj):
                nn.init.normal_(last.weight, std=0.02 * (2 * config.depth) ** -0.5)

    def forward(
        self, tokens: Int[Tensor, "B T"], *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T V"]:
        """The logits of each next token, or without a head the features (B, T, D) that they are made of.

        `valid` is True at real tokens. It may be left out where padding comes last: no earlier token sees it.
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
        return self.encode(self.embed(tokens, placed), mask=placed.mask, cache=cache)

    def embed(self, tokens: Int[Tensor, "B T"], placed: Placed = ALONE) -> Float[Tensor, "B T D"]:
        """h_0 = U W_e + W_p, Radford et al. 2018, eq. (2), where the tokens are `placed`: from 0 on, if not said."""
        x = self.token_embed(tokens)
        return self.dropout(self.pos_embed(x, start=placed.start, positions=placed.positions))

    def encode(
        self,
        x: Float[Tensor, "B T D"],
        *,
        mask: Bool[Tensor, "B 1 1 T_k"] | None = None,
        cache: DecoderCache | None = None,
    ) -> Float[Tensor, "B T D"]:
        """h_l = block(h_{l-1}): any vectors through all blocks, those of tokens or others in their place."""
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
        """Appends `tokens` (`valid`: the real ones, padding at the left) and returns the logits of the next one."""
        return self.logits(self.features(tokens, valid=valid, cache=cache)[:, -1])


def gpt2_small(**overrides) -> GPT:
    """The smallest GPT-2, Radford et al. 2019, table 2: 124 M parameters (the table says 117 M)."""
    return GPT(GPTConfig(**overrides))


def gpt2_medium(**overrides) -> GPT:
    """The second GPT-2, Radford et al. 2019, table 2: 355 M parameters (the table says 345 M)."""
    return GPT(GPTConfig(**{"dim": 1024, "depth": 24, "num_heads": 16} | overrides))


def gpt2_large(**overrides) -> GPT:
    """The third GPT-2, Radford et al. 2019, table 2: 774 M parameters (the table says 762 M)."""
    return GPT(GPTConfig(**{"dim": 1280, "depth": 36, "num_heads": 20} | overrides))


def gpt2_xl(**overrides) -> GPT:
    """The largest GPT-2, Radford et al. 2019, table 2: 1,558 M parameters (the table says 1,542 M)."""
    return GPT(GPTConfig(**{"dim": 1600, "depth": 48, "num_heads": 25} | overrides))


def gpt_lesson(vocab_size: int, **overrides) -> GPT:
    """0.8 M parameters beside the vocabulary's: two CPU cores train it in minutes."""
    sizes = {"context_length": 128, "dim": 128, "depth": 4, "num_heads": 4}
    return GPT(GPTConfig(**{"vocab_size": vocab_size} | sizes | overrides))
