"""The frozen prose corpus: its file, its alphabet and its three splits."""

import hashlib
import lzma
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course_lib.data.files import data_path

FOLDER, FILE = "prose", "prose.txt.xz"
SHA256 = "0f4c523ab0fbbf015fbe2be00145156775424328a20158f536eb8afc7ce4b0e2"  # of the text
SPLITS = ("train", "validation", "test")
# a paragraph's characters; the line feed stands between paragraphs
ALPHABET = frozenset(string.ascii_letters + string.digits + " .,;:!?'\"()-/_")


@dataclass(frozen=True, kw_only=True)
class ProseSplits:
    """Documents per split: a document is what one docstring says, its paragraphs separated by a line feed."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]

    def text(self, split: str) -> str:
        """A whole split as one string, every paragraph on a line of its own. Raises ValueError for another name."""
        if split not in SPLITS:
            raise ValueError(f"the split must be one of {SPLITS}, got {split!r}.")
        return "".join(document + "\n" for document in getattr(self, split))


def prose_splits() -> ProseSplits:
    """English prose about computing, the same on every machine: 2.3 million characters, nothing to download.

    All text of a module is in one split, and no run of eight words of one split occurs in another. Raises
    FileNotFoundError if the file is missing, and ValueError if it is not the one that the course was made with.
    """
    return _read(data_path(FOLDER, FILE))


@cache
def _read(path: Path) -> ProseSplits:
    try:
        content = lzma.decompress(path.read_bytes())
    except (lzma.LZMAError, EOFError):
        content = b""
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise ValueError(
            f"{path} is damaged or another corpus (SHA-256 of its text {found[:12]}..., expected {SHA256[:12]}...): "
            "restore it with `git restore data`."
        )
    return parse(content.decode("ascii"))


def serialize(splits: ProseSplits, sources: Sequence[str]) -> str:
    """One text: the sources as lines that begin with #, then each split under its name, documents divided by an
    empty line.
    """
    lines = ["# English prose from the docstrings of these packages; licences in README.md:"]
    lines += [f"# {source}" for source in sources]
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
