"""What `course assign validate` finds in a notebook: the visible checks, run as the grader runs its own, and more."""

import ast
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from course_lib.grading.intake import Submission
from course_lib.grading.judge import NO_ANSWER, NOT_JUDGED, judge
from course_lib.grading.names import defined, used
from course_lib.grading.sandbox import Zygote, sandbox_problem
from course_lib.grading.spec import AssignmentFiles, load
from course_lib.grading.visible import NO_CHECK

KEY = b"visible checks have no secret"
NOT_ASKED = "A visible check could not be carried out on this answer. Run the check below the task in the notebook."
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
    """`sandbox` is None where the sandbox was used, else why there is none."""

    tasks: tuple[TaskResult, ...]
    imports: tuple[str, ...]
    sandbox: str | None


def run_visible_checks(submission: Submission, files: AssignmentFiles, unanswered: set[str]) -> Validation:
    """Judges a submission by the visible checks, in the sandbox or, where there is none, in a process of its own.

    Tasks in `unanswered` are not run. Raises SandboxError if the sandbox breaks.
    """
    problem = sandbox_problem()
    answers = {name: text for name, text in submission.answers.items() if name not in unanswered}
    with Zygote(trusted=problem is not None) as zygote:
        verdict = judge(replace(submission, answers=answers), files, key=KEY, zygote=zygote)
        imports = tuple(import_problems(answers, zygote))
    tasks = tuple(_in_words(name, task) for name, task in verdict["tasks"].items())
    return Validation(tasks=tasks, imports=imports, sandbox=problem)


def _in_words(name: str, task: Mapping[str, Any]) -> TaskResult:
    findings = [finding for check in task["checks"] for finding in check["findings"]]
    there = not any(finding["misconception"] == NO_CHECK for finding in findings)
    said = [_said(finding) for finding in findings if finding["misconception"] not in (NO_CHECK, NO_ANSWER)]
    return TaskResult(
        name=name,
        answered=task["answered"],
        checks=len(task["checks"]) if there else 0,
        passed=sum(check["passed"] for check in task["checks"]),
        findings=tuple(dict.fromkeys(said)),
    )


def _said(finding: Mapping[str, str]) -> str:
    if finding["misconception"] == NOT_JUDGED:
        return NOT_ASKED
    return " ".join(filter(None, [finding["message"], finding["hint"]]))


def import_problems(answers: Mapping[str, str], zygote: Zygote) -> Iterator[str]:
    """Packages that answers import and that are not there when they are graded."""
    wanted: dict[str, str] = {}
    for name, text in answers.items():
        for package in imported(text):
            wanted.setdefault(package, name)
    unsure = [package for package in wanted if package not in sys.stdlib_module_names | IN_THE_BOX]
    if not unsure:
        return
    if zygote.trusted:  # here all that is installed can be imported
        missing = unsure
    else:
        with zygote.box() as box:
            missing = [package for package in unsure if box.load(f"import {package}", seconds=30) is not None]
    for package in missing:
        doubt = "is not sure to be" if zygote.trusted and package != "course_lib" else "is not"
        yield f"The cell {wanted[package]!r} imports {package}, which {doubt} there when it is graded. Do without it."


def imported(text: str) -> list[str]:
    """The packages that a cell imports, at any depth; none if it is no valid Python."""
    tree = _parse(text)
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return list(dict.fromkeys(name.split(".")[0] for name in names))


def stray_names(content: bytes, submission: Submission, files: AssignmentFiles) -> list[str]:
    """Names that answers use and that only cells of the student's own define: the grader does not run those."""
    loaded = load(files)
    graded = [cell.source for cell in loaded.cells if cell.kind == "setup"] + list(submission.answers.values())
    known = {name for text in graded for name in defined(text)}
    stray = {name for text in _own_cells(content) for name in defined(text)} - known
    return [
        f"The cell {task!r} uses {name!r}, which a cell of your own defines. The grader takes the cells that were "
        "handed out and no others: move it into the answer."
        for task, text in submission.answers.items()
        for name in sorted(stray & used(text))
    ]


def _own_cells(content: bytes) -> Iterator[str]:
    for cell in json.loads(content.decode("utf-8", errors="replace"))["cells"]:
        try:
            if cell["cell_type"] == "code" and not cell["metadata"].get("nbgrader"):
                yield "".join(cell["source"])
        except (TypeError, KeyError, AttributeError):
            continue  # of no kind that a grader takes


def _parse(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])  # the judge says what is wrong with it
