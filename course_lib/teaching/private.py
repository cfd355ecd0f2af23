"""What students must not get, whatever it is packed in: solutions, hidden checks, exams, notes of lectures, keys.

Each private text is a set of its telling lines. Single lines of a solution, such as `optimizer.zero_grad()`, stand in
lessons and in the library, too; a file gives a text away if it holds more than half of its telling lines.
"""

import html
import io
import lzma
import re
import string
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import nbformat

from course_lib.grading.folders import Folders
from course_lib.grading.leaks import MARKS, TELLING
from course_lib.grading.stripped import student_version, tags_of

PLACES = re.compile(r"(^|/)(assignments/(source|hidden)|exams|docs/lectures)/|(^|/)(instructor\.key|gradebook\.db)$")
NOTES = '"lecture": {'  # the key of a cell's metadata that holds slides and speaker notes
_EDGES = string.whitespace + string.punctuation  # such as quotes of JSON, bullets of a list, # of a comment


def private_texts(course: Path, instructor: Path) -> dict[str, frozenset[str]]:
    """The telling lines of all that is private in a checkout and in an instructor's folder, by the names of the texts.

    What a student's version of an assignment shows is not private.
    """
    found: dict[str, set[str]] = {}
    for path in sorted((instructor / "source").glob("*/*.ipynb")):
        name, content = path.parent.name, path.read_bytes()
        shown = set().union(*(lines_of(cell.source) for cell in student_version(content, str(path)).cells))
        for cell in _cells(path):
            if tags_of(cell).get("solution"):
                found[f"the answer {tags_of(cell)['grade_id']!r} of assignment {name}"] = lines_of(cell.source) - shown
        for file in sorted((instructor / "hidden" / name).glob("*.[pm][yd]")):
            found[f"hidden/{name}/{file.name}"] = lines_of(file.read_text(encoding="utf-8")) - shown
    for file in sorted(course.glob("docs/lectures/*.md")):
        found[f"docs/lectures/{file.name}"] = lines_of(file.read_text(encoding="utf-8"))
    for file in sorted(course.glob("exams/[0-9]*.md")):
        for question in file.read_text(encoding="utf-8").split("\n## ")[1:]:
            found[f"exams/{file.name}, {question.splitlines()[0]!r}"] = lines_of(question)
    for path in sorted(course.glob("notebooks/[0-9]*.ipynb")):
        slides = [slide for cell in _cells(path) for slide in cell.metadata.get("lecture", {}).get("slides", [])]
        notes = "\n".join(slide.get("notes", "") for slide in slides)
        found[f"the speaker notes of {path.stem}"] = lines_of(notes)
    key = Folders(root=instructor).key
    found["the instructor's key"] = lines_of(key.read_text()) if key.exists() else set()
    return {name: frozenset(filter(_is_telling, lines)) for name, lines in found.items()}


def leaks(files: Iterable[tuple[str, bytes]], private: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """One sentence on each private text that one of these files holds, and on each file that has no place there."""
    every = frozenset().union(*private.values())
    for name, content in files:
        if PLACES.search(name):
            yield f"{name} is for instructors alone."
        for member, text in _unpacked(name, content):
            held = lines_of(text) & every
            for title, telling in private.items() if held else ():
                if 2 * len(telling & held) > len(telling):
                    yield f"{member} holds {len(telling & held)} of {len(telling)} telling lines of {title}."
            if member.endswith(".ipynb"):
                marks = [*MARKS, NOTES] if "assignments/" in member else [NOTES]
                yield from (f"{member} holds {mark!r}." for mark in marks if mark in text)


def files_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files below a folder: their names in it, and their bytes."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.read_bytes()


def lines_of(text: str) -> set[str]:
    """The lines of a text, of a notebook's JSON as well, without what may stand at their edges."""
    return {line.strip(_EDGES) for line in text.replace("\\n", "\n").replace('\\"', '"').splitlines()}


def _is_telling(line: str) -> bool:
    return len(line) >= TELLING and not line.startswith(("import ", "from "))


def _cells(path: Path) -> list[nbformat.NotebookNode]:
    return nbformat.read(path, as_version=4).cells


def _unpacked(name: str, content: bytes) -> Iterator[tuple[str, str]]:
    """A file as text, without the tags of HTML; of an archive each file."""
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.namelist():
                yield from _unpacked(f"{name}/{member}", archive.read(member))
        return
    text = (lzma.decompress(content) if name.endswith(".xz") else content).decode("utf-8", errors="replace")
    yield name, html.unescape(re.sub(r"<[^>]*>", "", text)) if name.endswith(".html") else text
