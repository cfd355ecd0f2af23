"""What every Transformer is stacked from: attention communicates, the feed-forward network thinks alone, positions tell
the order.

Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv 1706.03762, section 3. Ba, Kiros & Hinton, "Layer
normalization", 2016, arXiv 1607.06450. Xiong et al., "On layer normalization in the Transformer architecture", 2020,
arXiv 2002.04745 (pre-norm and post-norm). Shazeer, "GLU variants improve Transformer", 2020, arXiv 2002.05202. Raffel
et al., JMLR 2020, arXiv 1910.10683, section 2.1 (a bias for each distance). Su et al., 2021, arXiv 2104.09864 (rotary
positions). Shazeer, "Fast Transformer decoding: one write-head is all you need", 2019, arXiv 1911.02150, and Ainslie et
al., "GQA: training generalized multi-query Transformer models", EMNLP 2023, arXiv 2305.13245 (shared keys and values).
Glorot & Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010 (first
weights).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from course_lib.functional.attention import attention
from course_lib.functional.positions import relative_buckets, rotary_turns, rotate, sinusoidal_positions
from course_lib.layers.cache import KeysValues, KVCache
from course_lib.layers.sizes import plain_integers

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,  # x Phi(x), exact: BERT, ViT
    "gelu_tanh": partial(F.gelu, approximate="tanh"),  # its approximation: GPT-2, T5 1.1
    "silu": F.silu,  # x sigmoid(x), also called swish: Marian
}


class MultiHeadAttention(nn.Module):
    """head_i = Attention(X W_i^Q, C W_i^K, C W_i^V); output = Concat(head_1 ... head_h) W^O.

    Vaswani et al. 2017, section 3.2.2, with d_k = d_v = `head_dim`, dim / num_heads if not given. C is `context`, of
    width `context_dim`, or X itself when none is given. `attend` is what each head does: `attention`, or a function
    that takes the same, such as `partial(local_attention, window=8)`. `dropout` is the share of weights dropped in
    training; `scale` replaces 1/sqrt(d_k). Differs from the paper in that the projections have a bias, unless `bias` is
    False; `qkv_bias` says it for those of queries, keys and values alone.
    With fewer `num_kv_heads` each key and value head serves a group of query heads, Ainslie et al. 2023, section 2.2:
    a cache keeps these alone. With one it is multi-query attention, Shazeer 2019, section 3. `rotary` turns queries and
    keys by their positions; keys are kept as they were turned, since their positions stay.
    Raises ValueError if `dim` is no multiple of `num_heads` and no `head_dim` is given, `num_heads` is no multiple of
    `num_kv_heads`, or an argument is out of range.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        context_dim: int | None = None,
        bias: bool = True,
        qkv_bias: bool | None = None,
        dropout: float = 0.0,
        scale: float | None = None,
        attend: Callable[..., Tensor] = attention,
        rotary: "RotaryPositions | None" = None,
    ):
        super().__init__()
        if num_heads < 1 or dim < 1 or (head_dim is None and dim % num_heads):
            raise ValueError(f"dim must be a positive multiple of num_heads, got dim={dim}, num_heads={num_heads}")
        if head_dim is not None and head_dim < 1:
            raise ValueError(f"head_dim is the width of one head: it must be 1 or more, got {head_dim}")
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout is a probability from 0 up to, but not including, 1; got {dropout}")
        self.num_heads, self.dropout, self.scale, self.attend = num_heads, dropout, scale, attend
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if self.num_kv_heads < 1 or num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads must be a multiple of num_kv_heads, got {num_heads} and {num_kv_heads}")
        self.head_dim = dim // num_heads if head_dim is None else head_dim
        self.rotary = rotary
        context_dim = dim if context_dim is None else context_dim
        inner_dim, shared_dim = num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        qkv_bias = bias if qkv_bias is None else qkv_bias
        self.q_proj = nn.Linear(dim, inner_dim, bias=qkv_bias)
        self.k_proj = nn.Linear(context_dim, shared_dim, bias=qkv_bias)
        self.v_proj = nn.Linear(context_dim, shared_dim, bias=qkv_bias)
        self.o_proj = nn.Linear(inner_dim, dim, bias=bias)
        xavier_weights(self)

    def forward(
        self,
        x: Float[Tensor, "B T_q D"],
        context: Float[Tensor, "B T_k C"] | KeysValues | None = None,
        *,
        mask: Shaped[Tensor, "..."] | None = None,
        score_bias: Shaped[Tensor, "..."] | None = None,
        causal: bool = False,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "B T_q D"]:
        """Attends from `x` to itself or to a `context`; what is written token by token gives its `keys_values`.

        `mask` is boolean, True = may attend; mask and score_bias broadcast to (B, H, T_q, T_k). A mask has four axes,
        or one: with two it might be meant as (B, T_k) or as (T_q, T_k).
        With a `cache`, x holds only the new positions, which see the old ones too.
        Raises ValueError if the arguments do not fit together.
        """
        check_axes(x, context, mask, cache)
        if self.rotary is not None and context is not None:
            raise ValueError("rotary positions are for self-attention: those of a context are not comparable with x's")
        q = self.split(self.q_proj(x))
        k, v = context if isinstance(context, KeysValues) else self.keys_values(x if context is None else context)
        if self.rotary is not None:
            start = 0 if cache is None else cache.length
            q, k = self.rotary(q, start=start), self.rotary(k, start=start)
        if cache is not None:
            k, v = cache.append(k, v)
        if self.num_kv_heads < self.num_heads:
            k, v = (t.repeat_interleave(self.num_heads // self.num_kv_heads, dim=1) for t in (k, v))
        dropout = self.dropout if self.training else 0.0
        heads = self.attend(q, k, v, mask=mask, bias=score_bias, causal=causal, scale=self.scale, dropout=dropout)
        return self.o_proj(heads.transpose(1, 2).flatten(2))  # (B, T_q, H d)

    def keys_values(self, context: Float[Tensor, "B T_k C"]) -> KeysValues:
        """What this layer sees of a context, by which it can be asked again at the cost of the queries alone."""
        return KeysValues(self.split(self.k_proj(context)), self.split(self.v_proj(context)))

    def split(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B H T d"]:
        # as einops' "b t (h d) -> b h t d", which would take a tenth of the time of a step of a small model
        return x.unflatten(2, (-1, self.head_dim)).transpose(1, 2)

    def extra_repr(self) -> str:
        shared = f", num_kv_heads={self.num_kv_heads}" if self.num_kv_heads < self.num_heads else ""
        return f"num_heads={self.num_heads}{shared}, dropout={self.dropout}, scale={self.scale}"


def check_axes(x: Tensor, context: Tensor | KeysValues | None, mask: Tensor | None, cache: KVCache | None) -> None:
    """Raises ValueError for an input without a batch, a mask that says not what it means, a context beside a cache."""
    if x.ndim != 3:
        raise ValueError(f"x must be (batch, tokens, width), got shape {tuple(x.shape)}: one row is x[None]")
    if mask is not None and mask.dtype == torch.bool and mask.ndim in (2, 3):  # whatever B is: (B, T) may be (T, T)
        raise ValueError(
            f"a mask of shape {tuple(mask.shape)} can be meant in two ways: for pairs of tokens give mask[None, None], "
            "for the real tokens of each row valid[:, None, None, :]"
        )
    if cache is not None and context is not None:
        raise ValueError("a cache is for self-attention: give a context its `keys_values` instead")


class FeedForward(nn.Module):
    """FFN(x) = W_2 act(W_1 x + b_1) + b_2 at each position, Vaswani et al. 2017, eq. (2).

    `gated` multiplies by a second projection, W_2 (act(W_g x) * W_1 x), as in Shazeer 2020, eq. (6): with
    `activation="silu"` and no bias SwiGLU. `dropout` is the share of inner units dropped in training.
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

    def extra_repr(self) -> str:
        return f"pre_norm={self.pre_norm}"


class TransformerBlock(Block):
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
        attn = partial(self.attn, mask=mask, score_bias=score_bias, causal=causal, cache=cache)
        if self.pre_norm:
            x = x + self.dropout(attn(self.norm1(x)))
            return x + self.dropout(self.ffn(self.norm2(x)))
        x = self.norm1(x + self.dropout(attn(x)))
        return self.norm2(x + self.dropout(self.ffn(x)))


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
        context: Float[Tensor, "B T_k C"] | None,
        *,
        context_mask: Shaped[Tensor, "..."] | None = None,
        mask: Shaped[Tensor, "..."] | None = None,
        score_bias: Shaped[Tensor, "..."] | None = None,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "B T_q D"]:
        """`context` is the encoder's output; a `cache` knows it already.

        `mask` and `score_bias` belong to the self-attention, `context_mask` to the cross-attention.
        """
        attn = partial(self.attn, mask=mask, score_bias=score_bias, causal=True, cache=cache)
        if cache is not None:
            context, context_mask = cache.context, cache.context_mask
        if self.pre_norm:
            x = x + self.dropout(attn(self.norm1(x)))
            x = x + self.dropout(self.cross_attn(self.norm2(x), context, mask=context_mask))
            return x + self.dropout(self.ffn(self.norm3(x)))
        x = self.norm1(x + self.dropout(attn(x)))
        x = self.norm2(x + self.dropout(self.cross_attn(x, context, mask=context_mask)))
        return self.norm3(x + self.dropout(self.ffn(x)))


class TokenEmbedding(nn.Embedding):
    """A row of a table for each token id. Raises ValueError for an id outside of it, and a row without a batch axis."""

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        if tokens.ndim != 2:
            raise ValueError(
                f"tokens must be (batch, tokens), got shape {tuple(tokens.shape)}: one row is tokens[None]"
            )
        try:
            return super().forward(tokens)
        except IndexError:
            raise ValueError(
                f"token ids must be from 0 to {self.num_embeddings - 1} (vocab_size - 1), got {int(tokens.min())} to "
                f"{int(tokens.max())}: encode the text with the model's own tokenizer"
            ) from None


class SinusoidalPositions(nn.Module):
    """x_pos + PE(pos) with the fixed sinusoids of Vaswani et al. 2017, section 3.5; nothing is learned.

    `halves` puts all sines before all cosines.
    Raises ValueError if `dim` is odd or, in `forward`, if a position is `context_length` or more.
    """

    def __init__(self, dim: int, context_length: int, *, halves: bool = False):
        super().__init__()
        self.register_buffer("table", sinusoidal_positions(context_length, dim, halves=halves), persistent=False)

    def forward(
        self, x: Float[Tensor, "B T D"], *, start: int = 0, positions: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T D"]:
        """Adds the codes of positions start, start + 1, ..., or of `positions` where each row has its own.

        In cached decoding `start` is the number of tokens before; with padding at the left the rows differ.
        """
        return x + _rows(self.table, start, x.shape[1], positions)


class LearnedPositions(nn.Module):
    """x_pos + P[pos] with a learned table P (Gehring et al. 2017, arXiv 1705.03122, section 3.1).

    Raises ValueError, in `forward`, if a position is `context_length` or more.
    """

    def __init__(self, dim: int, context_length: int, *, std: float = 0.02):
        super().__init__()
        self.table = nn.Parameter(torch.randn(context_length, dim) * std)

    def forward(
        self, x: Float[Tensor, "B T D"], *, start: int = 0, positions: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T D"]:
        """Adds the codes of positions start, start + 1, ..., or of `positions` where each row has its own.

        In cached decoding `start` is the number of tokens before; with padding at the left the rows differ.
        """
        return x + _rows(self.table, start, x.shape[1], positions)


class RotaryPositions(nn.Module):
    """R_m x_m: queries or keys turned by their position's angles, Su et al. 2021, eq. (14); nothing is learned.

    Raises ValueError if `head_dim` is odd or, in `forward`, if a position is `context_length` or more.
    """

    def __init__(self, head_dim: int, context_length: int, *, base: float = 10_000.0):
        super().__init__()
        self.register_buffer("turns", rotary_turns(context_length, head_dim, base=base), persistent=False)

    def forward(self, x: Float[Tensor, "B H T d"], *, start: int = 0) -> Float[Tensor, "B H T d"]:
        """Turns positions start, start + 1, ...: padding counts, which at the left changes no distance."""
        return rotate(x, _rows(self.turns, start, x.shape[2], None))


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
            f"positions {first} to {last} were asked for, the table holds 0 to {len(table) - 1}: shorten the input, or "
            "build the model with a larger context_length"
        )
    return table[first : last + 1] if positions is None else table[positions]


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


def check_sizes(config: Any, *names: str) -> None:
    """Raises ValueError, by name, for a size below 1 in a model's config; a pair has two, None is no size.

    NumPy's integers become Python's.
    """
    plain_integers(config)
    for name in names:
        value = getattr(config, name)
        if value is not None and min((value,) if isinstance(value, int) else value) < 1:
            raise ValueError(f"{name} must be 1 or more, got {value}")
