"""A platform's list of students, and who of the gradebook is who there."""

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.data.place import CannotStart
from course_lib.grading.folders import read_small
from course_lib.grading.wording import one_line

if TYPE_CHECKING:
    from course_lib.grading.gradebook import Score

LARGEST_ROSTER = 50_000_000  # bytes

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("First name", "Last name", "ID number", "Username", "Email address")
IDENTIFIERS = ("ID", "SIS User ID", "SIS Login ID", "ID number", "Username", "Email address", "Email")

_NUMBERED = re.compile(r"(.*)_(\d+)")  # how `course assign collect` names students of a platform


@dataclass(frozen=True, kw_only=True)
class Roster:
    """A platform's list of students: the columns it has, and a line for each student."""

    columns: tuple[str, ...]
    lines: tuple[Mapping[str, str], ...]
    possible: Mapping[str, str] = field(default_factory=dict)  # Canvas's row of points possible, by column

    @property
    def platform(self) -> str | None:
        """Whose list this looks like: "canvas", "moodle", or None where the columns do not tell."""
        of_canvas = any(column in self.columns for column in CANVAS)
        of_moodle = any(column in self.columns for column in (*MOODLE, "Full name", "Identifier"))
        return None if of_canvas == of_moodle else "canvas" if of_canvas else "moodle"


@dataclass(frozen=True, kw_only=True)
class Matches:
    """Who is who: the roster's line of each student, why others have none, and the lines that nobody claims."""

    lines: dict[str, Mapping[str, str]]
    unknown: dict[str, str]
    absent: list[Mapping[str, str]]


def read_roster(path: Path) -> Roster:
    """The list of students in a CSV file of Canvas's gradebook, Moodle's grader report or grading worksheet.

    Raises CannotStart if the file cannot be read, or names nobody in a column that identifies.
    """
    content = read_small(path, LARGEST_ROSTER)
    if content is None:
        raise CannotStart(f"{path} is not a file that can be read. Name the CSV file that you downloaded.")
    if b"\0" in content[:1000] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CannotStart(f"{path} is no CSV file. Name the list of students, as you downloaded it from the platform.")
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")  # what older versions of Excel write
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    try:
        head, *body = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    except (ValueError, csv.Error) as error:
        raise CannotStart(f"{path} is not a CSV file: {error}") from error
    spelled = {name.casefold(): name for name in (*CANVAS, *MOODLE, *IDENTIFIERS, "Full name", "Identifier")}
    columns = [spelled.get(cell.strip().casefold(), cell.strip()) for cell in head]
    lines, possible = [], {}
    for cells in body:
        line = {column: cell.strip() for column, cell in zip(columns, cells, strict=False)}
        if "LastName" in line:  # Canvas, asked for names in two columns
            line["Student"] = ", ".join(filter(None, (line["LastName"], line.get("FirstName"))))
        if line.get("Student") == "Points Possible" and not line.get("ID"):
            possible = line
        elif any(line.get(column) for column in (*IDENTIFIERS, "Identifier")):
            lines.append(line)
    if not lines:
        wanted = ", ".join(IDENTIFIERS[:-1])
        raise CannotStart(
            f"{path} lists nobody: it has the columns {one_line(', '.join(columns))}, and one of these has to be "
            f"filled: {wanted}. Download it again, with the platform's language set to English."
        )
    return Roster(columns=tuple(columns), lines=tuple(lines), possible=possible)


def match(rows: Sequence["Score"], roster: Roster) -> Matches:
    """Finds each student's line: by an identifier, by the part of an address before @, by number and name.

    Where both sides have a number, the name alone decides nothing: the line may be a namesake's. A line that more than
    one student would get goes to none of them.
    """
    found: dict[str, int] = {}
    unknown: dict[str, str] = {}
    for row in rows:
        for candidates in _candidates(row, roster):
            if len(candidates) == 1:
                found[row.student] = candidates.pop()
            elif candidates:
                unknown[row.student] = f"{len(candidates)} lines of the roster fit"
            if candidates or row.student in found:
                break
        else:
            unknown[row.student] = _why_nobody(row, roster)
    claims = Counter(found.values())
    for student, line in list(found.items()):
        if claims[line] > 1:
            rivals = [one_line(other) for other, its in found.items() if its == line and other != student]
            unknown[student] = f"the same line of the roster fits {', '.join(rivals)}"
    lines = {student: roster.lines[line] for student, line in found.items() if student not in unknown}
    absent = [line for index, line in enumerate(roster.lines) if not claims[index]]
    return Matches(lines=lines, unknown=unknown, absent=absent)


def _candidates(row: "Score", roster: Roster) -> Iterable[set[int]]:
    """The lines that may be this student's, by one way of looking after another."""
    own = {key.casefold() for key in (row.student, row.email, row.lms_user_id) if key}
    keys = [{line[column].casefold() for column in IDENTIFIERS if line.get(column)} for line in roster.lines]
    yield {index for index, there in enumerate(keys) if own & there}
    yield {index for index, there in enumerate(keys) if own & _before_at(there) or _before_at(own) & there}
    by_name, by_number = _by_name(row, roster), _by_number(row, roster)
    yield by_name & by_number
    if by_name and by_number:
        yield by_name | by_number  # they contradict each other: no line fits for certain
    yield {index for index in by_number if _share_a_word(row, roster.lines[index])}
    yield {index for index in by_name if not (_numbers(row) and _number(roster.lines[index]))}


def _by_name(row: "Score", roster: Roster) -> set[int]:
    own = set().union(*map(_spellings, _names(row)))
    return {index for index, line in enumerate(roster.lines) if own & _spellings(full_name(line))}


def _by_number(row: "Score", roster: Roster) -> set[int]:
    own = _numbers(row)
    return {index for index, line in enumerate(roster.lines) if _number(line) in own}


def _why_nobody(row: "Score", roster: Roster) -> str:
    """Why no line fits: with what would fit but for a contradiction."""
    nobody = "no line of the roster fits"
    for index in sorted(_by_number(row, roster)):
        line = roster.lines[index]
        return f"{nobody}: the number {_number(line)} is that of {one_line(full_name(line), 60)}, another name"
    for index in sorted(_by_name(row, roster)):
        line = roster.lines[index]
        return f"{nobody}: {one_line(full_name(line), 60)} has another number there, {one_line(_number(line), 60)}"
    return nobody


def _names(row: "Score") -> tuple[str, str]:
    """What the student may be called: as in the name of a file, and as in the gradebook."""
    numbered = _NUMBERED.fullmatch(row.student)
    return numbered[1] if numbered else row.student, f"{row.first_name or ''} {row.last_name or ''}"


def _numbers(row: "Score") -> set[str]:
    """The platform's numbers for the student: in the name of a file, and in the gradebook."""
    numbered = _NUMBERED.fullmatch(row.student)
    return set(filter(None, (numbered and numbered[2], row.lms_user_id)))


def _number(line: Mapping[str, str]) -> str:
    """The number that the platform puts into names of files: Canvas's ID of a user, Moodle's of a participant."""
    return line.get("ID") or line.get("Identifier", "").removeprefix("Participant ")


def _share_a_word(row: "Score", line: Mapping[str, str]) -> bool:
    """Whether a part of the platform's name occurs in the student's: enough where the number is the same."""
    own = ["".join(_words(name)) for name in _names(row)]
    return any(len(word) > 1 and word in name for word in _words(full_name(line)) for name in own)


def _before_at(keys: set[str]) -> set[str]:
    return {key.split("@")[0] for key in keys if "@" in key}


def full_name(line: Mapping[str, str]) -> str:
    """The student's name as the platform spells it, in one cell or two."""
    whole = line.get("Student") or line.get("Full name")
    return whole or f"{line.get('First name', '')} {line.get('Last name', '')}".strip()


def _spellings(name: str) -> set[tuple[str, ...]]:
    """What a name may look like in the name of a file: its words in any order, or run together."""
    words = _words(name)
    return {tuple(sorted(words)), ("".join(words),)} if words else set()


def _words(name: str) -> list[str]:
    return re.findall(r"\w+", unicodedata.normalize("NFKC", name).casefold().replace("_", " "))
