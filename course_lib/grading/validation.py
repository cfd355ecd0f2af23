"""What `course assign validate` finds: the visible checks, run as the grader runs its own, and what else costs points.

A student has no hidden checks. What takes their place is made of the release and of the checks that the release's own
cells run.
"""

import dis
import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import CodeType
from typing import Any

import nbformat

from course_lib.grading.boxed.worker import as_python
from course_lib.grading.intake import Submission, cells_of, source_of
from course_lib.grading.judge import judge
from course_lib.grading.sandbox import Zygote, sandbox_problem
from course_lib.grading.spec import CHECK_PREFIX, Assignment, AssignmentFiles, load
from course_lib.tasks import Check, Task
from course_lib.tasks.findings import Finding

KEY = b"visible checks have no secret"
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
    """The assignment whose tasks have these points, shared evenly by the visible checks of each."""
    known, tasks = visible_tasks(name), []
    nothing = Task(
        "", "", asks="", checks=(Check(name=NO_CHECK, detects=(), run=lambda subject: [Finding(NO_CHECK, "")]),)
    )
    for task, worth in points.items():
        shown = known.get(task, nothing)
        checks = tuple(replace(check, points=worth / len(shown.all_checks)) for check in shown.all_checks)
        tasks.append(Task(task, task, checks=checks, asks=shown.asks, forbids=shown.forbids))
    return Assignment(name, notebook=notebook, title=name, tasks=tuple(tasks))


def visible_tasks(name: str) -> Mapping[str, Task]:
    """What the lesson of an assignment shows of its tasks; empty if there is none."""
    lesson = f"course_lib.lessons.lesson_{name}"
    if not all(map(importlib.util.find_spec, (lesson, f"{lesson}.assignment"))):
        return {}
    return importlib.import_module(f"{lesson}.assignment").ASSIGNMENT


def run_visible_checks(
    content: bytes, submission: Submission, files: AssignmentFiles, unanswered: set[str]
) -> tuple[dict[str, Any], list[str], str | None]:
    """Judges a submission by the visible checks, in the sandbox or, where there is none, in a process of its own.

    `content` is the notebook's; tasks in `unanswered` are not run. Returns the verdict's tasks (without checks where
    one has no visible check), what else costs points, and why there is no sandbox, None where it was used. Raises
    SandboxError if the sandbox breaks.
    """
    problem = sandbox_problem()
    answers = {name: text for name, text in submission.answers.items() if name not in unanswered}
    with Zygote(trusted=problem is not None) as zygote:
        tasks = judge(replace(submission, answers=answers), files, key=KEY, zygote=zygote)["tasks"]
    for task in tasks.values():
        task["checks"] = [check for check in task["checks"] if check["name"] != NO_CHECK]
    return tasks, stray_names(content, answers, files), problem


def stray_names(content: bytes, answers: Mapping[str, str], files: AssignmentFiles) -> list[str]:
    """Names that answers use and that only cells of the student's own define: the grader does not run those."""
    graded = [cell.source for cell in load(files).cells if cell.kind == "setup"] + list(answers.values())
    stray = set().union(*map(bound, _own_cells(content))) - set().union(*map(bound, graded))
    return [
        f"The cell {task!r} uses {name!r}, which a cell of your own defines. The grader takes the cells that were "
        "handed out and no others: move it into the answer."
        for task, text in answers.items()
        for name in sorted(stray & names(text, "LOAD_NAME", "LOAD_GLOBAL") - bound(text))
    ]


def _own_cells(content: bytes) -> Iterator[str]:
    for cell in cells_of(content):
        match cell:
            case {"metadata": {"nbgrader": _}}:
                continue
            case {"cell_type": "code"}:
                yield source_of(cell) or ""


def bound(text: str) -> set[str]:
    """The names that a cell binds for others."""
    return names(text, "STORE_NAME", "STORE_GLOBAL")


def names(text: str, *operations: str) -> set[str]:
    """What Python's own instructions of these kinds name in a cell and its functions; nothing if it is no Python."""
    try:
        codes = [compile(as_python(text), "cell", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # the judge says what is wrong with it
    for code in codes:
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
    return {step.argval for code in codes for step in dis.get_instructions(code) if step.opname in operations}
