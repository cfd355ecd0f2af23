"""What is taken from a submitted notebook: the source text of known cells, and nothing else.

The file is another person's. It is opened without following links and without waiting, read once up to a limit, and
whatever is wrong with it becomes a note; metadata, outputs, the order of cells and all other cells never matter.
"""

import codecs
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_lib.grading.folders import FILE_BYTES, read_small, storable
from course_lib.grading.spec import AssignmentFiles, load

ANSWER_BYTES = 100_000
WRITTEN_BYTES = 1_000_000  # a written answer may hold a drawing
NESTED = 1_000_000  # opening brackets; more of them would take gigabytes to parse
SAVE_AGAIN = "Open it in JupyterLab, see that your answers are there, save it, and submit it again."

_GRADE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What one student handed in: `answers` by task, `written` answers by grade_id; `sha256` is that of the file.

    `notes` say what was wrong and what to do; `readable` is False if there was nothing to take an answer from: no
    notebook, or none of this assignment.
    """

    student: str
    assignment: str
    sha256: str
    answers: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    readable: bool = True


class _Unreadable(Exception):
    """There is nothing to take; the message says why and what to do."""


def take_in(path: Path, files: AssignmentFiles, *, student: str | None = None) -> Submission:
    """The submission in a notebook file; never raises for what the file holds or is.

    The student is the folder's name in `submitted/<student>/<assignment>/<notebook>.ipynb`, and neither of the two
    folders may be a link; with `student` given, `path` may lie anywhere.
    """
    in_course = student is None
    if student is None:
        student = path.parts[-3] if len(path.parts) >= 3 else ""
    content = b""
    try:
        if not storable(student) or student in (".", "..") or set(student) & set("/\\"):
            raise _Unreadable(
                "The name of the student's folder cannot be used: it is too long, or holds /, \\ or characters that "
                "cannot be printed. Rename the folder."
            )
        content = _read(path, folders=2 if in_course else 0)
        answers, written, notes = _take_cells(_cells(_parse(content)), files)
    except _Unreadable as problem:
        digest = hashlib.sha256(content or f"unreadable: {problem}".encode()).hexdigest()
        return Submission(student=student, assignment=files.name, sha256=digest, notes=(str(problem),), readable=False)
    return Submission(
        student=student,
        assignment=files.name,
        sha256=hashlib.sha256(content).hexdigest(),
        answers=answers,
        written=written,
        notes=tuple(notes),
    )


def _read(path: Path, *, folders: int) -> bytes:
    """The bytes of a regular file of at most FILE_BYTES; the last `folders` of its path must be no links, either."""
    try:
        linked = any(part.is_symlink() for part in (path, *path.parents[:folders]))
        content = None if linked else read_small(path, FILE_BYTES)
        if content is None and not path.exists() and not linked:
            raise _Unreadable(f"There is no notebook {path.name}. Submit it under the name it was handed out with.")
        if content is None and path.is_file() and not linked and path.stat().st_size > FILE_BYTES:
            raise _Unreadable(
                f"The notebook is larger than {FILE_BYTES // 1_000_000} MB. Clear its outputs (Edit, Clear Outputs of "
                "All Cells), save it, and submit it again."
            )
    except OSError:
        content = None
    if content is None:
        raise _Unreadable(
            "The notebook cannot be opened: a link, a folder in its place, or a file that is not readable. Submit the "
            "notebook file itself."
        )
    return content


def _parse(content: bytes) -> Any:
    """The JSON in the file; numbers are not kept: none of them ever counts, and some are too large to read."""
    if content.count(b"[") + content.count(b"{") > NESTED:
        raise _Unreadable(f"The notebook holds millions of nested values, as no notebook does. {SAVE_AGAIN}")
    try:
        return json.loads(_decode(content), parse_int=_small, parse_float=_nothing, parse_constant=_nothing)
    except (ValueError, RecursionError):
        raise _Unreadable(f"The file is no notebook, or only a part of one. {SAVE_AGAIN}") from None


def _decode(content: bytes) -> str:
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE))
    encoding = json.detect_encoding(content) if wide or b"\0" in content[:4] else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return content.decode("latin-1").removeprefix("ï»¿")


def _small(digits: str) -> int:
    return int(digits) if len(digits) <= 6 else 0


def _nothing(_: str) -> None:
    return None


def _cells(notebook: Any) -> list[Any]:
    if isinstance(notebook, dict) and isinstance(notebook.get("cells"), list):
        return notebook["cells"]
    if isinstance(notebook, dict) and "worksheets" in notebook:
        raise _Unreadable(f"The notebook is saved in an old format (version 3). {SAVE_AGAIN}")
    raise _Unreadable(f"The file is no notebook: it has no list of cells. {SAVE_AGAIN}")


def _take_cells(cells: list[Any], files: AssignmentFiles) -> tuple[dict[str, str], dict[str, str], list[str]]:
    loaded = load(files)
    tasks = [cell.grade_id for cell in loaded.cells if cell.kind == "solution"]
    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in (*tasks, *loaded.manual_cells)}
    others = []
    for grade_id, tags, cell in _tagged(cells):
        if grade_id in found:
            found[grade_id].append(cell)
        elif tags.get("solution") is True:
            others.append(grade_id)
    if not any(found.values()):
        raise _Unreadable(_of_another(others, files))
    notes: list[str] = []
    answers = _texts(files.name, tasks, found, ("code",), ANSWER_BYTES, notes)
    written = _texts(files.name, list(loaded.manual_cells), found, ("markdown", "code"), WRITTEN_BYTES, notes)
    if others and not all(found.values()):
        notes.append(
            f"The notebook also has {_named(others)} that assignment {files.name} does not have: was its name changed, "
            "or is it the notebook of another assignment?"
        )
    return answers, written, list(dict.fromkeys(notes))


def _of_another(others: list[str], files: AssignmentFiles) -> str:
    """What to say of a notebook that has none of the cells for answers."""
    why = (
        f"it is the notebook of another one, with {_named(others)}"
        if others
        else "it is another notebook, or its cells were copied by their text"
    )
    return (
        f"The notebook has none of the cells for answers to assignment {files.name}: {why}. Submit the notebook "
        f"{files.notebook}.ipynb that you fetched for assignment {files.name}, with your answers in its own cells."
    )


def _named(others: list[str]) -> str:
    """The first of these cells; by its name, which is the student's, if that is one as nbgrader gives them."""
    return f"a cell {others[0]!r}" if _GRADE_ID.fullmatch(others[0]) else "other cells"


def _tagged(cells: list[Any]) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """The cells that nbgrader has given a grade_id, with that and its other tags."""
    for cell in cells:
        metadata = cell.get("metadata") if isinstance(cell, dict) else None
        tags = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        grade_id = tags.get("grade_id") if isinstance(tags, dict) else None
        if isinstance(grade_id, str):
            yield grade_id, tags, cell


def _texts(
    assignment: str,
    names: list[str],
    cells: Mapping[str, list[Mapping[str, Any]]],
    kinds: tuple[str, ...],
    limit: int,
    notes: list[str],
) -> dict[str, str]:
    """The text of each named cell that is there, of one of these kinds and not too long; a note for each other.

    Of several code cells with one name, such as those that JupyterLab's Split Cell makes, all count, in their order:
    so they do in the student's own kernel. Of several answers in words the first of the first kind counts.
    """
    texts = {}
    for name in names:
        if not cells[name]:
            notes.append(
                f"The cell {name!r} is missing: it was deleted, or its metadata were lost, as when a cell is copied by "
                f"its text. Get a new copy with “course assign fetch {assignment} --again”, and put your answer into "
                "the cell that belongs there."
            )
            continue
        fitting = [cell for kind in kinds for cell in cells[name] if cell.get("cell_type") == kind]
        if not fitting:
            notes.append(
                f"The cell {name!r} is no {kinds[0]} cell any more, so nothing was taken from it. Change it back: "
                f"click it, and choose {kinds[0].capitalize()} in the list at the top of the notebook."
            )
            continue
        found = [_source(cell.get("source")) for cell in (fitting if kinds == ("code",) else fitting[:1])]
        text = "\n".join(part or "" for part in found)
        if None in found:
            notes.append(f"The cell {name!r} holds no text. {SAVE_AGAIN}")
        elif len(text.encode()) > limit:
            notes.append(
                f"The cell {name!r} is longer than {limit // 1000} kB, so nothing was taken from it. Shorten it."
            )
        else:
            texts[name] = text
    return texts


def _source(source: Any) -> str | None:
    """A cell's text; halves of surrogate pairs, which no file can hold, become question marks."""
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    return source.encode("utf-8", errors="replace").decode() if isinstance(source, str) else None
