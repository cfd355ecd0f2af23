"""WordPiece: BERT's tokenizer. Devlin et al. 2019, arXiv 1810.04805; Wu et al. 2016, arXiv 1609.08144, section 4.1.

Its original training has not been released. Here, as in the `tokenizers` library, the pieces are learned by BPE.
"""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course_lib.text.merges import Corpus, learn_merges
from course_lib.text.splitting import BertSplitter
from course_lib.text.tokenizer import Tokenizer, WordCache, count_words, usable_tokens

PREFIX = "##"
BERT_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class WordPiece(Tokenizer):
    """Words by `splitter`; of each the longest piece in the vocabulary, then the longest of the rest, `##` before it.

    max_letters: longer words are unknown, and so is a word with a rest that has no piece. Raises ValueError if
    `specials` has no token for these.
    """

    def __init__(
        self,
        vocabulary: Iterable[str],
        *,
        specials: Iterable[str] = BERT_SPECIALS,
        splitter: BertSplitter | dict[str, bool] | None = None,
        max_letters: int = 100,
    ):
        super().__init__(vocabulary, specials=specials)
        if self.unknown_id is None:
            raise ValueError(f"No special token of {self.specials} stands for unknown words: add [UNK].")
        self.splitter = BertSplitter(**splitter) if isinstance(splitter, dict) else splitter or BertSplitter()
        self.max_letters = max_letters
        self._longest = max(map(len, self.vocabulary))
        self._words = WordCache(self._pieces)

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        *,
        specials: Iterable[str] = BERT_SPECIALS,
        splitter: BertSplitter | None = None,
        min_frequency: int = 2,
        limit_alphabet: int | None = None,
    ) -> "WordPiece":
        """Special tokens, letters, `##` letters, and joined pieces until there are `vocab_size` tokens.

        Raises ValueError if `vocab_size` has no room for the letters; `limit_alphabet` keeps the most frequent.
        """
        specials, splitter = usable_tokens(specials), splitter or BertSplitter()
        counts = count_words(texts, splitter, specials)
        corpus = Corpus.from_counts(counts, specials=specials, limit_alphabet=limit_alphabet, prefix=PREFIX)
        tokens = learn_merges(corpus, vocab_size, min_frequency=min_frequency).tokens
        return cls(tokens, specials=specials, splitter=splitter)

    @classmethod
    def from_file(
        cls, path: str | Path, *, specials: Iterable[str] = BERT_SPECIALS, splitter: BertSplitter | None = None
    ) -> "WordPiece":
        """Reads BERT's vocab.txt, a token in each line. Raises ValueError for a damaged one."""
        try:
            lines = Path(path).read_text(encoding="utf-8").split("\n")
            tokens = [line.removesuffix("\r") for line in lines]
            return cls(tokens[: -1 if tokens[-1] == "" else None], specials=specials, splitter=splitter)
        except ValueError as problem:
            raise ValueError(f"{path} cannot be read as a vocabulary of BERT's. {problem}") from None

    def save_file(self, path: str | Path) -> None:
        """Writes BERT's vocab.txt."""
        Path(path).write_text("".join(f"{token}\n" for token in self.vocabulary), encoding="utf-8", newline="\n")

    def _pieces(self, word: str) -> list[int]:
        ids, done, longest = [], 0, self._longest
        while done < len(word) <= self.max_letters:
            for end in range(min(len(word), done + longest), done, -1):
                piece = self._ids.get(PREFIX * (done > 0) + word[done:end])
                if piece is not None:
                    ids.append(piece)
                    done = end
                    break
            else:
                return [self.unknown_id]
        return ids or [self.unknown_id]

    def _encode(self, text: str) -> list[int]:
        return [i for word in self.splitter(text) for i in self._words[word]]

    def _decode(self, ids: list[int]) -> str:
        """The words with a space between any two, also around punctuation."""
        tokens = [self.vocabulary[i] for i in ids]
        return "".join(
            [
                token.removeprefix(PREFIX) if i and token.startswith(PREFIX) else " " * (i > 0) + token
                for i, token in enumerate(tokens)
            ]
        )

    def encode_pair(
        self, first: str, second: str | None = None, *, max_length: int | None = None
    ) -> tuple[list[int], list[int]]:
        """`[CLS] first [SEP] second [SEP]`, and which segment each token belongs to (0 or 1): fig. 2 of the paper.

        With `max_length` the longer text loses its last tokens until all fit. Raises ValueError if not one token of
        each does.
        """
        first_ids, second_ids = self.encode(first), None if second is None else self.encode(second)
        (start,), (end,) = self._signs(True, True)
        texts = [first_ids] if second_ids is None else [first_ids, second_ids]
        if max_length is not None:
            if max_length < 1 + 2 * len(texts):
                raise ValueError(f"max_length {max_length} has no room for {len(texts)} texts and their signs.")
            while sum(map(len, texts)) + 1 + len(texts) > max_length:
                max(reversed(texts), key=len).pop()
        ids, segments = [start], [0]
        for segment, text in enumerate(texts):
            ids += [*text, end]
            segments += [segment] * (len(text) + 1)
        return ids, segments

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "splitter": asdict(self.splitter), "max_letters": self.max_letters}
