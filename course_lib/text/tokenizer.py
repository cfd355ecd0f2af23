"""What every tokenizer of the course offers: text becomes ids, ids become text, and the table between them a file."""

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from inspect import isabstract
from operator import index
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")

# What the usual special tokens are for; GPT-2 has one sign for the start and the end of a text.
ROLES = {
    "pad": ("<pad>", "[PAD]"),
    "start": ("<s>", "[CLS]", "<|endoftext|>"),
    "end": ("</s>", "[SEP]", "<|endoftext|>"),
    "unknown": ("<unk>", "[UNK]"),
    "mask": ("<mask>", "[MASK]"),
}


class Tokenizer(ABC):
    """A two-way table between tokens and ids 0 ... V-1, and a rule that cuts text into these tokens.

    `specials` are the tokens of the table that no text is cut into, such as `</s>`. Those with a usual name have
    their ids in `pad_id`, `start_id`, `end_id`, `unknown_id` and `mask_id` (None where there is no such token).
    Raises ValueError for an empty or repeated token, a special one that the table lacks, and a text in place of a list.
    """

    def __init__(self, vocabulary: Iterable[str], *, specials: Iterable[str] = ()):
        self.vocabulary, self.specials = usable_tokens(vocabulary), usable_tokens(specials)
        self._ids = {token: i for i, token in enumerate(self.vocabulary)}
        if missing := [token for token in self.specials if token not in self._ids]:
            raise ValueError(f"The special tokens {missing} are not in the vocabulary of {len(self)} tokens.")
        self._special_ids = {self._ids[token] for token in self.specials}
        self._special_pattern = special_pattern(self.specials)
        signs = [next((self._ids[name] for name in names if name in self.specials), None) for names in ROLES.values()]
        self.pad_id, self.start_id, self.end_id, self.unknown_id, self.mask_id = signs

    @abstractmethod
    def _encode(self, text: str) -> list[int]:
        """The ids of a text in which nothing is special."""

    @abstractmethod
    def _decode(self, ids: list[int]) -> str:
        """The text of ids that are all in the table."""

    def encode(self, text: str, *, start: bool = False, end: bool = False, specials: bool = True) -> list[int]:
        """The ids of `text`, on request with start and end sign.

        Special tokens that are written in the text become their ids, as in the `tokenizers` library; with
        `specials=False`, which is right for text from strangers, they are text like any other. Raises ValueError
        for what is no text, for half a surrogate pair, which is no character, and for a sign that the vocabulary lacks.
        """
        check_text(text)
        first, last = self._signs(start, end)
        ids, done = first, 0
        for match in self._special_pattern.finditer(text) if specials else ():
            ids += self._encode(text[done : match.start()])
            ids.append(self._ids[match.group()])
            done = match.end()
        return ids + self._encode(text[done:]) + last

    def _signs(self, start: bool, end: bool) -> tuple[list[int], list[int]]:
        if (start and self.start_id is None) or (end and self.end_id is None):
            raise ValueError(
                f"The special tokens {self.specials} have no start or no end sign: encode without it, or add it."
            )
        return [self.start_id] * start, [self.end_id] * end

    def decode(self, ids: Iterable[int] | Int[Tensor, " T"], *, strip_specials: bool = False) -> str:
        """The text of `ids` (a list or a 1-D tensor), on request without special tokens.

        Raises ValueError for an id outside the vocabulary, and for a batch.
        """
        ids = self._checked(ids)
        if strip_specials:
            ids = [i for i in ids if i not in self._special_ids]
        return self._decode(ids)

    def _checked(self, ids: Iterable[int] | Int[Tensor, " T"]) -> list[int]:
        try:
            ids = [index(i) for i in (ids.tolist() if isinstance(ids, Tensor) else ids)]
        except TypeError:
            raise ValueError(
                f"ids must be a list of whole numbers or a 1-D tensor, got {ids!r:.60}: take a batch row by row."
            ) from None
        outside = [i for i in ids if not 0 <= i < len(self)]
        if outside:
            raise ValueError(f"Ids of this vocabulary run from 0 to {len(self) - 1}, got {outside[:5]}.")
        return ids

    def tokens(self, text: str) -> list[str]:
        """`text` in pieces, as they stand in the vocabulary."""
        return [self.vocabulary[i] for i in self.encode(text)]

    def id_to_token(self, token_id: int) -> str:
        """Raises ValueError for an id outside the vocabulary."""
        return self.vocabulary[self._checked([token_id])[0]]

    def token_to_id(self, token: str) -> int:
        """Raises ValueError for a token that the vocabulary lacks."""
        if token not in self._ids:
            raise ValueError(f"There is no token {token!r} among the {len(self)} of this vocabulary.")
        return self._ids[token]

    def encode_batch(
        self, texts: Sequence[str], *, max_length: int | None = None, start: bool = False, end: bool = False
    ) -> tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"]]:
        """The texts as one padded table of ids; `valid` is True at real tokens.

        Texts of more than `max_length` tokens lose their last ones, but not the end sign. Without a padding token
        the table is filled with id 0. Raises ValueError for no text, or if `max_length` has no room for a token.
        """
        if isinstance(texts, str):
            raise ValueError(f"encode_batch needs a list of texts, not the one text {texts[:40]!r}.")
        room = None if max_length is None else max_length - start - end
        if room is not None and room < 1:
            raise ValueError(f"max_length {max_length} has no room for a token beside {start + end} signs.")
        first, last = self._signs(start, end)
        return pad_batch([first + self.encode(text)[:room] + last for text in texts], pad_id=self.pad_id or 0)

    def state_dict(self) -> dict[str, Any]:
        """Plain lists and texts, for json or a checkpoint; `from_state_dict` takes them back."""
        return {
            "tokenizer": type(self).__name__,
            "specials": list(self.specials),
            "vocabulary": list(self.vocabulary),
        }

    @classmethod
    def from_state_dict(cls, state: Any) -> "Tokenizer":
        """The tokenizer of a `state_dict`; `Tokenizer.from_state_dict` takes that of any kind.

        Raises ValueError if the state is another kind's, or lacks an entry.
        """
        family = [kind for kind in (cls, *descendants(cls)) if not isabstract(kind)]
        kinds = {kind.__name__: kind for kind in family}
        name = state.get("tokenizer") if isinstance(state, dict) else None
        if not isinstance(name, str) or name not in kinds:
            raise ValueError(f"This is the state of a tokenizer {name!r}; {cls.__name__} opens {', '.join(kinds)}.")
        options = {key: value for key, value in state.items() if key != "tokenizer"}
        try:
            return kinds[name](**options)
        except TypeError as problem:
            raise ValueError(f"The state of this {name} is not complete or holds something else: {problem}.") from None

    def save(self, path: str | Path) -> None:
        """Writes the tokenizer as one JSON file."""
        Path(path).write_text(json.dumps(self.state_dict(), ensure_ascii=False), encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Reads what `save` wrote; `Tokenizer.load` opens every kind. Raises ValueError for a damaged file."""
        try:
            return cls.from_state_dict(read_json(path))
        except ValueError as problem:
            raise ValueError(f"{path} cannot be read as a tokenizer. {problem}") from None

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.state_dict() == other.state_dict()

    def __hash__(self) -> int:
        return hash((type(self), self.vocabulary))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tokens)"


class WordCache(dict):
    """word -> its ids, remembered: most words of a text occurred before (Zipf's law)."""

    def __init__(self, encode_word: Callable[[str], list[int]], *, capacity: int = 1 << 16, longest: int = 64):
        super().__init__()
        self.encode_word, self.capacity, self.longest = encode_word, capacity, longest

    def __missing__(self, word: str) -> list[int]:
        ids = self.encode_word(word)
        if len(self) < self.capacity and len(word) <= self.longest:
            self[word] = ids
        return ids


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


def usable_tokens(tokens: Iterable[str]) -> tuple[str, ...]:
    """Raises ValueError for one text in place of a list of tokens, and for an empty or a repeated token."""
    if isinstance(tokens, str):
        raise ValueError(f"Tokens come as a list, got the text {tokens[:40]!r}: write [{tokens[:40]!r}].")
    tokens = tuple(tokens)
    if unusable := [token for token in tokens if not isinstance(token, str) or not token]:
        raise ValueError(f"Tokens must be non-empty texts, got {unusable[:5]}.")
    if twice := [token for token, count in Counter(tokens).items() if count > 1]:
        raise ValueError(f"Each token may occur once in a vocabulary, got {twice[:5]} more often.")
    return tokens


def special_pattern(specials: Iterable[str]) -> re.Pattern[str]:
    """Finds special tokens in a text, the longest where several begin."""
    longest_first = sorted(specials, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")  # (?!) is nowhere


def check_text(text: str) -> None:
    """Raises ValueError for what is no text, and for half a surrogate pair: UTF-8 has no bytes for it."""
    if not isinstance(text, str):
        raise ValueError(f"text must be str, got {type(text).__name__}: decode bytes, join words with spaces.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise ValueError(
            f"The text has a lone surrogate {text[problem.start]!r} at position {problem.start}, which is no "
            "character. It comes from text that was decoded wrongly: decode it again, or remove it."
        ) from None


def count_words(
    texts: Iterable[str], words: Callable[[str], Iterable[str]], specials: Iterable[str] = ()
) -> Counter[str]:
    """How often each of the `words` of the `texts` occurs; `specials` are none, and no word goes across one.

    Raises ValueError for one text in place of many.
    """
    if isinstance(texts, str):
        raise ValueError(f"Training needs several texts, not the one text {texts[:40]!r}: put it into a list.")
    counts, pattern = Counter(), special_pattern(specials)
    for text in texts:
        check_text(text)
        for part in pattern.split(text):
            counts.update(words(part))
    return counts


def most_frequent(counts: Counter[str], limit: int | None) -> list[str]:
    """The `limit` most frequent keys (all for None), the first of equals in alphabetical order."""
    return sorted(counts, key=lambda key: (-counts[key], key))[:limit]


def room_for_words(vocab_size: int | None, specials: Sequence[str]) -> int | None:
    """How many tokens a vocabulary may have beside the special ones; None: as many as there are.

    Raises ValueError if that is none.
    """
    if vocab_size is not None and vocab_size <= len(specials):
        raise ValueError(f"A vocabulary of {vocab_size} has no room beside its {len(specials)} special tokens.")
    return None if vocab_size is None else vocab_size - len(specials)


def read_json(path: str | Path) -> Any:
    """What a JSON file holds. Raises ValueError for a file that is not JSON in UTF-8."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"{path} is damaged, or no JSON file in UTF-8: {problem}") from None


def descendants(kind: type) -> list[type]:
    """The subclasses of a class, theirs, and so on."""
    return [each for child in kind.__subclasses__() for each in (child, *descendants(child))]
