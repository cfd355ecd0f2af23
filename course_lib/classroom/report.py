"""The table of a learner's progress over all lessons."""

import html
from importlib import import_module
from typing import Any

from course_lib.classroom.output import BLUE, present
from course_lib.classroom.session import LESSONS
from course_lib.classroom.store import ProgressStore, empty_lesson

COLUMNS = ("Questions", "Predictions", "Exercises")


def progress(*lessons: str) -> None:
    """Show what has been done in each lesson (or in those named): questions, predictions, exercises.

    Raises ValueError for a lesson that does not exist.
    """
    unknown = [name for name in lessons if name not in LESSONS]
    if unknown:
        raise ValueError(f"There is no lesson {unknown[0]!r}; the lessons are {', '.join(LESSONS)}.")
    records = ProgressStore().lessons()
    rows = [(name, records.get(name, empty_lesson())) for name in lessons or LESSONS]
    present(_plain(rows), _html(rows))


def _counts(record: dict[str, Any]) -> list[tuple[int, int, str]]:
    """For each column: how many are done, how many the learner has met, and a remark."""
    quizzes, predictions, exercises = (record[kind].values() for kind in ("quizzes", "predictions", "exercises"))
    first = sum(bool(entry.get("first_try")) for entry in quizzes)
    helped = sum(bool(entry.get("passed")) and entry.get("help", 0) > 0 for entry in exercises)
    return [
        (
            sum(bool(entry.get("right")) for entry in quizzes),
            len(quizzes),
            f"{first} at the first try" if first else "",
        ),
        (sum("choice" in entry for entry in predictions), len(predictions), ""),
        (
            sum(bool(entry.get("passed")) for entry in exercises),
            len(exercises),
            f"{helped} with hints" if helped else "",
        ),
    ]


def _state(name: str, record: dict[str, Any]) -> str:
    """How far the learner is; "done" when nothing is open in any section that is not optional."""
    counts = [(done, total) for done, total, _ in _counts(record)]
    if not record["opened"]:
        return "not started"
    if not any(done for done, _ in counts):
        return "opened"
    if any(done < total for done, total in counts):
        return "under way"
    parts = import_module(f"course_lib.lessons.lesson_{name}").page.parts()
    return "under way" if any(part.open_items() for part in parts if part.number) else "done"


def _cell(done: int, total: int, remark: str) -> str:
    return "-" if not total else f"{done} of {total}" + (f" ({remark})" if remark else "")


def _plain(rows: list[tuple[str, dict[str, Any]]]) -> str:
    table = [("Lesson", "State", *COLUMNS)]
    table += [
        (f"{name} {LESSONS[name]}", _state(name, record), *(_cell(*c) for c in _counts(record)))
        for name, record in rows
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in table
    )


def _html(rows: list[tuple[str, dict[str, Any]]]) -> str:
    left = 'style="text-align:left;padding:0.25em 1em 0.25em 0"'
    head = "".join(f'<th scope="col" {left}>{title}</th>' for title in ("Lesson", "State", *COLUMNS))
    body = ""
    for name, record in rows:
        cells = "".join(f"<td {left}>{_bar(*count)}</td>" for count in _counts(record))
        title = html.escape(f"{name} {LESSONS[name]}")
        body += f'<tr><th scope="row" {left}>{title}</th><td {left}>{_state(name, record)}</td>{cells}</tr>'
    return f"<table><caption>Your progress</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _bar(done: int, total: int, remark: str) -> str:
    """A bar that only repeats the words beside it."""
    if not total:
        return "-"
    bar = (
        '<span style="display:inline-block;width:5em;height:0.7em;border:1px solid #767676;margin-right:0.5em">'
        f'<span style="display:block;width:{round(100 * done / total)}%;height:100%;background:{BLUE}"></span></span>'
    )
    return bar + html.escape(_cell(done, total, remark))
