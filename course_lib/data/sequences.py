"""A small task that needs a memory: what came first. A pure function of its seed.

After Hochreiter & Schmidhuber, "Long short-term memory", Neural Computation 9(8), 1997, section 5 (long time lags).
"""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor


class FirstSymbol(NamedTuple):
    """Sequences, and the symbol that each began with."""

    tokens: Int[Tensor, "N T"]
    first: Int[Tensor, " N"]


def first_symbol(count: int, length: int, *, num_symbols: int = 10, noise: float = 1.0, seed: int = 0) -> FirstSymbol:
    """Remember the first of `length` symbols until the end: a guess is right once in `num_symbols` times.

    What follows the first symbol is, with probability `noise`, another random symbol, and else the blank, whose id is
    `num_symbols`: the vocabulary has num_symbols + 1 ids. Without noise nothing disturbs the memory; with noise 1 every
    step looks like the one that matters.
    Raises ValueError for a size below 1, fewer than two symbols, or noise outside [0, 1].
    """
    if count < 1 or length < 1 or num_symbols < 2:
        raise ValueError(
            "count and length must be 1 or more and num_symbols 2 or more, "
            f"got count={count}, length={length}, num_symbols={num_symbols}"
        )
    if not 0 <= noise <= 1:
        raise ValueError(f"noise is a probability between 0 and 1, got {noise}")
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(num_symbols, (count, length), generator=generator)
    blank = torch.rand(count, length, generator=generator) >= noise
    blank[:, 0] = False
    return FirstSymbol(tokens.masked_fill(blank, num_symbols), tokens[:, 0].clone())
