"""Marks as a CSV file that Canvas or Moodle imports, or with every number for a spreadsheet.

Points given by hand and penalties for lateness are counted in. A roster, the list of students as downloaded from the
platform, says who is who there. A student who cannot be matched is named, and kept in a file of their own: Moodle
refuses a whole file for one unknown line.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.data.place import CannotStart
from course_lib.grading.folders import Folders, assignments_folder, write_whole
from course_lib.grading.judge import ATTENTION
from course_lib.grading.roster import CANVAS, IDENTIFIERS, MOODLE, Matches, Roster, full_name, match, read_roster
from course_lib.grading.verdicts import is_trusted, read_verdict
from course_lib.grading.wording import counted, one_line, points, visible

if TYPE_CHECKING:
    from course_lib.grading.gradebook import Score

LAYOUTS = ("canvas", "moodle", "plain")
NAMED = 30  # students that a warning lists before it only counts

_FORMULA = re.compile(r"^(?=\s*[=+\-@＝＋－＠])|(?<=[;,\t\n])(?=\s*[=+\-@＝＋－＠])")
_TITLE = re.compile(r"(?:\w+: ?)?(.*?)(?: \((?:\d+|Real)\))?")


def export(
    name: str,
    folder: Path | None = None,
    layout: str = "canvas",
    roster: Path | None = None,
    out: Path | None = None,
) -> int:
    """Writes exports/NAME-LAYOUT.csv, or `out`, and says who is missing and what is not graded yet.

    Returns 1 if a student of the gradebook is not in the roster, else 0. Raises CannotStart for an unknown layout or
    assignment, a roster that cannot be read or is another platform's, or where nobody has been graded.
    """
    from course_lib.grading.release import need_nbgrader

    need_nbgrader(f"assign export {name}")
    from course_lib.grading.gradebook import scores

    if layout not in LAYOUTS:
        raise CannotStart(f"There is no layout {layout!r}. There are: {', '.join(LAYOUTS)}.")
    folders = assignments_folder(folder)
    title = _title(folders, name)
    rows = scores(folders.gradebook, name)
    if not rows:
        raise CannotStart(f"Nobody has been graded in assignment {name} yet. Run first: course grade {name}")
    verdicts = {row.student: read_verdict(folders, row.student, name) for row in rows}
    listed = read_roster(roster) if roster is not None else None
    if listed and layout != "plain" and listed.platform not in (layout, None):
        theirs = listed.platform.title()
        raise CannotStart(
            f"{roster} looks like {theirs}'s list of students, and {layout.title()} was asked for. Name the list of "
            f"{layout.title()}, or ask for --layout {listed.platform}."
        )
    matches = match(rows, listed) if listed else None
    known = [row for row in rows if matches is None or row.student in matches.lines]
    target = Path(out) if out is not None else folders.exports / f"{name}-{layout}.csv"
    lines = {row.student: matches.lines[row.student] if matches else _by_gradebook(row) for row in known}
    table = _table(layout, title, known, lines, listed, verdicts)
    write_whole(target, csv_text(table))
    print(f"{target}: {counted(len(known), 'student')}, out of {points(rows[0].maximum)} points.")
    for remark in _remarks(folders, name, title, layout, rows, lines, listed, matches, verdicts):
        print(remark)
    rest = target.with_name(f"{target.stem}-not-in-roster.csv")
    if matches is None or not matches.unknown:
        rest.unlink(missing_ok=True)  # of an earlier export
        return 0
    left = [row for row in rows if row.student in matches.unknown]
    write_whole(rest, csv_text(_plain(left, verdicts)))
    print(f"Not in the roster: {counted(len(left), 'student')}, kept in {rest}:")
    for student, reason in matches.unknown.items():
        print(f"  {one_line(student)}: {reason}")
    return 1


def csv_text(table: Iterable[Sequence[str]]) -> bytes:
    """A table as CSV that spreadsheets open as UTF-8, each cell made harmless."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([harmless(cell) for cell in row] for row in table)
    return text.getvalue().encode("utf-8-sig")


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe goes before = + - @, and controls become visible.

    So it is after a separator, too: where another one is usual, a spreadsheet splits the cell there.
    """
    return _FORMULA.sub("'", visible(cell))


def _title(folders: Folders, name: str) -> str:
    """What the assignment's column is called: "05 Attention"."""
    from course_lib.grading.spec import load, read_assignment

    try:
        return f"{name} {load(read_assignment(folders.root, name)).assignment.title}"
    except ValueError as problem:
        raise CannotStart(str(problem)) from problem


def _table(
    layout: str,
    title: str,
    rows: Sequence["Score"],
    lines: Mapping[str, Mapping[str, str]],
    roster: Roster | None,
    verdicts: Mapping[str, Mapping | None],
) -> list[list[str]]:
    if layout == "plain":
        return _plain(rows, verdicts)
    heading = _heading(title, roster) or title
    if layout == "canvas":
        return _canvas(heading, rows, lines, roster)
    return _moodle(heading, rows, lines, verdicts)


def _by_gradebook(row: "Score") -> dict[str, str]:
    """A line for a student of whom only the gradebook knows."""
    first, last = row.first_name or "", row.last_name or ""
    number = row.lms_user_id or ""
    return {
        "Student": ", ".join(filter(None, (last, first))) or row.student,
        "First name": first,
        "Last name": last,
        "ID": number,
        "ID number": number,
        "SIS Login ID": row.student,
        "Username": row.student,
        "Email address": row.email or (row.student if "@" in row.student else ""),
    }


def _heading(title: str, roster: Roster | None) -> str | None:
    """The roster's own column for this assignment, if exactly one has its title."""
    fits = _headings(title, roster)
    return fits[0] if len(fits) == 1 else None


def _headings(title: str, roster: Roster | None) -> list[str]:
    wanted = {title.casefold(), title.split(" ", 1)[1].casefold()}
    columns = roster.columns if roster else ()
    return [column for column in columns if _TITLE.fullmatch(column)[1].casefold() in wanted]


def _canvas(
    heading: str, rows: Sequence["Score"], lines: Mapping[str, Mapping[str, str]], roster: Roster | None
) -> list[list[str]]:
    """Canvas's gradebook, which begins with these columns in this order, and a row with the points possible."""
    columns = list(CANVAS)
    if roster and "Root Account" in roster.columns:
        columns.insert(-1, "Root Account")
    table = [[*columns, heading]]
    if rows:
        table.append(["    Points Possible", *[""] * (len(columns) - 1), points(rows[0].maximum)])
    for row in rows:
        cells = [lines[row.student].get(column, "") for column in columns]
        if "points possible" in cells[0].casefold():
            cells[0] = ""  # Canvas takes any line with these words for that of the points possible
        table.append([*cells, points(row.total)])
    return table


def _moodle(
    heading: str,
    rows: Sequence["Score"],
    lines: Mapping[str, Mapping[str, str]],
    verdicts: Mapping[str, Mapping | None],
) -> list[list[str]]:
    """Columns for Moodle's grade import, where one of the identifying ones is mapped to the user.

    Grade and feedback stand together: importing a feedback alone would wipe the grade.
    """
    columns = [column for column in MOODLE if any(line.get(column) for line in lines.values())]
    table = [[*columns, heading, f"{heading} feedback"]]
    for row in rows:
        cells = [lines[row.student].get(column, "") for column in columns]
        table.append([*cells, points(row.total), _in_words(row, verdicts[row.student])])
    return table


def _in_words(row: "Score", verdict: Mapping | None) -> str:
    """The points of each cell in one line."""
    parts = [
        f"{cell.removeprefix('check-')}: "
        + ("not graded yet" if cell in row.unread else f"{points(row.points[cell])} of {points(possible)}")
        for cell, possible in row.possible.items()
    ]
    if row.penalty > 0:
        parts.append(f"late: {points(row.penalty)} points off")
    if is_trusted(verdict):
        parts.append("judged without a sandbox (trusted students)")
    return "; ".join(parts)


def _plain(rows: Sequence["Score"], verdicts: Mapping[str, Mapping | None]) -> list[list[str]]:
    """Every number, for a spreadsheet."""
    cells = list(rows[0].possible) if rows else []
    head = ["student", "last name", "first name", "email", "handed in (UTC)", "hours late", *cells]
    table = [[*head, "points", "late penalty", "total", "out of", "not graded yet", "status", "sandbox"]]
    for row in rows:
        verdict = verdicts[row.student] or {}
        table.append(
            [
                row.student,
                row.last_name or "",
                row.first_name or "",
                row.email or "",
                f"{row.submitted:%Y-%m-%d %H:%M:%S}" if row.submitted else "",
                points(row.seconds_late / 3600),
                *(points(row.points[cell]) for cell in cells),
                points(sum(row.points.values())),
                points(row.penalty),
                points(row.total),
                points(row.maximum),
                " ".join(row.unread),
                str(verdict.get("status", "no verdict")),
                str(verdict.get("sandbox", "")),
            ]
        )
    return table


def _remarks(
    folders: Folders,
    name: str,
    title: str,
    layout: str,
    rows: Sequence["Score"],
    lines: Mapping[str, Mapping[str, str]],
    roster: Roster | None,
    matches: Matches | None,
    verdicts: Mapping[str, Mapping | None],
) -> Iterable[str]:
    """What a person has to know before importing the file."""
    graded = {row.student for row in rows}
    groups = {
        "Warning: written answers are not graded yet, and count 0 points so far (grade them with: course assign "
        "formgrader)": [row.student for row in rows if row.unread],
        "Warning: these need your attention before their marks are final": [
            row.student for row in rows if (verdicts[row.student] or {}).get("status") == ATTENTION
        ],
        f"Warning: handed in, but not graded; not in the file (run: course grade {name})": [
            student for student in folders.students(name) if student not in graded
        ],
        "Warning: judged without a sandbox (trusted students)": [
            row.student for row in rows if is_trusted(verdicts[row.student])
        ],
        "In the roster, but nothing handed in; not in the file, so their marks stay as they are": [
            full_name(line) or next(line[column] for column in IDENTIFIERS if line.get(column))
            for line in (matches.absent if matches else [])
        ],
        "Warning: an identifier begins like a formula and got an apostrophe, so the platform will not know it": [
            student
            for student, line in (lines.items() if layout != "plain" else ())
            if any(harmless(line.get(column, "")) != line.get(column, "") for column in IDENTIFIERS)
        ],
    }
    for words, students in groups.items():
        if students:
            listed = "; ".join(one_line(student, 60) for student in students[:NAMED])
            more = f" and {len(students) - NAMED} more" if len(students) > NAMED else ""
            yield f"{words}: {listed}{more}."
    if layout == "plain":
        return
    if roster is None:
        yield f"Without --roster, {layout.title()} has to know your students by the names in the gradebook."
    elif layout == "canvas" and (heading := _heading(title, roster)):
        there = roster.possible.get(heading, "")
        if there and not _same_number(there, rows[0].maximum):
            yield f"Warning: in Canvas this assignment is out of {one_line(there)} points."
    elif layout == "canvas":
        number = len(_headings(title, roster))
        there = f"{number} columns" if number else "no column"
        yield f"The roster has {there} {title!r}: Canvas will ask which assignment it is, or make a new one."


def _same_number(text: str, number: float) -> bool:
    try:
        return points(float(text.replace(",", "."))) == points(number)
    except ValueError:
        return False
