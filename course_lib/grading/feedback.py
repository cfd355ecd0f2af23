"""`course assign feedback NAME`: one HTML page for each student, which needs nothing but itself.

A page says per check what was expected, whether it was met, which misconception showed and where to look. All text is
escaped by the template, and the page's own policy forbids scripts, so that nothing a student wrote can act in a
reader's browser.
"""

import base64
import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers.python import PythonLexer

from course_lib.classroom.markup import inline_html
from course_lib.data.place import CannotStart
from course_lib.grading.folders import TIMESTAMP, Folders, assignments_folder, read_small, write_whole
from course_lib.grading.gradebook import Score, scores
from course_lib.grading.intake import take_in
from course_lib.grading.judge import NOT_JUDGED, NOT_YET
from course_lib.grading.leaderboard import leaderboard_names, open_task, score_of
from course_lib.grading.spec import AssignmentFiles, check_cell, load, read_released
from course_lib.grading.wording import counted, one_line, points, visible

LONGEST_ANSWER = 40_000  # characters of an answer that a page shows
FOR_RELEASE = (TIMESTAMP, "submission_secret.txt")  # what nbgrader's release_feedback looks for beside a page


def feedback(name: str, folder: Path | None = None, student: str | None = None) -> int:
    """Writes feedback/STUDENT/NAME/NOTEBOOK.html for everybody who has been graded, or for one student.

    Returns 1 if somebody's page could not be written. Raises CannotStart if there is no such assignment, or
    nobody has been graded.
    """
    folders = assignments_folder(folder)
    files = read_released(folders.root, name)
    everybody = scores(folders.gradebook, name)
    rows = [row for row in everybody if student in (None, row.student)]
    if not rows:
        who = "Nobody has" if student is None else f"{student!r} has not"
        raise CannotStart(f"{who} been graded in assignment {name} yet. Run first: course grade {name}")
    task, problems = open_task(load(files)), []
    names = leaderboard_names(folders, name, everybody) if task else {}
    for row in rows:
        again = f"course grade {name} --student {shlex.quote(one_line(row.student))} --again"
        try:
            known_as = names[row.student] if task and score_of(row, task) is not None else ""
            text = page(row, files, _answers(row, folders, files), known_as=known_as)
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
    if unread := sum(not load(files).manual_cells.keys().isdisjoint(row.unread) for row in rows):
        print(f"On {unread} of them a written answer is not graded yet. Grade it with: course assign marking {name}")
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
    checks: list[tuple[str, Mapping[str, Any]]]  # each with its `_mark`; none for an answer in words
    by_hand: bool
    answered: bool
    answer: str
    comment: str

    @property
    def marks(self) -> list[str]:
        return [mark for mark, _ in self.checks]

    @property
    def state(self) -> str:
        """In a few words, what came of it."""
        if self.points is None:
            return "not graded yet"
        if self.by_hand and (self.checks or self.answer.strip()):
            return "graded by hand"
        if not self.answered:
            return "no answer"
        waits = f", {count} waiting for your instructor" if (count := self.marks.count("waits")) else ""
        return f"{self.marks.count('passed')} of {len(self.marks)} passed{waits}"

    @property
    def first_step(self) -> str:
        """What to do first, in the language of the checks; nothing if there is nothing to do."""
        if self.points in (None, self.possible):
            return ""
        if not self.answered:
            return "it has no answer yet. Even a first version can earn some of the points." if self.checks else ""
        found = next((check["findings"][0] for mark, check in self.checks if mark == "missed"), None)
        return f"**{found['misconception']}**. {found['message']} {found['hint']}" if found else ""


def page(row: Score, files: AssignmentFiles, answers: Mapping[str, str], *, known_as: str = "") -> str:
    """A student's page as HTML; `known_as` is the name on the leaderboard, if there is one.

    Raises KeyError and others of that kind for a verdict that does not fit the row.
    """
    style, minutes = _own_file("feedback.css"), -(-int(row.seconds_late) // 60)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()  # the policy allows exactly this text
    parts = _parts(row, files, answers)
    return _template().render(
        style=style,
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        assignment=files.name,
        heading=f"{files.name} {load(files).assignment.title}",
        student=" ".join(filter(None, (row.first_name, row.last_name))) or row.student,
        late=f"{minutes // 60} h {minutes % 60} min" if minutes > 0 else "",
        row=row,
        verdict=row.verdict,
        known_as=known_as,
        parts=parts,
        marks=[mark for part in parts for mark in part.marks],
    )


def _parts(row: Score, files: AssignmentFiles, answers: Mapping[str, str]) -> list[Part]:
    """What the page says, in the order of the notebook."""
    tasks, parts = {check_cell(task.name): task for task in load(files).assignment.tasks}, []
    for cell, possible in row.possible.items():
        task, by_hand = tasks.get(cell), cell in row.by_hand
        name, waits = task.name if task else cell, not task and cell in row.unread
        # the grader itself gives 0 to an answer in words that is as it was released
        answer = answers.get(name, "") if task or waits or by_hand else ""
        judged = row.verdict["tasks"][name] if task else {"answered": waits or bool(answer.strip()), "checks": ()}
        parts.append(
            Part(
                title=task.title if task else cell.replace("-", " ").replace("_", " ").capitalize(),
                points=None if waits else row.points[cell],
                possible=possible,
                checks=[(_mark(check, judged["answered"], by_hand), check) for check in judged["checks"]],
                by_hand=by_hand or not task,
                answered=judged["answered"],
                answer=answer,
                comment=row.remarks.get(name, ""),
            )
        )
    return parts


def _mark(check: Mapping[str, Any], answered: bool, by_hand: bool) -> str:
    """What came of a check: "passed", "missed", "open"; where the judge could not carry it out "waits" or "by hand"."""
    kinds = {found["misconception"] for found in check["findings"]}
    if check["passed"]:
        return "passed"
    if answered and kinds <= {NOT_JUDGED}:
        return "by hand" if by_hand else "waits"
    return "missed" if answered and NOT_YET not in kinds else "open"


def _answers(row: Score, folders: Folders, files: AssignmentFiles) -> dict[str, str]:
    """The student's answers by grade_id. Raises ValueError if the gradebook tells of another submission."""
    submission = take_in(folders.submitted(row.student, files.name) / f"{files.notebook}.ipynb", files)
    if row.verdict is None or submission.sha256 != row.verdict["submission"]:
        raise ValueError("the submission has not been graded as it is now")
    return {**submission.answers, **submission.written}


# the template -----------------------------------------------------------------------------------------------


@cache
def _template() -> Any:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"points": points, "line": one_line, "markup": _markup, "code": _code, "shown": _shown}
    environment.globals |= {"counted": counted, "unsaid": (NOT_YET, NOT_JUDGED)}
    return environment.from_string(_own_file("feedback.html.j2"))


def _own_file(name: str) -> str:
    return (package_files("course_lib.grading") / name).read_text(encoding="utf-8")


def _markup(text: str) -> Markup:
    """A sentence of the checks, whose `code` and **strong** words become HTML."""
    return Markup(inline_html(visible(text)))


def _shown(text: str) -> str:
    """What a page shows of an answer."""
    return visible(text[:LONGEST_ANSWER]).strip("\n") + ("\n…" if len(text) > LONGEST_ANSWER else "")


def _code(source: str) -> Markup:
    """A program with coloured words, escaped by the highlighter."""
    return Markup(highlight(_shown(source), PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)))
