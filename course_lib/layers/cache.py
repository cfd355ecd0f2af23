"""What a model remembers between tokens while it writes, so that each token is computed once. Without gradients."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.functional.attention import key_mask
from course_lib.functional.recurrent import State, map_state


class KeysValues(NamedTuple):
    """What a layer remembers of a context: its keys and its values, split into heads."""

    k: Float[Tensor, "B H T_k d"]
    v: Float[Tensor, "B H T_k d"]


class KVCache:
    """Keys and values of all past positions of one layer.

    Room for `max_length` positions is set aside at the first `append`, so a new position costs one copy of itself.
    Raises ValueError, in `append`, when that room is used up, the batch changes or gradients are on.
    """

    def __init__(self, max_length: int):
        self.max_length, self.length = max_length, 0
        self.context: KeysValues | None = None  # of a decoder's layer: what it sees of the source, and the mask for it
        self.context_mask: Bool[Tensor, "B 1 1 T_k"] | None = None
        self._store: KeysValues | None = None

    @property
    def past(self) -> KeysValues | None:
        """All that is kept, of positions 0, 1, ...: None before the first `append`."""
        if self._store is None:
            return None
        return KeysValues(*(kept[:, :, : self.length] for kept in self._store))

    def append(self, k: Float[Tensor, "B H T d"], v: Float[Tensor, "B H T d"]) -> KeysValues:
        """Stores new positions and returns all of them, old and new."""
        end = self.length + k.shape[2]
        if end > self.max_length:
            raise ValueError(f"the cache has room for {self.max_length} positions, position {end} was asked for")
        if k.requires_grad or v.requires_grad:
            raise ValueError("a cache overwrites memory that gradients need: use it under torch.no_grad()")
        if self._store is None:
            self._store = KeysValues(*(t.new_empty(*t.shape[:2], self.max_length, t.shape[3]) for t in (k, v)))
        if self._store.k.shape[:2] != k.shape[:2]:
            raise ValueError(
                f"the cache holds (batch, heads) = {tuple(self._store.k.shape[:2])}, got {tuple(k.shape[:2])}: "
                "start a new cache for a new batch"
            )
        keys, values = self._store
        keys[:, :, self.length : end], values[:, :, self.length : end] = k, v
        self.length = end
        return KeysValues(keys[:, :, :end], values[:, :, :end])

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Keeps these rows of the batch, in this order; a row may be kept several times (beam search)."""
        for name in ("_store", "context"):
            if (kept := getattr(self, name)) is not None:
                setattr(self, name, KeysValues(*(t.index_select(0, rows) for t in kept)))
        if self.context_mask is not None:
            self.context_mask = self.context_mask.index_select(0, rows)


class Placed(NamedTuple):
    """How tokens fit behind those in a cache: what they may see, and where they stand."""

    mask: Bool[Tensor, "B 1 1 T_k"] | None = None  # None: every key is a real token
    positions: Int[Tensor, "B T_q"] | None = None  # None: start, start + 1, ... in every row
    start: int = 0  # tokens before these


ALONE = Placed()  # from position 0 on, and all of them real


def place(
    tokens: Int[Tensor, "B T"], valid: Bool[Tensor, "B T"] | None = None, cache: "DecoderCache | None" = None
) -> Placed:
    """Where tokens stand and what they may see: alone, or behind those in a `cache`, which makes room for them.

    Padding, where `valid` is False, is not counted, and at the left gets position 0.
    Raises ValueError for more tokens than the cache has room for, and for a row behind it that ends in padding.
    """
    start = 0
    if cache is not None:
        start, valid = cache.length, cache.admit(tokens, valid)
    if valid is None:
        return Placed(start=start)
    return Placed(key_mask(valid), (valid.cumsum(dim=1) - 1).clamp(min=0)[:, start:], start)


class DecoderCache:
    """The keys and values of all past tokens in each of `depth` layers.

    Prompts of unequal length are padded at the left; padding is remembered, so that no later token sees it, and a
    row's positions count its real tokens only.
    """

    def __init__(self, depth: int, max_length: int):
        self.layers = [KVCache(max_length) for _ in range(depth)]
        self.max_length, self.length = max_length, 0
        self._valid: Tensor | None = None  # (B, length), only where there is padding

    def admit(self, tokens: Int[Tensor, "B T"], valid: Bool[Tensor, "B T"] | None) -> Bool[Tensor, "B T_k"] | None:
        """Makes room for new tokens; which of all tokens, old and new, are real, or None if all are."""
        start, end = self.length, self.length + tokens.shape[1]
        if end > self.max_length:
            raise ValueError(
                f"the cache has room for {self.max_length} tokens, {end} were given: ask for fewer new tokens, or a "
                "larger cache"
            )
        if valid is not None and not valid.all():
            check_left_padded(valid)
            if self._valid is None:
                self._valid = valid.new_ones(len(valid), start)
        self.length = end
        if self._valid is not None:
            new = torch.ones_like(tokens, dtype=torch.bool) if valid is None else valid
            self._valid = torch.cat([self._valid, new], dim=1)
        return self._valid

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Keeps these rows of the batch, in this order; a row may be kept several times (beam search)."""
        for layer in self.layers:
            layer.select(rows)
        if self._valid is not None:
            self._valid = self._valid.index_select(0, rows)


class TargetLanguageModel:
    """p(y | x): an encoder-decoder with its source fixed, for `course_lib.generation`; each source is encoded once.

    Raises ValueError for a model without a head.
    """

    @torch.no_grad()
    def __init__(self, model: nn.Module, source: Int[Tensor, "B T_k"], valid: Bool[Tensor, "B T_k"] | None = None):
        if model.head is None:
            raise ValueError("this model has head=None: it makes features, no logits to write with")
        self.model, self.context, self.context_mask = model, model.encode(model.embed(source), valid), key_mask(valid)

    def new_cache(self, max_length: int) -> DecoderCache:
        """Room for `max_length` tokens, and what each layer sees of the source."""
        cache = DecoderCache(len(self.model.decoder), max_length)
        for block, layer in zip(self.model.decoder, cache.layers, strict=True):
            layer.context, layer.context_mask = block.cross_attn.keys_values(self.context), self.context_mask
        return cache

    def next_logits(
        self, tokens: Int[Tensor, "B T"], cache: DecoderCache, *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B V"]:
        """Appends `tokens` (`valid`: the real ones, padding at the left) and returns the logits of the next one."""
        placed = place(tokens, valid, cache)
        x = self.model.decode(self.model.embed_target(tokens, placed), mask=placed.mask, cache=cache)
        return self.model.logits(x[:, -1])


class RecurrentCache:
    """What a recurrent model remembers between tokens: its state, whose size does not grow with the text.

    `max_length` is kept for generators that ask every model for it.
    """

    def __init__(self, max_length: int, state: State | None = None):
        self.max_length, self.length, self.state = max_length, 0, state

    def advance(self, state: State, count: int) -> None:
        """Remembers the state after `count` more tokens."""
        self.state, self.length = state, self.length + count

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Keeps these rows of the batch, in this order; a row may be kept several times (beam search)."""
        if self.state is not None:
            self.state = map_state(lambda each: each.index_select(1, rows), self.state)


def check_left_padded(valid: Bool[Tensor, "B T"] | None) -> None:
    """Raises ValueError for a row that ends in padding: it has no last token to go on from."""
    if valid is not None and not valid[:, -1].all():
        row = int((~valid[:, -1]).nonzero()[0])
        raise ValueError(f"a row's last token must be a real one, row {row} ends in padding: pad prompts at the left")
