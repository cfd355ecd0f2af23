"""What an instructor sees after grading: a line for each student, and what the class found hard."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from course_lib.grading.judge import NOT_YET
from course_lib.grading.spec import CHECK_PREFIX
from course_lib.grading.wording import counted, one_line, points

if TYPE_CHECKING:
    from rich.table import Table

    from course_lib.grading.gradebook import Score

MOST_ROWS = 60  # of students; in a larger class those that need a person are shown
MOST_COMMON = 3  # misconceptions named for a task
OFF_SCREEN = 160  # columns where the output is not a terminal


def print_summary(rows: Sequence["Score"]) -> None:
    """Prints both tables."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = OFF_SCREEN
    if not rows:
        console.print("Nobody has been graded yet.")
        return
    chosen = rows if len(rows) <= MOST_ROWS else [row for row in rows if _notes(row)]
    if chosen:
        console.print(students_table(chosen))
    if len(chosen) < len(rows):
        console.print(f"{counted(len(rows) - len(chosen), 'further student')}, graded and without remarks, not shown.")
    console.print()
    console.print(tasks_table(rows))
    console.print()
    console.print(Text(totals(rows)), soft_wrap=True)


def students_table(rows: Sequence["Score"]) -> "Table":
    """A line for each student, a column for each cell that carries points, numbered as in `tasks_table`."""
    from rich.table import Table
    from rich.text import Text

    notes = {row.student: "; ".join(_notes(row)) for row in rows}
    late, remarkable = any(row.penalty for row in rows), any(notes.values())
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("Student", overflow="fold", min_width=12)
    for number, possible in enumerate(rows[0].possible.values(), 1):
        table.add_column(f"{number}\n/{points(possible)}", justify="right", no_wrap=True)
    for column in [*(["Late"] if late else []), f"Total\n/{points(rows[0].maximum)}"]:
        table.add_column(column, justify="right", no_wrap=True)
    if remarkable:
        table.add_column("Remarks", overflow="fold")
    for row in rows:
        cells = [f"{points(row.points[cell])}{'?' if cell in row.unread else ''}" for cell in row.possible]
        cells += [f"−{points(row.penalty)}" if row.penalty else ""] if late else []
        remarks = [Text(notes[row.student])] if remarkable else []
        table.add_row(Text(one_line(row.student, 40)), *cells, points(row.total), *remarks)
    if any(row.unread for row in rows):
        table.caption = "? waits for points by hand: course assign formgrader"
        table.caption_justify = "left"
    return table


def tasks_table(rows: Sequence["Score"]) -> "Table":
    """A line for each task: its mean, who has all points, who gave no answer, and the commonest misconceptions."""
    from rich.table import Table
    from rich.text import Text

    table = Table(show_edge=False, pad_edge=False)
    table.add_column("Task", overflow="fold")
    for column in ("Mean", "All points", "No answer"):
        table.add_column(column, justify="right")
    table.add_column("Most often found", overflow="fold")
    for number, (cell, possible) in enumerate(rows[0].possible.items(), 1):
        graded = [row for row in rows if cell not in row.unread]
        judged = [task for row in graded if (task := _judged(row, cell))]
        full = sum(points(row.points[cell]) == points(possible) for row in graded)
        table.add_row(
            Text(f"{number} {one_line(cell.removeprefix(CHECK_PREFIX), 40)}"),
            f"{points(mean(row.points[cell] for row in graded))} of {points(possible)}" if graded else "not graded",
            f"{full} of {len(graded)}" if graded else "–",
            str(sum(not task["answered"] for task in judged)) if judged else "",
            Text(one_line(_most_common(judged))),
        )
    return table


def totals(rows: Sequence["Score"]) -> str:
    """One line on the marks of all."""
    marks = [row.total for row in rows]
    if len(rows) == 1:
        return f"1 student: {points(marks[0])} of {points(rows[0].maximum)} points."
    return (
        f"{counted(len(rows), 'student')}: mean {points(mean(marks))}, median {points(median(marks))}, "
        f"from {points(min(marks))} to {points(max(marks))} of {points(rows[0].maximum)} points."
    )


def _notes(row: "Score") -> list[str]:
    """What a person should know of one submission."""
    if row.verdict is None:
        return ["no verdict"]
    notes = ["needs attention"] if row.needs_attention else []
    notes += ["judged without a sandbox"] if row.trusted else []
    return notes + [one_line(note) for note in row.verdict["notes"]]


def _judged(row: "Score", cell: str) -> Mapping[str, Any] | None:
    return None if row.verdict is None else row.verdict["tasks"].get(cell.removeprefix(CHECK_PREFIX))


def _most_common(tasks: Sequence[Mapping[str, Any]]) -> str:
    """The misconceptions that most submissions show, with their numbers; each counts once a submission."""
    shown = Counter(
        misconception
        for task in tasks
        if task["answered"]
        for misconception in {found["misconception"] for check in task["checks"] for found in check["findings"]}
        if misconception != NOT_YET
    )
    common = sorted(shown.items(), key=lambda item: (-item[1], item[0]))[:MOST_COMMON]
    return ", ".join(f"{misconception} ({number})" for misconception, number in common)
