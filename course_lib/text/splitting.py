"""How text is cut into words before subwords are learned or looked up, each rule equal to the `tokenizers` library's.

Characters that Unicode added of late are classed by the `regex` package, whose tables are newer than that library's.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import regex

WORD = regex.compile(r"\S+")
WORD_OR_PUNCTUATION = regex.compile(r"\w+|[^\w\s]+")

# Radford et al. 2019, section 2.2: a word takes the space before it along; letters, digits and signs stay apart.
GPT2_WORD = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")

PUNCTUATION = r"\p{P}!-/:-@\[-`{-~"  # every ASCII sign counts, also $ + < = > ^ ` | ~, which Unicode calls symbols
BERT_WORD = regex.compile(rf"[^\s{PUNCTUATION}]+|[{PUNCTUATION}]")
NOT_TEXT = regex.compile(r"(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\ufffd]")
MARK = regex.compile(r"\p{Mn}")
# BERT's own list has the block from 2B820 on; the `tokenizers` library, which made the released files, begins at 2B920.
CHINESE = regex.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf"
    "\U0002f800-\U0002fa1f]"
)


def split_at_space(text: str) -> list[str]:
    """The pieces between white space."""
    return WORD.findall(text)


def split_at_punctuation(text: str) -> list[str]:
    """Runs of letters and digits, and runs of other signs; white space is dropped."""
    return WORD_OR_PUNCTUATION.findall(text)


def splitter(cut_punctuation: bool) -> Callable[[str], list[str]]:
    """One of the two rules above."""
    return split_at_punctuation if cut_punctuation else split_at_space


def split_like_gpt2(text: str) -> list[str]:
    """Words with the space before them: joined, the pieces are the text again."""
    return GPT2_WORD.findall(text)


@dataclass(frozen=True, kw_only=True)
class BertSplitter:
    """BERT's basic tokenizer (Devlin et al. 2019): clean, cut at white space, each punctuation sign a word of its own.

    clean: drop control characters; space_chinese: each Chinese character is a word; lower: lower case;
    strip_accents: drop accents, which the uncased models do.
    """

    clean: bool = True
    space_chinese: bool = True
    lower: bool = True
    strip_accents: bool = True

    def normalize(self, text: str) -> str:
        """The text before it is cut."""
        if self.clean:
            text = NOT_TEXT.sub("", text)
        if self.space_chinese and not text.isascii():
            text = CHINESE.sub(r" \g<0> ", text)
        if self.strip_accents and not text.isascii():
            text = MARK.sub("", unicodedata.normalize("NFD", text))
        # Python's lower() looks at the neighbours of a capital sigma; the library takes each letter alone.
        return (
            text.replace("\N{GREEK CAPITAL LETTER SIGMA}", "\N{GREEK SMALL LETTER SIGMA}").lower()
            if self.lower
            else text
        )

    def __call__(self, text: str) -> list[str]:
        return BERT_WORD.findall(self.normalize(text))
