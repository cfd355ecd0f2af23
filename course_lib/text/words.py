"""Each word a token: short sequences, a large vocabulary, and no way to write an unknown word."""

from collections.abc import Iterable
from typing import Any

from jaxtyping import Int
from torch import Tensor

from course_lib.text.splitting import split_at_space, splitter
from course_lib.text.tokenizer import SPECIALS, Tokenizer, count_words, most_frequent, room_for_words, usable_tokens


class WordTokenizer(Tokenizer):
    """Runs of letters and digits are words, and so are runs of punctuation; white space is dropped.

    lower: write all words in lower case first; without cut_punctuation a word is what stands between white space.
    A word outside the vocabulary becomes the unknown token. Raises ValueError if `specials` has none, and for a word
    with white space.
    """

    def __init__(
        self,
        vocabulary: Iterable[str],
        *,
        specials: Iterable[str] = SPECIALS,
        lower: bool = False,
        cut_punctuation: bool = True,
    ):
        super().__init__(vocabulary, specials=specials)
        self.lower, self.cut_punctuation = lower, cut_punctuation
        self._split = splitter(cut_punctuation)
        if self.unknown_id is None:
            raise ValueError(f"No special token of {self.specials} stands for unknown words: add <unk>.")
        if unusable := [word for word in self.vocabulary if split_at_space(word) != [word]]:
            raise ValueError(f"Words must be free of white space, got {unusable[:5]}.")

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int | None = None,
        *,
        specials: Iterable[str] = SPECIALS,
        min_frequency: int = 1,
        lower: bool = False,
        cut_punctuation: bool = True,
    ) -> "WordTokenizer":
        """The special tokens, then the words of `texts`, the most frequent first, equals in alphabetical order.

        At most `vocab_size` tokens in all; words that occur fewer than `min_frequency` times are left out.
        """
        specials, split = usable_tokens(specials), splitter(cut_punctuation)
        counts = count_words(texts, lambda text: split(text.lower() if lower else text), specials)
        frequent = most_frequent(counts, room_for_words(vocab_size, specials))
        words = [word for word in frequent if counts[word] >= min_frequency]
        return cls([*specials, *words], specials=specials, lower=lower, cut_punctuation=cut_punctuation)

    def _encode(self, text: str) -> list[int]:
        return [self._ids.get(word, self.unknown_id) for word in self._split(text.lower() if self.lower else text)]

    def _decode(self, ids: list[int]) -> str:
        """The words with a space between any two."""
        return " ".join([self.vocabulary[i] for i in ids])

    def sentence(self, ids: Iterable[int] | Int[Tensor, " T"]) -> list[str]:
        """The words before the end sign, without padding and start sign; an unknown word stays, as its sign.

        Raises ValueError as `decode`.
        """
        ids = self._checked(ids)
        ids = ids[: ids.index(self.end_id)] if self.end_id in ids else ids
        return [self.vocabulary[i] for i in ids if i not in (self.pad_id, self.start_id)]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "lower": self.lower, "cut_punctuation": self.cut_punctuation}
