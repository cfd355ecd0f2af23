"""A course directory with one small assignment, released, and a judge that needs no sandbox."""

import functools
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from unittest import mock

from course_lib.grading.folders import Folders

NAME, NOTEBOOK = "07", "sums"
POINTS = {"check-add": 3.0, "check-double": 2.0, "why": 4.0}


def code(source, **nbgrader):
    return _cell("code", source, nbgrader) | {"outputs": [], "execution_count": None}


def words(source, **nbgrader):
    return _cell("markdown", source, nbgrader)


def _cell(kind, source, nbgrader):
    metadata = {"nbgrader": {"schema_version": 3, "task": False} | nbgrader} if nbgrader else {}
    return {"cell_type": kind, "id": f"id-{nbgrader.get('grade_id', 'none')}", "metadata": metadata, "source": source}


def setup(name, source):
    return code(source, grade_id=name, locked=True, grade=False, solution=False)


def solution(name, source):
    return code(source, grade_id=name, locked=False, grade=False, solution=True)


def check(name, source, points):
    return code(source, grade_id=name, locked=True, grade=True, solution=False, points=points)


def answer(name, source, points):
    return words(source, grade_id=name, locked=False, grade=True, solution=True, points=points)


def notebook(*cells):
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return {"cells": list(cells), "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


SOURCE = notebook(
    setup("setup", "import torch"),
    solution("add", "def add(a, b):\n    ### BEGIN SOLUTION\n    return a + b\n    ### END SOLUTION"),
    check("check-add", "check(add)", 3),
    solution("double", "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"),
    check("check-double", "check(double)", 2),
    answer("why", "### BEGIN SOLUTION\nBecause.\n### END SOLUTION", 4),
)
STUBS = {
    "add": "def add(a, b):\n    # YOUR CODE HERE\n    raise NotImplementedError()",
    "double": "def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()",
    "why": "YOUR ANSWER HERE",
}
CHECKS = """
import torch
from course_lib.grading.spec import Assignment, HiddenCheck, Task, agrees

ASSIGNMENT = Assignment(
    name="07",
    notebook="sums",
    title="Sums",
    tasks=(
        Task(
            name="add",
            title="Add",
            checks=(
                agrees("Two matrices are added", points=2, inputs=lambda s: (s.random(2, 3), s.random(2, 3)),
                       reference=torch.add),
                agrees("A vector is added to each row", points=1, inputs=lambda s: (s.random(2, 3), s.random(3)),
                       reference=torch.add),
            ),
        ),
        Task(
            name="double",
            title="Double",
            checks=(agrees("Each number is doubled", points=2, inputs=lambda s: (s.random(4),),
                           reference=lambda x: 2 * x),),
        ),
    ),
)
"""


def released():
    """The students' version, as `nbgrader generate_assignment` makes it."""
    from nbformat import from_dict
    from nbgrader.utils import compute_checksum

    cells = []
    for cell in SOURCE["cells"]:
        cell = json.loads(json.dumps(cell))
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
    (root / "hidden" / NAME / "checks.py").write_text(CHECKS)
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
            "ended": None,
            "printed": "",
        }

    return {
        "schema": 1,
        "assignment": NAME,
        "student": student,
        "submission": submission,
        "spec": spec,
        "sandbox": sandbox,
        "status": "graded",
        "notes": [],
        "tasks": {"add": task("add", add, 3.0), "double": task("double", double, 2.0)},
        "seconds": 0.1,
    } | more
