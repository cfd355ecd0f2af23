"""The batch of a step: a pure function of the step, so a resumed run needs no loader state.

`Rollouts` are the exception, batches that the model itself makes: there a pure function of the model, too.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.training.config import FitConfig

# Similar lengths are looked for among this many batches: enough to save padding, few enough to mix.
POOL_BATCHES = 50


def shuffled_batches(num_examples: int, batch_size: int, seed: int) -> Callable[[int], Int[Tensor, " B"]]:
    """Returns `indices_at(step)`: every example once per epoch, in a new order each epoch.

    The last batch of an epoch is smaller when `batch_size` does not divide `num_examples`.
    """
    return _epochs(num_examples, batch_size, seed, lambda random: random.permutation(num_examples), mix=False)


def bucketed_batches(
    lengths: Sequence[int] | np.ndarray | Tensor, batch_size: int, seed: int
) -> Callable[[int], Int[Tensor, " B"]]:
    """Returns `indices_at(step)`: every example once per epoch, in batches of similar length (less padding).

    The shuffled examples are cut into pools of `POOL_BATCHES` batches; each pool is sorted by length, then
    the batches are shuffled.
    """
    lengths = np.asarray(lengths)

    def order(random: np.random.Generator) -> np.ndarray:
        pool = np.arange(len(lengths)) // (POOL_BATCHES * batch_size)
        shuffled = random.permutation(len(lengths))
        return shuffled[np.lexsort((lengths[shuffled], pool))]  # by pool, then by length

    return _epochs(len(lengths), batch_size, seed, order, mix=True)


def text_windows(
    ids: Int[Tensor, " T"], *, batch_size: int, length: int, seed: int
) -> Callable[[int], Int[Tensor, "B T_window"]]:
    """Returns `batch_at(step)`: windows of `length` tokens that begin anywhere in the text.

    For a loss on each next token, `length` is the model's context and one more. Raises ValueError for a text that is
    shorter.
    """
    if len(ids) < length:
        raise ValueError(f"a text of {len(ids)} tokens has no window of {length}: give a longer one or shorter windows")
    offsets = torch.arange(length)

    def batch_at(step: int) -> Int[Tensor, "B T_window"]:
        random = np.random.default_rng([seed, step])
        starts = torch.from_numpy(random.integers(len(ids) - length + 1, size=batch_size))
        return ids[starts[:, None] + offsets]

    return batch_at


class Rollouts:
    """Batches that the model itself makes, for `fit` in place of `batch_at`: PPO, and other learning from own actions.

    Schulman et al. 2017, arXiv 1707.06347, algorithm 1. Before each round of `epochs * minibatches` steps,
    `make(model, round)`, round = 0, 1, ..., plays with the model as it is then, in evaluation mode and without
    gradients. It returns a dict of tensors whose first axis counts the same N examples, with all that the loss will
    ask of the old model (actions, their log-probabilities, advantages). Each epoch cuts the N examples, in a new order,
    into `minibatches` dicts of about N / minibatches: these are the batches.

    What `make` returns may depend on the model, the round and the global random numbers, but on nothing that goes on
    from round to round: then a run that is interrupted between two rounds goes on bit for bit.
    Raises ValueError for fewer than one epoch or minibatch, a rollout with fewer examples than minibatches, and, from
    `fit`, a `checkpoint_every` within a round.
    """

    def __init__(self, make: Callable[[nn.Module, int], dict[str, Any]], *, epochs: int, minibatches: int):
        if epochs < 1 or minibatches < 1:
            raise ValueError(f"a round needs an epoch and a minibatch or more, got {epochs} and {minibatches}")
        self.make, self.epochs, self.minibatches = make, epochs, minibatches

    def batches(self, model: nn.Module, config: FitConfig) -> Callable[[int], dict[str, Tensor]]:
        """`batch_at(step)` for one training of `model`, which is trained between the calls."""
        steps = self.epochs * self.minibatches
        if config.checkpoint_every and config.checkpoint_every % steps:
            raise ValueError(
                f"checkpoint_every={config.checkpoint_every} would save within a round of {steps} steps ({self.epochs} "
                f"epochs of {self.minibatches} minibatches), but a rollout is not saved: take a multiple of {steps}"
            )

        @lru_cache(maxsize=1)
        def rollout(round: int) -> dict[str, Tensor]:
            model.eval()
            with torch.no_grad():
                made = self.make(model, round)
            model.train()
            lengths = {name: len(tensor) for name, tensor in made.items()}
            if len(set(lengths.values())) != 1 or min(lengths.values()) < self.minibatches:
                raise ValueError(
                    f"make must give all tensors one number of examples, at least its {self.minibatches} minibatches, "
                    f"got {lengths}"
                )
            return made

        def batch_at(step: int) -> dict[str, Tensor]:
            epoch, part = divmod(step, self.minibatches)
            made = rollout(step // steps)
            order = np.random.default_rng([config.seed, epoch]).permutation(len(next(iter(made.values()))))
            rows = torch.from_numpy(np.array_split(order, self.minibatches)[part])
            return {name: tensor[rows.to(tensor.device)] for name, tensor in made.items()}

        return batch_at


def _epochs(
    num_examples: int, batch_size: int, seed: int, order: Callable[[np.random.Generator], np.ndarray], *, mix: bool
) -> Callable[[int], Tensor]:
    if num_examples < 1 or batch_size < 1:
        raise ValueError(
            f"Batches need at least one example and a batch size of at least 1, "
            f"got {num_examples} examples and batch size {batch_size}."
        )
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
