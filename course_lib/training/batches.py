"""The examples of a step's batch: a pure function of the step, so a resumed run needs no loader state."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

# Similar lengths are looked for among this many batches: enough to save padding, few enough to mix.
POOL_BATCHES = 50


def shuffled_batches(num_examples: int, batch_size: int, seed: int) -> Callable[[int], Int[Tensor, " B"]]:
    """Returns `indices_at(step)`: every example once per epoch, in a new order each epoch.

    The last batch of an epoch is smaller when `batch_size` does not divide `num_examples`.
    """
    _check(num_examples, batch_size)
    return _epochs(num_examples, batch_size, seed, lambda random: random.permutation(num_examples), mix=False)


def bucketed_batches(
    lengths: Sequence[int] | np.ndarray | Tensor, batch_size: int, seed: int
) -> Callable[[int], Int[Tensor, " B"]]:
    """Returns `indices_at(step)`: every example once per epoch, in batches of similar length (less padding).

    The shuffled examples are cut into pools of `POOL_BATCHES` batches; each pool is sorted by length, then
    the batches are shuffled.
    """
    lengths = np.asarray(lengths)
    _check(len(lengths), batch_size)
    pool = np.arange(len(lengths)) // (POOL_BATCHES * batch_size)

    def order(random: np.random.Generator) -> np.ndarray:
        shuffled = random.permutation(len(lengths))
        return shuffled[np.lexsort((lengths[shuffled], pool))]  # by pool, then by length

    return _epochs(len(lengths), batch_size, seed, order, mix=True)


def _epochs(
    num_examples: int,
    batch_size: int,
    seed: int,
    order: Callable[[np.random.Generator], np.ndarray],
    mix: bool,
) -> Callable[[int], Tensor]:
    batches_per_epoch = -(-num_examples // batch_size)

    @lru_cache(maxsize=2)  # steps come in order, so an epoch's order is computed once
    def epoch_batches(epoch: int) -> list[Tensor]:
        random = np.random.default_rng([seed, epoch])
        batches = list(torch.from_numpy(order(random)).split(batch_size))
        return [batches[i] for i in random.permutation(len(batches))] if mix else batches

    def indices_at(step: int) -> Tensor:
        epoch, place = divmod(step, batches_per_epoch)
        return epoch_batches(epoch)[place]

    return indices_at


def _check(num_examples: int, batch_size: int) -> None:
    if num_examples < 1 or batch_size < 1:
        raise ValueError(
            f"Batches need at least one example and a batch size of at least 1, "
            f"got {num_examples} examples and batch size {batch_size}."
        )
