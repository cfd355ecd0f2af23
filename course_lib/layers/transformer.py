"""The blocks that every Transformer is stacked from: attention communicates, the feed-forward network thinks alone.

Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv 1706.03762, section 3.1. Ba, Kiros & Hinton, "Layer
normalization", 2016, arXiv 1607.06450. Xiong et al., "On layer normalization in the Transformer architecture", 2020,
arXiv 2002.04745 (pre-norm and post-norm). Shazeer, "GLU variants improve Transformer", 2020, arXiv 2002.05202.
"""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from course_lib.layers.attention import KeysValues, KVCache, MultiHeadAttention
from course_lib.layers.linear import Linear

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
        self.gate_proj = Linear(dim, mlp_dim, bias=bias) if gated else None
        self.up_proj = Linear(dim, mlp_dim, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.down_proj = Linear(mlp_dim, dim, bias=bias)

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
