"""The check cells of an assignment: public checks of an answer, in the learner's own kernel."""

import functools
import inspect
import time
from collections.abc import Callable
from typing import Any

import torch

from course_lib.classroom.exercises import say_findings, say_unwritten
from course_lib.classroom.markup import to_html
from course_lib.classroom.output import GREEN, panel, present
from course_lib.tasks import Finding, Task, run_checks
from course_lib.tasks.findings import FORBIDDEN, general
from course_lib.tasks.slips import forbidden_names

TOO_SLOW = "too slow"


class NotPassed(Exception):
    """Ends a check cell whose checks found something; in a notebook it shows as one line, without a traceback."""

    def _render_traceback_(self) -> list[str]:  # what IPython asks for
        return [str(self)]


def check(task: Task, answer: Any) -> None:
    """Check an answer with the task's example and in general: says what is wrong and how to go on.

    The numbers are public and always the same; where the grader keeps a clock, this does too. Raises NotPassed if
    something is wrong, so that whoever runs the notebook without looking sees it too.
    """
    checks, allowed = task.all_checks, task.seconds
    own = next(filter(inspect.isfunction, vars(answer).values()), None) if inspect.isclass(answer) else answer
    in_cell = getattr(own, "__module__", "") == "__main__"  # of a notebook: as the grader, look at all of the cell
    for name, number, line in forbidden_names(own, task.forbids, cell=in_cell)[:1]:
        say_findings([general(FORBIDDEN, f"Line {number}, `{line}`, uses `{name}`.")])
        raise NotPassed(f"{task.name}: {FORBIDDEN}")
    if allowed is not None:
        torch.optim.SGD([torch.zeros(1)])  # the first one of a process imports torch's compiler: not on their clock
    timed = _Timed(answer) if allowed is not None and inspect.isfunction(answer) else None
    report = run_checks(timed.call if timed else answer, checks, asks=task.asks)
    findings = report.findings
    if timed and timed.longest > allowed:
        findings = [*findings, _too_slow(timed.longest, allowed, passed=report.passed)]
    if not findings:
        count = f"{len(checks)} checks" if len(checks) > 1 else "check"
        text = f"✓ **All right**: `{task.name}` passes its {count}. The grader asks with other numbers."
        present(text.replace("**", "").replace("`", ""), panel(to_html(text), colour=GREEN))
    elif not report.written:
        say_unwritten()
        raise NotPassed(f"{task.name}: not written yet")
    else:
        say_findings(findings)
        raise NotPassed(f"{task.name}: {', '.join(finding.misconception for finding in findings)}")


class _Timed:
    """A learner's function with a clock: `longest` is its longest call so far, in seconds of processor time."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.longest = 0.0

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.longest = max(self.longest, time.thread_time() - start)

        self.call = call


def _too_slow(longest: float, allowed: float, *, passed: bool) -> Finding:
    took = f"it took {longest:.0f} s; the grader stops after {allowed:.0f}."
    said = f"Your answer is right, but {took}" if passed else took.capitalize()
    return Finding(TOO_SLOW, said, "Fewer steps and a smaller network are enough, with a larger learning rate.")
