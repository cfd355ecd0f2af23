"""The check cells of an assignment: public checks of an answer, in the learner's own kernel."""

import functools
import importlib
import importlib.util
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from course_lib import tasks
from course_lib.classroom.exercises import say_findings
from course_lib.classroom.markup import to_html
from course_lib.classroom.output import GREEN, GREY, panel, present

TOO_SLOW = "too slow"


class NotPassed(Exception):
    """Ends a check cell whose checks found something; in a notebook it shows as one line, without a traceback."""

    def _render_traceback_(self) -> list[str]:  # what IPython asks for
        return [str(self)]


def visible_checks(assignment: str) -> Mapping[str, Sequence[tasks.Check]]:
    """The public checks of each task of an assignment; raises ValueError for one that has none."""
    return _written(assignment).CHECKS


def longest_waits(assignment: str) -> Mapping[str, float]:
    """For tasks whose answers take time: how many seconds one call may take. Raises ValueError as `visible_checks`."""
    return getattr(_written(assignment), "SECONDS", {})


def _written(assignment: str) -> ModuleType:
    place = f"course_lib.lessons.assignment_{assignment}"
    if not assignment.isalnum() or importlib.util.find_spec(place) is None:
        raise ValueError(f"There are no checks for an assignment {assignment!r}.")
    return importlib.import_module(place)


def check_task(assignment: str, task: str, answer: Any) -> None:
    """Check an answer: says what is wrong, what it probably comes from and how to go on.

    The numbers are public and always the same; where the grader keeps a clock, this does too. Raises NotPassed if
    something is wrong, so that whoever runs the notebook without looking sees it too, and ValueError for an unknown
    assignment or task.
    """
    checks = visible_checks(assignment)
    if task not in checks:
        raise ValueError(f"Assignment {assignment} has no task {task!r}; it has {', '.join(checks)}.")
    allowed = longest_waits(assignment).get(task)
    timed = _Timed(answer) if allowed is not None and inspect.isfunction(answer) else None
    report = tasks.run_checks(timed.call if timed else answer, checks[task])
    findings = report.findings + (
        [_too_slow(timed.longest, allowed, report)] if timed and timed.longest > allowed else []
    )
    if not findings:
        text = f"✓ **All right**: `{task}` passes its {len(checks[task])} checks. The grader asks with other numbers."
        plain = text.replace("**", "").replace("`", "")
        present(plain, panel(to_html(text), colour=GREEN))
        return
    if _unwritten(report):
        text = "○ Not written yet: fill in the cell above, run it, then run this one again."
        present(text, panel(to_html(text), colour=GREY))
        raise NotPassed(f"{task}: not written yet")
    say_findings(findings)
    raise NotPassed(f"{task}: {', '.join(finding.misconception for finding in findings)}")


class _Timed:
    """A learner's function with a clock: `longest` is the time of its longest call so far, in seconds."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.longest = 0.0

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.longest = max(self.longest, time.perf_counter() - start)

        self.call = call


def _too_slow(longest: float, allowed: float, report: tasks.Report) -> tasks.Finding:
    took = f"it took {longest:.0f} s; the grader stops after {allowed:.0f}."
    return tasks.Finding(
        misconception=TOO_SLOW,
        message=f"Your answer is right, but {took}" if report.passed else took.capitalize(),
        hint="Fewer steps and a smaller network are enough, with a larger learning rate if need be.",
    )


def _unwritten(report: tasks.Report) -> bool:
    """Whether the answer is still as it was handed out: it stops with the error that stands there."""
    return bool(report.findings) and report.findings[0].message.endswith(" NotImplementedError")
