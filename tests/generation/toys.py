"""A language model small enough to know everything about it."""

from itertools import product

import torch

STATES = 31


class ToyCache:
    def __init__(self):
        self.length, self.state, self.selections = 0, None, []

    def select(self, rows):
        self.selections.append(rows.tolist())
        self.state = self.state[rows]


class Toy:
    """p(next | history) stands in a table, at a state that depends on every token of the history and its place."""

    def __init__(self, vocab_size=4, seed=0, table=None):
        generator = torch.Generator().manual_seed(seed)
        self.table = torch.randn(STATES, vocab_size, generator=generator) if table is None else table
        self.vocab_size = self.table.shape[1]
        self.calls, self.room = [], None

    def new_cache(self, max_length):
        self.room = max_length
        return ToyCache()

    def next_logits(self, tokens, cache, *, valid=None):
        self.calls.append(tuple(tokens.shape))
        cache.length += tokens.shape[1]
        state = torch.zeros(len(tokens), dtype=torch.long) if cache.state is None else cache.state
        valid = torch.ones_like(tokens, dtype=torch.bool) if valid is None else valid
        for token, real in zip(tokens.unbind(1), valid.unbind(1), strict=True):
            state = torch.where(real, (3 * state + token + 1) % STATES, state)
        cache.state = state
        return self.table[state]

    def __call__(self, tokens, *, valid=None):
        ends = range(1, tokens.shape[1] + 1)
        masks = [None if valid is None else valid[:, :end] for end in ends]
        reads = zip(ends, masks, strict=True)
        return torch.stack([self.next_logits(tokens[:, :end], ToyCache(), valid=mask) for end, mask in reads], dim=1)

    def score(self, prompt, sequence):
        """The sum of the log-probabilities of a sequence behind a prompt, both lists."""
        state, total = 0, 0.0
        for place, token in enumerate([*prompt, *sequence]):
            if place >= len(prompt):
                total += float(self.table[state].log_softmax(-1)[token])
            state = (3 * state + token + 1) % STATES
        return total

    def all_sequences(self, prompt, *, max_new_tokens, length_penalty, end_id):
        """Every sequence there is, with its score, best first."""
        found = []
        for length in range(1, max_new_tokens + 1):
            for sequence in product(range(self.vocab_size), repeat=length):
                if end_id in sequence[:-1] or (length < max_new_tokens and sequence[-1] != end_id):
                    continue
                found.append((self.score(prompt, sequence) / length**length_penalty, list(sequence)))
        return sorted(found, reverse=True)
