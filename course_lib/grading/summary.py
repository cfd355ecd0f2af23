"""What an instructor sees after grading: a line for each student, and what the class found hard."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean, median
from typing import Any

from course_lib.grading.gradebook import Score
from course_lib.grading.judge import NOT_YET
from course_lib.grading.spec import CHECK_PREFIX
from course_lib.grading.wording import counted, one_line, points


def print_summary(rows: Sequence[Score]) -> None:
    """Prints a line for each student and one for each task, whose number stands above its points."""
    if not rows:
        print("Nobody has been graded yet.")
        return
    heads = [f"{number}/{points(most)}" for number, most in enumerate(rows[0].possible.values(), 1)]
    alike = _alike(rows)
    lines = [_student(row, alike[row.student]) for row in rows]
    _print_table(["Student", *heads, f"Total/{points(rows[0].maximum)}", "Remarks"], *lines)
    if any(row.unread for row in rows):
        print("? waits for points by hand: course assign formgrader")
    print()
    tasks = [_task(number, cell, rows) for number, cell in enumerate(rows[0].possible, 1)]
    _print_table(["Task", "Mean", "All points", "No answer", "Most often found"], *tasks)
    marks = [row.total for row in rows]
    print(
        f"\n{counted(len(rows), 'student')}: mean {points(mean(marks))}, median {points(median(marks))}, "
        f"from {points(min(marks))} to {points(max(marks))} of {points(rows[0].maximum)} points."
    )


def _alike(rows: Sequence[Score]) -> dict[str, list[str]]:
    """Of each student whose answers are, but for names, comments and order, the published ones or another student's."""
    verdicts = {row.student: row.verdict or {} for row in rows}
    published = {student: verdict.get("published", []) for student, verdict in verdicts.items()}
    same: dict[tuple[str, str], list[str]] = {}
    for student, verdict in verdicts.items():
        for task, fingerprint in verdict.get("fingerprints", {}).items():
            if task not in published[student]:
                same.setdefault((task, fingerprint), []).append(student)
    notes = {student: [f"as published: {', '.join(tasks)}"] if tasks else [] for student, tasks in published.items()}
    for (task, _), students in same.items():
        for student in students if len(students) > 1 else ():
            others = [other for other in students if other != student]
            notes[student].append(f"as {one_line(', '.join(others), 60)}: {task}")
    return notes


def _student(row: Score, alike: Sequence[str]) -> list[str]:
    """The points of one submission, and what a person should know of it."""
    notes = [f"late: −{points(row.penalty)}"] if row.penalty else []
    notes += ["needs attention"] if row.needs_attention else []
    notes += ["judged without a sandbox"] if row.trusted else []
    notes += alike
    notes += ["no verdict"] if row.verdict is None else map(one_line, row.verdict["notes"])
    cells = [f"{points(row.points[cell])}{'?' if cell in row.unread else ''}" for cell in row.possible]
    return [one_line(row.student, 40), *cells, points(row.total), "; ".join(notes)]


def _task(number: int, cell: str, rows: Sequence[Score]) -> list[str]:
    """The mean of a task, who has all points, who gave no answer, and the commonest misconceptions."""
    task = cell.removeprefix(CHECK_PREFIX)
    name, possible = f"{number} {one_line(task, 40)}", points(rows[0].possible[cell])
    graded = [row for row in rows if cell not in row.unread]
    if not graded:
        return [name, "not graded", "–", "", ""]
    judged = [row.verdict["tasks"][task] for row in graded if row.verdict and task in row.verdict["tasks"]]
    return [
        name,
        f"{points(mean(row.points[cell] for row in graded))} of {possible}",
        f"{sum(points(row.points[cell]) == possible for row in graded)} of {len(graded)}",
        str(sum(not found["answered"] for found in judged)) if judged else "",
        one_line(_most_common(judged)),
    ]


def _most_common(tasks: Sequence[Mapping[str, Any]]) -> str:
    """The three misconceptions that most submissions show, and how many; each counts once a submission."""
    shown = Counter(
        misconception
        for task in tasks
        if task["answered"]
        for misconception in {found["misconception"] for check in task["checks"] for found in check["findings"]}
        if misconception != NOT_YET
    )
    common = sorted(shown.items(), key=lambda item: (-item[1], item[0]))[:3]
    return ", ".join(f"{misconception} ({number})" for misconception, number in common)


def _print_table(*table: Sequence[str]) -> None:
    """Prints lines with their columns below each other, the first and the last to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for first, *cells, last in table:
        print("  ".join([first.ljust(widths[0]), *map(str.rjust, cells, widths[1:-1]), last]).rstrip())
