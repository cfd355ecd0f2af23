"""Layers that tell each token its place: fixed sinusoids or a learned table (Vaswani et al. 2017, section 3.5), or a
bias for each distance (Raffel et al., JMLR 2020, arXiv 1910.10683, section 2.1)."""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.functional.positions import relative_buckets, sinusoidal_positions


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
