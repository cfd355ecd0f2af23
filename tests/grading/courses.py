"""Course directories with one small assignment each, and what students hand in.

Assignment 01 is for tests that change its files; assignment 07 is released and has a gradebook.
"""

import functools
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from unittest import mock

from course_lib.grading.folders import Folders

# Cells and notebooks ----------------------------------------------------------------------------------------


def cell(grade_id, *, source="", kind="code", grade=False, solution=False, locked=False, points=None):
    tags = {"grade_id": grade_id, "grade": grade, "solution": solution, "locked": locked, "schema_version": 3}
    tags |= {"task": False} | ({} if points is None else {"points": points})
    made = {"cell_type": kind, "id": f"id-{grade_id}", "metadata": {"nbgrader": tags}, "source": source}
    return made | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def setup(name, source):
    return cell(name, source=source, locked=True)


def solution(name, source):
    return cell(name, source=source, solution=True)


def check(name, source, points):
    return cell(name, source=source, grade=True, locked=True, points=points)


def answer(name, source, points):
    return cell(name, source=source, kind="markdown", grade=True, solution=True, points=points)


def notebook_of(cells):
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def notebook(cells):
    return json.dumps(notebook_of(cells)).encode()


# Assignment 01, and any files in place of its own -----------------------------------------------------------

CHECKS = """
from course_lib.grading.spec import Assignment
from course_lib.tasks import Case, Task


DOUBLE = Task(name="double", title="Double", asks="x", cases=(
    Case("doubles small numbers", lambda draw: (draw(2, 3),), 2),
    Case("doubles large numbers", lambda draw: (1e6 * draw(3),), 1),
))
HALVE = Task(name="halve", title="Halve", asks="x",
             cases=(Case("halves", lambda draw: (draw(4),), 1),))
ASSIGNMENT = Assignment("01", notebook="small", title="Small", tasks=(DOUBLE, HALVE))
"""
SETUP = "import torch\nfactor = 2"
DOUBLE = "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
HALVE = "def halve(x):\n    ### BEGIN SOLUTION\n    return x / factor\n    ### END SOLUTION"


def source_cells():
    return [
        {"cell_type": "markdown", "metadata": {}, "source": "# Small"},
        setup("setup", SETUP),
        solution("double", DOUBLE),
        check("check-double", "double(1)", 3),
        solution("halve", HALVE),
        check("check-halve", "halve(1)", 1),
        answer("why", "Because.", 2),
    ]


def small_course(folder, *, checks=CHECKS, extra=(), leave_out=None, source=None):
    """Writes assignment 01 below `folder` and returns it."""
    for name in ("source", "hidden"):
        (folder / name / "01").mkdir(parents=True, exist_ok=True)
    cells = [made for made in source_cells() if made["metadata"].get("nbgrader", {}).get("grade_id") != leave_out]
    (folder / "source" / "01" / "small.ipynb").write_bytes(source.encode() if source else notebook([*cells, *extra]))
    if checks is not None:
        (folder / "hidden" / "01" / "tasks.py").write_text(checks)
    return folder


def answer_cells(double="def double(x):\n    return 2 * x", halve="def halve(x):\n    return x / factor", why="So."):
    """What a student hands in; an answer that is None is left out."""
    cells = [setup("setup", SETUP)]
    if double is not None:
        cells.append(solution("double", double))
    if halve is not None:
        cells.append(solution("halve", halve))
    return [*cells, answer("why", why, 2)]


def hand_in(folder, content, student="ada"):
    """Puts a notebook, or what stands in its place, into the student's folder."""
    place = folder / "submitted" / student / "01"
    place.mkdir(parents=True, exist_ok=True)
    path = place / "small.ipynb"
    path.write_bytes(content if isinstance(content, bytes) else notebook(content))
    return path


# Assignment 07, released ------------------------------------------------------------------------------------

NAME, NOTEBOOK = "07", "sums"
POINTS = {"check-add": 3.0, "check-double": 2.0, "why": 4.0}
SOURCE = notebook_of(
    [
        setup("setup", "import torch"),
        solution("add", "def add(a, b):\n    ### BEGIN SOLUTION\n    return a + b\n    ### END SOLUTION"),
        check("check-add", "check(add)", 3),
        solution("double", "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"),
        check("check-double", "check(double)", 2),
        answer("why", "### BEGIN SOLUTION\nBecause.\n### END SOLUTION", 4),
    ]
)
STUBS = {
    "add": "def add(a, b):\n    # YOUR CODE HERE\n    raise NotImplementedError()",
    "double": "def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()",
    "why": "YOUR ANSWER HERE",
}
SUMS_CHECKS = """
from course_lib.grading.spec import Assignment
from course_lib.tasks import Case, Task

ADD = Task(name="add", title="Add", asks="a, b", reference=lambda a, b: a + b, cases=(
    Case("Two matrices are added", lambda draw: (draw(2, 3), draw(2, 3)), 2),
    Case("A vector is added to each row", lambda draw: (draw(2, 3), draw(3)), 1),
))
DOUBLE = Task(name="double", title="Double", asks="x", reference=lambda x: 2 * x,
              cases=(Case("Each number is doubled", lambda draw: (draw(4),), 2),))
ASSIGNMENT = Assignment("07", notebook="sums", title="Sums", tasks=(ADD, DOUBLE))
"""


def released():
    """The students' version, as `nbgrader generate_assignment` makes it."""
    from nbformat import from_dict
    from nbgrader.utils import compute_checksum

    cells = []
    for given in SOURCE["cells"]:
        cell = json.loads(json.dumps(given))
        facts = cell["metadata"]["nbgrader"]
        cell["source"] = STUBS.get(facts["grade_id"], cell["source"])
        facts["checksum"] = compute_checksum(from_dict(cell))
        cells.append(cell)
    return SOURCE | {"cells": cells}


@functools.cache
def _model():
    """One course directory for all: the copies are cheap, nbgrader's new gradebook is not."""
    from nbgrader.api import Gradebook

    root = Path(tempfile.mkdtemp(prefix="course-"))
    release = released()
    for folder, content in (("source", SOURCE), ("release", release)):
        path = root / folder / NAME / f"{NOTEBOOK}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(content))
    (root / "hidden" / NAME).mkdir(parents=True)
    (root / "hidden" / NAME / "tasks.py").write_text(SUMS_CHECKS)
    (root / "nbgrader_config.py").write_text("c = get_config()\n")
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # nbgrader starts `alembic`
    with mock.patch.dict(os.environ, PATH=tools), Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        book.add_assignment(NAME, duedate="2026-03-01 12:00:00 UTC")
        book.add_notebook(NOTEBOOK, NAME)
        for cell in release["cells"]:
            facts = cell["metadata"]["nbgrader"]
            if facts["grade"]:
                book.add_grade_cell(
                    facts["grade_id"], NOTEBOOK, NAME, max_score=facts["points"], cell_type=cell["cell_type"]
                )
            if facts["solution"]:
                book.add_solution_cell(facts["grade_id"], NOTEBOOK, NAME)
            book.add_source_cell(
                facts["grade_id"],
                NOTEBOOK,
                NAME,
                cell_type=cell["cell_type"],
                locked=facts["locked"],
                source=cell["source"],
                checksum=facts["checksum"],
            )
    return root


def make_course(root):
    """A released course directory at `root`, which must not exist yet."""
    shutil.copytree(_model(), root)
    return Folders(root=root)


def submit(folders, student, *, when="2026-02-28 12:00:00 UTC", **answers):
    """Puts a student's notebook into submitted/; what is not given is the stub."""
    cells = json.loads(json.dumps(released()["cells"]))
    for cell in cells:
        name = cell["metadata"]["nbgrader"]["grade_id"]
        cell["source"] = answers.get(name, cell["source"])
    place = folders.submitted(student, NAME)
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{NOTEBOOK}.ipynb").write_text(json.dumps(SOURCE | {"cells": cells}))
    if when is not None:
        (place / "timestamp.txt").write_text(when)


def verdict(student, *, add=3.0, double=2.0, submission="a" * 64, spec="b" * 64, sandbox="bubblewrap", **more):
    """What a judge found, as plain values."""

    def task(name, points, possible):
        passed = points == possible
        finding = {"misconception": "wrong", "message": f"`{name}` is off.", "hint": "Look again."}
        checks = [
            {
                "name": f"{name} is right",
                "points": points,
                "possible": possible,
                "passed": passed,
                "findings": [] if passed else [finding],
            }
        ]
        return {
            "points": points,
            "possible": possible,
            "checks": checks,
            "answered": True,
        }

    return {
        "assignment": NAME,
        "student": student,
        "submission": submission,
        "spec": spec,
        "sandbox": sandbox,
        "status": "graded",
        "readable": True,
        "notes": [],
        "student_notes": more.get("notes", []),
        "tasks": {"add": task("add", add, 3.0), "double": task("double", double, 2.0)},
    } | more
