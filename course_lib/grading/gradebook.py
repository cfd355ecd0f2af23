"""The gradebook: verdicts go in through nbgrader's own tables, in one transaction for each submission.

So formgrader, `nbgrader generate_feedback` and `nbgrader export` see everything. What a person wrote there stays:
points, extra credit and comments by hand, extensions, flags. One table of our own keeps the verdicts themselves.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader import api, utils
from nbgrader.api import Grade, SourceCell, SubmittedAssignment, SubmittedNotebook
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy import JSON, Column, MetaData, String, Table, delete, insert, literal_column, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import DatabaseError, OperationalError
from traitlets.config import Config

from course_lib.data.place import CannotStart
from course_lib.grading.folders import TIMESTAMP, Folders, read_small
from course_lib.grading.judge import ATTENTION, SANDBOXED, Verdict
from course_lib.grading.spec import CHECK_PREFIX
from course_lib.grading.wording import points

NOT_RELEASED = "Assignment {0} is not released yet. Run first: course assign release {0}"

_own = MetaData()
VERDICTS = Table(
    "course_verdicts",
    _own,
    Column("notebook_id", String(32), primary_key=True),  # of nbgrader's submitted_notebook
    Column("written", JSON, nullable=False),  # the hash of each written answer
    Column("verdict", JSON, nullable=False),
)


@dataclass(frozen=True, kw_only=True)
class Score:
    """A student's row: points by hand stand in place of the judge's, extra credit is added."""

    student: str
    first_name: str | None
    last_name: str | None
    email: str | None
    lms_user_id: str | None
    submitted: datetime | None  # UTC
    due: datetime | None = None  # UTC, with the extension of this student
    seconds_late: float
    points: dict[str, float]  # by grade_id
    possible: dict[str, float]  # by grade_id, in the order of the notebook
    remarks: dict[str, str] = field(default_factory=dict)  # a person's comments, by grade_id
    by_hand: tuple[str, ...] = ()  # grade_ids whose points a person gave or added to
    penalty: float
    unread: tuple[str, ...]  # grade_ids that wait for a person
    verdict: Verdict | None = None

    @property
    def total(self) -> float:
        """What counts: the points less the penalty for being late, and never below 0."""
        return max(0.0, sum(self.points.values()) - self.penalty)

    @property
    def maximum(self) -> float:
        return sum(self.possible.values())

    @property
    def needs_attention(self) -> bool:
        return self.verdict is not None and self.verdict["status"] == ATTENTION

    @property
    def trusted(self) -> bool:
        """Whether it was judged without a sandbox."""
        return self.verdict is not None and self.verdict["sandbox"] != SANDBOXED


class Gradebook(AbstractContextManager):
    """The gradebook of a course directory, opened for one notebook of one assignment; closes at the end of `with`.

    `config` is the course directory's nbgrader configuration: how lateness is punished. Raises CannotStart if the
    assignment has not been released into it, or if the file is no gradebook.
    """

    def __init__(self, database: Path, *, assignment: str, notebook: str = "", config: Config | None = None):
        if not database.is_file():
            raise CannotStart(NOT_RELEASED.format(assignment))
        url = URL.create("sqlite", database=str(database), query={"timeout": "30"})  # seconds for formgrader's writing
        try:
            self._nbgrader = api.Gradebook(url)
            _own.create_all(self._nbgrader.engine)
            try:
                self._assignment = self._nbgrader.find_assignment(assignment)
                self._notebook = notebook and self._nbgrader.find_notebook(notebook, assignment)
            except api.MissingEntry:
                raise CannotStart(NOT_RELEASED.format(assignment)) from None
            cells = [(part.grade_cells, part.solution_cells) for part in self._assignment.notebooks]
            self._graded: list[api.GradeCell] = [cell for graded, _ in cells for cell in graded]
            self._solutions: list[api.SolutionCell] = [cell for _, solutions in cells for cell in solutions]
            ids = [part.id for part in self._assignment.notebooks]
            order = select(SourceCell.name, SourceCell.source).order_by(literal_column("source_cell.rowid"))
            self._released = dict(self._db.execute(order.where(SourceCell.notebook_id.in_(ids))).all())
        except DatabaseError as error:
            raise CannotStart(
                f"{database} cannot be read as a gradebook ({error.orig}). Restore it from a copy; after an update of "
                "nbgrader, make a copy and run: nbgrader db upgrade"
            ) from error
        self._late = _late_plugin(config or Config(), database.parent)

    def __exit__(self, *_: object) -> None:
        self._nbgrader.close()

    @property
    def points(self) -> dict[str, float]:
        """The points of each graded cell as they were released, by grade_id, in the order of the notebook."""
        there = {cell.name: float(cell.max_score) for cell in self._graded}
        return {name: there[name] for name in [*filter(there.__contains__, self._released), *there]}

    def recorded(self) -> dict[str, tuple[Verdict, datetime | None]]:
        """The verdict on each student's submission and its time, in UTC, as they stand in the gradebook."""
        rows = self._db.execute(
            select(SubmittedAssignment.student_id, VERDICTS.c.verdict, SubmittedAssignment.timestamp)
            .join(SubmittedNotebook, SubmittedNotebook.id == VERDICTS.c.notebook_id)
            .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
            .where(SubmittedAssignment.assignment_id == self._assignment.id)
        )
        return {student: (verdict, moment) for student, verdict, moment in rows}

    def record(self, verdict: Verdict, written: Mapping[str, str], *, submitted: datetime | None) -> None:
        """Puts a verdict and the student's written answers into the gradebook, all of it or nothing.

        `submitted` is in UTC; None where nobody knows it: then an earlier time stands.
        """
        with self._transaction():
            student = verdict["student"]
            if self._db.get(api.Student, student) is None:
                self._db.add(api.Student(id=student))
            submission = self._one(SubmittedAssignment, assignment_id=self._assignment.id, student_id=student)
            facts = {"notebook_id": self._notebook.id, "assignment_id": submission.id}
            notebook = self._one(SubmittedNotebook, **facts, flagged=False)
            if submitted is not None:
                submission.timestamp = submitted
            solutions = {cell.name for cell in self._solutions}
            by_hand = [cell.name for cell in self._graded if cell.name in solutions]
            texts = {name: written.get(name, "").strip() for name in by_hand}
            given = {
                name: text if text not in ("", self._released[name].strip()) else None for name, text in texts.items()
            }
            now = {name: text and answer_hash(text) for name, text in given.items()}
            before = self._db.scalar(select(VERDICTS.c.written).where(VERDICTS.c.notebook_id == notebook.id)) or {}
            grades = self._of_cells(Grade, notebook.id, self._graded)
            for cell in self._graded:
                if cell.name in given:
                    changed = cell.name not in before or now[cell.name] != before[cell.name]
                    _set_written(grades[cell.id], answered=given[cell.name] is not None, changed=changed)
                else:
                    task = verdict["tasks"].get(cell.name.removeprefix(CHECK_PREFIX))
                    _set_judged(grades[cell.id], task, most=float(cell.max_score))
            comments = self._of_cells(api.Comment, notebook.id, self._solutions)  # of tasks: they stand in the notebook
            for cell in self._solutions:
                comments[cell.id].auto_comment = "No response." if given.get(cell.name, "") is None else None
            notebook.late_submission_penalty = self._penalty(submission, grades.values())
            self._db.execute(delete(VERDICTS).where(VERDICTS.c.notebook_id == notebook.id))
            self._db.execute(insert(VERDICTS).values(notebook_id=notebook.id, written=now, verdict=verdict))

    def mark(self, marks: Mapping[tuple[str, str], tuple[str, float, str]]) -> list[tuple[str, str]]:
        """Stores points and comments by hand, as formgrader does, all of them or nothing.

        `marks` has, by student and grade_id, the `answer_hash` of the answer that was marked, its points and the
        comment. Returns those whose answer is another one by now: they are left as they are.
        """
        changed = []
        with self._transaction():
            cells = {cell.name: cell for cell in self._graded}
            parts = {cell.name: cell for cell in self._solutions}
            for (student, name), (answer, number, comment) in marks.items():
                submission = self._nbgrader.find_submission(self._assignment.name, student)
                (notebook,) = [part for part in submission.notebooks if part.notebook_id == self._notebook.id]
                written = self._db.scalar(select(VERDICTS.c.written).where(VERDICTS.c.notebook_id == notebook.id)) or {}
                if written.get(name) != answer:
                    changed.append((student, name))
                    continue
                grade = self._of_cells(Grade, notebook.id, [cells[name]])[cells[name].id]
                grade.manual_score, grade.needs_manual_grade = number, False
                remark = self._of_cells(api.Comment, notebook.id, [parts[name]])[parts[name].id]
                remark.manual_comment = comment.strip() or None
        return changed

    def update_penalties(self) -> None:
        """Applies today's due date, extensions and penalty method to everyone, those graded earlier, too."""
        with self._transaction():
            for notebook in self._notebook.submissions:
                notebook.late_submission_penalty = self._penalty(notebook.assignment, notebook.grades)

    def scores(self) -> list[Score]:
        """All rows of the assignment, by the student's name."""
        verdicts, possible = self.recorded(), self.points
        rows = [self._score(submission, verdicts, possible) for submission in self._assignment.submissions]
        return sorted(rows, key=lambda row: row.student)

    @property
    def _db(self):
        return self._nbgrader.db

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it or nothing. Raises CannotStart where the file cannot be written."""
        try:
            yield
            self._db.commit()
        except BaseException as error:
            self._db.rollback()
            if isinstance(error, OperationalError):
                raise CannotStart(
                    f"The gradebook cannot be written ({error.orig}). Is another program busy with it, such as "
                    "formgrader, or the disk full? What was graded so far is kept; start again."
                ) from error
            raise

    def _one(self, kind: type, **facts: Any) -> Any:
        """The row with these facts, added if there is none yet."""
        found = self._db.query(kind).filter_by(**{k: v for k, v in facts.items() if k.endswith("_id")}).one_or_none()
        if found is None:
            found = kind(id=api.new_uuid(), **facts)
            self._db.add(found)
        return found

    def _of_cells(self, kind: Any, notebook_id: str, cells: Iterable[Any]) -> dict[str, Any]:
        """The grades or comments of a submitted notebook by the cell's id; those that are missing are made.

        nbgrader's index begins with the cell: asking for the notebook alone would read the whole table.
        """
        ids = [cell.id for cell in cells]
        rows = self._db.query(kind).filter(kind.cell_id.in_(ids), kind.notebook_id == notebook_id).all()
        found = {row.cell_id: row for row in rows}
        for missing in [cell_id for cell_id in ids if cell_id not in found]:
            found[missing] = kind(id=api.new_uuid(), cell_id=missing, notebook_id=notebook_id)
            self._db.add(found[missing])
        return found

    def _seconds_late(self, submission: SubmittedAssignment) -> float:
        return float(submission.total_seconds_late) if self._assignment.duedate else 0.0

    def _penalty(self, submission: SubmittedAssignment, grades: Iterable[Grade]) -> float | None:
        """The points lost by lateness: as nbgrader's plugin says, between 0 and the score."""
        seconds = self._seconds_late(submission)
        if seconds <= 0:
            return None
        score = sum(map(_counted, grades))
        penalty = self._late.late_submission_penalty(submission.student_id, score, seconds)
        return None if penalty is None else min(max(0.0, float(penalty)), score)

    def _score(self, submission: Any, verdicts: Mapping[str, Any], possible: dict[str, float]) -> Score:
        notebooks, student = submission.notebooks, submission.student
        grades = {grade.name: grade for notebook in notebooks for grade in notebook.grades}
        remarks = {part.name: part.manual_comment for notebook in notebooks for part in notebook.comments}
        return Score(
            student=student.id,
            **{name: getattr(student, name) for name in ("first_name", "last_name", "email", "lms_user_id")},
            submitted=submission.timestamp,
            due=submission.duedate if self._assignment.duedate else None,
            seconds_late=self._seconds_late(submission),
            points={name: _counted(grades[name]) if name in grades else 0.0 for name in possible},
            possible=possible,
            remarks={name: text for name, text in remarks.items() if text},
            by_hand=tuple(
                n for n in possible if n in grades and (grades[n].manual_score is not None or grades[n].extra_credit)
            ),
            penalty=sum(notebook.late_submission_penalty or 0.0 for notebook in notebooks),
            unread=tuple(name for name in possible if name in grades and grades[name].needs_manual_grade),
            verdict=verdicts.get(student.id, (None,))[0],
        )


def scores(database: Path, assignment: str) -> list[Score]:
    """All rows of an assignment, by the student's name. Raises CannotStart if it has not been released."""
    with Gradebook(database, assignment=assignment) as book:
        return book.scores()


def answer_hash(text: str) -> str:
    """What tells whether a written answer is still the one that was marked: SHA-256 of its text."""
    return hashlib.sha256(text.strip().encode(errors="replace")).hexdigest()


def submitted_at(folders: Folders, student: str, assignment: str) -> datetime | None:
    """When a submission was handed in, in UTC; None if its timestamp.txt is missing or names no time."""
    content = read_small(folders.submitted(student, assignment) / TIMESTAMP, 200)  # more is no time
    return None if content is None else parse_time(content.decode("utf-8", errors="replace").strip())


def parse_time(text: str) -> datetime | None:
    """The moment, in UTC, that a timestamp of nbgrader's names; None if it names none."""
    try:
        return utils.parse_utc(text)
    except (ValueError, OverflowError, TypeError, AttributeError):
        return None


# the graded notebook ----------------------------------------------------------------------------------------


def graded_notebook(release: bytes, answers: Mapping[str, str], verdict: Verdict) -> bytes:
    """The notebook for formgrader and feedback: `release` with the answers and what the verdict says on each task.

    Nothing else of the submission gets in. nbgrader finds the points of a check cell in its last output, as it does
    after running a notebook. Raises ValueError if the release is not a notebook.
    """
    notebook = json.loads(release)
    for cell in notebook["cells"]:
        facts = cell.get("metadata", {}).get("nbgrader", {})
        grade_id = facts.get("grade_id", "")
        if facts.get("solution"):
            cell["source"] = answers.get(grade_id, cell["source"])
        if cell["cell_type"] == "code":
            checks = facts.get("grade") and not facts.get("solution")
            cell["outputs"], cell["execution_count"] = _outputs(verdict, grade_id) if checks else [], None
    return (json.dumps(notebook, ensure_ascii=False, indent=1) + "\n").encode("utf-8", errors="replace")


def task_in_words(task: Mapping[str, Any]) -> str:
    """What the judge found on a task, for the student: each check, and what to do about those that failed."""
    total = f"{points(task['points'])} of {points(task['possible'])} points"
    if not task["answered"]:
        return f"No answer. {total}."
    lines = [f"{total}."]
    for check in task["checks"]:
        lines.append(f"[{'passed' if check['passed'] else 'failed'}] {check['name']} ({points(check['possible'])})")
        found = [" ".join(filter(None, (finding["message"], finding["hint"]))) for finding in check["findings"]]
        lines += [f"    {text}" for text in dict.fromkeys(found)]
    return "\n".join(lines)


def _outputs(verdict: Verdict, grade_id: str) -> list[dict[str, Any]]:
    task = verdict["tasks"].get(grade_id.removeprefix(CHECK_PREFIX))
    number = float(task["points"]) if task else 0.0
    said = [task_in_words(task)] if task else ["The judge knows no such task: 0 points."]
    said += [f"Needs attention: {note}" for note in verdict["notes"] if verdict["status"] == ATTENTION]
    if verdict["sandbox"] != SANDBOXED:
        said.append(f"Judged without a sandbox ({verdict['sandbox']}).")
    result = {"data": {"text/plain": repr(number)}, "execution_count": None, "metadata": {}}
    return [
        {"output_type": "stream", "name": "stdout", "text": "\n".join(said) + "\n"},
        {"output_type": "execute_result", **result},
    ]


def _late_plugin(config: Config, folder: Path) -> Any:
    """nbgrader's plugin for lateness, as configured; a plugin of the instructor's own may lie in the course directory.

    Raises CannotStart if it cannot be made.
    """
    sys.path.insert(0, str(folder))
    try:
        preprocessor = AssignLatePenalties(config=config)
        preprocessor.init_plugin()
    except Exception as error:
        raise CannotStart(
            f"The plugin for late submissions of {folder / 'nbgrader_config.py'} cannot be used: {error}"
        ) from error
    finally:
        sys.path.remove(str(folder))
    return preprocessor.plugin_inst


def _counted(grade: Grade) -> float:
    """What a grade counts, as in nbgrader: points by hand before the judge's, extra credit on top of either."""
    score = grade.manual_score if grade.manual_score is not None else grade.auto_score
    return 0.0 if score is None else score + (grade.extra_credit or 0.0)


def _set_judged(grade: Grade, task: Verdict | None, *, most: float) -> None:
    """The judge's points for a check cell, within 0 and what was released; 0 for a cell that no task belongs to."""
    number = min(max(float(task["points"]), 0.0), most) if task else 0.0
    overruled = grade.manual_score is not None
    grade.needs_manual_grade = overruled and (grade.needs_manual_grade or grade.auto_score != number)
    grade.auto_score = number


def _set_written(grade: Grade, *, answered: bool, changed: bool) -> None:
    """A person is asked when an answer came or changed; what they gave stands until they say otherwise."""
    grade.auto_score = None if answered else 0.0
    if changed:
        grade.needs_manual_grade = answered or grade.manual_score is not None
