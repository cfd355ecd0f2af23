"""Interpolated Kneser-Ney n-grams: what counting alone knows about the next token.

Kneser & Ney, "Improved backing-off for m-gram language modeling", ICASSP 1995.
Chen & Goodman, "An empirical study of smoothing techniques for language modeling", Harvard TR-10-98, 1998, section
4.1.6.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.functional.metrics import bits_per_byte
from course_lib.layers.sizes import plain_integers

Tokens = Sequence[int] | Int[np.ndarray, " T"] | Int[Tensor, " T"]


@dataclass(frozen=True, kw_only=True)
class KneserNeyConfig:
    """`order` n: the next token is predicted from the n - 1 before it, so a bigram has order 2."""

    vocab_size: int
    order: int = 5
    modified: bool = True  # three discounts per order (Chen & Goodman) instead of one (Kneser & Ney)

    def __post_init__(self):
        plain_integers(self)
        if self.order < 1 or self.vocab_size < 1:
            raise ValueError(f"order and vocab_size must be 1 or more, got {self.order} and {self.vocab_size}")


@dataclass(frozen=True, kw_only=True)
class _Level:
    """All k-grams (h, w) of the training text, h being a (k-1)-gram; a gram's id is its place in `keys`."""

    keys: np.ndarray  # id of h times (V + 1), plus w; sorted
    discounted: np.ndarray  # max(c(h w) - D(c), 0) / sum_w c(h w), by gram
    backoff: np.ndarray  # gamma(h), by the id of h; 1 where h was never followed by anything

    def find(self, keys: np.ndarray) -> np.ndarray:
        """The ids of these keys, -1 for a gram that was never seen."""
        positions = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[positions] == keys, positions, -1)


class KneserNey:
    """p(w | h) = max(c(h w) - D(c), 0) / sum_w c(h w) + gamma(h) p(w | h'), Chen & Goodman 1998, eq. (27).

    h' is h without its first token, down to no context at all and then to 1 / V. The longest grams are counted; a
    shorter gram's c is the number of different tokens seen before it (their eq. 28): "Francisco" is frequent but
    follows one word only. A text is preceded by n - 1 start signs, which are never predicted.
    """

    def __init__(self, config: KneserNeyConfig):
        self.config = config
        self.discounts: list[tuple[float, float, float]] = []  # by order: D_1, D_2, D_3+
        self._levels: list[_Level] = []

    def fit(self, tokens: Tokens) -> "KneserNey":
        """Counts a text, forgetting any earlier one, and returns itself.

        Raises ValueError for an empty text and ids outside the vocabulary.
        """
        order, base = self.config.order, self.config.vocab_size + 1
        stream, real = self._padded(tokens), np.s_[order - 1 :]
        if not len(stream[real]):
            raise ValueError("the training text is empty: give it at least one token")
        ids, keys, firsts = [np.zeros(len(stream), dtype=np.int64)], [], []  # ids[k]: the k-gram that ends here
        for _ in range(order):
            context = np.concatenate([[0], ids[-1][:-1]])
            found, first, inverse = np.unique(context * base + stream, return_index=True, return_inverse=True)
            keys.append(found)
            firsts.append(first)
            ids.append(inverse)
        counts = np.bincount(ids[order][real], minlength=len(keys[-1]))
        self.discounts, self._levels = [], []
        for k in range(order, 0, -1):
            discounts = _discounts(counts, modified=self.config.modified)
            self.discounts.insert(0, discounts)
            num_contexts = len(keys[k - 2]) if k > 1 else 1
            self._levels.insert(0, _level(keys[k - 1], base, counts, discounts, num_contexts=num_contexts))
            if k > 1:  # each different longer gram counts once for the gram that it ends with
                shorter = ids[k - 1][firsts[k - 1][counts > 0]]
                counts = np.bincount(shorter, minlength=len(keys[k - 2]))
        return self

    def log_probs(self, tokens: Tokens) -> Float[np.ndarray, " T"]:
        """ln p(w_t | the n - 1 tokens before it) of each token of a text, in nats; raises ValueError as `fit` does."""
        order, base = self.config.order, self.config.vocab_size + 1
        stream = self._padded(tokens)
        ids = np.zeros(len(stream), dtype=np.int64)
        probs = np.full(len(stream), 1 / self.config.vocab_size)
        for level in self._fitted():
            context = np.concatenate([[0], ids[:-1]])
            probs, ids = _interpolate(level, context, context * base + stream, probs)
        return np.log(probs[order - 1 :])

    def log_prob(self, tokens: Tokens) -> float:
        """ln p(text) in nats: the sum of `log_probs`."""
        return float(self.log_probs(tokens).sum())

    def bits_per_byte(self, tokens: Tokens, num_bytes: int | None = None) -> float:
        """The code length of a text per byte; without `num_bytes` each token is one byte, as an ASCII character is."""
        return bits_per_byte(-self.log_prob(tokens), len(tokens) if num_bytes is None else num_bytes)

    def next_probs(self, context: Tokens) -> Float[np.ndarray, " V"]:
        """p(w | context) for every w; of the context, which may be empty, the last n - 1 tokens matter."""
        vocab_size, order = self.config.vocab_size, self.config.order
        stream = self._padded(context)[len(context) :]  # the n - 1 tokens before the next one
        probs = np.full(vocab_size, 1 / vocab_size)
        for k, level in enumerate(self._fitted()):
            gram = np.zeros(1, dtype=np.int64)
            for shorter, token in zip(self._levels[:k], stream[order - 1 - k :], strict=True):
                gram = np.where(gram < 0, -1, shorter.find(gram * (vocab_size + 1) + token))
            contexts = gram.repeat(vocab_size)
            probs, _ = _interpolate(level, contexts, contexts * (vocab_size + 1) + np.arange(vocab_size), probs)
        return probs

    def sample(self, length: int, context: Tokens = (), *, generator: torch.Generator | None = None) -> list[int]:
        """`length` tokens that continue the context, each drawn from `next_probs`."""
        tokens = [int(token) for token in context]
        for _ in range(length):
            probs = torch.from_numpy(self.next_probs(tokens[-self.config.order :]))
            tokens.append(int(torch.multinomial(probs, 1, generator=generator)))
        return tokens[len(context) :]

    def _padded(self, tokens: Tokens) -> np.ndarray:
        ids = np.asarray(tokens, dtype=np.int64)
        if ids.ndim != 1 or (len(ids) and not 0 <= ids.min() <= ids.max() < self.config.vocab_size):
            last = self.config.vocab_size - 1
            raise ValueError(f"tokens must be one row of ids from 0 to {last}, got {repr(tokens)[:60]}")
        return np.concatenate([np.full(self.config.order - 1, self.config.vocab_size), ids])

    def _fitted(self) -> list[_Level]:
        if not self._levels:
            raise ValueError("the model has not counted a text yet: call fit(tokens) first")
        return self._levels


def _discounts(counts: np.ndarray, *, modified: bool) -> tuple[float, float, float]:
    """Y = n1 / (n1 + 2 n2), D_i = i - (i + 1) Y n_{i+1} / n_i, Chen & Goodman 1998, eq. (26); or D = Y for all.

    n_i is how many grams occur i times. Where a text is too small for them, D is 1/2: any between 0 and 1 leaves p a
    distribution.
    """
    n1, n2, n3, n4 = (int((counts == i).sum()) for i in range(1, 5))
    if not n1 or not n2:
        return 0.5, 0.5, 0.5
    y = n1 / (n1 + 2 * n2)
    if not modified or not n3 or not n4:
        return y, y, y
    estimates = (i - (i + 1) * y * more / n for i, n, more in ((1, n1, n2), (2, n2, n3), (3, n3, n4)))
    d1, d2, d3 = (d if 0 < d <= i else y for i, d in enumerate(estimates, start=1))
    return d1, d2, d3


def _level(keys: np.ndarray, base: int, counts: np.ndarray, discounts: tuple, *, num_contexts: int) -> _Level:
    contexts = keys // base
    discount = np.array([0.0, *discounts])[np.minimum(counts, 3)]
    totals = np.bincount(contexts, counts, minlength=num_contexts)
    freed = np.bincount(contexts, discount, minlength=num_contexts)
    backoff = np.divide(freed, totals, out=np.ones(num_contexts), where=totals > 0)
    discounted = np.divide(counts - discount, totals[contexts], out=np.zeros(len(keys)), where=counts > 0)
    return _Level(keys=keys, discounted=discounted, backoff=backoff)


def _interpolate(
    level: _Level, contexts: np.ndarray, keys: np.ndarray, shorter: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """p at this level from p at the level below, and the ids of the grams; -1 marks contexts and grams never seen."""
    known = contexts >= 0
    grams = np.where(known, level.find(keys), -1)
    probs = np.where(grams >= 0, level.discounted[grams], 0) + np.where(known, level.backoff[contexts], 1) * shorter
    return probs, grams
