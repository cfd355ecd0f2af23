"""What is taken from a submitted notebook: the source text of known cells, and nothing else.

The file is another person's. It is opened without following links and without waiting, read once up to a limit, and
whatever is wrong with it becomes a note; metadata, outputs, the order of cells and all other cells never matter.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from course_lib.grading.folders import FILE_BYTES, is_folder, read_small, storable
from course_lib.grading.spec import AssignmentFiles, load

ANSWER_BYTES = 100_000
WRITTEN_BYTES = 1_000_000  # a written answer may hold a plot
PICTURES = ("image/png", "image/jpeg")
BASE64 = re.compile(r"[A-Za-z0-9+/\s]+=*\s*")
NESTED = 1_000_000  # opening brackets; more of them would take gigabytes to parse
SAVE_AGAIN = "Open it in JupyterLab, see that your answers are there, save it, and submit it again."


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
    """There is nothing to take, of the notebook or of one cell; the message says why and what to do."""


def take_in(path: Path, files: AssignmentFiles) -> Submission:
    """The submission in `submitted/<student>/<assignment>/<notebook>.ipynb`; neither folder may be a link."""
    direct = all(map(is_folder, path.parents[:2]))
    return take_from(read_small(path, FILE_BYTES) if direct else None, files, student=path.parts[-3])


def take_from(content: bytes | None, files: AssignmentFiles, *, student: str) -> Submission:
    """The submission in the bytes of a notebook, None if they could not be read; never raises for what they are."""
    taken = Submission(student=student, assignment=files.name, sha256=hashlib.sha256(content or b"").hexdigest())
    try:
        if not storable(student):
            raise _Unreadable(
                "The name of the student's folder cannot be used: it is too long, or holds characters that cannot be "
                "printed. Rename the folder."
            )
        if content is None:
            raise _Unreadable(
                f"The notebook {files.notebook}.ipynb cannot be read: it is missing, a link, a folder or larger than "
                f"{FILE_BYTES // 1_000_000} MB. Clear its outputs if it is large (Edit, Clear Outputs of All Cells), "
                "save it, and submit the file itself under the name it was handed out with."
            )
        found = _known_cells(content, files)
    except _Unreadable as problem:
        return replace(taken, notes=(str(problem),), readable=False)
    answers, written, notes = {}, {}, []
    manual = load(files).manual_cells
    for name, cells in found.items():
        try:
            if name in manual:
                written[name] = _text(name, cells, ("markdown", "code"), WRITTEN_BYTES)
            else:
                answers[name] = _text(name, cells, ("code",), ANSWER_BYTES)
        except _Unreadable as problem:
            notes.append(str(problem))
    return replace(taken, answers=answers, written=written, notes=tuple(notes))


def cells_of(content: bytes) -> list[Any]:
    """What the notebook calls its cells, whatever that is; _Unreadable if it is no list."""
    if content.count(b"[") + content.count(b"{") > NESTED:
        raise _Unreadable(f"The notebook holds millions of nested values, as no notebook does. {SAVE_AGAIN}")
    try:
        text = content.decode(json.detect_encoding(content), errors="replace")
        cells = json.loads(text)["cells"]
    except (ValueError, TypeError, KeyError, RecursionError):
        cells = None
    if not isinstance(cells, list):
        raise _Unreadable(f"The file is no notebook, only a part of one, or in an old format. {SAVE_AGAIN}")
    return cells


def source_of(cell: Mapping[str, Any]) -> str | None:
    """A cell's text; halves of surrogate pairs, which no file can hold, become question marks."""
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    return source.encode("utf-8", errors="replace").decode() if isinstance(source, str) else None


def with_pictures(source: str, attachments: Any) -> str:
    """The text of a written answer with its pasted pictures in it, which JupyterLab keeps beside the text.

    Only pictures are taken, and only those whose content is Base64; the place of any other stays as it is.
    """
    for name, kinds in attachments.items() if isinstance(attachments, dict) else ():
        for kind, content in kinds.items() if isinstance(kinds, dict) else ():
            if kind in PICTURES and isinstance(content, str) and BASE64.fullmatch(content):
                source = source.replace(f"(attachment:{name})", f"(data:{kind};base64,{content.strip()})")
    return source


def _known_cells(content: bytes, files: AssignmentFiles) -> dict[str, list[Mapping[str, Any]]]:
    """The notebook's cells with each name that the assignment has for an answer."""
    loaded = load(files)
    tasks = [cell.grade_id for cell in loaded.cells if cell.kind == "solution"]
    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in (*tasks, *loaded.manual_cells)}
    for cell in cells_of(content):
        match cell:
            case {"metadata": {"nbgrader": {"grade_id": str(name)}}} if name in found:
                found[name].append(cell)
    if not any(found[name] for name in tasks):  # a cell for an answer in words alone may be any assignment's
        raise _Unreadable(
            f"The notebook has none of the cells for code of assignment {files.name}: it is another notebook, or "
            f"its cells were copied by their text. Submit the notebook {files.notebook}.ipynb that you fetched for "
            f"assignment {files.name}, with your answers in its own cells."
        )
    return found


def _text(name: str, cells: list[Mapping[str, Any]], kinds: tuple[str, ...], limit: int) -> str:
    """The text of the cells with one name; _Unreadable if none is there, of one of these kinds, and not too long.

    Of several code cells, such as those that JupyterLab's Split Cell makes, all count, in their order: so they do in
    the student's own kernel. Of several answers in words the first of the first kind counts.
    """
    if not cells:
        raise _Unreadable(
            f"The cell {name!r} is missing: it was deleted, or its metadata were lost, as when a cell is copied by "
            "its text. Get a new copy with “course assign fetch” and --again, and put your answer into the cell that "
            "belongs there."
        )
    fitting = [cell for kind in kinds for cell in cells if cell.get("cell_type") == kind]
    if not fitting:
        raise _Unreadable(
            f"The cell {name!r} is no {kinds[0]} cell any more, so nothing was taken from it. Change it back: "
            f"click it, and choose {kinds[0].capitalize()} in the list at the top of the notebook."
        )
    texts = [source_of(cell) for cell in (fitting if kinds == ("code",) else fitting[:1])]
    if None in texts:
        raise _Unreadable(f"The cell {name!r} holds no text. {SAVE_AGAIN}")
    if kinds != ("code",):
        texts = [with_pictures(texts[0], fitting[0].get("attachments"))]
    text = "\n".join(texts)
    if len(text.encode()) > limit:
        raise _Unreadable(
            f"The cell {name!r} is longer than {limit // 1000} kB, so nothing was taken from it. Shorten it, or make "
            "its pictures smaller."
        )
    return text
