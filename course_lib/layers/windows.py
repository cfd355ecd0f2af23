"""What a Swin Transformer is made of: attention in windows, shifted or not, and merging of patches.

Liu et al., "Swin Transformer: hierarchical vision Transformer using shifted windows", ICCV 2021, arXiv 2103.14030.
"""

from functools import lru_cache

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.functional.windows import (
    cyclic_shift,
    relative_position_index,
    shifted_window_mask,
    window_attention,
    window_merge,
    window_partition,
)
from course_lib.layers.drop_path import DropPath
from course_lib.layers.linear import Linear
from course_lib.layers.transformer import FeedForward


class WindowAttention(nn.Module):
    """W-MSA and, with a `shift`, SW-MSA: multi-head attention inside windows of `window_size` x `window_size` places.

    Section 3.2, with a learned bias for each offset inside a window, eq. (4). A map that is no whole number of windows
    is padded with zeros below and on the right. As in the released code its places attend to them: each gives a key and
    a value that say nothing of the image (the biases of their projections).
    Where the map is no larger than a window, on its shorter side, the window shrinks to that side and is not shifted.
    Raises ValueError if `dim` is no multiple of `num_heads`, or `shift` is not from 0 to below `window_size`.
    """

    def __init__(self, dim: int, num_heads: int, window_size: int, *, shift: int = 0, qkv_bias: bool = True):
        super().__init__()
        if num_heads < 1 or dim < 1 or dim % num_heads:
            raise ValueError(f"dim must be a positive multiple of num_heads, got dim={dim}, num_heads={num_heads}")
        if not 0 <= shift < window_size:
            raise ValueError(f"shift must be from 0 to below window_size={window_size}, got {shift}")
        self.num_heads, self.window_size, self.shift = num_heads, window_size, shift
        self.q_proj = Linear(dim, dim, bias=qkv_bias)
        self.k_proj = Linear(dim, dim, bias=qkv_bias)
        self.v_proj = Linear(dim, dim, bias=qkv_bias)
        self.o_proj = Linear(dim, dim)
        self.bias_table = nn.Parameter(torch.randn((2 * window_size - 1) ** 2, num_heads) * 0.02)  # B^ of section 3.2

    def forward(self, x: Float[Tensor, "B H W D"]) -> Float[Tensor, "B H W D"]:
        height, width = x.shape[1:3]
        size = min(height, width, self.window_size)
        shift = self.shift if min(height, width) > self.window_size else 0
        missing = (-height % size, -width % size)
        if any(missing):
            x = F.pad(x, (0, 0, 0, missing[1], 0, missing[0]))
        bias = self.position_bias(size)
        if shift:
            bias = bias.masked_fill(hidden_pairs(*x.shape[1:3], size, shift, x.device)[:, None], float("-inf"))

        windows = window_partition(cyclic_shift(x, shift), size)
        q, k, v = (self._split(proj(windows)) for proj in (self.q_proj, self.k_proj, self.v_proj))
        heads = window_attention(q, k, v, bias).transpose(2, 3).flatten(3)  # (B, nW, M2, D)
        x = cyclic_shift(window_merge(self.o_proj(heads), *x.shape[1:3]), -shift)
        return x[:, :height, :width]

    def position_bias(self, size: int) -> Float[Tensor, "1 heads M2 M2"]:
        """B of eq. (4): what is added to the score of each pair of places in a window of this size."""
        index = position_index(size, self.window_size, self.bias_table.device)
        return F.embedding(index, self.bias_table).permute(2, 0, 1)[None]

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(3, (self.num_heads, -1)).transpose(2, 3)  # (B, nW, heads, M2, d)

    def extra_repr(self) -> str:
        return f"num_heads={self.num_heads}, window_size={self.window_size}, shift={self.shift}"


# Both tables depend on sizes alone. They are kept for a few sizes at a time, and must not be inference tensors, which a
# later training could not use.
@lru_cache(maxsize=16)
@torch.inference_mode(False)
def hidden_pairs(height: int, width: int, size: int, shift: int, device: torch.device) -> Bool[Tensor, "nW M2 M2"]:
    """True where `shifted_window_mask` is not."""
    return ~shifted_window_mask(height, width, size, shift).to(device)


@lru_cache(maxsize=16)
@torch.inference_mode(False)
def position_index(size: int, table_size: int, device: torch.device) -> Int[Tensor, "M2 M2"]:
    """`relative_position_index` on a device."""
    return relative_position_index(size, table_size).to(device)


class SwinBlock(nn.Module):
    """x + (S)W-MSA(LN(x)), then x + MLP(LN(x)): eq. (3), with stochastic depth on both branches."""

    def __init__(self, attn: WindowAttention, dim: int, mlp_dim: int, *, drop_path: float = 0.0):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(dim), attn
        self.norm2, self.ffn = nn.LayerNorm(dim), FeedForward(dim, mlp_dim, activation="gelu")
        self.drop_path = DropPath(drop_path)

    def forward(self, x: Float[Tensor, "B H W D"]) -> Float[Tensor, "B H W D"]:
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.ffn(self.norm2(x)))


class PatchMerging(nn.Module):
    """W LN([x_1; x_2; x_3; x_4]): each 2 x 2 patches become one of twice the width, section 3.1.

    The four are joined column by column, as in the released code. An odd map gets a row or column of zeros at its end.
    """

    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(4 * dim)
        self.proj = Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x: Float[Tensor, "B H W D"]) -> Float[Tensor, "B h w E"]:
        height, width = x.shape[1:3]
        if height % 2 or width % 2:
            x = F.pad(x, (0, 0, 0, width % 2, 0, height % 2))
        return self.proj(self.norm(rearrange(x, "b (h m) (w n) d -> b h w (n m d)", m=2, n=2)))
