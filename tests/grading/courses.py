"""A course directory with one small assignment, and notebooks that students might hand in."""

import json

CHECKS = """
from course_lib.grading.spec import *
from course_lib.grading.spec import Mistake
from course_lib.properties import Check, Finding


def _doubles(probe):
    x = probe.random(2, 3)
    wrong = (probe.tensor(x, shape=(2, 3)) - 2 * x).abs().max() > 1e-6
    return [Finding(misconception="not doubled", message="The result is not twice the input.")] if wrong else []


DOUBLES = Check(name="doubles small numbers", detects=("not doubled",), run=_doubles)

ASSIGNMENT = Assignment(name="01", notebook="small", title="Small", tasks=(
    Task(name="double", title="Double", checks=(
        property_check(DOUBLES, points=2),
        agrees("doubles large numbers", points=1, reference=lambda x: 2 * x,
               inputs=lambda subject: given(1e6 * subject.random(3))),
    )),
    Task(name="halve", title="Halve", checks=(
        agrees("halves", points=1, reference=lambda x: x / 2, inputs=lambda subject: (subject.random(4),)),
    )),
))
"""
SETUP = "import torch\nfactor = 2"
DOUBLE = "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
HALVE = "def halve(x):\n    ### BEGIN SOLUTION\n    return x / factor\n    ### END SOLUTION"


def cell(grade_id, *, source="", kind="code", grade=False, solution=False, locked=False, points=None):
    tags = {"grade_id": grade_id, "grade": grade, "solution": solution, "locked": locked, "schema_version": 3}
    tags |= {"task": False} | ({} if points is None else {"points": points})
    made = {"cell_type": kind, "metadata": {"nbgrader": tags}, "source": source}
    return made | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def notebook(cells):
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def source_cells():
    return [
        {"cell_type": "markdown", "metadata": {}, "source": "# Small"},
        cell("setup", source=SETUP, locked=True),
        cell("double", source=DOUBLE, solution=True),
        cell("check-double", source="double(1)", grade=True, locked=True, points=3),
        cell("halve", source=HALVE, solution=True),
        cell("check-halve", source="halve(1)", grade=True, locked=True, points=1),
        cell("why", source="Because.", kind="markdown", grade=True, solution=True, points=2),
    ]


def small_course(folder, *, checks=CHECKS, extra=(), leave_out=None, source=None):
    """Writes assignment 01 below `folder` and returns it."""
    for name in ("source", "hidden"):
        (folder / name / "01").mkdir(parents=True, exist_ok=True)
    cells = [made for made in source_cells() if made["metadata"].get("nbgrader", {}).get("grade_id") != leave_out]
    (folder / "source" / "01" / "small.ipynb").write_bytes(source.encode() if source else notebook([*cells, *extra]))
    if checks is not None:
        (folder / "hidden" / "01" / "checks.py").write_text(checks)
    return folder


def answer_cells(double="def double(x):\n    return 2 * x", halve="def halve(x):\n    return x / factor", why="So."):
    """What a student hands in; an answer that is None is left out."""
    cells = [cell("setup", source=SETUP, locked=True)]
    if double is not None:
        cells.append(cell("double", source=double, solution=True))
    if halve is not None:
        cells.append(cell("halve", source=halve, solution=True))
    return [*cells, cell("why", source=why, kind="markdown", grade=True, solution=True, points=2)]


def hand_in(folder, content, student="ada"):
    """Puts a notebook, or what stands in its place, into the student's folder."""
    place = folder / "submitted" / student / "01"
    place.mkdir(parents=True, exist_ok=True)
    path = place / "small.ipynb"
    path.write_bytes(content if isinstance(content, bytes) else notebook(content))
    return path
