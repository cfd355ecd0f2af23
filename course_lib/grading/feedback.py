"""`course assign feedback NAME`: one HTML page for each student, which needs nothing but itself.

A page says per check what was expected, whether it was met, which misconception showed and where to look. All text is
escaped by the template, and the page's own policy forbids scripts, so that nothing a student wrote can act in a
reader's browser.
"""

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_lib.classroom.markup import inline_html
from course_lib.data.place import CannotStart
from course_lib.grading.folders import TIMESTAMP, Folders, assignments_folder, need_nbgrader, read_small, write_whole
from course_lib.grading.judge import NOT_JUDGED, NOT_YET
from course_lib.grading.wording import counted, one_line, points, visible

if TYPE_CHECKING:
    from course_lib.grading.gradebook import Score
    from course_lib.grading.spec import AssignmentFiles

LARGEST_NOTEBOOK = 50_000_000  # bytes
LONGEST_ANSWER, LONGEST_LINE = 40_000, 1_000  # characters of an answer that a page shows
FIRST_STEPS = 4  # tasks named under "What to do next"
FOR_RELEASE = (TIMESTAMP, "submission_secret.txt")  # what nbgrader's release_feedback looks for beside a page
_HEADING = re.compile(r"^#+ +(?:\d+ *[·.:] *)?(.+?)(?: *\(\d+(?:\.\d+)? points?\))? *$", re.MULTILINE)


def feedback(name: str, folder: Path | None = None, student: str | None = None) -> int:
    """Writes feedback/STUDENT/NAME/NOTEBOOK.html for everybody who has been graded, or for one student.

    Returns 1 if somebody's page could not be written. Raises CannotStart without nbgrader, if there is no such
    assignment, or if nobody has been graded.
    """
    need_nbgrader(f"assign feedback {name}")
    from course_lib.grading.gradebook import scores
    from course_lib.grading.spec import read_assignment

    folders = assignments_folder(folder)
    try:
        files = read_assignment(folders.root, name)
    except ValueError as problem:
        raise CannotStart(str(problem)) from problem
    rows = [row for row in scores(folders.gradebook, name) if student in (None, row.student)]
    if not rows:
        who = "Nobody has" if student is None else f"{student!r} has not"
        raise CannotStart(f"{who} been graded in assignment {name} yet. Run first: course grade {name}")
    problems = []
    for row in rows:
        again = f"course grade {name} --student {shlex.quote(one_line(row.student))} --again"
        try:
            text = page(row, files, _answers(row, folders, files))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problems.append(f"{one_line(row.student)}: {error or type(error).__name__}. Run: {again}")
            continue
        place = folders.feedback(row.student, name)
        write_whole(place / f"{files.notebook}.html", text)
        for extra in FOR_RELEASE:
            content = read_small(folders.submitted(row.student, name) / extra, 1000)
            if content is not None:
                write_whole(place / extra, content)
    print(f"{counted(len(rows) - len(problems), 'page')} of feedback in {folders.root / 'feedback'}.")
    if unread := sum(bool(_of_written(row)) for row in rows):
        print(f"On {unread} of them a written answer is not graded yet. Grade it with: course assign formgrader")
    if old := sum(row.verdict is not None and row.verdict["spec"] != files.hash for row in rows):
        print(f"{old} tell of a grading with other checks or another judge. Grade again with: course grade {name}")
    for problem in problems:
        print(f"No page for {problem}")
    return int(bool(problems))


@dataclass(frozen=True, kw_only=True)
class Part:
    """One task, or one answer in words, as the page shows it; `points` is None until somebody has read it."""

    title: str
    points: float | None
    possible: float
    checks: tuple[Mapping[str, Any], ...]  # none: an answer in words
    by_hand: bool
    answered: bool
    answer: str
    comment: str
    readable: bool  # False: nothing could be taken from the file

    @property
    def open(self) -> int:
        """How many checks the judge could not carry out, where nobody has given points since."""
        judged = not self.by_hand and self.answered and self.readable
        return sum(not _was_judged(check) for check in self.checks) if judged else 0

    @property
    def state(self) -> str:
        """In a few words, what came of it."""
        if not self.readable:
            return "graded by hand" if self.points else "not judged"
        if self.points is None:
            return "not graded yet"
        if self.by_hand and (self.checks or self.answer.strip()):
            return "graded by hand"
        if not self.answered:
            return "no answer"
        if self.open == len(self.checks):
            return "waits for your instructor"
        passed = sum(check["passed"] for check in self.checks)
        return f"{passed} of {len(self.checks)} passed" + (
            f", {self.open} {'waits' if self.open == 1 else 'wait'} for your instructor" if self.open else ""
        )

    @property
    def first_step(self) -> str:
        """What to do first, in the language of the checks; nothing if there is nothing to do."""
        if not self.readable or self.points in (None, self.possible):
            return ""
        if not self.answered:
            return "it has no answer yet. Even a first version can earn some of the points." if self.checks else ""
        missed = [check for check in self.checks if _was_judged(check) and not check["passed"]]
        findings = [found for check in missed for found in check["findings"] if found["misconception"] != NOT_YET]
        for found in findings:
            return f"**{found['misconception']}**. {found['message']} {found['hint']}"
        return missed[0]["name"] if missed else ""


def page(row: "Score", files: "AssignmentFiles", answers: Mapping[str, str]) -> str:
    """A student's page as HTML. Raises KeyError and others of that kind for a verdict that does not fit the row."""
    from course_lib.grading.spec import load

    verdict, loaded = row.verdict, load(files)
    parts = tuple(_parts(row, files, answers))
    steps = [(number, part) for number, part in enumerate(parts, 1) if part.first_step]
    checks = [check for part in parts for check in part.checks if _was_judged(check) or not part.by_hand]
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _template().render(
        style=style,
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        assignment=files.name,
        heading=f"{files.name} {loaded.assignment.title}",
        student=" ".join(filter(None, (row.first_name, row.last_name))) or row.student,
        submitted="" if row.submitted is None else f"{row.submitted.day} {row.submitted:%B %Y at %H:%M} UTC",
        late=_duration(row.seconds_late),
        total=row.total,
        possible=row.maximum,
        penalty=row.penalty,
        parts=parts,
        checks=len(checks),
        passed=sum(check["passed"] for check in checks),
        open=sum(part.open for part in parts),
        unjudged=any(not _was_judged(check) for part in parts if part.answered for check in part.checks),
        unread=sum(part.possible for part in parts if part.points is None),
        readable=verdict["readable"],
        answered=any(part.answered for part in parts),
        steps=steps[:FIRST_STEPS],
        further=len(steps[FIRST_STEPS:]),
        notes=verdict["student_notes"],  # the others are for the instructor
        needs_attention=row.needs_attention,
        trusted=row.trusted,
        submission=verdict["submission"],
    )


def _parts(row: "Score", files: "AssignmentFiles", answers: Mapping[str, str]) -> list[Part]:
    """What the page says, in the order of the notebook."""
    from course_lib.grading.spec import check_cell, load

    titles = {check_cell(task.name): task for task in load(files).assignment.tasks}
    headings, verdict, parts = _headings(files.source_notebook), row.verdict, []
    for cell in row.possible:
        task = titles.get(cell)
        judged = verdict["tasks"][task.name] if task else {}
        name, waits = task.name if task else cell, not task and cell in row.unread
        read = task or waits or cell in row.by_hand  # the grader itself gives 0 to a cell that is as it was released
        parts.append(
            Part(
                title=task.title if task else headings.get(cell, cell.replace("-", " ").replace("_", " ")),
                points=None if waits else row.points[cell],
                possible=row.possible[cell],
                checks=tuple(judged.get("checks", ())),
                by_hand=cell in row.by_hand or not task,
                answered=judged["answered"] if task else waits or bool(read and answers.get(name, "").strip()),
                answer=answers.get(name, "") if read else "",
                comment=row.remarks.get(name, ""),
                readable=verdict["readable"],
            )
        )
    return parts


def _of_written(row: "Score") -> list[str]:
    return [
        cell for cell in row.unread if row.verdict is None or cell.removeprefix("check-") not in row.verdict["tasks"]
    ]


def _answers(row: "Score", folders: Folders, files: "AssignmentFiles") -> dict[str, str]:
    """The student's answers by grade_id, in the notebook that the grader put together.

    Raises ValueError if that is missing, or was made from another submission.
    """
    if row.verdict is None:
        raise ValueError("there is no verdict")
    place = folders.autograded(row.student, files.name) / f"{files.notebook}.ipynb"
    content = json.loads(read_small(place, LARGEST_NOTEBOOK) or b"{}")
    if content.get("metadata", {}).get("course_lib", {}).get("submission") != row.verdict["submission"]:
        raise ValueError("its graded notebook is missing, or of another submission")
    cells = [(cell["metadata"].get("nbgrader", {}), cell) for cell in content["cells"]]
    return {facts["grade_id"]: "".join(cell["source"]) for facts, cell in cells if facts.get("solution")}


@cache
def _headings(notebook: bytes) -> dict[str, str]:
    """The heading above each cell that a person grades, without its points."""
    headings, heading = {}, ""
    for cell in json.loads(notebook)["cells"]:
        facts = cell["metadata"].get("nbgrader", {})
        if facts.get("grade") and facts.get("solution") and heading:
            headings[facts["grade_id"]] = heading
        elif cell["cell_type"] == "markdown" and (found := _HEADING.search("".join(cell["source"]))):
            heading = found[1]
    return headings


def _was_judged(check: Mapping[str, Any]) -> bool:
    """Whether the judge could carry it out; what it found wrong it always says."""
    return check["passed"] or any(found["misconception"] != NOT_JUDGED for found in check["findings"])


def _duration(seconds: float) -> str:
    """Days and hours, hours and minutes, or minutes; started minutes count. Nothing for no time."""
    minutes = -(-int(seconds) // 60) or int(seconds > 0)
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    units = [(days, "day"), (hours, "hour")] if days else [(hours, "hour"), (rest, "minute")]
    return " and ".join(counted(number, noun) for number, noun in units if number)


# the template -----------------------------------------------------------------------------------------------


@cache
def _template() -> Any:
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"points": points, "line": one_line, "markup": _markup, "code": _code, "shown": _shown}
    environment.tests["judged"] = _was_judged
    environment.globals |= {"counted": counted, "NOT_YET": NOT_YET, "NOT_JUDGED": NOT_JUDGED, "judged": _was_judged}
    return environment.from_string(_own_file("feedback.html.j2"))


@cache
def _style() -> str:
    """The style sheet together with nothing else: the page's policy allows exactly this text."""
    return _own_file("feedback.css")


def _own_file(name: str) -> str:
    return (package_files("course_lib.grading") / name).read_text(encoding="utf-8")


def _markup(text: str) -> Any:
    """A sentence of the checks, whose `code` and **strong** words become HTML."""
    from markupsafe import Markup

    return Markup(inline_html(visible(text)))


def _shown(text: str) -> str:
    """What a page shows of an answer."""
    lines = visible(text[:LONGEST_ANSWER]).strip("\n").split("\n")
    short = "\n".join(line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …" for line in lines)
    return short + ("\n…" if len(text) > LONGEST_ANSWER else "")


def _code(source: str) -> Any:
    """A program with coloured words, escaped by the highlighter."""
    from markupsafe import Markup
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers.python import PythonLexer

    return Markup(highlight(_shown(source), PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)))
