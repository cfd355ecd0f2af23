"""Marks as a CSV file that Canvas or Moodle imports, or with every number for a spreadsheet.

Points given by hand and penalties for lateness are counted in. A roster, the list of students as downloaded from the
platform, says who is who there: by an identifier, or by a name that is exactly the same and nobody else's. A student
who cannot be matched is named, and kept in a file of their own: Moodle refuses a whole file for one unknown line.
"""

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from course_lib.data.place import CannotStart
from course_lib.grading.folders import assignments_folder, read_small, write_whole
from course_lib.grading.gradebook import Score, scores
from course_lib.grading.spec import load, read_released
from course_lib.grading.wording import counted, one_line, points, visible

LARGEST_ROSTER = 50_000_000  # bytes
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("First name", "Last name", "ID number", "Username", "Email address")
IDENTIFIERS = {
    "canvas": ("ID", "SIS User ID", "SIS Login ID"),
    "moodle": ("ID number", "Username", "Email address", "Identifier"),
}
IDENTIFIERS["plain"] = IDENTIFIERS["canvas"] + IDENTIFIERS["moodle"]

_FORMULA = re.compile(r"^(?=\s*[=+\-@＝＋－＠])|(?<=[;,\t\n])(?=\s*[=+\-@＝＋－＠])")
_TITLE = re.compile(r"(?s)(?:\w+: ?)?(.*?)(?: \((?:\d+|Real)\))?")
MOST_NAMED = 12  # students in one line
_NUMBERED = re.compile(r"(.*)_(\d+)")  # how `course assign collect` names students of a platform

Line = Mapping[str, str]  # of a roster: its cells by the names of its columns


def export(
    name: str, folder: Path | None = None, layout: str = "canvas", roster: Path | None = None, out: Path | None = None
) -> int:
    """Writes exports/NAME-LAYOUT.csv, or `out`, and says who is missing and what is not graded yet.

    Returns 1 if a student of the gradebook is not in the roster, else 0. Raises CannotStart for an unknown layout or
    assignment, a roster that cannot be read or is another platform's, or where nobody has been graded.
    """
    if layout not in IDENTIFIERS:
        raise CannotStart(f"There is no layout {layout!r}. There are: {', '.join(IDENTIFIERS)}.")
    folders = assignments_folder(folder)
    title = load(read_released(folders.root, name)).assignment.title
    rows = scores(folders.gradebook, name)
    if not rows:
        raise CannotStart(f"Nobody has been graded in assignment {name} yet. Run first: course grade {name}")
    listed = read_roster(roster, layout) if roster is not None else []
    lines, unknown = match(rows, listed) if listed else ({row.student: _by_gradebook(row) for row in rows}, {})
    known = [row for row in rows if row.student in lines]
    titles = {title.casefold(), f"{name} {title}".casefold()}
    columns = [column for column in (listed[0] if listed else ()) if _TITLE.fullmatch(column)[1].casefold() in titles]
    heading = columns[0] if len(columns) == 1 else f"{name} {title}"
    table = {"plain": _plain, "canvas": _canvas, "moodle": _moodle}[layout](known, heading, lines)
    target = Path(out) if out is not None else folders.exports / f"{name}-{layout}.csv"
    write_whole(target, csv_text(table))
    print(f"{target}: {counted(len(known), 'student')}, out of {points(rows[0].maximum)} points.")
    if not listed and layout != "plain":
        print(f"Without --roster, {layout.title()} has to know your students by the names in the gradebook.")
    submitted = [student for student in folders.students(name) if student not in {row.student for row in rows}]
    absent = [_full_name(line) or next(_identifiers(line)) for line in listed if line not in lines.values()]
    for words, students in _remarks(name, rows, submitted, absent).items():
        if students:
            named = "; ".join(one_line(student, 60) for student in students[:MOST_NAMED])
            more = len(students) - MOST_NAMED
            print(f"{words}: {named}{f'; and {more} more' if more > 0 else ''}.")
    if unknown:
        print(f"Not in the roster, so not in the file; their marks: course assign export {name} --layout plain")
        print("\n".join(f"  {one_line(student)}: {reason}" for student, reason in unknown.items()))
    return int(bool(unknown))


def read_roster(path: Path, layout: str = "plain") -> list[Line]:
    """The list of students in a CSV file of Canvas's gradebook, Moodle's grader report or grading worksheet.

    Raises CannotStart if the file cannot be read, or names nobody in a column that identifies in the layout's platform.
    """
    content = read_small(path, LARGEST_ROSTER)
    if content is None or b"\0" in content:
        raise CannotStart(f"{path} is no CSV file that can be read. Name the list of students that you downloaded.")
    text = content.decode("utf-8-sig", errors="replace")
    separator = max(",;\t", key=text.split("\n", 1)[0].count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, restkey="", restval="")
    try:
        lines = [{column.strip(): cell.strip() for column, cell in line.items() if column} for line in reader]
    except csv.Error as error:
        raise CannotStart(f"{path} is not a CSV file: {error}") from error
    wanted = IDENTIFIERS[layout]
    lines = [line for line in lines if any(map(line.get, wanted))]  # not Canvas's line of the points possible
    if not lines:
        raise CannotStart(
            f"{path} lists nobody: it has the columns {one_line(', '.join(reader.fieldnames or ()))}, and one of these "
            f"has to be filled: {', '.join(wanted)}. Is it the list of the platform that --layout names (canvas, if "
            "none)? Download it again, with the platform's language set to English."
        )
    return lines


def match(rows: Sequence[Score], roster: Sequence[Line]) -> tuple[dict[str, Line], dict[str, str]]:
    """Each student's line of the roster, and why others have none; a line that two would get goes to neither."""
    fits = {row.student: _fitting(row, roster) for row in rows}
    claims = Counter(id(lines[0]) for lines in fits.values() if len(lines) == 1)
    found, unknown = {}, {}
    for student, lines in fits.items():
        if len(lines) != 1:
            unknown[student] = f"{len(lines)} lines of the roster fit" if lines else "no line of the roster fits"
        elif claims[id(lines[0])] > 1:
            unknown[student] = "its line of the roster fits another student, too"
        else:
            found[student] = lines[0]
    return found, unknown


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


# tables -----------------------------------------------------------------------------------------------------


def _canvas(rows: Sequence[Score], heading: str, lines: Mapping[str, Line]) -> Iterator[list[str]]:
    """Canvas's gradebook, which begins with these columns in this order, and a row with the points possible."""
    yield [*CANVAS, heading]
    for row in rows[:1]:
        yield ["    Points Possible", "", "", "", "", points(row.maximum)]
    for row in rows:
        student, *cells = (lines[row.student].get(column, "") for column in CANVAS)
        if "points possible" in student.casefold():
            student = ""  # Canvas takes any line with these words for that of the points possible
        yield [student, *cells, points(row.total)]


def _moodle(rows: Sequence[Score], heading: str, lines: Mapping[str, Line]) -> Iterator[list[str]]:
    """Columns for Moodle's grade import, where one of the identifying ones is mapped to the user.

    Grade and feedback stand together: importing a feedback alone would wipe the grade.
    """
    columns = [column for column in MOODLE if any(line.get(column) for line in lines.values())]
    yield [*columns, heading, f"{heading} feedback"]
    for row in rows:
        said = []
        for cell, possible in row.possible.items():
            given = "not graded yet" if cell in row.unread else f"{points(row.points[cell])} of {points(possible)}"
            said.append(f"{cell.removeprefix('check-')}: {given}")
        said += [f"late: {points(row.penalty)} points off"] if row.penalty > 0 else []
        said += ["judged without a sandbox (trusted students)"] if row.trusted else []
        yield [*(lines[row.student].get(column, "") for column in columns), points(row.total), "; ".join(said)]


def _plain(rows: Sequence[Score], heading: str, lines: Mapping[str, Line]) -> Iterator[list[str]]:
    """Every number, for a spreadsheet."""
    cells = [cell for row in rows[:1] for cell in row.possible]
    head = ["student", "last name", "first name", "email", "handed in (UTC)", "hours late", *cells]
    yield [*head, "points", "late penalty", "total", "out of", "not graded yet", "status", "sandbox"]
    for row in rows:
        verdict = row.verdict or {"status": "no verdict", "sandbox": ""}
        numbers = sum(row.points.values()), row.penalty, row.total, row.maximum
        yield [
            *(row.student, row.last_name or "", row.first_name or "", row.email or ""),
            f"{row.submitted:%Y-%m-%d %H:%M:%S}" if row.submitted else "",
            points(row.seconds_late / 3600),
            *(points(row.points[cell]) for cell in cells),
            *map(points, numbers),
            *(" ".join(row.unread), verdict["status"], verdict["sandbox"]),
        ]


def _remarks(name: str, rows: Sequence[Score], submitted: list[str], absent: list[str]) -> dict[str, list[str]]:
    """What a person has to know before importing the file, and of whom."""
    return {
        "Warning: written answers are not graded yet, and count 0 points so far (grade them with: course assign "
        "formgrader)": [row.student for row in rows if row.unread],
        "Warning: these need your attention before their marks are final": [
            row.student for row in rows if row.needs_attention
        ],
        f"Warning: handed in, but not graded; not in the file (run: course grade {name})": submitted,
        "Warning: judged without a sandbox (trusted students)": [row.student for row in rows if row.trusted],
        "In the roster, but nothing handed in; not in the file, so their marks stay as they are": absent,
    }


# who is who -------------------------------------------------------------------------------------------------


def _by_gradebook(row: Score) -> Line:
    """A line for a student of whom only the gradebook knows."""
    first, last, number = row.first_name or "", row.last_name or "", row.lms_user_id or ""
    address = row.email or (row.student if "@" in row.student else "")
    whole = ", ".join(filter(None, (last, first))) or row.student
    return dict(zip(CANVAS, (whole, number, "", row.student, ""), strict=True)) | dict(
        zip(MOODLE, (first, last, number, row.student, address), strict=True)
    )


def _fitting(row: Score, roster: Sequence[Line]) -> list[Line]:
    """The lines of the roster that may be the student's.

    An identifier decides: login, address or the part of it before @; the number in a file's name, if a word of the
    name stands there, too. A name alone counts if it is the same, and where only one of the two sides has a number.
    """
    numbered = _NUMBERED.fullmatch(row.student)
    name, number = numbered.groups() if numbered else (row.student, row.lms_user_id or "")
    names = {_words(name), _words(f"{row.first_name or ''} {row.last_name or ''}")} - {()}
    known = "".join(word for words in names for word in words)
    own = {key.casefold() for key in (row.student, row.email, row.lms_user_id) if key}
    identified, named = [], []
    for line in roster:
        there = {text.casefold().removeprefix("participant ") for text in _identifiers(line)}
        words = _words(_full_name(line))
        fits = own & there or own & _before_at(there) or _before_at(own) & there
        if fits or (number in there and any(len(word) > 1 and word in known for word in words)):
            identified.append(line)
        elif words in names and not (number and (line.get("ID") or line.get("Identifier"))):
            named.append(line)
    return identified or named


def _identifiers(line: Line) -> Iterator[str]:
    return filter(None, map(line.get, IDENTIFIERS["plain"]))


def _before_at(addresses: Iterable[str]) -> set[str]:
    return {address.split("@")[0] for address in addresses if "@" in address}


def _full_name(line: Line) -> str:
    """The student's name as the platform spells it, in one cell or two."""
    whole = line.get("Student") or line.get("Full name")
    return whole or f"{line.get('First name', '')} {line.get('Last name', '')}".strip()


def _words(name: str) -> tuple[str, ...]:
    """A name's words in the order of the alphabet."""
    return tuple(sorted(re.findall(r"\w+", unicodedata.normalize("NFKC", name).casefold().replace("_", " "))))
