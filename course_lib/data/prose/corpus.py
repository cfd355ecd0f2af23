"""The two frozen texts, prose and a dictionary: their files, their alphabet and their three splits."""

import hashlib
import lzma
import string
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from course_lib.data.files import data_path


class Corpus(NamedTuple):
    """A file below data/, and the SHA-256 of its text."""

    file: tuple[str, ...]
    sha256: str


PROSE = Corpus(("prose", "prose.txt.xz"), "0f4c523ab0fbbf015fbe2be00145156775424328a20158f536eb8afc7ce4b0e2")
DICTIONARY = Corpus(
    ("prose", "dictionary", "dictionary.txt.xz"), "376648ddc6a92fa51fe6e6a30e9f368e76929a273936c03e8d643a3dccb4a658"
)
SPLITS = ("train", "validation", "test")
# the characters of a line; the line feed stands between paragraphs, or between entries
ALPHABET = frozenset(string.ascii_letters + string.digits + " .,;:!?'\"()-/_")


@dataclass(frozen=True, kw_only=True)
class ProseSplits:
    """Documents per split: an entry, or what one docstring says, its paragraphs separated by a line feed."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]

    def text(self, split: str) -> str:
        """A whole split as one string, each paragraph or entry on its own line. Raises ValueError for another name."""
        if split not in SPLITS:
            raise ValueError(f"the split must be one of {SPLITS}, got {split!r}.")
        return "".join(document + "\n" for document in getattr(self, split))


def prose_splits() -> ProseSplits:
    """English prose about computing, the same on every machine: 2.3 million characters, nothing to download.

    All text of a module is in one split, and no run of eight words of one split occurs in another. Raises
    FileNotFoundError if the file is missing, and ValueError if it is not the one that the course was made with.
    """
    return _read(data_path(*PROSE.file), PROSE.sha256)


def dictionary_splits() -> ProseSplits:
    """Entries of an English dictionary, `headword (part of speech): definition; "example"`: 8 million characters.

    They are WordNet's meanings (Miller 1995, "WordNet: a lexical database for English"), in an order that mixes all
    words; all meanings of a headword are in one split. Errors are those of `prose_splits`.
    """
    return _read(data_path(*DICTIONARY.file), DICTIONARY.sha256)


@cache
def _read(path: Path, sha256: str) -> ProseSplits:
    try:
        content = lzma.decompress(path.read_bytes())
    except (lzma.LZMAError, EOFError):
        content = b""
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ValueError(
            f"{path} is damaged or another corpus (SHA-256 of its text {found[:12]}..., expected {sha256[:12]}...): "
            "restore it with `git restore data`."
        )
    return parse(content.decode("ascii"))


def serialize(splits: ProseSplits, *sources: str) -> str:
    """One text: the sources as lines that begin with #, then each split under its name, documents divided by an
    empty line.
    """
    lines = [f"# {source}" for source in sources]
    for split in SPLITS:
        lines += [f"= {split}", "\n\n".join(getattr(splits, split))]
    return "\n".join(lines) + "\n"


def parse(text: str) -> ProseSplits:
    """What `serialize` wrote."""
    splits = {}
    for split, after in zip(SPLITS, (*SPLITS[1:], None), strict=True):
        body = text.split(f"\n= {split}\n", 1)[1]
        body = body.split(f"\n= {after}\n", 1)[0] if after else body.removesuffix("\n")
        splits[split] = tuple(body.split("\n\n")) if body else ()
    return ProseSplits(**splits)
