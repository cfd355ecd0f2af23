"""Position codes: what tells attention the order of its inputs (Vaswani et al. 2017, arXiv 1706.03762)."""

import torch
from jaxtyping import Float
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
