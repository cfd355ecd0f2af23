"""The gradebook: verdicts go in through nbgrader's own tables, in one transaction for each submission.

So formgrader, `nbgrader generate_feedback` and `nbgrader export` see everything. What a person wrote there stays:
points, extra credit and comments by hand, extensions, flags. One table of our own says which submission was recorded
with which checks, in the same transaction.
"""

import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader import utils
from nbgrader.api import (
    Assignment,
    Comment,
    Grade,
    GradeCell,
    MissingEntry,
    Notebook,
    SolutionCell,
    SourceCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    new_uuid,
)
from nbgrader.api import Gradebook as NbGraderGradebook
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy import Column, MetaData, String, Table, Text, delete, insert, literal_column, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import DatabaseError, OperationalError
from traitlets.config import Config

from course_lib.data.place import CannotStart
from course_lib.grading.graded import task_in_words
from course_lib.grading.spec import CHECK_PREFIX

SECONDS_TO_WAIT = 30  # for another program, such as formgrader, that is writing into the gradebook

_own = MetaData()
VERDICTS = Table(
    "course_verdict",
    _own,
    Column("notebook_id", String(32), primary_key=True),  # of nbgrader's submitted_notebook
    Column("submission", String(64), nullable=False),
    Column("spec", String(64), nullable=False),
    Column("sandbox", String(64), nullable=False),
    Column("written", Text, nullable=False),  # JSON: the hash of each written answer
)


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Which verdict on a student's submission stands in the gradebook: SHA-256 of submission and checks, and mode."""

    submission: str
    spec: str
    sandbox: str
    submitted: datetime | None  # UTC


@dataclass(frozen=True, kw_only=True)
class Score:
    """A student's row: points by hand stand in place of the judge's, extra credit is added."""

    student: str
    first_name: str | None
    last_name: str | None
    email: str | None
    lms_user_id: str | None
    submitted: datetime | None  # UTC
    seconds_late: float
    points: dict[str, float]  # by grade_id
    possible: dict[str, float]  # by grade_id, in the order of the notebook
    comments: dict[str, str] = field(default_factory=dict)  # by grade_id; a person's comment stands before the judge's
    remarks: dict[str, str] = field(default_factory=dict)  # by grade_id; those of a person alone
    by_hand: tuple[str, ...] = ()  # grade_ids whose points a person gave or added to
    penalty: float
    needs_manual_grade: bool
    unread: tuple[str, ...]  # grade_ids that wait for a person

    @property
    def total(self) -> float:
        """What counts: the points less the penalty for being late, and never below 0."""
        return max(0.0, sum(self.points.values()) - self.penalty)

    @property
    def maximum(self) -> float:
        return sum(self.possible.values())


@dataclass(frozen=True, kw_only=True)
class _Cell:
    id: str
    name: str
    max_score: float
    written: bool  # an answer in words, which a person grades


class Gradebook:
    """The gradebook of a course directory, opened for one notebook of one assignment; closes at the end of `with`.

    `config` is the course directory's nbgrader configuration: how lateness is punished. Raises CannotStart if the
    assignment has not been released into it, or if the file is no gradebook.
    """

    def __init__(self, database: Path, *, assignment: str, notebook: str, config: Config | None = None):
        not_released = f"Assignment {assignment} is not released yet. Run first: course assign release {assignment}"
        if not database.is_file():
            raise CannotStart(not_released)
        self._assignment = assignment
        try:
            self._nbgrader = NbGraderGradebook(_url(database))
            _own.create_all(self._nbgrader.engine)
            try:
                self._prepare(assignment, notebook)
            except MissingEntry:
                raise CannotStart(not_released) from None
        except DatabaseError as error:
            raise CannotStart(
                f"{database} cannot be read as a gradebook ({error.orig}). Restore it from a copy; after an update of "
                "nbgrader, make a copy and run: nbgrader db upgrade"
            ) from error
        self._late = _late_plugin(config or Config(), database.parent)

    def __enter__(self) -> "Gradebook":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._nbgrader.close()

    @property
    def points(self) -> dict[str, float]:
        """The points of each graded cell as they were released, by grade_id."""
        return {cell.name: cell.max_score for cell in self._graded}

    def recorded(self) -> dict[str, Recorded]:
        """What stands in the gradebook for this assignment, by student."""
        rows = self._db.execute(
            select(
                SubmittedAssignment.student_id,
                VERDICTS.c.submission,
                VERDICTS.c.spec,
                VERDICTS.c.sandbox,
                SubmittedAssignment.timestamp,
            )
            .join(SubmittedNotebook, SubmittedNotebook.id == VERDICTS.c.notebook_id)
            .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
            .where(SubmittedAssignment.assignment_id == self._assignment_id)
        ).all()
        self._db.rollback()
        return {
            student: Recorded(submission=submission, spec=spec, sandbox=sandbox, submitted=moment)
            for student, submission, spec, sandbox, moment in rows
        }

    def record(self, verdict: Mapping[str, Any], written: Mapping[str, str], *, submitted: datetime | None) -> None:
        """Puts a verdict and the student's written answers into the gradebook, all of it or nothing.

        `submitted` is in UTC; None where nobody knows it: then an earlier time stands.
        """
        with self._transaction():
            self._record(verdict, written, submitted)

    def update_penalties(self) -> None:
        """Applies today's due date, extensions and penalty method to everyone, those graded earlier, too."""
        with self._transaction():
            rows = self._db.execute(
                select(SubmittedAssignment, SubmittedNotebook)
                .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
                .where(
                    SubmittedAssignment.assignment_id == self._assignment_id,
                    SubmittedNotebook.notebook_id == self._notebook_id,
                )
            ).all()
            for submission, notebook in rows:
                if notebook.late_submission_penalty is not None or self._seconds_late(submission) > 0:
                    grades = self._of_cells(Grade, notebook.id, self._graded)
                    notebook.late_submission_penalty = self._penalty(submission, grades.values())

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

    def _prepare(self, assignment: str, notebook: str) -> None:
        """Reads once what is the same for all submissions."""
        found = self._nbgrader.find_notebook(notebook, assignment)
        self._notebook_id, self._assignment_id = found.id, found.assignment_id
        self._due = self._db.get(Assignment, found.assignment_id).duedate
        cells = self._db.query(SolutionCell).filter(SolutionCell.notebook_id == found.id)
        self._solutions = [_Cell(id=cell.id, name=cell.name, max_score=0.0, written=False) for cell in cells]
        solutions = {cell.name for cell in self._solutions}
        cells = self._db.query(GradeCell).filter(GradeCell.notebook_id == found.id)
        self._graded = [
            _Cell(id=cell.id, name=cell.name, max_score=float(cell.max_score), written=cell.name in solutions)
            for cell in cells
        ]
        sources = self._db.query(SourceCell.name, SourceCell.source).filter(SourceCell.notebook_id == found.id)
        self._released = {name: source or "" for name, source in sources}
        self._db.rollback()

    def _record(self, verdict: Mapping[str, Any], written: Mapping[str, str], moment: datetime | None) -> None:
        submission, notebook = self._find_or_add(verdict["student"])
        if moment is not None:
            submission.timestamp = moment
        given = {cell.name: self._written_answer(cell.name, written) for cell in self._graded if cell.written}
        now = {name: _fingerprint(text) for name, text in given.items()}
        row = self._db.execute(select(VERDICTS.c.written).where(VERDICTS.c.notebook_id == notebook.id)).first()
        before = json.loads(row.written) if row else {}
        grades = self._of_cells(Grade, notebook.id, self._graded)
        for cell in self._graded:
            if cell.written:
                changed = cell.name not in before or now[cell.name] != before[cell.name]
                _set_written(grades[cell.id], answered=given[cell.name] is not None, changed=changed)
            else:
                _set_judged(grades[cell.id], _judged(verdict, cell))
        comments = self._of_cells(Comment, notebook.id, self._solutions)
        for cell in self._solutions:
            comments[cell.id].auto_comment = _comment(verdict, cell.name, given)
        notebook.late_submission_penalty = self._penalty(submission, grades.values())
        self._db.execute(delete(VERDICTS).where(VERDICTS.c.notebook_id == notebook.id))
        self._db.execute(
            insert(VERDICTS).values(
                notebook_id=notebook.id,
                submission=verdict["submission"],
                spec=verdict["spec"],
                sandbox=verdict["sandbox"],
                written=json.dumps(now),
            )
        )

    def _find_or_add(self, student: str) -> tuple[SubmittedAssignment, SubmittedNotebook]:
        if self._db.get(Student, student) is None:
            self._db.add(Student(id=student))
        submission = (
            self._db.query(SubmittedAssignment)
            .filter(SubmittedAssignment.assignment_id == self._assignment_id, SubmittedAssignment.student_id == student)
            .one_or_none()
        )
        if submission is None:
            submission = SubmittedAssignment(id=new_uuid(), assignment_id=self._assignment_id, student_id=student)
            self._db.add(submission)
        notebook = (
            self._db.query(SubmittedNotebook)
            .filter(
                SubmittedNotebook.notebook_id == self._notebook_id, SubmittedNotebook.assignment_id == submission.id
            )
            .one_or_none()
        )
        if notebook is None:
            notebook = SubmittedNotebook(
                id=new_uuid(), notebook_id=self._notebook_id, assignment_id=submission.id, flagged=False
            )
            self._db.add(notebook)
        return submission, notebook

    def _of_cells(self, kind: type, notebook_id: str, cells: list[_Cell]) -> dict[str, Any]:
        """The grades or comments of a submitted notebook by the cell's id; those that are missing are made.

        nbgrader's index begins with the cell: asking for the notebook alone would read the whole table.
        """
        ids = [cell.id for cell in cells]
        rows = self._db.query(kind).filter(kind.cell_id.in_(ids), kind.notebook_id == notebook_id).all()
        found = {row.cell_id: row for row in rows}
        for missing in [cell_id for cell_id in ids if cell_id not in found]:
            found[missing] = kind(id=new_uuid(), cell_id=missing, notebook_id=notebook_id)
            self._db.add(found[missing])
        return found

    def _written_answer(self, name: str, written: Mapping[str, str]) -> str | None:
        """The student's words, None if the cell is as it was released, empty or missing."""
        text = written.get(name, "").strip()
        return None if text in ("", self._released.get(name, "").strip()) else text

    def _seconds_late(self, submission: SubmittedAssignment) -> float:
        return _seconds_late(submission.timestamp, self._due, submission.extension)

    def _penalty(self, submission: SubmittedAssignment, grades: Any) -> float | None:
        """The points lost by lateness: as nbgrader's plugin says, between 0 and the score."""
        seconds = self._seconds_late(submission)
        if seconds <= 0:
            return None
        score = sum(_counted(grade.auto_score, grade.manual_score, grade.extra_credit) for grade in grades)
        penalty = self._late.late_submission_penalty(submission.student_id, score, seconds)
        return None if penalty is None else min(max(0.0, float(penalty)), score)


def scores(database: Path, assignment: str) -> list[Score]:
    """All rows of an assignment, by the student's name. Raises CannotStart if it has not been released."""
    if not database.is_file():
        raise CannotStart(f"Assignment {assignment} is not released yet. Run first: course assign release {assignment}")
    with NbGraderGradebook(_url(database)) as book:
        try:
            found = book.find_assignment(assignment)
        except MissingEntry:
            raise CannotStart(
                f"Assignment {assignment} is not released yet. Run first: course assign release {assignment}"
            ) from None
        return _scores(book.db, found)


def parse_time(text: str) -> datetime | None:
    """The moment, in UTC, that a timestamp of nbgrader's names; None if it names none."""
    try:
        return utils.parse_utc(text)
    except (ValueError, OverflowError, TypeError, AttributeError):
        return None


def _scores(db: Any, assignment: Assignment) -> list[Score]:
    possible = dict(
        db.query(GradeCell.name, GradeCell.max_score)
        .join(Notebook, Notebook.id == GradeCell.notebook_id)
        .filter(Notebook.assignment_id == assignment.id)
        .order_by(Notebook.name)
        .all()
    )
    order = [
        name
        for (name,) in db.query(SourceCell.name)
        .join(Notebook, Notebook.id == SourceCell.notebook_id)
        .filter(Notebook.assignment_id == assignment.id)
        .order_by(literal_column("source_cell.rowid"))  # the order in which they were released
    ]
    place = {name: index for index, name in enumerate(order)}
    possible = {name: float(possible[name]) for name in sorted(possible, key=lambda name: place.get(name, len(place)))}
    of_assignment = SubmittedAssignment.assignment_id == assignment.id
    to_submission = SubmittedAssignment.id == SubmittedNotebook.assignment_id
    points: dict[str, dict[str, float]] = defaultdict(dict)
    unread: dict[str, list[str]] = defaultdict(list)
    by_hand: dict[str, list[str]] = defaultdict(list)
    rows = (
        db.query(
            SubmittedAssignment.id,
            GradeCell.name,
            Grade.auto_score,
            Grade.manual_score,
            Grade.extra_credit,
            Grade.needs_manual_grade,
        )
        .join(SubmittedNotebook, SubmittedNotebook.id == Grade.notebook_id)
        .join(SubmittedAssignment, to_submission)
        .join(GradeCell, GradeCell.id == Grade.cell_id)
        .filter(of_assignment)
    )
    for submission, cell, auto, manual, extra, waits in rows:
        points[submission][cell] = _counted(auto, manual, extra)
        if waits:
            unread[submission].append(cell)
        if manual is not None or extra:
            by_hand[submission].append(cell)
    comments: dict[str, dict[str, str]] = defaultdict(dict)
    remarks: dict[str, dict[str, str]] = defaultdict(dict)
    rows = (
        db.query(SubmittedAssignment.id, SolutionCell.name, Comment.manual_comment, Comment.auto_comment)
        .join(SubmittedNotebook, SubmittedNotebook.id == Comment.notebook_id)
        .join(SubmittedAssignment, to_submission)
        .join(SolutionCell, SolutionCell.id == Comment.cell_id)
        .filter(of_assignment)
    )
    for submission, cell, by_person, by_judge in rows:
        text = by_person if by_person is not None else by_judge
        if text:
            comments[submission][cell] = text
        if by_person:
            remarks[submission][cell] = by_person
    penalties: dict[str, float] = defaultdict(float)
    rows = (
        db.query(SubmittedAssignment.id, SubmittedNotebook.late_submission_penalty)
        .join(SubmittedAssignment, to_submission)
        .filter(of_assignment)
    )
    for submission, penalty in rows:
        penalties[submission] += penalty or 0.0
    rows = (
        db.query(
            SubmittedAssignment.id,
            SubmittedAssignment.timestamp,
            SubmittedAssignment.extension,
            Student.id,
            Student.first_name,
            Student.last_name,
            Student.email,
            Student.lms_user_id,
        )
        .join(Student, Student.id == SubmittedAssignment.student_id)
        .filter(of_assignment)
        .order_by(Student.id)
    )
    return [
        Score(
            student=student,
            first_name=first,
            last_name=last,
            email=email,
            lms_user_id=lms,
            submitted=moment,
            seconds_late=_seconds_late(moment, assignment.duedate, extension),
            points={name: points[submission].get(name, 0.0) for name in possible},
            possible=possible,
            comments=comments[submission],
            remarks=remarks[submission],
            by_hand=tuple(name for name in possible if name in by_hand[submission]),
            penalty=penalties[submission],
            needs_manual_grade=bool(unread[submission]),
            unread=tuple(name for name in possible if name in unread[submission]),
        )
        for submission, moment, extension, student, first, last, email, lms in rows
    ]


def _url(database: Path) -> URL:
    return URL.create("sqlite", database=str(database), query={"timeout": str(SECONDS_TO_WAIT)})


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


def _seconds_late(moment: datetime | None, due: datetime | None, extension: Any) -> float:
    if moment is None or due is None:
        return 0.0
    return max(0.0, (moment - due - extension if extension is not None else moment - due).total_seconds())


def _counted(auto: float | None, manual: float | None, extra: float | None) -> float:
    """What a grade counts, as in nbgrader: points by hand before the judge's, extra credit on top of either."""
    score = manual if manual is not None else auto
    return 0.0 if score is None else score + (extra or 0.0)


def _judged(verdict: Mapping[str, Any], cell: _Cell) -> float:
    """The judge's points for a check cell, within 0 and what was released; 0 for a cell that no task belongs to."""
    task = verdict["tasks"].get(cell.name.removeprefix(CHECK_PREFIX), {})
    return min(max(float(task.get("points", 0.0)), 0.0), cell.max_score)


def _set_judged(grade: Grade, points: float) -> None:
    overruled = grade.manual_score is not None
    grade.needs_manual_grade = overruled and (grade.needs_manual_grade or grade.auto_score != points)
    grade.auto_score = points


def _set_written(grade: Grade, *, answered: bool, changed: bool) -> None:
    """A person is asked when an answer came or changed; what they gave stands until they say otherwise."""
    grade.auto_score = None if answered else 0.0
    if changed:
        grade.needs_manual_grade = answered or grade.manual_score is not None


def _comment(verdict: Mapping[str, Any], name: str, written: Mapping[str, str | None]) -> str | None:
    if name in written:
        return "No response." if written[name] is None else None
    task = verdict["tasks"].get(name)
    if task is None:
        return None
    attention = [f"Needs attention: {note}" for note in verdict["notes"]] if _needs_attention(verdict) else []
    text = "\n".join([task_in_words(task), *attention])
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _needs_attention(verdict: Mapping[str, Any]) -> bool:
    return verdict["status"] == "needs attention"


def _fingerprint(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()
