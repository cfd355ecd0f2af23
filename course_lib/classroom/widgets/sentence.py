"""A box for a sentence, for models that know some words and not others."""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from course_lib.classroom.widgets.controls import TextBox


def split_words(text: str) -> tuple[str, ...]:
    """The words of a text in small letters, without its punctuation."""
    return tuple(re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text.lower()))


@dataclass(frozen=True, kw_only=True)
class Sentence(TextBox):
    """A line of text that says which of its words are not in `vocabulary`."""

    vocabulary: Sequence[str]
    split: Callable[[str], Sequence[str]] = split_words

    def remark(self, value: str) -> str:
        known = sorted(set(self.vocabulary))
        unknown = dict.fromkeys(word for word in self.split(value) if word not in set(known))
        return " ".join(_about(word, known) for word in unknown)


def _about(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=3, cutoff=0.6)
    did = f" Did you mean {' or '.join(f'“{other}”' for other in near)}?" if near else ""
    return f"I do not know the word “{word}” yet, so I can only guess.{did}"
