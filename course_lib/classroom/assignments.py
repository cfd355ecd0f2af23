"""The check cells of an assignment: public checks of an answer, in the learner's own kernel."""

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from course_lib import properties
from course_lib.classroom.exercises import say_findings
from course_lib.classroom.markup import to_html
from course_lib.classroom.output import GREEN, GREY, panel, present


class NotPassed(Exception):
    """Ends a check cell whose checks found something; in a notebook it shows as one line, without a traceback."""

    def _render_traceback_(self) -> list[str]:  # what IPython asks for
        return [str(self)]


def visible_checks(assignment: str) -> Mapping[str, Sequence[properties.Check]]:
    """The public checks of each task of an assignment; raises ValueError for one that has none."""
    place = f"course_lib.classroom.lessons.assignment_{assignment}"
    if not assignment.isalnum() or importlib.util.find_spec(place) is None:
        raise ValueError(f"There are no checks for an assignment {assignment!r}.")
    return importlib.import_module(place).CHECKS


def check_task(assignment: str, task: str, answer: Any) -> None:
    """Check an answer: says what is wrong, what it probably comes from and how to go on.

    The numbers are public and always the same. Raises NotPassed if something is wrong, so that whoever runs the
    notebook without looking sees it too, and ValueError for an unknown assignment or task.
    """
    checks = visible_checks(assignment)
    if task not in checks:
        raise ValueError(f"Assignment {assignment} has no task {task!r}; it has {', '.join(checks)}.")
    report = properties.run_checks(answer, checks[task])
    if report.passed:
        text = f"✓ **All right**: `{task}` passes its {len(checks[task])} checks. The grader asks with other numbers."
        plain = text.replace("**", "").replace("`", "")
        present(plain, panel(to_html(text), colour=GREEN))
        return
    if _unwritten(report):
        text = "○ Not written yet: fill in the cell above, run it, then run this one again."
        present(text, panel(to_html(text), colour=GREY))
        raise NotPassed(f"{task}: not written yet")
    say_findings(report.findings)
    raise NotPassed(f"{task}: {', '.join(report.misconceptions)}")


def _unwritten(report: properties.Report) -> bool:
    """Whether the answer is still as it was handed out: it stops with the error that stands there."""
    return report.findings[0].message.endswith(" NotImplementedError")
