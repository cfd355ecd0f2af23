"""What in a release students must not get: solutions, hidden checks, alternatives not drawn, second notebooks."""

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat

from course_lib.grading.spec import AssignmentFiles, load
from course_lib.grading.stripped import NOT_OURS, SOLUTION_MARKS

MARKS = (*SOLUTION_MARKS, *NOT_OURS)
NOT_RELEASED = {".ipynb_checkpoints", "__pycache__"}  # as nbgrader leaves them out
TELLING = 20  # characters: a shorter line, such as `return x`, can stand anywhere by chance
_HEADER = re.compile(r"^[ \t]*(?:def|class) (?s:.*?):[ \t]*$", re.MULTILINE)


def leaks(files: AssignmentFiles, notebook: nbformat.NotebookNode, folder: Path) -> Iterator[str]:
    """One sentence on each thing in any file of `folder` that students must not get; nothing for a good release.

    `files` have all alternatives; `notebook` is the students' version, and stands for the notebook in the folder.
    """
    forbidden = [*MARKS, *_hidden_lines(files, notebook)]
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, text = path.relative_to(folder).as_posix(), path.read_bytes().decode("utf-8", errors="replace")
        if NOT_RELEASED & {*path.parts}:
            continue
        if name == f"{files.notebook}.ipynb":
            text = "\n".join([nbformat.writes(notebook), *(cell.source for cell in notebook.cells)])
        elif path.suffix == ".ipynb":
            yield f"{name} is a second notebook."
        text = text.replace('\\"', '"')  # as a notebook writes it
        yield from (f"{name} holds {words!r}." for words in forbidden if words in text)


def _hidden_lines(files: AssignmentFiles, notebook: nbformat.NotebookNode) -> Iterator[str]:
    """Telling lines of the hidden checks, the mistakes and the source that the students' `notebook` does not show.

    The first lines of functions and classes that students are given to fill in are no secret in the hidden checks.
    """
    cells = nbformat.reads(files.source_notebook.decode(), as_version=4).cells
    source, shown = ("\n".join(cell.source for cell in some) for some in (cells, notebook.cells))
    loaded = load(files)
    given = [cell.source for cell in loaded.cells if cell.kind == "setup"]
    given += [header for stub in loaded.stubs.values() for header in _HEADER.findall(stub)]
    hidden = (files.checks + b"\n" + files.texts).decode(errors="replace")
    for text, known in ((hidden, "\n".join(given)), (source, shown)):
        for line in map(str.strip, text.splitlines()):
            telling = len(line) >= TELLING and any(map(str.isalnum, line))
            if telling and line not in known and not line.startswith(("import ", "from ")):
                yield line
