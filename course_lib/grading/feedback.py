"""`course assign feedback NAME`: one HTML page for each student.

A page says per check what was expected, whether it was met, which misconception showed and where to look. It holds no
hidden input, nothing that the student's code printed, and nobody else's work.
"""

import json
import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_lib.data.place import CannotStart
from course_lib.grading.feedback_page import CheckResult, Sheet, TaskResult, WrittenResult, page
from course_lib.grading.folders import Folders, assignments_folder, read_small, write_whole
from course_lib.grading.judge import ATTENTION
from course_lib.grading.verdicts import is_trusted, read_verdict
from course_lib.grading.wording import counted, one_line
from course_lib.tasks import Finding

if TYPE_CHECKING:
    from course_lib.grading.gradebook import Score
    from course_lib.grading.spec import AssignmentFiles, Task

LARGEST_NOTEBOOK = 50_000_000  # bytes
MOST_NAMES = 20  # graded students named where the one asked for is not among them
FOR_RELEASE = ("timestamp.txt", "submission_secret.txt")  # what nbgrader's release_feedback looks for beside a page

_HEADING = re.compile(r"^#+ +(?:\d+ *[·.:] *)?(.+?)(?: *\(\d+(?:\.\d+)? points?\))? *$", re.MULTILINE)


def feedback(name: str, folder: Path | None = None, student: str | None = None) -> int:
    """Writes feedback/STUDENT/NAME/NOTEBOOK.html for everybody who has been graded, or for one student.

    Returns 1 if somebody's page could not be written. Raises CannotStart without nbgrader, if there is no such
    assignment, or if nobody has been graded.
    """
    from course_lib.grading.release import need_nbgrader

    need_nbgrader(f"assign feedback {name}")
    from course_lib.grading.gradebook import scores
    from course_lib.grading.spec import read_assignment

    folders = assignments_folder(folder)
    try:
        files = read_assignment(folders.root, name)
    except ValueError as problem:
        raise CannotStart(str(problem)) from problem
    rows = scores(folders.gradebook, name)
    if not rows:
        raise CannotStart(f"Nobody has been graded in assignment {name} yet. Run first: course grade {name}")
    if student is not None:
        graded = [row.student for row in rows]
        rows = [row for row in rows if row.student == student]
        if not rows:
            raise CannotStart(_not_graded(student, graded, folders, name))
    problems, old, unread = [], 0, 0
    for row in rows:
        try:
            sheet, current = _sheet(row, folders, files)
        except _NoPage as reason:
            problems.append(f"{one_line(row.student)}: {reason}")
            continue
        old += not current
        unread += bool(sheet.unread)
        place = folders.feedback(row.student, name)
        write_whole(place / f"{files.notebook}.html", page(sheet))
        for extra in FOR_RELEASE:
            content = read_small(folders.submitted(row.student, name) / extra, 1000)
            if content is not None:
                write_whole(place / extra, content)
    written = len(rows) - len(problems)
    print(f"{counted(written, 'page')} of feedback in {folders.root / 'feedback'}.")
    if unread:
        print(f"On {unread} of them a written answer is not graded yet. Grade it with: course assign formgrader")
    if old:
        print(
            f"{old} tell of a grading with other checks, or another version of the judge. Grade again with: "
            f"course grade {name}"
        )
    for problem in problems:
        print(f"No page for {problem}")
    return int(bool(problems))


def _not_graded(student: str, graded: list[str], folders: Folders, name: str) -> str:
    """Why there is no page for one student, and for whom there are some."""
    if student in folders.students(name):
        return f"{student!r} has not been graded in assignment {name} yet. Run first: course grade {name}"
    known = ", ".join(one_line(other, 40) for other in graded[:MOST_NAMES])
    more = f" and {len(graded) - MOST_NAMES} more" if len(graded) > MOST_NAMES else ""
    return f"There is no submission of {student!r} for assignment {name}. These have been graded: {known}{more}."


class _NoPage(Exception):
    """Why a student gets no page, and what to do."""


def _sheet(row: "Score", folders: Folders, files: "AssignmentFiles") -> tuple[Sheet, bool]:
    """What a student's page says, and whether it comes from today's checks."""
    from course_lib.grading.spec import check_cell, load

    again = f"course grade {files.name} --student {shlex.quote(one_line(row.student))} --again"
    verdict = read_verdict(folders, row.student, files.name)
    if verdict is None:
        raise _NoPage(f"there is no verdict. Run: {again}")
    graded = read_small(folders.autograded(row.student, files.name) / f"{files.notebook}.ipynb", LARGEST_NOTEBOOK)
    loaded = load(files)
    tasks = {check_cell(task.name): task for task in loaded.assignment.tasks}
    headings, places = _headings(files.source_notebook)
    try:
        answers = _answers(graded, verdict["submission"])
        parts = tuple(
            _task_of(tasks[cell], cell, row, verdict, answers)
            if cell in tasks
            else _written_of(cell, headings.get(cell, cell), row, answers, readable=verdict.get("readable", True))
            for cell in sorted(row.possible, key=lambda cell: places.get(cell, len(places)))
        )
        sheet = Sheet(
            assignment=files.name,
            title=loaded.assignment.title,
            student=" ".join(filter(None, (row.first_name, row.last_name))) or row.student,
            parts=parts,
            penalty=row.penalty,
            submitted=row.submitted,
            seconds_late=row.seconds_late,
            submission=verdict["submission"],
            notes=tuple(verdict.get("student_notes", verdict["notes"])),  # the others are for the instructor
            needs_attention=verdict["status"] == ATTENTION,
            trusted=is_trusted(verdict),
        )
        return sheet, verdict["spec"] == files.hash
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _NoPage(
            f"its grading was interrupted, or a file of it was changed ({type(error).__name__}). Run: {again}"
        ) from error


def _task_of(
    task: "Task", cell: str, row: "Score", verdict: Mapping[str, Any], answers: Mapping[str, str]
) -> TaskResult:
    """What the page says on the task whose points the cell carries."""
    judged = verdict["tasks"][task.name]
    checks = tuple(
        CheckResult(
            name=check["name"],
            points=check["points"],
            possible=check["possible"],
            passed=check["passed"],
            findings=tuple(
                Finding(misconception=found["misconception"], message=found["message"], hint=found.get("hint", ""))
                for found in check["findings"]
            ),
        )
        for check in judged["checks"]
    )
    return TaskResult(
        title=task.title,
        points=row.points[cell],
        possible=row.possible[cell],
        checks=checks,
        by_hand=cell in row.by_hand,
        answered=judged["answered"],
        answer=answers.get(task.name, ""),
        comment=row.remarks.get(task.name, ""),
        readable=verdict.get("readable", True),
    )


def _written_of(cell: str, title: str, row: "Score", answers: Mapping[str, str], *, readable: bool) -> WrittenResult:
    """What the page says on an answer in words; the grader itself gives 0 to a cell that is as it was released."""
    waits = cell in row.unread
    return WrittenResult(
        title=title,
        points=None if waits else row.points[cell],
        possible=row.possible[cell],
        answer=answers.get(cell, "") if waits or cell in row.by_hand else "",
        comment=row.remarks.get(cell, ""),
        readable=readable,
    )


def _answers(notebook: bytes | None, submission: str) -> dict[str, str]:
    """The student's answers by grade_id, in the notebook that the grader put together.

    Raises ValueError if that is missing, or was made from another submission.
    """
    if notebook is None:
        raise ValueError("there is no graded notebook")
    content = json.loads(notebook)
    if content["metadata"].get("course_lib", {}).get("submission", submission) != submission:
        raise ValueError("the graded notebook is of another submission")
    answers = {}
    for cell in content["cells"]:
        facts = cell["metadata"].get("nbgrader", {})
        if facts.get("solution"):
            answers[facts["grade_id"]] = "".join(cell["source"])
    return answers


@cache
def _headings(notebook: bytes) -> tuple[dict[str, str], dict[str, int]]:
    """The heading above each cell that a person grades, without its points; and the place of each cell by grade_id."""
    headings, places, heading = {}, {}, ""
    for place, cell in enumerate(json.loads(notebook)["cells"]):
        facts = cell["metadata"].get("nbgrader", {})
        grade_id = facts.get("grade_id", "")
        places[grade_id] = place
        if facts.get("grade") and facts.get("solution"):
            headings[grade_id] = heading or grade_id.replace("-", " ").replace("_", " ")
        elif cell["cell_type"] == "markdown" and (found := _HEADING.search("".join(cell["source"]))):
            heading = found[1]
    return headings, places
