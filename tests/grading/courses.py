"""A course directory with one small assignment, released and with a gradebook or not, and what students hand in."""

import contextlib
import functools
import hashlib
import io
import json
import os
import shutil
import tempfile
from datetime import datetime
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


# The assignment -----------------------------------------------------------------------------------------------

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
GOOD = {"add": "def add(a, b):\n    return a + b", "double": "def double(x):\n    return 2 * x", "why": "So."}
HALF_WRONG = GOOD | {"double": "def double(x):\n    return x"}
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


def write_files(root, files):
    """Writes files by their places in a course directory."""
    for place, content in files.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_bytes(content if isinstance(content, bytes) else content.encode())
    return Folders(root=root)


def small_course(root, *, checks=SUMS_CHECKS, extra=(), leave_out=None, source=None):
    """Writes the instructor's files of the assignment, not released; `extra` are more cells, `source` is other text."""
    cells = [made for made in SOURCE["cells"] if made["metadata"]["nbgrader"]["grade_id"] != leave_out]
    files = {f"source/{NAME}/{NOTEBOOK}.ipynb": source or notebook([*cells, *extra]), f"hidden/{NAME}/tasks.py": checks}
    return write_files(root, {place: content for place, content in files.items() if content is not None})


# Released, with a gradebook -------------------------------------------------------------------------------------


@functools.cache
def _model():
    """One course directory for all: the copies are cheap, nbgrader's new gradebook is not."""
    from course_lib.grading.release import release

    folders = small_course(Path(tempfile.mkdtemp(prefix="course-")))
    folders.config.write_text("c = get_config()\n")
    with mock.patch.dict(os.environ), contextlib.redirect_stdout(io.StringIO()):
        os.environ.pop("COURSE_EXCHANGE", None)
        release(NAME, folder=folders.root)
    with nbgraders_book(folders) as book:
        book.update_or_create_assignment(NAME, duedate="2026-03-01 12:00:00 UTC")
    return folders


def released():
    """The students' version."""
    return json.loads((_model().release(NAME) / f"{NOTEBOOK}.ipynb").read_text())


def make_course(root):
    """A released course directory at `root`, which must not exist yet."""
    shutil.copytree(_model().root, root)
    return Folders(root=root)


def submit(folders, student, *, when="2026-02-28 12:00:00 UTC", **answers):
    """Puts a student's notebook into submitted/; what is not given is the stub."""
    notebook = released()
    for cell in notebook["cells"]:
        name = cell["metadata"]["nbgrader"]["grade_id"]
        cell["source"] = answers.get(name, cell["source"])
    place = f"submitted/{student}/{NAME}"
    write_files(folders.root, {f"{place}/{NOTEBOOK}.ipynb": json.dumps(notebook)})
    if when is not None:
        write_files(folders.root, {f"{place}/timestamp.txt": when})


def verdict(student, *, add=3.0, double=2.0, submission="a" * 64, spec="b" * 64, sandbox="bubblewrap", **more):
    """What a judge found, as plain values."""

    def task(name, points, possible):
        finding = {"misconception": "wrong", "message": f"`{name}` is off.", "hint": "Look again."}
        check = {"name": f"{name} is right", "points": points, "possible": possible, "passed": points == possible}
        check["findings"] = [] if check["passed"] else [finding]
        return {"points": points, "possible": possible, "checks": [check], "answered": True}

    found = {"assignment": NAME, "student": student, "submission": submission, "spec": spec, "sandbox": sandbox}
    found |= {"status": "graded", "readable": True, "notes": [], "student_notes": more.get("notes", [])}
    return found | {"tasks": {"add": task("add", add, 3.0), "double": task("double", double, 2.0)}} | more


def record(folders, student, answers=None, *, when="2026-02-28 12:00:00 UTC", submitted=None, **more):
    """A submission that is graded; without `submitted` at noon of the day before it was due."""
    from course_lib.grading.gradebook import Gradebook
    from course_lib.grading.spec import read_assignment

    submit(folders, student, when=when, **(answers or {}))
    handed = folders.submitted(student, NAME) / f"{NOTEBOOK}.ipynb"
    facts = {"spec": read_assignment(folders.root, NAME).hash}
    facts |= more | {"submission": hashlib.sha256(handed.read_bytes()).hexdigest()}
    with Gradebook(folders.gradebook, assignment=NAME, notebook=NOTEBOOK) as book:
        book.record(verdict(student, **facts), answers or {}, submitted=submitted or datetime(2026, 2, 28, 12))


def nbgraders_book(folders):
    """The gradebook as nbgrader's own tools open it."""
    from nbgrader.api import Gradebook

    return Gradebook(f"sqlite:///{folders.gradebook}")


def by_hand(folders, student="ada", **values):
    """Sets what a person sets in formgrader: `by_hand(folders, check_add={"manual_score": 1})`."""
    with nbgraders_book(folders) as theirs:
        for cell, changes in values.items():
            find = theirs.find_comment if "manual_comment" in changes else theirs.find_grade
            entry = find(cell.replace("_", "-"), NOTEBOOK, NAME, student)
            for name, value in changes.items():
                setattr(entry, name, value)
        theirs.db.commit()


def row(folders, student="ada"):
    from course_lib.grading.gradebook import scores

    return next(row for row in scores(folders.gradebook, NAME) if row.student == student)
