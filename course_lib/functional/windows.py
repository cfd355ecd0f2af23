"""Windows on an image: attention inside them, and the shift by which neighbouring windows talk to each other.

Liu et al., "Swin Transformer: hierarchical vision Transformer using shifted windows", ICCV 2021, arXiv 2103.14030.
"""

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from course_lib.functional.attention import attention


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
        place = torch.arange(length)
        return (place >= length - size).int() + (place >= length - shift).int()

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


def window_attention(
    q: Float[Tensor, "B nW heads M2 d"],
    k: Float[Tensor, "B nW heads M2 d"],
    v: Float[Tensor, "B nW heads M2 d"],
    bias: Float[Tensor, "#nW heads M2 M2"],
) -> Float[Tensor, "B nW heads M2 d"]:
    """softmax(Q K^T / sqrt(d) + B) V in each window, eq. (4); B is -inf where a query may not see a key.

    A fused product cannot learn B: it is taken where B is not being learned.
    """
    if not (torch.is_grad_enabled() and bias.requires_grad):
        bias = bias if len(bias) == 1 else bias.expand(len(q), *bias.shape).flatten(0, 1)
        heads = attention(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), bias=bias)
        return heads.unflatten(0, q.shape[:2])
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
    return scores.add_(bias).softmax(dim=-1) @ v  # in place: no gradient needs the products alone
