"""A closed vocabulary: words become row numbers of an embedding table, and back."""

from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")


class Vocabulary:
    """A two-way table between words and ids 0 ... V-1; the four special words come first.

    `specials` names, in this order, the padding, the start and the end of a sentence, and the word that
    stands for every unknown one. Raises ValueError for a word that occurs twice, is empty or contains white
    space.
    """

    def __init__(self, words: Iterable[str], specials: Sequence[str] = SPECIALS):
        if len(specials) != 4:
            raise ValueError(f"A vocabulary needs 4 specials (padding, start, end, unknown), got {specials}.")
        self.specials = tuple(specials)
        self.words = (*self.specials, *words)
        unusable = [word for word in self.words if not isinstance(word, str) or word.split() != [word]]
        if unusable:
            raise ValueError(f"Words must be non-empty and free of white space, got {unusable[:5]}.")
        twice = [word for word, count in Counter(self.words).items() if count > 1]
        if twice:
            raise ValueError(f"Each word may occur once in a vocabulary, got {twice[:5]} more often.")
        self._ids = {word: i for i, word in enumerate(self.words)}
        self.pad_id, self.start_id, self.end_id, self.unknown_id = range(4)

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sequence[str]], *, min_count: int = 1) -> "Vocabulary":
        """The words of tokenised `sentences` that occur at least `min_count` times, in alphabetical order."""
        counts = Counter(token for sentence in sentences for token in sentence)
        frequent = {word for word, count in counts.items() if count >= min_count}
        return cls(sorted(frequent.difference(SPECIALS)))

    def encode(self, tokens: Sequence[str], *, start: bool = False, end: bool = False) -> list[int]:
        """The ids of `tokens`, an unknown one's being `unknown_id`; on request with start and end sign."""
        if isinstance(tokens, str):
            raise ValueError(f"encode needs a list of words, not the one text {tokens!r}: split it first.")
        ids = [self._ids.get(token, self.unknown_id) for token in tokens]
        return [self.start_id] * start + ids + [self.end_id] * end

    def decode(self, ids: Iterable[int] | Int[Tensor, " T"], *, strip_specials: bool = True) -> list[str]:
        """The words of `ids` (a list or a 1-D tensor).

        With `strip_specials` the sentence ends before its first end sign, and padding and start signs are
        left out. The unknown sign stays: it stands for a word. Raises ValueError for an id outside the
        vocabulary.
        """
        ids = [int(i) for i in ids]
        outside = [i for i in ids if not 0 <= i < len(self)]
        if outside:
            raise ValueError(f"Ids of this vocabulary run from 0 to {len(self) - 1}, got {outside[:5]}.")
        if strip_specials:
            ids = ids[: ids.index(self.end_id)] if self.end_id in ids else ids
            ids = [i for i in ids if i not in (self.pad_id, self.start_id)]
        return [self.words[i] for i in ids]

    def unknown(self, tokens: Iterable[str]) -> list[str]:
        """The tokens that the vocabulary does not know, each once, in their order."""
        return list(dict.fromkeys(token for token in tokens if token not in self._ids))

    def pad_batch(self, sequences: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"]]:
        """`pad_batch` with this vocabulary's padding."""
        return pad_batch(sequences, pad_id=self.pad_id)

    def state_dict(self) -> dict[str, list[str]]:
        """Plain lists, for json or a checkpoint; `Vocabulary.from_state_dict` takes them back."""
        return {"words": list(self.words[4:]), "specials": list(self.specials)}

    @classmethod
    def from_state_dict(cls, state: dict[str, list[str]]) -> "Vocabulary":
        return cls(state["words"], specials=state["specials"])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.words == other.words

    def __hash__(self) -> int:
        return hash(self.words)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words)"


def pad_batch(sequences: Sequence[Sequence[int]], pad_id: int = 0) -> tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """Lists of ids as one table, short ones filled with `pad_id`; `valid` is True at the real tokens.

    Raises ValueError for a batch without any sequence.
    """
    if len(sequences) == 0:
        raise ValueError("pad_batch needs at least one sequence, got none.")
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    valid = torch.arange(int(lengths.max())) < lengths[:, None]  # (B, T)
    ids = torch.full(valid.shape, pad_id)
    ids[valid] = torch.tensor([i for sequence in sequences for i in sequence], dtype=torch.long)
    return ids, valid
