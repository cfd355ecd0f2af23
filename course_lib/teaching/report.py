"""`course assign report`: what the class struggles with, over all graded assignments, as one page without a network.

Difficulty of an item is the mean fraction of its points. Discrimination is the correlation of the item with the rest
score, the points of the assignment without this item; of a check, which is passed or not, it is the point-biserial
correlation r = (M1 - M0) / s * sqrt(p q) (Lord & Novick 1968, ch. 15), of a task with partial points Pearson's.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any

from jinja2 import Environment

from course_lib.data.place import CannotStart
from course_lib.grading.export import csv_text
from course_lib.grading.folders import Folders, assignments_folder, instructor_key, write_whole
from course_lib.grading.gradebook import Score, scores
from course_lib.grading.judge import NO_ANSWER, NOT_JUDGED, NOT_YET
from course_lib.grading.pseudonyms import pseudonyms
from course_lib.grading.spec import CHECK_PREFIX, load, read_released
from course_lib.grading.wording import counted, one_line, points

ENOUGH = 10  # students, for a remark on an item
HARD, EASY, FLAT = 0.3, 0.95, 0.2  # bounds of difficulty and discrimination for remarks
NAMED = 12  # mistakes of an assignment on the page; the CSV has all
BINS = (  # hours after the deadline up to which a submission counts in each, the last without end
    (-72.0, "more than 3 days before"),
    (-24.0, "3 days to 1 day before"),
    (-6.0, "24 to 6 hours before"),
    (-1.0, "6 hours to 1 hour before"),
    (0.0, "last hour"),
    (1.0, "up to 1 hour late"),
    (24.0, "up to 1 day late"),
    (math.inf, "more than 1 day late"),
)


@dataclass(frozen=True, kw_only=True)
class Item:
    """A task or a check: `students` that count, its difficulty, its discrimination, and who gave no answer."""

    name: str
    possible: float
    students: int
    difficulty: float
    discrimination: float | None
    no_answer: int | None = None
    checks: tuple["Item", ...] = ()

    @property
    def remark(self) -> str:
        """What is worth a look, in a class that is large enough to say so."""
        if self.students < ENOUGH:
            return ""
        if self.discrimination is not None and self.discrimination < 0:
            return "weaker students do better here: look at the task and its checks"
        if self.difficulty < HARD:
            return "hard"
        if self.difficulty > EASY:
            return "easy"
        return "hardly separates" if self.discrimination is not None and self.discrimination < FLAT else ""


@dataclass(frozen=True, kw_only=True)
class Graded:
    """An assignment that has been graded, as the report shows it."""

    name: str
    title: str
    titles: dict[str, str]  # of its graded cells, by grade_id
    rows: list[Score]

    @property
    def fractions(self) -> list[float]:
        return [row.total / row.maximum for row in self.rows if row.maximum]

    @property
    def items(self) -> list[Item]:
        return list(_items(self))

    @property
    def mistakes(self) -> list[tuple[str, str, int, int]]:
        """Mistake, task, the students who made it, and those who answered the task; the most frequent first."""
        return _mistakes(self)

    @property
    def times(self) -> list[int] | None:
        """How many handed in within each of BINS; None without a deadline."""
        hours = [late for row in self.rows if (late := hours_late(row)) is not None]
        if not hours:
            return None
        binned = Counter(next(index for index, (end, _) in enumerate(BINS) if late <= end) for late in hours)
        return [binned[index] for index in range(len(BINS))]


def report(*, folder: Path | None = None, names: bool = False, csv: bool = False, to: Path | None = None) -> int:
    """Writes exports/report.html, or `to`, and with `csv` four tables beside it.

    Without `names` students are numbers. Raises CannotStart where no assignment has been graded.
    """
    folders = assignments_folder(folder)
    graded = list(graded_assignments(folders))
    if not graded:
        raise CannotStart("No assignment has been graded yet. Run first: course grade 05")
    labels = _labels(folders, graded, names=names)
    target = Path(to) if to is not None else folders.exports / "report.html"
    write_whole(target, page(graded, labels))
    print(f"{target}: {counted(len(graded), 'assignment')}, {counted(len(labels), 'student')}.")
    if csv:
        for name, table in tables(graded, labels).items():
            place = target.with_name(f"{target.stem}-{name}.csv")
            write_whole(place, csv_text(table))
            print(place)
    return 0


def graded_assignments(folders: Folders) -> Iterator[Graded]:
    """All assignments of a course directory in which somebody has been graded."""
    for name in folders.assignments():
        try:
            rows = scores(folders.gradebook, name)
        except CannotStart:  # not released
            continue
        if rows:
            assignment = load(read_released(folders.root, name)).assignment
            known = {CHECK_PREFIX + task.name: task.title for task in assignment.tasks}
            titles = {cell: known.get(cell) or _as_title(cell) for cell in rows[0].possible}
            yield Graded(name=name, title=assignment.title, titles=titles, rows=rows)


def hours_late(row: Score) -> float | None:
    """Hours from the deadline to the submission, negative if it came before; None where one of them is not known."""
    return (row.submitted - row.due).total_seconds() / 3600 if row.submitted and row.due else None


def _as_title(cell: str) -> str:
    return cell.removeprefix(CHECK_PREFIX).replace("-", " ").replace("_", " ").capitalize()


def _labels(folders: Folders, graded: Sequence[Graded], *, names: bool) -> dict[str, str]:
    """What stands for each student: a name, or a number that says nothing about it."""
    rows = {row.student: row for one in graded for row in one.rows}
    if names:
        full = {student: " ".join(filter(None, (row.first_name, row.last_name))) for student, row in rows.items()}
        return {student: one_line(name or student, 40) for student, name in full.items()}
    hidden = pseudonyms(instructor_key(folders), "report", rows)
    width = len(str(len(rows)))
    return {student: f"S{number:0{width}}" for number, student in enumerate(sorted(rows, key=hidden.get), start=1)}


# items and mistakes -------------------------------------------------------------------------------------------


def _items(one: Graded) -> Iterator[Item]:
    """The tasks of an assignment with their checks.

    A cell in which an answer still waits for a person is left out of every rest score.
    """
    waiting = {cell for row in one.rows for cell in row.unread}

    def rest(row: Score, cell: str, less: float) -> float:
        return sum(number for name, number in row.points.items() if name == cell or name not in waiting) - less

    for cell, possible in one.rows[0].possible.items():
        rows = [row for row in one.rows if cell not in row.unread]
        values = [row.points[cell] for row in rows]
        verdicts = [_task(row, cell) for row in one.rows]
        checks: list[Item] = []
        judged = [(row, verdict) for row, verdict in zip(one.rows, verdicts, strict=True) if verdict]
        for index, check in enumerate(judged[0][1]["checks"] if judged else ()):
            asked = [(row, verdict["checks"][index]) for row, verdict in judged if index < len(verdict["checks"])]
            passed = [float(found["passed"]) for _, found in asked]
            others = [rest(row, cell, found["points"]) for row, found in asked]
            made = _item(check["name"], check["possible"], passed, 1.0, others)
            checks.append(made)
        empty = sum(not verdict["answered"] for _, verdict in judged) if judged else None
        others = [rest(row, cell, row.points[cell]) for row in rows]
        yield _item(one.titles[cell], possible, values, possible, others, no_answer=empty, checks=tuple(checks))


def _item(name: str, possible: float, values: list[float], most: float, others: list[float], **more: Any) -> Item:
    difficulty = fmean(values) / most if values and most else math.nan
    correlation = pearson(values, others)
    return Item(
        name=name,
        possible=possible,
        students=len(values),
        difficulty=difficulty,
        discrimination=correlation,
        **more,
    )


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """The correlation of two columns; None where one of them is constant.

    With x of zeros and ones it is the point-biserial correlation.
    """
    if len(x) < 2 or not (spread := pstdev(x) * pstdev(y)):
        return None
    mean_x, mean_y = fmean(x), fmean(y)
    return fmean((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread


def _task(row: Score, cell: str) -> dict[str, Any] | None:
    """The judge's verdict on a task; None for an answer in words, or without a verdict."""
    return (row.verdict or {}).get("tasks", {}).get(cell.removeprefix(CHECK_PREFIX))


def _mistakes(one: Graded) -> list[tuple[str, str, int, int]]:
    made: Counter[tuple[str, str]] = Counter()
    answered: Counter[str] = Counter()
    for row in one.rows:
        for cell in row.possible:
            task = _task(row, cell)
            if task and task["answered"]:
                answered[cell] += 1
                found = {found["misconception"] for check in task["checks"] for found in check["findings"]}
                made.update((name, cell) for name in found - {NOT_YET, NOT_JUDGED, NO_ANSWER})
    ordered = sorted(made.items(), key=lambda item: (-item[1], item[0]))
    return [(name, one.titles[cell], count, answered[cell]) for (name, cell), count in ordered]


# page and tables ----------------------------------------------------------------------------------------------


def page(graded: Sequence[Graded], labels: dict[str, str]) -> str:
    """The report as HTML."""
    by_student = {one.name: {row.student: row for row in one.rows} for one in graded}
    mean = {
        student: fmean(row.total / row.maximum for rows in by_student.values() if (row := rows.get(student)))
        for student in labels
    }
    order = sorted(labels, key=lambda student: (-mean[student], labels[student]))
    return _template().render(
        graded=graded,
        by_student=by_student,
        students=order,
        labels=labels,
        mean=mean,
        bins=[words for _, words in BINS],
        named=NAMED,
        enough=ENOUGH,
    )


def tables(graded: Sequence[Graded], labels: dict[str, str]) -> dict[str, list[list[str]]]:
    """The same numbers as tables, a row for each student and task, item, mistake, and submission."""

    def number(value: float | None) -> str:
        return "" if value is None or math.isnan(value) else f"{value:.3f}"

    students = [["student", "assignment", "task", "points", "possible", "waits for a person"]]
    items = [["assignment", "task", "check", "points", "students", "difficulty", "discrimination", "no answer"]]
    mistakes = [["assignment", "task", "mistake", "students", "students who answered"]]
    times = [["student", "assignment", "submitted (UTC)", "deadline (UTC)", "hours after the deadline", "penalty"]]
    for one in graded:
        for row in one.rows:
            who = labels[row.student]
            students += [
                [who, one.name, one.titles[cell], points(row.points[cell]), points(most), str(cell in row.unread)]
                for cell, most in row.possible.items()
            ]
            moments = [_minute(row.submitted), _minute(row.due)]
            times.append([who, one.name, *moments, number(hours_late(row)), points(row.penalty)])
        for item in one.items:
            for part, check in [(item, ""), *((check, check.name) for check in item.checks)]:
                values = [points(part.possible), str(part.students), number(part.difficulty)]
                empty = "" if part.no_answer is None else str(part.no_answer)
                items.append([one.name, item.name, check, *values, number(part.discrimination), empty])
        mistakes += [[one.name, task, name, str(count), str(of)] for name, task, count, of in one.mistakes]
    return {"points": students, "items": items, "mistakes": mistakes, "times": times}


def _minute(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else ""


@cache
def _template() -> Any:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"points": points, "line": one_line, "percent": _percent, "signed": _signed}
    environment.globals |= {"mean_of": fmean, "median_of": median, "spread_of": pstdev, "counted": counted}
    return environment.from_string((package_files("course_lib.teaching") / "report.html.j2").read_text("utf-8"))


def _percent(fraction: float) -> str:
    return "–" if math.isnan(fraction) else f"{100 * fraction:.0f}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".replace("-", "−")
