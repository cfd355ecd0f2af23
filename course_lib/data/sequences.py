"""Small tasks that need a memory: what came first, and what came some steps ago. Each is a pure function of its seed.

After Hochreiter & Schmidhuber, "Long short-term memory", Neural Computation 9(8), 1997, section 5 (long time lags), and
Jaeger, "Short term memory in echo state networks", GMD report 152, 2001 (the delay task).
"""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor


class FirstSymbol(NamedTuple):
    """Sequences, and the symbol that each began with."""

    tokens: Int[Tensor, "N T"]
    first: Int[Tensor, " N"]


class Echo(NamedTuple):
    """Sequences, and at each step the symbol of `delay` steps before; the blank where there is none."""

    tokens: Int[Tensor, "N T"]
    echo: Int[Tensor, "N T"]


def first_symbol(count: int, length: int, *, num_symbols: int = 10, noise: float = 1.0, seed: int = 0) -> FirstSymbol:
    """Remember the first of `length` symbols until the end: a guess is right once in `num_symbols` times.

    What follows the first symbol is, with probability `noise`, another random symbol, and else the blank, whose id is
    `num_symbols`: the vocabulary has num_symbols + 1 ids. Without noise nothing disturbs the memory; with noise 1 every
    step looks like the one that matters.
    Raises ValueError for a size below 1, fewer than two symbols, or noise outside [0, 1].
    """
    _check_sizes(count, length, num_symbols)
    if not 0 <= noise <= 1:
        raise ValueError(f"noise is a probability between 0 and 1, got {noise}")
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(num_symbols, (count, length), generator=generator)
    blank = torch.rand(count, length, generator=generator) >= noise
    blank[:, 0] = False
    return FirstSymbol(tokens.masked_fill(blank, num_symbols), tokens[:, 0].clone())


def delayed_echo(count: int, length: int, *, delay: int, num_symbols: int = 4, seed: int = 0) -> Echo:
    """Say at each step what came `delay` steps before: the memory must hold the last `delay` symbols at once.

    The blank, whose id is `num_symbols`, is what to say at the first `delay` steps.
    Raises ValueError for a size below 1, fewer than two symbols, or a delay outside 0 ... length - 1.
    """
    _check_sizes(count, length, num_symbols)
    if not 0 <= delay < length:
        raise ValueError(f"delay must lie between 0 and length - 1 = {length - 1}, got {delay}")
    tokens = torch.randint(num_symbols, (count, length), generator=torch.Generator().manual_seed(seed))
    blanks = torch.full((count, delay), num_symbols)
    return Echo(tokens, torch.cat([blanks, tokens[:, : length - delay]], dim=1))


def _check_sizes(count: int, length: int, num_symbols: int) -> None:
    if count < 1 or length < 1 or num_symbols < 2:
        raise ValueError(
            "count and length must be 1 or more and num_symbols 2 or more, "
            f"got count={count}, length={length}, num_symbols={num_symbols}"
        )
