"""The learner's own function at work in the lesson, where it passes its check."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from course_lib.classroom.output import GREEN, GREY, say
from course_lib.classroom.stopping import LearnersError
from course_lib.tasks.table import Task


class Learners:
    """A learner's function inside the lesson: an error in it names it, and it can be saved with a model that holds it.

    A saved one comes back as the function that `use` returned last in the kernel that reads it.
    """

    in_use: dict[tuple[str, str], "Learners"] = {}

    def __init__(self, lesson: str, name: str, function: Callable[..., Any]) -> None:
        self.place, self.function = (lesson, name), function
        update_wrapper(self, function)
        self.in_use[self.place] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.function(*args, **kwargs)
        except Exception as error:
            name, why = vars(self)["__name__"], f"{type(error).__name__}: {error}"
            raise LearnersError(f"Your function {name!r}, on which the lesson runs, stopped: {why}") from error

    def __reduce__(self) -> tuple[Callable, tuple]:
        return _find, self.place


def _find(lesson: str, name: str) -> Learners:
    if (lesson, name) not in Learners.in_use:
        raise ValueError(f"No function of the learner is in use for {name!r} of lesson {lesson}.")
    return Learners.in_use[lesson, name]


def use(lesson: str, name: str, task: Task, function: Any) -> Callable[..., Any]:
    """Return the learner's function or class if it passes the task's checks, else the task's own, and say which."""
    report = task.run(function)
    called = f"`{getattr(function, '__name__', name)}`"
    if report.passed:
        text, colour = f"✓ From here on the lesson runs on **your** {called}.", GREEN
    elif not report.written:
        text, colour = f"○ {called} is not written yet, so the lesson goes on with ours; yours can follow.", GREY
    else:
        text, colour = f"○ {called} does not pass its check yet, so the lesson goes on with ours.", GREY
    say(text, colour)
    if task.module is not None:
        return function if report.passed else task.module
    return Learners(lesson, name, function) if report.passed else task.reference
