"""Position codes: what tells attention the order of its inputs.

Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv 1706.03762 (sinusoids). Raffel et al., "Exploring the
limits of transfer learning with a unified text-to-text Transformer", JMLR 2020, arXiv 1910.10683 (relative positions).
He et al., "Masked autoencoders are scalable vision learners", CVPR 2022, arXiv 2111.06377 (two dimensions).
Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, arXiv 2010.11929 (images of other sizes). Su et al.,
"RoFormer: enhanced Transformer with rotary position embedding", 2021, arXiv 2104.09864 (rotations).
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def sinusoidal_positions(
    length: int, dim: int, *, base: float = 10_000.0, halves: bool = False
) -> Float[Tensor, "{length} {dim}"]:
    """PE(pos, 2i) = sin(pos / base^(2i/dim)), PE(pos, 2i+1) = cos(the same), Vaswani et al. 2017, section 3.5.

    Positions count from 0. With `halves` all sines come first, then all cosines, as in the Marian toolkit.
    Raises ValueError if `dim` is odd or a size is not positive.
    """
    if length < 1 or dim < 2 or dim % 2:
        raise ValueError(f"length must be at least 1 and dim even and at least 2, got length={length}, dim={dim}")
    position = torch.arange(length, dtype=torch.float64)
    frequency = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = position[:, None] * frequency
    # float64 up to here: in float32 the fast sines of far positions lose their last digits
    waves = [angle.sin(), angle.cos()]
    return (torch.cat(waves, dim=-1) if halves else torch.stack(waves, dim=-1).flatten(1)).float()


def sinusoidal_positions_2d(height: int, width: int, dim: int) -> Float[Tensor, "{height}*{width} {dim}"]:
    """For each place of a grid, row by row, the code of its column beside that of its row, of dim/2 numbers each.

    He et al. 2022, section 3, "Simple implementation". Each half is `sinusoidal_positions` with all sines first; that
    the column comes before the row is the order of the released code.
    Raises ValueError if `dim` is no multiple of 4 or a size is not positive.
    """
    if min(height, width) < 1 or dim < 4 or dim % 4:
        raise ValueError(
            f"height and width must be at least 1 and dim a positive multiple of 4, got {height} x {width}, dim={dim}"
        )
    rows, columns = (sinusoidal_positions(length, dim // 2, halves=True) for length in (height, width))
    return torch.cat([columns.repeat(height, 1), rows.repeat_interleave(width, dim=0)], dim=-1)


def relative_buckets(
    distance: Int[Tensor, "*S"], *, num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
) -> Int[Tensor, "*S"]:
    """Sorts distances (key minus query, in tokens) into buckets that share a bias, Raffel et al. 2020, section 2.1.

    Half of the buckets hold one distance each, the others grow logarithmically up to `max_distance`; all that is
    farther falls into the last one. `bidirectional` keeps half of all buckets for keys after the query; otherwise such
    keys count as distance 0. Raises ValueError for too few buckets, or a `max_distance` that leaves none to grow.
    """
    direction = num_buckets // 2 if bidirectional else num_buckets  # buckets of one direction
    exact = direction // 2
    if exact < 1 or max_distance <= exact:
        raise ValueError(
            f"relative positions need num_buckets of {4 if bidirectional else 2} or more and max_distance beyond the "
            f"{max(exact, 1)} exact bucket(s), got num_buckets={num_buckets}, max_distance={max_distance}"
        )
    past = distance.abs() if bidirectional else (-distance).clamp(min=0)
    # in float32 and in this order, as the released code: elsewhere a boundary can move by one
    growth = torch.log(past.clamp(min=exact).float() / exact) / math.log(max_distance / exact) * (direction - exact)
    bucket = torch.where(past < exact, past, (exact + growth.long()).clamp(max=direction - 1))
    return bucket + direction * (distance > 0) if bidirectional else bucket


def interpolate_positions(
    positions: Float[Tensor, "h w D"], height: int, width: int
) -> Float[Tensor, "{height} {width} D"]:
    """The position embeddings of a grid of patches for an image of other size, Dosovitskiy et al. 2021, section 3.2.

    Each of the D numbers is a picture, which is resized to height x width patches: bicubic, corners not aligned. The
    class token's embedding has no place in it, and must be left out. Raises ValueError for a size that is not positive.
    """
    if height < 1 or width < 1:
        raise ValueError(f"a grid has at least one patch in each direction, got {height} x {width}")
    picture = positions.permute(2, 0, 1)[None]  # (1, D, h, w)
    return F.interpolate(picture, (height, width), mode="bicubic", align_corners=False)[0].permute(1, 2, 0)


def fit_positions(
    table: Float[Tensor, "1 T D"], grid: tuple[int, int], new_grid: tuple[int, int]
) -> Float[Tensor, "1 T_new D"]:
    """The positions of a grid of patches, row by row, interpolated to another grid; what stands before them stays."""
    first, rest = table.tensor_split([table.shape[1] - grid[0] * grid[1]], dim=1)
    picture = interpolate_positions(rest[0].unflatten(0, grid), *new_grid)
    return torch.cat([first, picture.flatten(0, 1)[None]], dim=1)


def rotary_turns(length: int, dim: int, *, base: float = 10_000.0) -> Float[Tensor, "{length} 2 {dim}//2"]:
    """cos(m theta_i) and sin(m theta_i) of position m, theta_i = base^(-2i/dim): Su et al. 2021, section 3.2.2.

    Positions and pairs i count from 0: the first pair turns fastest, by one radian at each position.
    Raises ValueError if `dim` is odd or a size is not positive.
    """
    if length < 1 or dim < 2 or dim % 2:
        raise ValueError(f"length must be at least 1 and dim even and at least 2, got length={length}, dim={dim}")
    # in float32 and in this order, as the released code: at position 4,000 another order turns by 2e-4 more or less
    theta = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
    angle = torch.arange(length).float()[:, None] * theta
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def rotate(x: Float[Tensor, "*B T d"], turns: Float[Tensor, "T two half"]) -> Float[Tensor, "*B T d"]:
    """R_m x_m: each pair of numbers of a query or key turns by its position's angles, Su et al. 2021, eqs. (14)-(15).

    (a, b) -> (a cos - b sin, a sin + b cos). The score of a turned query and a turned key, (R_m q)^T R_n k =
    q^T R_{n-m} k, depends on their distance alone: eq. (16). Differs from the paper in which numbers make a pair: i and
    i + d/2, as Hugging Face keeps Llama, not neighbours. It is another order of the rows of W^Q and W^K, no more.
    """
    cos, sin = turns.unbind(dim=1)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
