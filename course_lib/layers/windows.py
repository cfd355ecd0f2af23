"""Windows on an image: attention inside them, and the shift by which neighbouring windows talk to each other.

Liu et al., "Swin Transformer: hierarchical vision Transformer using shifted windows", ICCV 2021, arXiv 2103.14030.
Huang et al., "Deep networks with stochastic depth", ECCV 2016, arXiv 1603.09382.
"""

from functools import lru_cache

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from course_lib.layers.transformer import FeedForward, MultiHeadAttention


def window_partition(x: Shaped[Tensor, "B H W D"], size: int) -> Shaped[Tensor, "B nW M2 D"]:
    """The windows of size x size places, row by row, and the places of each, row by row: figure 2, on the left.

    Raises ValueError if the map is no whole number of windows high and wide.
    """
    height, width = x.shape[1:3]
    if size < 1 or height % size or width % size:
        raise ValueError(f"a map of {height} x {width} is no whole number of windows of {size} x {size}: pad it")
    return rearrange(x, "b (i m) (j n) d -> b (i j) (m n) d", m=size, n=size)


def window_merge(windows: Shaped[Tensor, "B nW M2 D"], height: int, width: int) -> Shaped[Tensor, "B H W D"]:
    """The map of height x width whose windows these are: the inverse of `window_partition`.

    Raises ValueError if so many windows of this size do not make such a map.
    """
    num_windows, area = windows.shape[1:3]
    size = round(area**0.5)
    if size**2 != area or height % size or width % size or num_windows * area != height * width:
        raise ValueError(f"{num_windows} windows of {area} places do not make a map of {height} x {width}")
    return rearrange(windows, "b (i j) (m n) d -> b (i m) (j n) d", i=height // size, m=size)


def cyclic_shift(x: Shaped[Tensor, "B H W D"], shift: int) -> Shaped[Tensor, "B H W D"]:
    """Moves everything up and to the left by `shift` places; what leaves comes in at the other end: figure 4.

    A negative shift moves it back.
    """
    return x.roll((-shift, -shift), dims=(1, 2)) if shift else x


def shifted_window_mask(height: int, width: int, size: int, shift: int) -> Bool[Tensor, "nW M2 M2"]:
    """True where two places of a shifted map's window were neighbours before the shift, and may attend: figure 4.

    Raises ValueError if the map is no whole number of windows, or `shift` is not from 0 to below `size`.
    """
    if not 0 <= shift < size:
        raise ValueError(f"windows of {size} can be shifted by 0 to {size - 1} places, got {shift}")

    def bands(length: int) -> Int[Tensor, " length"]:  # 0: before the last window, 1: in it, 2: in it, from the far end
        position = torch.arange(length)
        return (position >= length - size).int() + (position >= length - shift).int()

    region = 3 * bands(height)[:, None] + bands(width)
    region = window_partition(region[None, :, :, None], size)[0, :, :, 0]
    return region[:, :, None] == region[:, None, :]


def relative_position_index(size: int, table_size: int | None = None) -> Int[Tensor, "M2 M2"]:
    """Which row of the bias table belongs to a query and a key of one window: section 3.2, on the bias B.

    The table has a row for each offset (query minus key) of -(M - 1) ... M - 1 rows and as many columns, where M is
    `table_size`, or `size` if not given: (2M - 1)^2 of them. A smaller window uses the offsets that it has.
    Raises ValueError if the window is larger than the table's.
    """
    largest = size if table_size is None else table_size
    if not 1 <= size <= largest:
        raise ValueError(f"the table knows windows of 1 to {largest}, got one of {size}")
    row, column = torch.arange(size**2) // size, torch.arange(size**2) % size
    down, right = row[:, None] - row + largest - 1, column[:, None] - column + largest - 1
    return down * (2 * largest - 1) + right


class DropPath(nn.Module):
    """b x / (1 - rate), where b is 0 with probability `rate`, for a whole image or sentence at a time; x in use.

    It stands at the end of a residual branch, which it so leaves out: Huang et al. 2016, eq. (2). Differs from the
    paper in that the branch is made larger in training instead of smaller in use.
    Raises ValueError unless `rate` is from 0 to below 1.
    """

    def __init__(self, rate: float):
        super().__init__()
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"rate is a probability from 0 up to, but not including, 1; got {rate}")
        self.rate = rate

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if not self.training or self.rate == 0.0:
            return x
        kept = torch.rand(len(x), *[1] * (x.ndim - 1), device=x.device) >= self.rate
        return x * kept.to(x.dtype).div_(1.0 - self.rate)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class WindowAttention(MultiHeadAttention):
    """W-MSA and, with a `shift`, SW-MSA: multi-head attention inside windows of `window_size` x `window_size` places.

    Section 3.2, with a learned bias for each offset inside a window, eq. (4). A map that is no whole number of windows
    is padded with zeros below and on the right. As in the released code its places attend to them: each gives a key and
    a value that say nothing of the image (the biases of their projections).
    Where the map is no larger than a window, on its shorter side, the window shrinks to that side and is not shifted.
    Raises ValueError if `dim` is no multiple of `num_heads`, or `shift` is not from 0 to below `window_size`.
    """

    def __init__(self, dim: int, num_heads: int, window_size: int, *, shift: int = 0, qkv_bias: bool = True):
        super().__init__(dim, num_heads, qkv_bias=qkv_bias)
        if not 0 <= shift < window_size:
            raise ValueError(f"shift must be from 0 to below window_size={window_size}, got {shift}")
        self.window_size, self.shift = window_size, shift
        self.bias_table = nn.Parameter(torch.randn((2 * window_size - 1) ** 2, num_heads) * 0.02)  # B^ of section 3.2

    def forward(self, x: Float[Tensor, "B H W D"]) -> Float[Tensor, "B H W D"]:
        height, width = x.shape[1:3]
        size = min(height, width, self.window_size)
        shift = self.shift if min(height, width) > self.window_size else 0
        missing = (-height % size, -width % size)
        if any(missing):
            x = F.pad(x, (0, 0, 0, missing[1], 0, missing[0]))
        windows = window_partition(cyclic_shift(x, shift), size)  # (B, nW, M2, D)
        bias = self.position_bias(size)
        if shift:
            hidden = hidden_pairs(*x.shape[1:3], size, shift, x.device)
            bias = bias.masked_fill(hidden[:, None], float("-inf")).repeat(len(x), 1, 1, 1)  # (B nW, heads, M2, M2)
        attended = super().forward(windows.flatten(0, 1), score_bias=bias).unflatten(0, windows.shape[:2])
        return cyclic_shift(window_merge(attended, *x.shape[1:3]), -shift)[:, :height, :width]

    def position_bias(self, size: int) -> Float[Tensor, "1 heads M2 M2"]:
        """B of eq. (4): what is added to the score of each pair of places in a window of this size."""
        index = position_index(size, self.window_size, self.bias_table.device)
        return F.embedding(index, self.bias_table).permute(2, 0, 1)[None]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, window_size={self.window_size}, shift={self.shift}"


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
        self.proj = nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x: Float[Tensor, "B H W D"]) -> Float[Tensor, "B h w E"]:
        height, width = x.shape[1:3]
        if height % 2 or width % 2:
            x = F.pad(x, (0, 0, 0, width % 2, 0, height % 2))
        return self.proj(self.norm(rearrange(x, "b (h m) (w n) d -> b h w (n m d)", m=2, n=2)))
