"""`course assign leaderboard NAME`: the scores of an open task, by pseudonyms, as one HTML page.

The judge keeps what the checks of a task with a `measure` have found. A student finds the own pseudonym on the page of
feedback; nobody else can tell whose it is without the instructor's key.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from jinja2 import Environment

from course_lib.data.place import CannotStart
from course_lib.grading.folders import Folders, assignments_folder, instructor_key, write_whole
from course_lib.grading.gradebook import Score, scores
from course_lib.grading.pseudonyms import pseudonyms
from course_lib.grading.spec import LoadedAssignment, load, read_released
from course_lib.grading.wording import counted
from course_lib.tasks import Task


def leaderboard(name: str, *, folder: Path | None = None, to: Path | None = None) -> int:
    """Writes exports/NAME-leaderboard.html, or `to`. Raises CannotStart without an open task, or without a score."""
    folders = assignments_folder(folder)
    loaded = load(read_released(folders.root, name))
    task = open_task(loaded)
    if task is None:
        raise CannotStart(f"Assignment {name} has no open task: nothing in it is compared by a score.")
    rows = scores(folders.gradebook, name)
    table = ranked(rows, task, leaderboard_names(folders, name, rows))
    if not table:
        raise CannotStart(
            f"Nobody has a score in task {task.name!r} of assignment {name} yet. Run first: course grade {name}"
        )
    target = Path(to) if to is not None else folders.exports / f"{name}-leaderboard.html"
    write_whole(target, _page(f"{name} {loaded.assignment.title}", task, table, len(rows)))
    print(
        f"{target}: {counted(len(table), 'student')} of {len(rows)}. Students find their names on their feedback pages."
    )
    return 0


def open_task(loaded: LoadedAssignment) -> Task | None:
    """The task that has a measure, if there is one."""
    return next((task for task in loaded.assignment.tasks if task.measure), None)


def leaderboard_names(folders: Folders, name: str, rows: Sequence[Score]) -> dict[str, str]:
    """The pseudonym of each student on this assignment's leaderboard."""
    return pseudonyms(instructor_key(folders), f"leaderboard {name}", (row.student for row in rows))


def score_of(row: Score, task: Task) -> float | None:
    """What the judge measured; None where an answer got so far as to be measured in no check."""
    return (row.verdict or {}).get("tasks", {}).get(task.name, {}).get("score")


def ranked(rows: Sequence[Score], task: Task, names: dict[str, str]) -> list[tuple[int, str, str]]:
    """Rank, pseudonym and score in three digits, the best first; equal scores share the better rank."""
    measured = [(score, names[row.student]) for row in rows if (score := score_of(row, task)) is not None]
    sign = 1 if task.measure.lower_is_better else -1
    ordered = sorted((sign * float(f"{score:.3g}"), name, f"{score:#.3g}") for score, name in measured)
    first = {value: rank for rank, (value, *_) in reversed([*enumerate(ordered, start=1)])}
    return [(first[value], name, text) for value, name, text in ordered]


def _page(heading: str, task: Task, table: list[tuple[int, str, str]], graded: int) -> str:
    style = _own_file("feedback.css")
    return _template().render(heading=heading, task=task, table=table, graded=graded, style=style)


@cache
def _template() -> Any:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_own_file("leaderboard.html.j2"))


def _own_file(name: str) -> str:
    return (package_files("course_lib.grading") / name).read_text(encoding="utf-8")
