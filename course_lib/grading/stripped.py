"""The students' version of an assignment, made from the instructor's source, with the cells that nbgrader makes."""

import re
import textwrap
from collections.abc import Mapping
from typing import Any

import nbformat

STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
WRITTEN_STUB = "YOUR ANSWER HERE"
SOLUTION_MARKS = ("BEGIN SOLUTION", "END SOLUTION")
NOT_OURS = ("BEGIN HIDDEN TESTS", "END HIDDEN TESTS", "BEGIN MARK SCHEME", "END MARK SCHEME")
KEPT_METADATA = ("kernelspec", "language_info")

_REGION = re.compile(
    r"^([ \t]*).*BEGIN SOLUTION.*\n"
    r"(?:(?!.*(?:BEGIN|END) SOLUTION).*\n)*"  # the solution
    r".*END SOLUTION.*$",
    flags=re.MULTILINE,
)


def read_notebook(source: bytes, place: str) -> nbformat.NotebookNode:
    """The notebook in these bytes. Raises ValueError, naming `place`, if it cannot be read."""
    try:
        return nbformat.reads(source.decode("utf-8"), as_version=4)
    except Exception as error:
        raise ValueError(f"{place} cannot be read as a notebook: {type(error).__name__}: {error}") from error


def tags_of(cell: nbformat.NotebookNode) -> Mapping[str, Any]:
    """What nbgrader has noted on a cell."""
    return cell.metadata.get("nbgrader") or {}


def clear_solution(source: str, place: str, *, stub: str = STUB) -> str:
    """The cell as it is released: each region from BEGIN SOLUTION to END SOLUTION replaced by the indented stub.

    As nbgrader does it: without such a region the whole cell becomes the stub. Raises ValueError, naming `place`, for a
    mark without its other one.
    """
    released, regions = _REGION.subn(lambda region: textwrap.indent(stub, region[1]), source)
    if any(mark in released for mark in SOLUTION_MARKS):
        raise ValueError(f"{place}: a BEGIN SOLUTION or END SOLUTION stands without the other.")
    return released if regions else stub


def student_version(source: bytes, place: str) -> nbformat.NotebookNode:
    """The notebook without solutions, outputs and execution counts.

    Raises ValueError, naming `place`, if it cannot be read, if a solution has no end or stands in another cell, or if
    there are hidden tests in it.
    """
    notebook = read_notebook(source, place)
    kept = {key: notebook.metadata[key] for key in KEPT_METADATA if key in notebook.metadata}
    notebook.metadata = nbformat.NotebookNode(kept)
    for number, cell in enumerate(notebook.cells, start=1):
        tags = tags_of(cell)
        cell.metadata = nbformat.NotebookNode({"nbgrader": tags} if tags else {})
        if mark := next((mark for mark in NOT_OURS if mark in cell.source), None):
            raise ValueError(
                f"{place}: cell {number} holds nbgrader's mark {mark!r}. The judge does not look into cells: hidden "
                "checks belong into hidden/, and what a written answer is marked for into its solution."
            )
        if tags.get("solution"):
            stub = STUB if cell.cell_type == "code" else WRITTEN_STUB
            cell.source = clear_solution(cell.source, f"{place}, cell {tags.get('grade_id')!r}", stub=stub)
        elif any(mark in cell.source for mark in SOLUTION_MARKS):
            raise ValueError(f"{place}: cell {number} holds a solution, but is no solution cell.")
        elif tags.get("grade") or tags.get("locked"):
            cell.metadata["editable"] = False
        if tags:
            cell.metadata["deletable"] = False
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook
