"""What `course assign validate` finds: the visible checks, run as the grader runs its own, and what else costs points.

A student has no hidden checks. What takes their place is made of the release and of the checks that the release's own
cells run.
"""

import ast
import importlib
import importlib.util
import json
import symtable
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import nbformat

from course_lib.grading.intake import Submission
from course_lib.grading.judge import NO_ANSWER, judge
from course_lib.grading.sandbox import Zygote, sandbox_problem
from course_lib.grading.spec import CHECK_PREFIX, Assignment, AssignmentFiles, load
from course_lib.tasks import Check, Task
from course_lib.tasks.findings import Fault, Finding

KEY = b"visible checks have no secret"
NO_CHECK = "no visible check"
IN_THE_BOX = {"torch", "numpy", "einops"}  # what every box has; some have more


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """What the visible checks of one task found: sentences, none if all is well; `checks` is 0 where there is none."""

    name: str
    answered: bool
    checks: int
    passed: int
    findings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Validation:
    """`sandbox` is None where the sandbox was used, else why there is none; `costs` are sentences."""

    tasks: tuple[TaskResult, ...]
    costs: tuple[str, ...]
    sandbox: str | None


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
    known = visible_tasks(name)
    none = Check(name=NO_CHECK, detects=(), run=_none_to_ask)
    tasks = []
    for task, worth in points.items():
        shown = known.get(task)
        checks = shown.all_checks if shown else (none,)
        shared = tuple(replace(check, points=worth / len(checks)) for check in checks)
        asks, forbids = (shown.asks, shown.forbids) if shown else ("", ())
        tasks.append(Task(task, task, checks=shared, asks=asks, forbids=forbids))
    return Assignment(name, notebook=notebook, title=name, tasks=tuple(tasks))


def visible_tasks(name: str) -> Mapping[str, Task]:
    """What the lesson of an assignment shows of its tasks; empty if there is none."""
    lesson = f"course_lib.lessons.lesson_{name}"
    if importlib.util.find_spec(lesson) is None or importlib.util.find_spec(f"{lesson}.assignment") is None:
        return {}
    return importlib.import_module(f"{lesson}.assignment").ASSIGNMENT


def run_visible_checks(
    content: bytes, submission: Submission, files: AssignmentFiles, unanswered: set[str]
) -> Validation:
    """Judges a submission by the visible checks, in the sandbox or, where there is none, in a process of its own.

    `content` is the notebook's; tasks in `unanswered` are not run. Raises SandboxError if the sandbox breaks.
    """
    problem = sandbox_problem()
    answers = {name: text for name, text in submission.answers.items() if name not in unanswered}
    with Zygote(trusted=problem is not None) as zygote:
        verdict = judge(replace(submission, answers=answers), files, key=KEY, zygote=zygote)
        costs = [*stray_names(content, answers, files), *import_problems(answers, zygote)]
    tasks = tuple(_in_words(name, task) for name, task in verdict["tasks"].items())
    return Validation(tasks=tasks, costs=tuple(costs), sandbox=problem)


def import_problems(answers: Mapping[str, str], zygote: Zygote) -> Iterator[str]:
    """Packages that answers import and that are not there when they are graded."""
    wanted = {package: name for name, text in reversed(answers.items()) for package in imported(text)}
    unsure = [package for package in wanted if package not in sys.stdlib_module_names | IN_THE_BOX]
    if not unsure:
        return
    with zygote.box() as box:  # without walls, all that is installed can be imported
        missing = [one for one in unsure if zygote.trusted or box.load(f"import {one}", seconds=30) is not None]
    for package in missing:
        doubt = "is not sure to be" if zygote.trusted and package != "course_lib" else "is not"
        yield f"The cell {wanted[package]!r} imports {package}, which {doubt} there when it is graded. Do without it."


def imported(text: str) -> list[str]:
    """The packages that a cell imports, at any depth; none if it is no valid Python."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # the judge says what is wrong with it
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return list(dict.fromkeys(name.split(".")[0] for name in names))


def stray_names(content: bytes, answers: Mapping[str, str], files: AssignmentFiles) -> list[str]:
    """Names that answers use and that only cells of the student's own define: the grader does not run those."""
    graded = [cell.source for cell in load(files).cells if cell.kind == "setup"] + list(answers.values())
    known = {name for text in graded for name in names(text)[0]}
    stray = {name for text in _own_cells(content) for name in names(text)[0]} - known
    return [
        f"The cell {task!r} uses {name!r}, which a cell of your own defines. The grader takes the cells that were "
        "handed out and no others: move it into the answer."
        for task, text in answers.items()
        for name in sorted(stray & names(text)[1])
    ]


def names(text: str) -> tuple[set[str], set[str]]:
    """The names that a cell binds for others, and those that it reads and does not bind; none if it is no Python."""
    try:
        scopes = [symtable.symtable(text, "cell", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(), set()
    for scope in scopes:
        scopes += scope.get_children()
    bound, read = set(), set()
    for scope in scopes:
        outside = scope.get_type() == "module"
        for symbol in scope.get_symbols():
            if symbol.is_referenced() and (outside or symbol.is_global()):
                read.add(symbol.get_name())
            if outside or symbol.is_declared_global():
                if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                    bound.add(symbol.get_name())
    return bound, read - bound


def _own_cells(content: bytes) -> Iterator[str]:
    for cell in json.loads(content.decode("utf-8", errors="replace"))["cells"]:
        try:
            if cell["cell_type"] == "code" and not cell["metadata"].get("nbgrader"):
                yield "".join(cell["source"])
        except (TypeError, KeyError, AttributeError):
            continue  # of no kind that a grader takes


def _in_words(name: str, task: Mapping[str, Any]) -> TaskResult:
    findings = [finding for check in task["checks"] for finding in check["findings"]]
    there = not any(finding["misconception"] == NO_CHECK for finding in findings)
    said = [
        " ".join(filter(None, [finding["message"], finding["hint"]]))
        for finding in findings
        if finding["misconception"] not in (NO_CHECK, NO_ANSWER)
    ]
    return TaskResult(
        name=name,
        answered=task["answered"],
        checks=len(task["checks"]) if there else 0,
        passed=sum(check["passed"] for check in task["checks"]),
        findings=tuple(dict.fromkeys(said)),
    )


def _none_to_ask(subject: Any) -> list[Finding]:
    raise Fault(Finding(misconception=NO_CHECK, message="This task has no visible check."))
