"""The visible checks of an assignment, in the form that the judge takes: so students run what the grader runs.

A student has no hidden checks. What takes their place here is made of the release and of the checks that the
release's own cells run.
"""

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from course_lib.grading.notebook_format import nbformat
from course_lib.grading.spec import CHECK_PREFIX, Assignment, AssignmentFiles, HiddenCheck, Task, load, property_check
from course_lib.grading.subject import Subject
from course_lib.tasks import Check
from course_lib.tasks import Task as Table
from course_lib.tasks.findings import STOPPED, Fault, Finding

NO_CHECK = "no visible check"


def visible_files(name: str, notebook: str, released: bytes) -> AssignmentFiles:
    """A release and its visible checks, to be given to intake and judge in place of the instructor's files.

    Raises ValueError if the release is not what nbgrader makes.
    """
    cells = nbformat.reads(released.decode("utf-8"), as_version=4).cells
    tags = [cell.metadata.get("nbgrader", {}) for cell in cells]
    points = {
        tag["grade_id"].removeprefix(CHECK_PREFIX): float(tag["points"])
        for tag in tags
        if tag.get("grade") and not tag.get("solution")
    }
    checks = f"from {__name__} import visible_assignment\nASSIGNMENT = visible_assignment{(name, notebook, points)!r}\n"
    files = AssignmentFiles(name=name, notebook=notebook, source_notebook=released, checks=checks.encode("utf-8"))
    load(files)
    return files


def visible_assignment(name: str, notebook: str, points: Mapping[str, float]) -> Assignment:
    """The assignment whose tasks have these points, with the visible checks of each."""
    known = {task: table.all_checks for task, table in visible_tasks(name).items()}
    tasks = tuple(
        Task(name=task, title=task, checks=_as_hidden(known.get(task, ()), worth)) for task, worth in points.items()
    )
    return Assignment(name=name, notebook=notebook, title=name, tasks=tasks)


def visible_tasks(name: str) -> Mapping[str, Table]:
    """What the lesson of an assignment shows of its tasks; empty if there is none."""
    lesson = f"course_lib.lessons.lesson_{name}"
    if importlib.util.find_spec(lesson) is None or importlib.util.find_spec(f"{lesson}.assignment") is None:
        return {}
    return importlib.import_module(f"{lesson}.assignment").ASSIGNMENT


def _as_hidden(checks: Sequence[Check], worth: float) -> tuple[HiddenCheck, ...]:
    """Checks that share a task's points evenly; without any, one that says so."""
    if not checks:
        return (HiddenCheck(name=NO_CHECK, points=worth, run=_none_to_ask),)
    return tuple(
        property_check(replace(check, run=_asked(check)) if check.gate else check, points=worth / len(checks))
        for check in checks
    )


def _asked(gate: Check) -> Callable[[Subject], list[Finding]]:
    """A gate that leaves an error to the checks behind it, with the error as its finding: here each check counts."""

    def run(subject: Subject) -> list[Finding]:
        found = list(gate.run(subject))
        if not found and subject.talk.error is not None:
            return [Finding(misconception=STOPPED, message="")]
        return found

    return run


def _none_to_ask(subject: Subject) -> list[Finding]:
    raise Fault(Finding(misconception=NO_CHECK, message="This task has no visible check."))
