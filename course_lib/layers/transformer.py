"""First weights that models share: BERT's and GPT's (Devlin et al. 2019, arXiv 1810.04805, in its released code), ViT's
and MAE's (Glorot & Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010).

Layers that tell each token its place: fixed sinusoids or a learned table (Vaswani et al. 2017, section 3.5), or a
bias for each distance (Raffel et al., JMLR 2020, arXiv 1910.10683, section 2.1).

The blocks that every Transformer is stacked from: attention communicates, the feed-forward network thinks alone.

Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv 1706.03762, section 3.1. Ba, Kiros & Hinton, "Layer
normalization", 2016, arXiv 1607.06450. Xiong et al., "On layer normalization in the Transformer architecture", 2020,
arXiv 2002.04745 (pre-norm and post-norm). Shazeer, "GLU variants improve Transformer", 2020, arXiv 2002.05202.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from course_lib.functional.positions import relative_buckets, sinusoidal_positions
from course_lib.layers.attention import KeysValues, KVCache, MultiHeadAttention


def normal_weights(module: nn.Module, std: float = 0.02) -> nn.Module:
    """All matrices of linear layers and embeddings inside `module` from N(0, std^2), their biases 0; the module."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=std)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
    return module


def xavier_weights(module: nn.Module) -> nn.Module:
    """All matrices of linear layers inside `module` from U(-a, a), a^2 = 6 / (inputs + outputs), biases 0; the module.

    Glorot & Bengio 2010, eq. (16).
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    return module


class SinusoidalPositions(nn.Module):
    """x_pos + PE(pos) with the fixed sinusoids of Vaswani et al. 2017, section 3.5; nothing is learned.

    `halves` puts all sines before all cosines.
    Raises ValueError if `dim` is odd or, in `forward`, if a position is `max_length` or more.
    """

    def __init__(self, dim: int, max_length: int, *, halves: bool = False):
        super().__init__()
        self.register_buffer("table", sinusoidal_positions(max_length, dim, halves=halves), persistent=False)

    def forward(
        self, x: Float[Tensor, "B T D"], *, start: int = 0, positions: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T D"]:
        """Adds the codes of positions start, start + 1, ..., or of `positions` where each row has its own.

        In cached decoding `start` is the number of tokens before; with padding at the left the rows differ.
        """
        return x + _rows(self.table, start, x.shape[1], positions)


class LearnedPositions(nn.Module):
    """x_pos + P[pos] with a learned table P (Gehring et al. 2017, arXiv 1705.03122, section 3.1).

    Raises ValueError, in `forward`, if a position is `max_length` or more.
    """

    def __init__(self, dim: int, max_length: int, *, std: float = 0.02):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, dim) * std)

    def forward(
        self, x: Float[Tensor, "B T D"], *, start: int = 0, positions: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T D"]:
        """Adds the codes of positions start, start + 1, ..., or of `positions` where each row has its own.

        In cached decoding `start` is the number of tokens before; with padding at the left the rows differ.
        """
        return x + _rows(self.table, start, x.shape[1], positions)


class RelativePositionBias(nn.Module):
    """b[bucket(j - i)]: for each head a number that is added to the score of query i and key j.

    Raffel et al. 2020, section 2.1. The arguments are those of `relative_buckets`, which raises ValueError for sizes
    that do not fit together.
    """

    def __init__(self, num_heads: int, *, num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True):
        super().__init__()
        self.buckets = partial(
            relative_buckets, num_buckets=num_buckets, max_distance=max_distance, bidirectional=bidirectional
        )
        self.buckets(torch.arange(1))
        self.table = nn.Parameter(torch.randn(num_buckets, num_heads) * 0.02)

    def forward(self, num_queries: int, num_keys: int | None = None) -> Float[Tensor, "1 H T_q T_k"]:
        """The last query stands at the last key; with fewer queries than keys the missing ones lie in the past."""
        num_keys = num_queries if num_keys is None else num_keys
        # the bias depends on j - i alone: a row of it is a window on the biases of all distances
        distances = torch.arange(1 - num_keys, num_queries, device=self.table.device)
        biases = self.table[self.buckets(distances)].T
        return biases.unfold(-1, num_keys, 1).flip(-2)[None]


def _rows(table: Tensor, start: int, count: int, positions: Tensor | None) -> Tensor:
    first, last = (start, start + count - 1) if positions is None else (int(positions.min()), int(positions.max()))
    if first < 0 or last >= len(table):
        raise ValueError(
            f"positions {first} to {last} were asked for, the table holds 0 to {len(table) - 1}: "
            "raise max_length or shorten the input"
        )
    return table[first : last + 1] if positions is None else table[positions]


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,  # x Phi(x), exact: BERT, ViT
    "gelu_tanh": partial(F.gelu, approximate="tanh"),  # its approximation: GPT-2, T5 1.1
    "silu": F.silu,  # x sigmoid(x), also called swish: Marian
}


class FeedForward(nn.Module):
    """FFN(x) = W_2 act(W_1 x + b_1) + b_2 at each position, Vaswani et al. 2017, eq. (2).

    `gated` multiplies by a second projection, W_2 (act(W_g x) * W_1 x), as in Shazeer 2020, eq. (6). `dropout` is the
    share of inner units dropped in training.
    Raises ValueError for an unknown `activation`.
    """

    def __init__(
        self,
        dim: int,
        mlp_dim: int,
        *,
        activation: str = "relu",
        gated: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
        self.activation = activation
        self.gate_proj = nn.Linear(dim, mlp_dim, bias=bias) if gated else None
        self.up_proj = nn.Linear(dim, mlp_dim, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.down_proj = nn.Linear(mlp_dim, dim, bias=bias)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        activate = ACTIVATIONS[self.activation]
        inner = activate(self.up_proj(x)) if self.gate_proj is None else activate(self.gate_proj(x)) * self.up_proj(x)
        return self.down_proj(self.dropout(inner))

    def extra_repr(self) -> str:
        return f"activation={self.activation}"


class Block(nn.Module):
    """What encoder and decoder blocks share: a residual path around each sublayer f, with a norm.

    Post-norm is norm(x + f(x)), Vaswani et al. 2017, section 3.1; pre-norm is x + f(norm(x)), Xiong et al. 2020,
    section 3.2. `dropout` is the share of a sublayer's output dropped in training (section 5.4).
    """

    def __init__(self, *, pre_norm: bool, dropout: float):
        super().__init__()
        self.pre_norm = pre_norm
        self.dropout = nn.Dropout(dropout)

    def residual(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x with the sublayer's contribution added."""
        contribution = sublayer(norm(x)) if self.pre_norm else sublayer(x)
        if self.dropout.training:  # idle, its call would still take a twentieth of the time of a small model
            contribution = self.dropout(contribution)
        return x + contribution if self.pre_norm else norm(x + contribution)

    def extra_repr(self) -> str:
        return f"pre_norm={self.pre_norm}"


class EncoderBlock(Block):
    """Self-attention, then the feed-forward network: the encoder's layer, and with `causal=True` also GPT's.

    `norm` makes a normalisation layer, such as `partial(nn.LayerNorm, dim, eps=1e-5)`.
    """

    def __init__(
        self,
        attn: MultiHeadAttention,
        ffn: nn.Module,
        norm: Callable[[], nn.Module],
        *,
        pre_norm: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__(pre_norm=pre_norm, dropout=dropout)
        self.norm1, self.attn = norm(), attn
        self.norm2, self.ffn = norm(), ffn

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        *,
        mask: Shaped[Tensor, "..."] | None = None,
        score_bias: Shaped[Tensor, "..."] | None = None,
        causal: bool = False,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "B T D"]:
        """`mask` (True = may attend) and `score_bias` broadcast to (B, H, T, T); the rest as in attention."""
        x = self.residual(
            x, self.norm1, lambda h: self.attn(h, mask=mask, score_bias=score_bias, causal=causal, cache=cache)
        )
        return self.residual(x, self.norm2, self.ffn)


class DecoderBlock(Block):
    """Causal self-attention, attention to the encoder's output, then the feed-forward network.

    `norm` makes a normalisation layer, such as `partial(nn.LayerNorm, dim, eps=1e-5)`.
    """

    def __init__(
        self,
        attn: MultiHeadAttention,
        cross_attn: MultiHeadAttention,
        ffn: nn.Module,
        norm: Callable[[], nn.Module],
        *,
        pre_norm: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__(pre_norm=pre_norm, dropout=dropout)
        self.norm1, self.attn = norm(), attn
        self.norm2, self.cross_attn = norm(), cross_attn
        self.norm3, self.ffn = norm(), ffn

    def forward(
        self,
        x: Float[Tensor, "B T_q D"],
        context: Float[Tensor, "B T_k C"] | None = None,
        *,
        memory: KeysValues | None = None,
        context_mask: Shaped[Tensor, "..."] | None = None,
        mask: Shaped[Tensor, "..."] | None = None,
        score_bias: Shaped[Tensor, "..."] | None = None,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "B T_q D"]:
        """The encoder's output comes as `context`, or as a `memory` that `cross_attn.remember` made of it.

        `mask` and `score_bias` belong to the self-attention, `context_mask` to the cross-attention.
        """
        x = self.residual(
            x, self.norm1, lambda h: self.attn(h, mask=mask, score_bias=score_bias, causal=True, cache=cache)
        )
        x = self.residual(x, self.norm2, lambda h: self.cross_attn(h, context, memory=memory, mask=context_mask))
        return self.residual(x, self.norm3, self.ffn)
