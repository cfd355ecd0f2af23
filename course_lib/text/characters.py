"""Each character a token: the smallest vocabulary, the longest sequences."""

from collections.abc import Iterable

from course_lib.text.tokenizer import SPECIALS, Tokenizer, count_words, most_frequent, room_for_words, usable_tokens


class CharacterTokenizer(Tokenizer):
    """Text as a sequence of its Unicode characters.

    A character outside the vocabulary becomes the unknown token, or a ValueError if `specials` has none.
    """

    @classmethod
    def train(
        cls, texts: Iterable[str], vocab_size: int | None = None, *, specials: Iterable[str] = SPECIALS
    ) -> "CharacterTokenizer":
        """The special tokens, then the characters of `texts` in the order of Unicode.

        With `vocab_size` only the most frequent ones. Raises ValueError if that leaves characters out and no
        special token stands for unknown ones, or has no room for a character.
        """
        specials = usable_tokens(specials)
        counts = count_words(texts, iter, specials)
        room = room_for_words(vocab_size, specials)
        letters = sorted(most_frequent(counts, room))
        tokenizer = cls([*specials, *letters], specials=specials)
        if room is not None and len(counts) > room and tokenizer.unknown_id is None:
            raise ValueError(
                f"A vocabulary of {vocab_size} leaves out some of the {len(counts)} characters, and no special token "
                "stands for unknown ones: raise vocab_size, or add <unk> to the special tokens."
            )
        return tokenizer

    def _encode(self, text: str) -> list[int]:
        if self.unknown_id is not None:
            return [self._ids.get(letter, self.unknown_id) for letter in text]
        try:
            return [self._ids[letter] for letter in text]
        except KeyError as problem:
            raise ValueError(
                f"{problem} is not in the vocabulary of {len(self)}, and no token stands for it."
            ) from None

    def _decode(self, ids: list[int]) -> str:
        return "".join([self.vocabulary[i] for i in ids])
