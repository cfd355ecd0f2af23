"""`course grade NAME`: judges all submissions of an assignment and puts what was found into the gradebook.

Judging is spread over processes; writing is done here alone, one submission after the other: the
graded notebook, then the gradebook in one transaction, verdict and all. A submission counts as done once the gradebook
has it, so that a run that ends anywhere, however it ends, is taken up by the next.
"""

import contextlib
import gc
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from course_lib.data.place import CannotStart
from course_lib.grading import bubblewrap
from course_lib.grading.folders import (
    TIMESTAMP,
    Folders,
    assignments_folder,
    grading_lock,
    instructor_key,
    read_config,
    storable,
    write_whole,
)
from course_lib.grading.gradebook import Gradebook, Score, graded_notebook, submitted_at
from course_lib.grading.intake import Submission, take_in
from course_lib.grading.judge import SANDBOXED, TRUSTED, Verdict
from course_lib.grading.pools import executor, judge_all, judge_one, refusal
from course_lib.grading.sandbox import SandboxError
from course_lib.grading.spec import AssignmentFiles, check_cell, load, read_released
from course_lib.grading.summary import print_summary
from course_lib.grading.wording import counted, one_line
from course_lib.training import progress

INTERRUPTED = 130  # exit code after Ctrl-C


def grade(
    name: str,
    *,
    folder: str | os.PathLike | None = None,
    student: str | None = None,
    trusted: bool = False,
    workers: int | None = None,
    again: bool = False,
) -> int:
    """Grades all submissions of an assignment that are not graded yet, or one student's; returns the exit code.

    `workers` is how many processes there are (None: as many as cores); `trusted` judges without a sandbox; `again`
    judges those, too, that are graded. Raises CannotStart, saying what to do, for an unknown or unreleased assignment,
    no submissions, a missing sandbox, and another grader at work.
    """
    folders = assignments_folder(folder)
    files = read_released(folders.root, name)
    if not trusted and (problem := bubblewrap.problem()):
        raise CannotStart(refusal(problem))
    gc.freeze()  # what has been imported stays: no collection has to look at it again
    config = read_config(folders.root)
    with (
        executor(workers=workers, hidden=folders.root, trusted=trusted) as (pool, width),
        grading_lock(folders),
        Gradebook(folders.gradebook, assignment=name, notebook=files.notebook, config=config) as book,
    ):
        batch = Batch(folders=folders, files=files, book=book, trusted=trusted, again=again)
        students = batch.find_students(student)
        try:
            batch.run(students, pool, width)
        except KeyboardInterrupt:
            print(
                f"Stopped. {batch.skipped + batch.judged} of {counted(len(students), 'submission')} graded and "
                f"recorded; the next start goes on from here: course grade {name}"
            )
            return INTERRUPTED
        book.update_penalties()
        rows = [row for row in book.scores() if row.student in set(students)]
        print_summary(rows)
        print("\n".join(batch.closing_lines(students, rows)))
    return 0


@dataclass(kw_only=True)
class Batch:
    """One run of the grader over one assignment; the gradebook is open, and nobody else grades."""

    folders: Folders
    files: AssignmentFiles
    book: Gradebook
    trusted: bool = False
    again: bool = False
    skipped: int = 0
    judged: int = 0
    refused: dict[str, tuple[str, ...]] = field(default_factory=dict)  # why a student's folder could not be used

    def __post_init__(self) -> None:
        self.loaded = load(self.files)
        self.release = self._read_release()
        self.recorded = self.book.recorded()
        self.judge = partial(
            judge_one,
            files=self.files,
            key=instructor_key(self.folders),
            trusted=self.trusted,
            hidden=self.folders.root,
        )

    def find_students(self, only: str | None) -> list[str]:
        """Whose submissions there are. Raises CannotStart if there is none, or none of the one who is asked for."""
        students = [one for one in self.folders.students(self.files.name) if only in (None, one)]
        if not students:
            who = "Nobody has" if only is None else f"{only!r} has not"
            raise CannotStart(
                f"{who} submitted assignment {self.files.name} yet: there is nothing in "
                f"{self.folders.submitted(only or '<student>', self.files.name)}. Fetch what was handed in with: "
                f"course assign collect {self.files.name}"
            )
        return students

    def grade_here(self, student: str) -> tuple[Submission, Verdict]:
        """Judges and records one student's submission in this process, whether or not it is graded already.

        Raises CannotStart without a sandbox, and if the student's name cannot be recorded.
        """
        submission = self.take_in(student)
        if not storable(student):
            raise CannotStart(" ".join(submission.notes))
        try:
            verdict = self.judge(submission)
        except SandboxError as problem:
            raise CannotStart(f"{problem}.") from problem
        self.store(submission, verdict)
        return submission, verdict

    def run(self, students: list[str], pool: Any, width: int) -> None:
        """Judges and records them all."""
        with contextlib.closing(progress.start(f"Grading {self.files.name}")) as display, ctrl_c() as pressed:
            for submission, verdict in judge_all(self._to_judge(students), self.judge, pool, width, pressed.is_set):
                self.store(submission, verdict)
                self.judged += 1
                display.update(self.judged + self.skipped, len(students))

    def take_in(self, student: str) -> Submission:
        """The bytes of a student's notebook as they are now: they are what is hashed, judged and recorded."""
        return take_in(self.folders.submitted(student, self.files.name) / f"{self.files.notebook}.ipynb", self.files)

    def store(self, submission: Submission, verdict: Verdict) -> None:
        """Writes the graded notebook, then the gradebook: when that is done, the submission is."""
        moment = submitted_at(self.folders, submission.student, self.files.name)
        graded = graded_notebook(self.release, {**submission.answers, **submission.written}, verdict)
        write_whole(self._graded(submission.student), graded)
        if moment is not None:
            time = self._graded(submission.student).with_name(TIMESTAMP)
            write_whole(time, f"{moment:%Y-%m-%d %H:%M:%S.%f} UTC")
        self.book.record(verdict, submission.written, submitted=moment)

    def closing_lines(self, students: list[str], rows: list[Score]) -> Iterator[str]:
        """What was done, and what is left for a person to do."""
        name = self.files.name
        number = counted(len(students), "submission")
        yield f"{number} of assignment {name}: {self.judged} graded now, {self.skipped} graded before."
        if self.trusted:
            yield "Judged WITHOUT a sandbox (trusted students): every verdict and report says so."
        for student, why in self.refused.items():
            yield f"Not graded: {one_line(student)}. {' '.join(why)}"
        if attention := [row.student for row in rows if row.needs_attention]:
            yield f"{counted(len(attention), 'submission')} to look at: {one_line(', '.join(attention), 800)}."
        yield f"Next: course assign feedback {name}, course assign export {name}"

    def _to_judge(self, students: list[str]) -> Iterator[Submission]:
        """What has to be judged, read when its turn comes."""
        for student in students:
            submission = self.take_in(student)
            if not storable(student):
                self.refused[student] = submission.notes
            elif self.again or not self._stands(submission):
                yield submission
            else:
                self.skipped += 1

    def _stands(self, submission: Submission) -> bool:
        """Whether the gradebook has this submission, and its time, already, and the graded notebook is there."""
        verdict, recorded = self.recorded.get(submission.student, ({}, None))
        moment = submitted_at(self.folders, submission.student, self.files.name)
        sandbox = TRUSTED if self.trusted else SANDBOXED
        wanted = {"submission": submission.sha256, "spec": self.files.hash, "sandbox": sandbox}
        there = self._graded(submission.student).is_file() and moment in (None, recorded)
        return there and wanted.items() <= verdict.items()

    def _graded(self, student: str) -> Path:
        return self.folders.autograded(student, self.files.name) / f"{self.files.notebook}.ipynb"

    def _read_release(self) -> bytes:
        """The students' version, which graded notebooks are built on; its points must be those of the checks."""
        path = self.folders.release(self.files.name) / f"{self.files.notebook}.ipynb"
        wanted = {check_cell(task): number for task, number in self.loaded.check_points.items()}
        if not path.is_file() or self.book.points != wanted | dict(self.loaded.manual_cells):
            raise CannotStart(
                f"Assignment {self.files.name} has changed since its release (its cells or points), or the release is "
                f"gone. Run first: course assign release {self.files.name}"
            )
        return path.read_bytes()


@contextlib.contextmanager
def ctrl_c() -> Iterator[threading.Event]:
    """What Ctrl-C sets meanwhile. As an exception it would get lost in a finaliser, out of which Python lets none."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # no signal gets here
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
