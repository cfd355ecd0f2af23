"""Names of places, languages, currencies and scripts in twelve languages: which language is a name written in?

From the Unicode Common Locale Data Repository (CLDR), frozen in data/names by `course_lib.data.build_names`;
data/names/README.md has source and licence. What one thing is called is in one split, whatever the language: nobody is
tested on the Portuguese of a country whose Spanish name was trained on.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import NamedTuple

from course_lib.data.files import data_path

FOLDER, FILE = "names", "names.tsv"
CHECKSUM = "1a96cb8b42df1d0490cfb82acbd68a80b30350791e4ce64664cdc57a819b5af8"
LANGUAGES = {
    "cs": "Czech",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "hu": "Hungarian",
    "it": "Italian",
    "nl": "Dutch",
    "pl": "Polish",
    "sv": "Swedish",
    "tr": "Turkish",
}
LANGUAGE_NAMES = tuple(LANGUAGES.values())
LONGEST = 24  # letters
HELD_OUT = {"test": 20, "validation": 10}  # percent of the things that have names


class Name(NamedTuple):
    """A name in small letters, the language that alone calls something so, and what: "territories/FR"."""

    text: str
    language: str  # of `LANGUAGE_NAMES`
    thing: str


class NameSplits(NamedTuple):
    """No name, and nothing that has names, is in two splits."""

    train: tuple[Name, ...]
    validation: tuple[Name, ...]
    test: tuple[Name, ...]


@cache
def name_splits() -> NameSplits:
    """All names in three splits. Raises ValueError if the file is not the one that belongs to the course."""
    content = data_path(FOLDER, FILE).read_bytes()
    if sha256(content).hexdigest() != CHECKSUM:
        raise ValueError(f"{FOLDER}/{FILE} is damaged: restore it with `git restore data`")
    parts: dict[str, list[Name]] = {split: [] for split in NameSplits._fields}
    for line in content.decode("utf-8").splitlines():
        code, thing, text = line.split("\t")
        parts[split_of(thing)].append(Name(text, LANGUAGES[code], thing))
    return NameSplits(**{split: tuple(names) for split, names in parts.items()})


def split_of(thing: str) -> str:
    """A thing belongs to one split with its names in all languages, by a hash of its code."""
    ticket = int.from_bytes(sha256(thing.encode()).digest()[:8]) % 100
    for split, percent in HELD_OUT.items():
        if ticket < percent:
            return split
        ticket -= percent
    return "train"


def letter_runs(text: str, *, longest: int = 3) -> list[str]:
    """All runs of 1 to `longest` letters of a name, "^" before its first and "$" behind its last letter."""
    marked = f"^{text}$"
    return [marked[i : i + n] for n in range(1, longest + 1) for i in range(len(marked) - n + 1)]


def texts_and_labels(names: Sequence[Name]) -> tuple[list[str], list[int]]:
    """The names' texts, and the places of their languages in `LANGUAGE_NAMES`."""
    return [name.text for name in names], [LANGUAGE_NAMES.index(name.language) for name in names]
