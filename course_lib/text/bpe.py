"""Two tokenizers on byte-pair encoding: on letters (Sennrich et al. 2016, arXiv 1508.07909), and on bytes, as GPT-2's
(Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.2).
"""

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from course_lib.text.merges import Corpus, MergeRules, learn_merges
from course_lib.text.splitting import split_like_gpt2, splitter
from course_lib.text.tokenizer import SPECIALS, Tokenizer, WordCache, count_words, read_json, usable_tokens

END_OF_WORD = "</w>"
GPT2_SPECIALS = ("<|endoftext|>",)


class MergingTokenizer(Tokenizer):
    """What both kinds share: a word is cut into its smallest pieces, and merges join them.

    merges: pairs of tokens, the first learned first. Raises ValueError for one whose parts or whole are no tokens.
    """

    def __init__(
        self, vocabulary: Iterable[str], merges: Iterable[Sequence[str]], *, specials: Iterable[str] = SPECIALS
    ):
        super().__init__(vocabulary, specials=specials)
        self.merges = tuple(tuple(merge) for merge in merges)
        self._rules = MergeRules(self.merges, self._ids)
        self._words = WordCache(self._encode_word)

    @abstractmethod
    def _pieces(self, word: str) -> list[int]:
        """The smallest pieces of a word."""

    def _encode_word(self, word: str) -> list[int]:
        return self._rules.apply(self._pieces(word))

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "merges": [list(merge) for merge in self.merges]}


class SubwordBPE(MergingTokenizer):
    """Words cut at white space, then into letters, the last marked `</w>`; merges join them to frequent subwords.

    cut_punctuation: cut words like `WordTokenizer` instead, so that punctuation is apart. A letter outside the
    vocabulary becomes the unknown token, or a ValueError if `specials` has none. Text that has `</w>` in it does not
    come back from `decode` as it was.
    """

    def __init__(
        self,
        vocabulary: Iterable[str],
        merges: Iterable[Sequence[str]],
        *,
        specials: Iterable[str] = SPECIALS,
        cut_punctuation: bool = False,
    ):
        super().__init__(vocabulary, merges, specials=specials)
        self.cut_punctuation = cut_punctuation
        self._split = splitter(cut_punctuation)

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        *,
        specials: Iterable[str] = SPECIALS,
        min_frequency: int = 2,
        limit_alphabet: int | None = None,
        cut_punctuation: bool = False,
    ) -> "SubwordBPE":
        """Special tokens, letters, letters at the end of a word, and merges until there are `vocab_size` tokens.

        Raises ValueError if `vocab_size` has no room for the letters; `limit_alphabet` keeps the most frequent.
        """
        specials = usable_tokens(specials)
        counts = count_words(texts, splitter(cut_punctuation), specials)
        corpus = Corpus.from_counts(counts, specials=specials, limit_alphabet=limit_alphabet, suffix=END_OF_WORD)
        learned = learn_merges(corpus, vocab_size, min_frequency=min_frequency)
        return cls(*learned, specials=specials, cut_punctuation=cut_punctuation)

    def _pieces(self, word: str) -> list[int]:
        letters = [*word[:-1], word[-1] + END_OF_WORD]
        ids = [self._ids.get(letter, self.unknown_id) for letter in letters]
        if None in ids:
            raise ValueError(
                f"{letters[ids.index(None)]!r} of {word[:40]!r} is not in the vocabulary, and no token "
                "stands for unknown ones: train on text that has it, or with <unk>."
            )
        return ids

    def _encode(self, text: str) -> list[int]:
        return [i for word in self._split(text) for i in self._words[word]]

    def _decode(self, ids: list[int]) -> str:
        """A space after each piece that ends a word, but for the last."""
        text = "".join([self.vocabulary[i] for i in ids])
        return text.removesuffix(END_OF_WORD).replace(END_OF_WORD, " ")

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "cut_punctuation": self.cut_punctuation}


class ByteLevelBPE(MergingTokenizer):
    """Words with the space before them, as UTF-8; merges join the 256 bytes to frequent runs.

    Every text has ids and comes back as it was: nothing is unknown. In the vocabulary a byte is written as one
    printable letter (`byte_letters`), so that a token is a text: the space is `Ġ`. Raises ValueError if one of the 256
    is missing.
    """

    def __init__(
        self, vocabulary: Iterable[str], merges: Iterable[Sequence[str]], *, specials: Iterable[str] = GPT2_SPECIALS
    ):
        super().__init__(vocabulary, merges, specials=specials)
        if missing := [letter for letter in byte_letters() if letter not in self._ids]:
            raise ValueError(f"A byte-level vocabulary needs all 256 bytes, {len(missing)} are missing: {missing[:5]}.")
        self._byte_ids = [self._ids[letter] for letter in byte_letters()]
        self._bytes = [self._to_bytes(token) for token in self.vocabulary]

    @classmethod
    def train(
        cls, texts: Iterable[str], vocab_size: int, *, specials: Iterable[str] = GPT2_SPECIALS, min_frequency: int = 2
    ) -> "ByteLevelBPE":
        """Special tokens, the 256 bytes, and merges until there are `vocab_size` tokens.

        Special tokens in the `texts` cut them, as in `encode`: no merge has a part of one. Raises ValueError if
        `vocab_size` has no room for the bytes.
        """
        specials, letters = usable_tokens(specials), byte_letters()
        counts = count_words(texts, split_like_gpt2, specials)
        written = Counter({"".join([letters[byte] for byte in word.encode()]): n for word, n in counts.items()})
        corpus = Corpus.from_counts(written, specials=specials, alphabet=letters)
        return cls(*learn_merges(corpus, vocab_size, min_frequency=min_frequency), specials=specials)

    @classmethod
    def from_files(cls, folder: str | Path, *, specials: Iterable[str] = GPT2_SPECIALS) -> "ByteLevelBPE":
        """Reads GPT-2's vocab.json and merges.txt. Raises ValueError where they are damaged or do not match."""
        return cls(*read_gpt2_files(folder), specials=specials)

    def save_files(self, folder: str | Path) -> None:
        """Writes GPT-2's vocab.json and merges.txt."""
        Path(folder, "vocab.json").write_text(json.dumps(self._ids, ensure_ascii=False), encoding="utf-8", newline="\n")
        lines = ["#version: 0.2", *map(" ".join, self.merges), ""]
        Path(folder, "merges.txt").write_text("\n".join(lines), encoding="utf-8", newline="\n")

    def id_to_bytes(self, token_id: int) -> bytes:
        """The bytes of one token; those of a character may be spread over several. Raises ValueError as `decode`."""
        return self._bytes[self._checked([token_id])[0]]

    def _to_bytes(self, token: str) -> bytes:
        if token in self.specials:
            return token.encode()
        try:
            return bytes([letter_bytes()[letter] for letter in token])
        except KeyError as problem:
            raise ValueError(f"{problem} in the token {token!r} stands for no byte: name it in specials?") from None

    def _pieces(self, word: str) -> list[int]:
        return [self._byte_ids[byte] for byte in word.encode()]

    def _encode(self, text: str) -> list[int]:
        return [i for word in split_like_gpt2(text) for i in self._words[word]]

    def _decode(self, ids: list[int]) -> str:
        """Bytes that are no UTF-8, as half a character's, become U+FFFD."""
        return b"".join([self._bytes[i] for i in ids]).decode("utf-8", errors="replace")


@cache
def byte_letters() -> tuple[str, ...]:
    """GPT-2's letter for each byte: itself where that is a printable one of Latin-1, else from U+0100 on in turn."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = iter(range(256, 512))
    return tuple(chr(byte) if byte in printable else chr(next(others)) for byte in range(256))


@cache
def letter_bytes() -> dict[str, int]:
    """The inverse of `byte_letters`."""
    return {letter: byte for byte, letter in enumerate(byte_letters())}


def read_gpt2_files(folder: str | Path) -> tuple[list[str], list[tuple[str, ...]]]:
    """The vocabulary in the order of ids, and the merges."""
    path = Path(folder, "vocab.json")
    ids = read_json(path)
    if not isinstance(ids, dict) or sorted(map(repr, ids.values())) != sorted(map(repr, range(len(ids)))):
        raise ValueError(f"{path} must map tokens to the ids from 0 on, each once.")
    path = Path(folder, "merges.txt")
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as problem:
        raise ValueError(f"{path} is damaged, or not in UTF-8: {problem}") from None
    lines = [line.removesuffix("\r") for line in lines if not line.startswith("#version")]
    merges = [tuple(line.split(" ")) for line in lines if line]
    if wrong := [merge for merge in merges if len(merge) != 2]:
        raise ValueError(f"A line of {path} holds two tokens with a space between them, got {' '.join(wrong[0])!r}.")
    return sorted(ids, key=ids.get), merges
