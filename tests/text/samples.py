"""Texts that the tests of tokenizers share: made-up languages to learn from, and any Unicode at all to encode."""

import random
import sys
import unicodedata

from hypothesis import strategies as st

SCRIPTS = ("abcdefghij", "éèêëöüß", "абвгде", "אבגדה", "مرحبا", "日本語中文字", "한국어말", "αβγδς", "0123456789")
EXTRAS = (
    "👩‍👩‍👧‍👦", "🇫🇷", "👍🏽", "e\u0301", "n\u0303\u0323", "\u200f", "\u202e", "\x00", "\x1c", "\x85", "\u00a0",
    "\u3000", "\ufffd", "\ufeff", "İ", "ΑΣ", "ǅ", "ﬁ", "½", "②", "'s", "'ll", "'LL", "  ", "\n\n ", "\t", "\r\n",
    "</w>", "##", "[MASK]", "<unk>", "<|endoftext|>", "Ġ", "中文", "\U0002b820", "\U0002f800", "$+<=>^`|~", "a" * 101,
    "ab" * 70,
)  # fmt: skip


def language(seed: int, *, words: int = 300, sentences: int = 120) -> list[str]:
    """Sentences of made-up words in many scripts, the first words far more frequent than the last (Zipf)."""
    rng = random.Random(seed)
    lexicon = ["".join(rng.choices(rng.choice((*SCRIPTS, "-'.,!?#<>/w")), k=rng.randint(1, 7))) for _ in range(words)]
    weights = [1 / (rank + 1) for rank in range(words)]
    return [" ".join(rng.choices(lexicon, weights, k=rng.randint(3, 25))) for _ in range(sentences)]


def is_assigned(letter: str) -> bool:
    """Whether this Python's Unicode knows the character; tables of other versions may class it otherwise if not."""
    return unicodedata.category(letter) not in ("Cn", "Cs")


# Unicode made these of punctuation (1) and of spacing letters (3) after version 8, the `tokenizers` library's for BERT.
RECLASSED = {"\u166d", "\u1734", "\u1885", "\u1886"}


def existed_in_2002(letter: str) -> bool:
    return unicodedata.ucd_3_2_0.category(letter) != "Cn"


def known_to_all(text: str) -> str:
    """Without the characters that the official library's tables for BERT class otherwise; emoji stay."""
    known = (letter for letter in text if existed_in_2002(letter) or "\U0001f000" <= letter < "\U00020000")
    return "".join(letter for letter in known if letter not in RECLASSED)


def any_text(learned: list[str]) -> st.SearchStrategy[str]:
    """Any characters at all, awkward pieces, and words of the text that a tokenizer was trained on, in any mixture."""
    known = sorted({word for sentence in learned for word in sentence.split()})
    letters = st.characters(codec="utf-8").filter(is_assigned)
    pieces = st.one_of(st.sampled_from(known), st.sampled_from(EXTRAS), st.text(letters, max_size=5), st.just(" "))
    return st.lists(pieces, max_size=12).map("".join)


def every_character() -> list[str]:
    """The characters that this Python's Unicode knows, with two of each of its uniform thousands."""
    uniform = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xF8FF), (0x17000, 0x18CFF))
    uniform += ((0x20000, 0x2A6DF), (0x2A700, 0x2B738), (0x2B740, 0x2EBE0), (0x30000, 0x3134A), (0xF0000, 0x10FFFD))
    inside = {code for low, high in uniform for code in range(low + 1, high)}
    return [chr(code) for code in range(sys.maxunicode + 1) if code not in inside and is_assigned(chr(code))]
