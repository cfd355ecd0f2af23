"""`course grade NAME`: judges all submissions of an assignment and puts what was found into the gradebook.

Judging is spread over processes, or over a cluster; writing is done here alone, one submission after the other: the
verdict's file, the graded notebook, then the gradebook in one transaction. Each of the three is written whole, and a
submission counts as done once the gradebook has it, so that a run that ends anywhere, however it ends, is taken up by
the next: a verdict that is there is not judged again, and one that is recorded is not recorded again.
"""

import contextlib
import gc
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_lib.data.place import CannotStart
from course_lib.grading.folders import (
    TIMESTAMP,
    Folders,
    assignments_folder,
    grading_lock,
    instructor_key,
    storable,
    submitted_at,
    write_whole,
)
from course_lib.grading.graded import graded_notebook
from course_lib.grading.intake import Submission, take_in
from course_lib.grading.interrupts import ctrl_c_held
from course_lib.grading.judge import ATTENTION, SANDBOXED, TRUSTED
from course_lib.grading.judging import hide, judge_one, lost_verdict
from course_lib.grading.pools import Cluster, Pool, local_pool, refusal
from course_lib.grading.sandbox import SandboxError
from course_lib.grading.sandbox_process import missing_for_sandbox
from course_lib.grading.spec import AssignmentFiles, check_cell, load, read_assignment
from course_lib.grading.verdicts import read_verdict
from course_lib.grading.wording import counted, one_line
from course_lib.training import progress

if TYPE_CHECKING:
    from course_lib.grading.gradebook import Gradebook, Recorded, Score

INTERRUPTED = 130  # exit code after Ctrl-C
MOST_NAMES = 20  # of students in one line
CRASHED = "Judging this submission ended the grading process twice. Look at it by hand, or judge it again with --again."
NO_TIME = "The submission's timestamp.txt holds no time, so lateness was not counted."

JudgeOne = Callable[[Submission, AssignmentFiles, bytes, bool], dict[str, Any]]


def grade(
    name: str,
    *,
    folder: str | os.PathLike | None = None,
    student: str | None = None,
    cluster: str | None = None,
    trusted: bool = False,
    workers: int | None = None,
    again: bool = False,
    pool: Pool | None = None,
) -> int:
    """Grades all submissions of an assignment that are not graded yet, or one student's; returns the exit code.

    `cluster` is the address of a Dask scheduler, `workers` how many processes there are without one (as many as cores);
    `trusted` judges without a sandbox; `again` judges those, too, that are graded. `pool` is where to judge, if that
    is prepared already; it is closed then. Raises CannotStart, saying what to do, for an unknown or unreleased
    assignment, no submissions, a missing sandbox, and another grader at work.
    """
    folders = assignments_folder(folder)
    with ctrl_c_held():  # the checks import what they need
        files = _read(folders, name)
    if not trusted and cluster is None and (problem := missing_for_sandbox()):
        raise CannotStart(refusal(problem))
    if pool is None:
        pool = Cluster(cluster) if cluster is not None else local_pool(folders, workers)
        pool.prepare(trusted=trusted)
    with contextlib.closing(pool):
        with ctrl_c_held():  # all this takes its time, in which the processes start
            from course_lib.grading.release import need_nbgrader

            need_nbgrader(f"grade {name}")
            from course_lib.grading.exchange import read_config
            from course_lib.grading.gradebook import Gradebook

        gc.freeze()  # what has been imported stays: no collection has to look at it again
        with (
            grading_lock(folders),
            Gradebook(
                folders.gradebook, assignment=name, notebook=files.notebook, config=read_config(folders.root)
            ) as book,
        ):
            batch = Batch(folders=folders, files=files, book=book, trusted=trusted, again=again)
            students = batch.find_students(student)
            if not batch.run(students, pool):
                return INTERRUPTED
            book.update_penalties()
            batch.print_summary(students)
    return 0


@dataclass(kw_only=True)
class Batch:
    """One run of the grader over one assignment; the gradebook is open, and nobody else grades."""

    folders: Folders
    files: AssignmentFiles
    book: "Gradebook"
    trusted: bool = False
    again: bool = False
    judge_one: JudgeOne = field(default_factory=lambda: judge_one)
    skipped: int = 0
    judged: int = 0
    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)  # by student
    refused: dict[str, tuple[str, ...]] = field(default_factory=dict)  # why a student's folder could not be used
    attention: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loaded = load(self.files)
        self.key = instructor_key(self.folders)
        self.release = self._read_release()
        self.recorded: Mapping[str, Recorded] = self.book.recorded()

    def find_students(self, only: str | None) -> list[str]:
        """Whose submissions there are. Raises CannotStart if there is none, or none of the one who is asked for."""
        students = self.folders.students(self.files.name)
        if not students:
            raise CannotStart(
                f"Nobody has submitted assignment {self.files.name} yet: there is nothing in "
                f"{self.folders.submitted('<student>', self.files.name)}. Fetch what was handed in with: "
                f"course assign collect {self.files.name}"
            )
        if only is None:
            return students
        if only not in students:
            known = ", ".join(one_line(name, 40) for name in students[:MOST_NAMES])
            more = f" and {len(students) - MOST_NAMES} more" if len(students) > MOST_NAMES else ""
            raise CannotStart(
                f"There is no submission of {only!r} for assignment {self.files.name}. These have submitted: "
                f"{known}{more}."
            )
        return [only]

    def grade_here(self, student: str) -> tuple[Submission, dict[str, Any]]:
        """Judges and records one student's submission in this process, whether or not it is graded already.

        Raises CannotStart without a sandbox, and if the student's name cannot be recorded.
        """
        submission = self.take_in(student)
        if not storable(student):
            raise CannotStart(" ".join(submission.notes))
        hide(self.folders.root)
        try:
            verdict = self.judge_one(submission, self.files, self.key, self.trusted)
        except SandboxError as problem:
            raise CannotStart(f"{problem}.") from problem
        return submission, self._store(submission, verdict)

    def run(self, students: list[str], pool: Pool) -> bool:
        """Judges and records them all; False if Ctrl-C ended it."""
        display = progress.start(f"Grading {self.files.name}")
        try:
            for done, _ in enumerate(self._recorded_one_by_one(students, pool), 1):
                display.update(done, len(students), attention=str(len(self.attention)))
        except KeyboardInterrupt:
            display.close()
            print(
                f"Stopped. {self.skipped + self.judged} of {counted(len(students), 'submission')} graded and recorded; "
                f"the next start goes on from here: course grade {self.files.name}"
            )
            return False
        finally:
            display.close()
        return True

    def _recorded_one_by_one(self, students: list[str], pool: Pool) -> Iterator[str]:
        """The students as their submissions get done."""
        done: deque[str] = deque()
        for submission, verdict in judge_all(self._to_judge(students, done), pool, self._arguments, self._crashed):
            self._check(verdict)
            self._store(submission, verdict)
            self.judged += 1
            yield submission.student
            while done:
                yield done.popleft()
        yield from done

    def _to_judge(self, students: Iterable[str], done: deque[str]) -> Iterator[Submission]:
        """What has to be judged, read when its turn comes; all others go to `done`, recorded if they were not yet."""
        for student in students:
            submission = self.take_in(student)
            if not storable(student):
                self.refused[student] = submission.notes
                done.append(student)
                continue
            verdict = None if self.again else self.known_verdict(submission)
            if verdict is None:
                yield submission
                continue
            if self._stands(submission):
                self._remember(verdict)
                self.skipped += 1
            else:
                self._store(submission, verdict)
                self.judged += 1
            done.append(student)

    def take_in(self, student: str) -> Submission:
        """The bytes of a student's notebook as they are now: they are what is hashed, judged and recorded."""
        folder = self.folders.submitted(student, self.files.name)
        return take_in(folder / f"{self.files.notebook}.ipynb", self.files)

    def known_verdict(self, submission: Submission) -> dict[str, Any] | None:
        """The verdict of an earlier run on the same bytes, with the same checks and the same kind of sandbox."""
        verdict = read_verdict(self.folders, submission.student, self.files.name)
        wanted = {
            "student": submission.student,
            "submission": submission.sha256,
            "spec": self.files.hash,
            "sandbox": self.mode,
        }
        same = verdict is not None and all(verdict.get(name) == value for name, value in wanted.items())
        return verdict if same else None

    @property
    def mode(self) -> str:
        return TRUSTED if self.trusted else SANDBOXED

    def _stands(self, submission: Submission) -> bool:
        """Whether the gradebook has this submission, and its time, already, and the graded notebook is there."""
        there = self.recorded.get(submission.student)
        if there is None or not self._graded(submission.student).is_file():
            return False
        moment, _ = self._submitted_at(submission.student)
        same_time = moment is None or moment == there.submitted
        wanted = (submission.sha256, self.files.hash, self.mode)
        return same_time and (there.submission, there.spec, there.sandbox) == wanted

    def _graded(self, student: str) -> Path:
        return self.folders.autograded(student, self.files.name) / f"{self.files.notebook}.ipynb"

    def _arguments(self, submission: Submission) -> tuple[Any, ...]:
        return self.judge_one, submission, self.files, self.key, self.trusted

    def _check(self, verdict: Mapping[str, Any]) -> None:
        if verdict["spec"] != self.files.hash:
            raise CannotStart(
                "A worker judges with another version of course_lib than this process: it is another one there, or its "
                "files were changed just now. Start the workers anew and grade again: what was graded is kept."
            )

    def _store(self, submission: Submission, verdict: dict[str, Any]) -> dict[str, Any]:
        """Writes verdict and graded notebook, then the gradebook: when that is done, the submission is.

        Returns the verdict with what there was to add.
        """
        moment, note = self._submitted_at(submission.student)
        if note and note not in verdict["notes"]:
            verdict = verdict | {"notes": [*verdict["notes"], note]}
        try:
            store(self.folders, self.files, self.release, submission, verdict, book=self.book, submitted=moment)
        except OSError as error:
            raise CannotStart(
                f"{error.filename or self.folders.root} cannot be written: {error.strerror}. What was graded so far is "
                "kept; make room or set the permissions right, then start again."
            ) from error
        self._remember(verdict)
        return verdict

    def _submitted_at(self, student: str) -> tuple[datetime | None, str | None]:
        from course_lib.grading.gradebook import parse_time

        text = submitted_at(self.folders, student, self.files.name)
        if text is None:
            return None, None
        moment = parse_time(text)
        return moment, NO_TIME if moment is None else None

    def _remember(self, verdict: dict[str, Any]) -> None:
        self.verdicts[verdict["student"]] = verdict
        if verdict["status"] == ATTENTION:
            self.attention.append(verdict["student"])

    def _crashed(self, submission: Submission) -> dict[str, Any]:
        return lost_verdict(submission, self.files, trusted=self.trusted, note=CRASHED)

    def _read_release(self) -> bytes:
        """The students' version, which graded notebooks are built on; its points must be those of the checks."""
        path = self.folders.release(self.files.name) / f"{self.files.notebook}.ipynb"
        again = f"Run first: course assign release {self.files.name}"
        if not path.is_file():
            raise CannotStart(f"Assignment {self.files.name} is not released yet. {again}")
        wanted = {check_cell(task): number for task, number in self.loaded.check_points.items()}
        wanted |= self.loaded.manual_cells
        there = self.book.points
        if wanted != there:
            other = sorted(cell for cell in wanted.keys() | there.keys() if wanted.get(cell) != there.get(cell))
            raise CannotStart(
                f"Assignment {self.files.name} has changed since its release (points of {', '.join(other)}). {again}"
            )
        return path.read_bytes()

    def print_summary(self, students: list[str]) -> None:
        """The table of points, and what is left for a person to do."""
        from course_lib.grading.gradebook import scores
        from course_lib.grading.summary import print_summary

        rows = {row.student: row for row in scores(self.folders.gradebook, self.files.name)}
        chosen = [rows[student] for student in students if student in rows]
        print_summary(chosen, self.verdicts)
        for line in self._closing_lines(students, chosen):
            print(line)

    def _closing_lines(self, students: list[str], rows: list["Score"]) -> Iterator[str]:
        yield (
            f"{counted(len(students), 'submission')} of assignment {self.files.name}: {self.judged} graded now, "
            f"{self.skipped} graded before."
        )
        if self.trusted:
            yield "Judged WITHOUT a sandbox (trusted students): every verdict and report says so."
        for student, why in self.refused.items():
            yield f"Not graded: {one_line(student)}. {' '.join(why)}"
        if self.attention:
            names = ", ".join(one_line(student, 40) for student in sorted(self.attention)[:MOST_NAMES])
            more = f" and {len(self.attention) - MOST_NAMES} more" if len(self.attention) > MOST_NAMES else ""
            verb = "needs" if len(self.attention) == 1 else "need"
            yield f"{counted(len(self.attention), 'submission')} {verb} attention: {names}{more}."
        if unread := sum(len(row.unread) for row in rows):
            verb = "waits" if unread == 1 else "wait"
            yield f"{counted(unread, 'answer')} {verb} for points by hand: course assign formgrader"
        yield f"Next: course assign feedback {self.files.name}, course assign export {self.files.name}"


def store(
    folders: Folders,
    files: AssignmentFiles,
    release: bytes,
    submission: Submission,
    verdict: Mapping[str, Any],
    *,
    book: "Gradebook",
    submitted: datetime | None,
) -> None:
    """Writes one submission's verdict and graded notebook, and records it; only the last step makes it count."""
    write_whole(folders.verdict(submission.student, files.name), json.dumps(verdict, indent=1) + "\n")
    folder = folders.autograded(submission.student, files.name)
    given = {**submission.answers, **submission.written}
    write_whole(folder / f"{files.notebook}.ipynb", graded_notebook(release, given, verdict))
    if submitted is not None:
        write_whole(folder / TIMESTAMP, f"{submitted:%Y-%m-%d %H:%M:%S.%f} UTC")
    book.record(verdict, submission.written, submitted=submitted)


def judge_all(
    submissions: Iterator[Submission],
    pool: Pool,
    arguments: Callable[[Submission], tuple[Any, ...]],
    crashed: Callable[[Submission], dict[str, Any]],
) -> Iterator[tuple[Submission, dict[str, Any]]]:
    """Each submission with its verdict, in the order in which they get done.

    `arguments` says what to call. Where a worker dies, nobody knows which of the submissions at work killed it: each of
    them is judged once more in a new pool, alone; the one that ends a worker again gets the verdict of `crashed`.
    """
    waiting: dict[Future, Submission] = {}
    suspects: deque[Submission] = deque()
    alone: Submission | None = None
    broken = False

    def begin(submission: Submission) -> None:
        try:
            future = pool.submit(*arguments(submission))
        except BrokenExecutor:
            if waiting:
                raise
            pool.restart()
            future = pool.submit(*arguments(submission))
        waiting[future] = submission

    while True:
        if broken and not waiting:
            pool.restart()
            broken = False
        while not broken and not suspects and alone is None and len(waiting) < pool.width:
            submission = next(submissions, None)
            if submission is None:
                break
            try:
                begin(submission)
            except BrokenExecutor:
                suspects.append(submission)
                broken = True
        if not waiting and suspects:
            alone = suspects.popleft()
            begin(alone)
        if not waiting:
            return
        for future in sorted(wait(waiting, return_when=FIRST_COMPLETED).done, key=_went_wrong):  # verdicts first
            submission = waiting.pop(future)
            try:
                verdict = future.result()
            except pool.deadly:
                broken = True
                if submission is not alone and not pool.retries:
                    suspects.append(submission)
                    continue
                verdict = crashed(submission)
            except CancelledError:
                raise CannotStart("The cluster was lost. What was graded so far is kept; start again.") from None
            except Exception as problem:
                raise CannotStart(f"{_sentence(problem)} What was graded so far is kept.") from problem
            if submission is alone:
                alone = None
            yield submission, verdict


def _went_wrong(done: Future) -> bool:
    return done.cancelled() or done.exception() is not None


def _sentence(problem: Exception) -> str:
    if isinstance(problem, SandboxError):
        return f"{problem}."
    return f"A submission could not be given to a worker, or its verdict not be taken: {problem!r}."


def _read(folders: Folders, name: str) -> AssignmentFiles:
    try:
        return read_assignment(folders.root, name)
    except ValueError as problem:
        raise CannotStart(str(problem)) from None
