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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.data.place import CannotStart
from course_lib.grading.folders import assignments_folder, need_nbgrader, read_small, write_whole
from course_lib.grading.wording import counted, one_line, points, visible

if TYPE_CHECKING:
    from course_lib.grading.gradebook import Score

LAYOUTS = ("canvas", "moodle", "plain")
NAMED = 30  # students that a warning lists before it only counts
LARGEST_ROSTER = 50_000_000  # bytes
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("First name", "Last name", "ID number", "Username", "Email address")
IDENTIFIERS = ("ID", "SIS User ID", "SIS Login ID", "ID number", "Username", "Email address", "Email", "Identifier")

_FORMULA = re.compile(r"^(?=\s*[=+\-@＝＋－＠])|(?<=[;,\t\n])(?=\s*[=+\-@＝＋－＠])")
_TITLE = re.compile(r"(?:\w+: ?)?(.*?)(?: \((?:\d+|Real)\))?")
_NUMBERED = re.compile(r"(.*)_(\d+)")  # how `course assign collect` names students of a platform

Line = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Roster:
    """A platform's list of students: the columns it has, a line for each student, and Canvas's points possible."""

    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    possible: Line

    @property
    def platform(self) -> str | None:
        """Whose list this looks like: "canvas", "moodle", or None where the columns do not tell."""
        of_canvas = any(column in self.columns for column in CANVAS)
        of_moodle = any(column in self.columns for column in (*MOODLE, "Full name", "Identifier"))
        return None if of_canvas == of_moodle else "canvas" if of_canvas else "moodle"

    def headings(self, title: str) -> list[str]:
        """The columns for an assignment of this title, such as "05 Attention"."""
        wanted = {title.casefold(), title.split(" ", 1)[1].casefold()}
        return [column for column in self.columns if _TITLE.fullmatch(column)[1].casefold() in wanted]


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
    need_nbgrader(f"assign export {name}")
    from course_lib.grading.gradebook import scores
    from course_lib.grading.spec import load, read_assignment

    if layout not in LAYOUTS:
        raise CannotStart(f"There is no layout {layout!r}. There are: {', '.join(LAYOUTS)}.")
    folders = assignments_folder(folder)
    try:
        title = f"{name} {load(read_assignment(folders.root, name)).assignment.title}"
    except ValueError as problem:
        raise CannotStart(str(problem)) from problem
    rows = scores(folders.gradebook, name)
    if not rows:
        raise CannotStart(f"Nobody has been graded in assignment {name} yet. Run first: course grade {name}")
    listed = read_roster(roster) if roster is not None else None
    if listed and layout != "plain" and listed.platform not in (layout, None):
        raise CannotStart(
            f"{roster} looks like {listed.platform.title()}'s list of students, and {layout.title()} was asked for. "
            f"Name the list of {layout.title()}, or ask for --layout {listed.platform}."
        )
    lines, unknown = match(rows, listed) if listed else ({row.student: _by_gradebook(row) for row in rows}, {})
    known = [row for row in rows if row.student in lines]
    target = Path(out) if out is not None else folders.exports / f"{name}-{layout}.csv"
    headings = listed.headings(title) if listed else []
    heading = headings[0] if len(headings) == 1 else title
    table = {"plain": _plain, "canvas": _canvas, "moodle": _moodle}[layout](known, heading, lines, listed)
    write_whole(target, csv_text(table))
    print(f"{target}: {counted(len(known), 'student')}, out of {points(rows[0].maximum)} points.")
    left = [line for line in listed.lines if line not in lines.values()] if listed else []
    absent = [_full_name(line) or next(filter(None, map(line.get, IDENTIFIERS))) for line in left]
    submitted = [student for student in folders.students(name) if student not in {row.student for row in rows}]
    print("".join(f"{remark}\n" for remark in _remarks(name, rows, submitted, absent)), end="")
    if layout != "plain":
        print("".join(f"{remark}\n" for remark in _of_platform(layout, title, rows, lines, listed)), end="")
    rest = target.with_name(f"{target.stem}-not-in-roster.csv")
    rest.unlink(missing_ok=True)  # of an earlier export
    if unknown:
        write_whole(rest, csv_text(_plain([row for row in rows if row.student in unknown], heading, lines, listed)))
        print(f"Not in the roster: {counted(len(unknown), 'student')}, kept in {rest}:")
        print("\n".join(f"  {one_line(student)}: {reason}" for student, reason in unknown.items()))
    return int(bool(unknown))


def read_roster(path: Path) -> Roster:
    """The list of students in a CSV file of Canvas's gradebook, Moodle's grader report or grading worksheet.

    Raises CannotStart if the file cannot be read, or names nobody in a column that identifies.
    """
    content = read_small(path, LARGEST_ROSTER)
    if content is None or (b"\0" in content[:1000] and not content.startswith((b"\xff\xfe", b"\xfe\xff"))):
        raise CannotStart(f"{path} is no CSV file that can be read. Name the list of students that you downloaded.")
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")  # what older versions of Excel write
    first = text.split("\n", 1)[0]
    try:
        head, *body = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
    except (ValueError, csv.Error) as error:
        raise CannotStart(f"{path} is not a CSV file: {error}") from error
    spelled = {name.casefold(): name for name in (*CANVAS, *MOODLE, *IDENTIFIERS, "Full name")}
    columns = [spelled.get(cell.strip().casefold(), cell.strip()) for cell in head]
    lines, possible = [], {}
    for cells in body:
        line = {column: cell.strip() for column, cell in zip(columns, cells, strict=False)}
        if "LastName" in line:  # Canvas, asked for names in two columns
            line["Student"] = ", ".join(filter(None, (line["LastName"], line.get("FirstName"))))
        if line.get("Student") == "Points Possible" and not line.get("ID"):
            possible = line
        elif any(line.get(column) for column in IDENTIFIERS):
            lines.append(line)
    if not lines:
        raise CannotStart(
            f"{path} lists nobody: it has the columns {one_line(', '.join(columns))}, and one of these has to be "
            f"filled: {', '.join(IDENTIFIERS)}. Download it again, with the platform's language set to English."
        )
    return Roster(columns=tuple(columns), lines=tuple(lines), possible=possible)


def match(rows: Sequence["Score"], roster: Roster) -> tuple[dict[str, Line], dict[str, str]]:
    """Each student's line of the roster, and why others have none.

    An identifier decides: login, address or the part of it before @; the number in a file's name, if a word of the
    name stands there, too. A name alone counts if it is the same, and where only one of the two sides has a number. A
    line that two students would get goes to neither.
    """
    found, unknown = {}, {}
    for row in rows:
        fits = [line for line in roster.lines if _identifies(row, line)]
        if not fits:
            same = [line for line in roster.lines if _words(_full_name(line)) in _names(row)]
            fits = [line for line in same if not (_number(row) and line.get("ID", line.get("Identifier")))]
        if len(fits) == 1:
            found[row.student] = fits[0]
        else:
            unknown[row.student] = f"{len(fits)} lines of the roster fit" if fits else "no line of the roster fits"
    claims = Counter(map(id, found.values()))
    for student, line in list(found.items()):
        if claims[id(line)] > 1:
            unknown[student] = "its line of the roster fits another student, too"
            del found[student]
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


def _canvas(
    rows: Sequence["Score"], heading: str, lines: Mapping[str, Line], roster: Roster | None
) -> Iterator[list[str]]:
    """Canvas's gradebook, which begins with these columns in this order, and a row with the points possible."""
    columns = list(CANVAS)
    if roster and "Root Account" in roster.columns:
        columns.insert(-1, "Root Account")
    yield [*columns, heading]
    if rows:
        yield ["    Points Possible", *[""] * (len(columns) - 1), points(rows[0].maximum)]
    for row in rows:
        cells = [lines[row.student].get(column, "") for column in columns]
        if "points possible" in cells[0].casefold():
            cells[0] = ""  # Canvas takes any line with these words for that of the points possible
        yield [*cells, points(row.total)]


def _moodle(
    rows: Sequence["Score"], heading: str, lines: Mapping[str, Line], roster: Roster | None
) -> Iterator[list[str]]:
    """Columns for Moodle's grade import, where one of the identifying ones is mapped to the user.

    Grade and feedback stand together: importing a feedback alone would wipe the grade.
    """
    columns = [column for column in MOODLE if any(line.get(column) for line in lines.values())]
    yield [*columns, heading, f"{heading} feedback"]
    for row in rows:
        said = [f"{cell.removeprefix('check-')}: {_points(row, cell)}" for cell in row.possible]
        said += [f"late: {points(row.penalty)} points off"] if row.penalty > 0 else []
        said += ["judged without a sandbox (trusted students)"] if row.trusted else []
        yield [*(lines[row.student].get(column, "") for column in columns), points(row.total), "; ".join(said)]


def _plain(
    rows: Sequence["Score"], heading: str, lines: Mapping[str, Line], roster: Roster | None
) -> Iterator[list[str]]:
    """Every number, for a spreadsheet."""
    cells = list(rows[0].possible) if rows else []
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


def _points(row: "Score", cell: str) -> str:
    return "not graded yet" if cell in row.unread else f"{points(row.points[cell])} of {points(row.possible[cell])}"


# remarks ----------------------------------------------------------------------------------------------------


def _remarks(name: str, rows: Sequence["Score"], submitted: list[str], absent: list[str]) -> Iterator[str]:
    """What a person has to know before importing the file."""
    yield from _listed(
        "Warning: written answers are not graded yet, and count 0 points so far (grade them with: course assign "
        "formgrader)",
        [row.student for row in rows if row.unread],
    )
    attention = [row.student for row in rows if row.needs_attention]
    yield from _listed("Warning: these need your attention before their marks are final", attention)
    yield from _listed(f"Warning: handed in, but not graded; not in the file (run: course grade {name})", submitted)
    trusted = [row.student for row in rows if row.trusted]
    yield from _listed("Warning: judged without a sandbox (trusted students)", trusted)
    yield from _listed("In the roster, but nothing handed in; not in the file, so their marks stay as they are", absent)


def _of_platform(
    layout: str, title: str, rows: Sequence["Score"], lines: Mapping[str, Line], roster: Roster | None
) -> Iterator[str]:
    odd = [who for who, line in lines.items() if any(harmless(line.get(c, "")) != line.get(c, "") for c in IDENTIFIERS)]
    yield from _listed(
        "Warning: an identifier begins like a formula and got an apostrophe, so the platform will not know it", odd
    )
    if roster is None:
        yield f"Without --roster, {layout.title()} has to know your students by the names in the gradebook."
    elif layout == "canvas" and len(headings := roster.headings(title)) == 1:
        there = roster.possible.get(headings[0], "")
        if re.fullmatch(r"\d+([.,]\d+)?", there) and float(there.replace(",", ".")) != rows[0].maximum:
            yield f"Warning: in Canvas this assignment is out of {one_line(there)} points."
    elif layout == "canvas":
        there = f"{len(headings)} columns" if headings else "no column"
        yield f"The roster has {there} {title!r}: Canvas will ask which assignment it is, or make a new one."


def _listed(words: str, students: list[str]) -> Iterator[str]:
    if students:
        more = f" and {len(students) - NAMED} more" if len(students) > NAMED else ""
        yield f"{words}: {'; '.join(one_line(student, 60) for student in students[:NAMED])}{more}."


# who is who -------------------------------------------------------------------------------------------------


def _by_gradebook(row: "Score") -> dict[str, str]:
    """A line for a student of whom only the gradebook knows."""
    first, last, number = row.first_name or "", row.last_name or "", row.lms_user_id or ""
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


def _identifies(row: "Score", line: Line) -> bool:
    own = {key.casefold() for key in (row.student, row.email, row.lms_user_id) if key}
    there = {line[column].casefold().removeprefix("participant ") for column in IDENTIFIERS if line.get(column)}
    before_at = [{key.split("@")[0] for key in keys if "@" in key} for keys in (own, there)]
    if own & there or own & before_at[1] or before_at[0] & there:
        return True
    known = "".join(word for name in _names(row) for word in name)
    return _number(row) in there and any(len(word) > 1 and word in known for word in _words(_full_name(line)))


def _number(row: "Score") -> str:
    """The platform's number for the student, in the name of a file or in the gradebook."""
    numbered = _NUMBERED.fullmatch(row.student)
    return numbered[2] if numbered else row.lms_user_id or ""


def _names(row: "Score") -> set[tuple[str, ...]]:
    numbered = _NUMBERED.fullmatch(row.student)
    names = numbered[1] if numbered else row.student, f"{row.first_name or ''} {row.last_name or ''}"
    return {_words(name) for name in names} - {()}


def _full_name(line: Line) -> str:
    """The student's name as the platform spells it, in one cell or two."""
    whole = line.get("Student") or line.get("Full name")
    return whole or f"{line.get('First name', '')} {line.get('Last name', '')}".strip()


def _words(name: str) -> tuple[str, ...]:
    """A name's words in the order of the alphabet."""
    return tuple(sorted(re.findall(r"\w+", unicodedata.normalize("NFKC", name).casefold().replace("_", " "))))
