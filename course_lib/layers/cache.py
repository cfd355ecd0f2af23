"""What a decoder remembers between tokens, so that each token is computed once."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from course_lib.layers.attention import KeysValues, KVCache


class Admitted(NamedTuple):
    """How new tokens fit behind the old ones: what they may see, and where they stand."""

    mask: Bool[Tensor, "B 1 1 T_k"] | None  # None: every key is a real token
    positions: Int[Tensor, "B T_q"] | None  # None: start, start + 1, ... in every row
    start: int  # tokens before these


def count_positions(valid: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """Where each real token stands in its row if padding is not counted; padding at the left gets 0."""
    return (valid.cumsum(dim=1) - 1).clamp(min=0)


class DecoderCache:
    """The keys and values of all past tokens in each of `depth` layers, for generation without gradients.

    Prompts of unequal length are padded at the left; padding is remembered, so that no later token sees it, and a
    row's positions count its real tokens only. A decoder that attends to an encoder keeps that encoder's `memories`,
    one for each layer, and their mask.
    """

    def __init__(
        self,
        depth: int,
        max_length: int,
        *,
        memories: list[KeysValues] | None = None,
        memory_mask: Bool[Tensor, "B 1 1 T_k"] | None = None,
    ):
        self.layers = [KVCache(max_length) for _ in range(depth)]
        self.max_length, self.length = max_length, 0
        self.memories, self.memory_mask = memories, memory_mask
        self._valid: Tensor | None = None  # (B, length), only where there is padding

    def admit(self, tokens: Int[Tensor, "B T"], valid: Bool[Tensor, "B T"] | None = None) -> Admitted:
        """Makes room for new tokens, of which `valid` (all, if not given) are real.

        Raises ValueError for more tokens than the cache has room for, and for a row that ends in padding.
        """
        start, end = self.length, self.length + tokens.shape[1]
        if end > self.max_length:
            raise ValueError(
                f"the cache has room for {self.max_length} tokens, {end} were given: ask for fewer new tokens, or a "
                "larger cache"
            )
        if valid is not None and not valid.all():
            if not valid[:, -1].all():
                raise ValueError("a row's last token must be a real one: pad prompts at the left, not at the right")
            if self._valid is None:
                self._valid = valid.new_ones(len(valid), start)
        self.length = end
        if self._valid is None:
            return Admitted(None, None, start)
        new = torch.ones_like(tokens, dtype=torch.bool) if valid is None else valid
        self._valid = torch.cat([self._valid, new], dim=1)
        return Admitted(self._valid[:, None, None, :], count_positions(self._valid)[:, start:], start)

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Keeps these rows of the batch, in this order; a row may be kept several times (beam search)."""
        for layer in self.layers:
            layer.select(rows)
        if self.memories is not None:
            self.memories = [KeysValues(*(t.index_select(0, rows) for t in memory)) for memory in self.memories]
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask.index_select(0, rows)
        if self._valid is not None:
            self._valid = self._valid.index_select(0, rows)
