"""The Conformer: attention for what is far, convolution for what is near, in one block, to be read off by CTC.

Gulati et al., "Conformer: convolution-augmented Transformer for speech recognition", Interspeech 2020, arXiv
2005.08100.
"""

from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.functional.attention import key_mask
from course_lib.functional.positions import sinusoidal_positions
from course_lib.layers.relative_attention import RelativeAttention, relative_sinusoids
from course_lib.layers.transformer import FeedForward, MultiHeadAttention, TransformerBlock, check_sizes


@dataclass(frozen=True, kw_only=True)
class ConformerConfig:
    """Conformer (S) by default. Raises ValueError for a size below 1 or an even kernel."""

    frame_dim: int = 80  # numbers in a frame: mel filters
    num_classes: int | None = None  # with CTC's blank, which is class 0; None: features
    dim: int = 144
    depth: int = 16  # blocks
    num_heads: int = 4
    mlp_dim: int = 576  # 4 x dim
    kernel_size: int = 31  # frames that the depthwise convolution sees; 32 in the paper, odd here to have a middle
    num_halvings: int = 2  # convolutions of stride 2 before the blocks: frames of 10 ms become 40 ms
    dropout: float = 0.1  # P_drop of inner units, attention weights and each module's output

    def __post_init__(self):
        check_sizes(self, "frame_dim", "dim", "depth", "num_heads", "mlp_dim", "kernel_size", "num_halvings")
        if self.kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be odd, so that it has a middle, got {self.kernel_size}")


class Subsampling(nn.Module):
    """Convolutions of 3 x 3 with stride 2 and ReLU over time and frequency, then a linear layer: section 2, figure 1.

    T frames become T / 2^num_halvings, rounded up. What lies beyond the real frames counts as silence, 0.
    """

    def __init__(self, frame_dim: int, dim: int, *, num_halvings: int, dropout: float):
        super().__init__()
        channels = [1] + [dim] * num_halvings
        self.convs = nn.ModuleList(
            nn.Conv2d(c_in, c_out, 3, stride=2, padding=1) for c_in, c_out in zip(channels, channels[1:], strict=False)
        )
        self.proj = nn.Linear(dim * -(-frame_dim // 2**num_halvings), dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, frames: Float[Tensor, "B T F"], valid: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B t D"]:
        x = frames[:, None]
        for conv in self.convs:
            x = conv(x if valid is None else x.where(valid[:, None, :, None], 0.0)).relu()
            valid = None if valid is None else valid[:, ::2]
        return self.dropout(self.proj(rearrange(x, "b c t f -> b t (c f)")))


class ConvModule(nn.Module):
    """Pointwise convolution with GLU, depthwise convolution, BatchNorm, Swish, pointwise convolution: figure 2.

    Pointwise convolutions are linear layers: they see one frame. Padding is silence to the depthwise one.
    Differs from the paper, which does not say it, in that no convolution has a bias, as in later releases.
    """

    def __init__(self, dim: int, kernel_size: int):
        super().__init__()
        self.in_proj = nn.Linear(dim, 2 * dim, bias=False)
        self.depthwise = nn.Conv1d(dim, dim, kernel_size, padding=kernel_size // 2, groups=dim, bias=False)
        self.norm = nn.BatchNorm1d(dim)
        self.out_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Float[Tensor, "B T D"], valid: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B T D"]:
        x = F.glu(self.in_proj(x), dim=-1)
        x = x if valid is None else x.where(valid[..., None], 0.0)
        return self.out_proj(F.silu(self.norm(self.depthwise(x.mT))).mT)


class ConformerBlock(nn.Module):
    """Half a feed-forward network, attention, convolution, the other half, a norm: section 2.4, eq. (1)."""

    def __init__(self, config: ConformerConfig):
        super().__init__()
        norm = partial(nn.LayerNorm, config.dim)
        ffn = partial(FeedForward, config.dim, config.mlp_dim, activation="silu", dropout=config.dropout)
        self.norm1, self.ffn1 = norm(), ffn()
        self.norm2, self.attn = norm(), RelativeAttention(config.dim, config.num_heads, dropout=config.dropout)
        self.norm3, self.conv = norm(), ConvModule(config.dim, config.kernel_size)
        self.norm4, self.ffn2 = norm(), ffn()
        self.norm5 = norm()
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, x: Float[Tensor, "B T D"], distances: Float[Tensor, "d D"], valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T D"]:
        x = x + 0.5 * self.dropout(self.ffn1(self.norm1(x)))
        x = x + self.dropout(self.attn(self.norm2(x), distances, mask=key_mask(valid)))
        x = x + self.dropout(self.conv(self.norm3(x), valid))
        x = x + 0.5 * self.dropout(self.ffn2(self.norm4(x)))
        return self.norm5(x)


class Conformer(nn.Module):
    """From frames (B, T, F) to logits of CTC's symbols, T / 2^num_halvings of them, or without a head to features.

    `valid` is True at the real frames of a padded batch; `shorter` makes it that of the logits. Batch norm counts
    padding in training. Raises ValueError for sizes that do not fit together.
    """

    def __init__(self, config: ConformerConfig):
        super().__init__()
        self.config = config
        front = {"num_halvings": config.num_halvings, "dropout": config.dropout}
        self.subsampling = Subsampling(config.frame_dim, config.dim, **front)
        self.blocks = nn.ModuleList(self.build_block() for _ in range(config.depth))
        self.head = None if config.num_classes is None else nn.Linear(config.dim, config.num_classes)

    def build_block(self) -> nn.Module:
        return ConformerBlock(self.config)

    def shorter(self, valid: Bool[Tensor, "B T"]) -> Bool[Tensor, "B t"]:
        """Which of the subsampled frames are real."""
        return valid[:, :: 2**self.config.num_halvings]

    def embed(self, frames: Float[Tensor, "B T F"], valid: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B t D"]:
        return self.subsampling(frames, valid)

    def encode(self, x: Float[Tensor, "B t D"], valid: Bool[Tensor, "B t"] | None = None) -> Float[Tensor, "B t D"]:
        distances = relative_sinusoids(*x.shape[1:]).to(x)
        for block in self.blocks:
            x = block(x, distances, valid)
        return x

    def features(
        self, frames: Float[Tensor, "B T F"], valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B t D"]:
        return self.encode(self.embed(frames, valid), None if valid is None else self.shorter(valid))

    def forward(self, frames: Float[Tensor, "B T F"], valid: Bool[Tensor, "B T"] | None = None) -> Tensor:
        x = self.features(frames, valid)
        return x if self.head is None else self.head(x)


class SpeechTransformer(Conformer):
    """The peer: the same subsampling and head around a plain pre-norm Transformer with sinusoids added."""

    def __init__(self, config: ConformerConfig):
        super().__init__(config)
        self.norm = nn.LayerNorm(config.dim)

    def build_block(self) -> nn.Module:
        config = self.config
        attn = MultiHeadAttention(config.dim, config.num_heads, dropout=config.dropout)
        ffn = FeedForward(config.dim, config.mlp_dim, dropout=config.dropout)
        return TransformerBlock(attn, ffn, partial(nn.LayerNorm, config.dim), dropout=config.dropout)

    def encode(self, x: Float[Tensor, "B t D"], valid: Bool[Tensor, "B t"] | None = None) -> Float[Tensor, "B t D"]:
        x = x + sinusoidal_positions(*x.shape[1:]).to(x)
        for block in self.blocks:
            x = block(x, mask=key_mask(valid))
        return self.norm(x)


def conformer_small(**overrides) -> Conformer:
    """Conformer (S): 8.7 M parameters. Table 1 counts its decoder, too, with an LSTM of 320 units: 10.3 M."""
    return Conformer(ConformerConfig(**overrides))


def conformer_medium(**overrides) -> Conformer:
    """Conformer (M): 27.3 M parameters, and 3.3 M in the decoder's LSTM of 640 units; table 1 has 30.7 M."""
    return Conformer(ConformerConfig(**{"dim": 256, "mlp_dim": 1024} | overrides))


def conformer_large(**overrides) -> Conformer:
    """Conformer (L): 115.1 M parameters, and 3.3 M in the decoder's LSTM of 640 units; table 1 has 118.8 M."""
    return Conformer(ConformerConfig(**{"dim": 512, "depth": 17, "num_heads": 8, "mlp_dim": 2048} | overrides))
