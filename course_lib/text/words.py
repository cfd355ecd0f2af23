"""Each word a token: short sequences, a large vocabulary, and no way to write an unknown word."""

from collections.abc import Iterable
from typing import Any

from course_lib.text.splitting import split_at_punctuation
from course_lib.text.tokenizer import Tokenizer, count_words, most_frequent, room_for_words
from course_lib.text.vocabulary import SPECIALS


class WordTokenizer(Tokenizer):
    """Runs of letters and digits are words, and so are runs of punctuation; white space is dropped.

    lower: write all words in lower case first. A word outside the vocabulary becomes the unknown token. Raises
    ValueError if `specials` has none.
    """

    def __init__(self, vocabulary: Iterable[str], *, specials: Iterable[str] = SPECIALS, lower: bool = False):
        super().__init__(vocabulary, specials=specials)
        self.lower = lower
        if self.unknown_id is None:
            raise ValueError(f"No special token of {self.specials} stands for unknown words: add <unk>.")

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int | None = None,
        *,
        specials: Iterable[str] = SPECIALS,
        min_frequency: int = 1,
        lower: bool = False,
    ) -> "WordTokenizer":
        """The special tokens, then the words of `texts`, the most frequent first, equals in alphabetical order.

        At most `vocab_size` tokens in all; words that occur fewer than `min_frequency` times are left out.
        """
        specials = list(specials)
        counts = count_words(texts, lambda text: cls._words(text, lower), without=specials)
        frequent = most_frequent(counts, room_for_words(vocab_size, specials))
        words = [word for word in frequent if counts[word] >= min_frequency]
        return cls([*specials, *words], specials=specials, lower=lower)

    @staticmethod
    def _words(text: str, lower: bool) -> list[str]:
        return split_at_punctuation(text.lower() if lower else text)

    def _encode(self, text: str) -> list[int]:
        return [self._ids.get(word, self.unknown_id) for word in self._words(text, self.lower)]

    def _decode(self, ids: list[int]) -> str:
        """The words with a space between any two."""
        return " ".join([self.vocabulary[i] for i in ids])

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "lower": self.lower}
