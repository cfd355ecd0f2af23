"""`course grade NAME`: judges all submissions of an assignment and puts what was found into the gradebook.

Judging is spread over processes, or over a cluster; writing is done here alone, one submission after the other: the
verdict's file, the graded notebook, then the gradebook in one transaction. Each of the three is written whole, and a
submission counts as done once the gradebook has it, so that a run that ends anywhere, however it ends, is taken up by
the next: a verdict that is there is not judged again, and one that is recorded is not recorded again.
"""

import contextlib
import gc
import json
import multiprocessing
import os
import signal
import socket
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
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
from course_lib.grading.judge import ATTENTION, SANDBOXED, SCHEMA, TRUSTED, judge
from course_lib.grading.sandbox import SandboxError, SandboxProcess, Zygote, missing_for_sandbox
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
) -> int:
    """Grades all submissions of an assignment that are not graded yet, or one student's; returns the exit code.

    `cluster` is the address of a Dask scheduler, `workers` how many processes there are without one (as many as cores);
    `trusted` judges without a sandbox, and `again` judges those, too, that are graded. Raises CannotStart, saying what
    to do, for an unknown or unreleased assignment, no submissions, a missing sandbox, and another grader at work.
    """
    folders = assignments_folder(folder)
    files = _read(folders, name)
    if not trusted and cluster is None and (problem := missing_for_sandbox()):
        raise CannotStart(_refusal(problem))
    pool = Cluster(cluster) if cluster is not None else Processes(workers or _cores(), hidden=folders.root)
    with contextlib.closing(pool):
        pool.prepare(trusted=trusted)
        from course_lib.grading.release import need_nbgrader  # all this takes its time, in which the processes start

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
        _hide(self.folders.root)
        try:
            verdict = self.judge_one(submission, self.files, self.key, self.trusted)
        except SandboxError as problem:
            raise CannotStart(f"{problem}.") from problem
        return submission, self._store(submission, verdict)

    def run(self, students: list[str], pool: "Pool") -> bool:
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

    def _recorded_one_by_one(self, students: list[str], pool: "Pool") -> Iterator[str]:
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


# judging ----------------------------------------------------------------------------------------------------

_of_this_thread = threading.local()
_hidden: tuple[Path, ...] = ()  # folders that no box may see, wherever they lie


def judge_one(submission: Submission, files: AssignmentFiles, key: bytes, trusted: bool) -> dict[str, Any]:
    """The verdict on one submission; what executors run, here or elsewhere. The sandbox is kept for the next.

    Raises SandboxError if there is no sandbox; any other error is a matter of this submission and becomes a note.
    """
    try:
        return judge(submission, files, key=key, zygote=_zygote(trusted))
    except SandboxError:
        _drop_zygote(trusted)
    except Exception as error:
        return lost_verdict(submission, files, trusted=trusted, note=_failure(error))
    zygote = _zygote(trusted)
    try:
        return judge(submission, files, key=key, zygote=zygote)
    except Exception as error:
        _drop_zygote(trusted)
        return lost_verdict(submission, files, trusted=trusted, note=_failure(error))


def _failure(error: Exception) -> str:
    return f"It could not be judged ({type(error).__name__}). Look at it by hand, or judge it again with --again."


def lost_verdict(submission: Submission, files: AssignmentFiles, *, trusted: bool, note: str) -> dict[str, Any]:
    """The verdict on a submission that could not be judged: no points, and a person has to look at it."""
    tasks = {}
    for task in load(files).assignment.tasks:
        checks = [
            {"name": check.name, "points": 0.0, "possible": check.points, "passed": False, "findings": []}
            for check in task.checks
        ]
        tasks[task.name] = {
            "points": 0.0,
            "possible": task.points,
            "checks": checks,
            "answered": task.name in submission.answers,
            "ended": None,
            "printed": "",
        }
    return {
        "schema": SCHEMA,
        "assignment": files.name,
        "student": submission.student,
        "submission": submission.sha256,
        "spec": files.hash,
        "sandbox": TRUSTED if trusted else SANDBOXED,
        "status": ATTENTION,
        "notes": [*submission.notes, note],
        "student_notes": list(submission.notes),
        "tasks": tasks,
        "seconds": 0.0,
    }


def _zygote(trusted: bool) -> Zygote:
    kept = _of_this_thread.__dict__.setdefault("zygotes", {})  # a zygote ends with the thread that started it
    if trusted not in kept:
        kept[trusted] = Zygote(trusted=trusted, hidden=_hidden)
    return kept[trusted]


def _borrow_zygote(control: socket.socket) -> None:
    """Asks a zygote of another process for boxes, until it fails."""
    _of_this_thread.zygotes = {False: Zygote(hidden=_hidden, borrowed=control)}


def _drop_zygote(trusted: bool) -> None:
    zygote = _of_this_thread.__dict__.get("zygotes", {}).pop(trusted, None)
    if zygote is not None:
        zygote.close()


def judge_all(
    submissions: Iterator[Submission],
    pool: "Pool",
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


class Pool(ABC):
    """Where submissions are judged: an executor, and how to begin anew.

    `width` submissions are sent there at a time. An error of a `deadly` kind says that a worker died of one; a pool
    that `retries` has tried it on other workers by then.
    """

    width: int
    deadly: tuple[type[BaseException], ...]
    retries: bool

    @abstractmethod
    def prepare(self, *, trusted: bool) -> None:
        """Begins to start what judging needs, and does not wait for it."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """Has a function called by a worker."""

    @abstractmethod
    def restart(self) -> None:
        """Begins anew after a worker died."""

    @abstractmethod
    def close(self) -> None:
        """Ends the workers, whatever they are doing."""


class Processes(Pool):
    """Worker processes of this machine, which end with this one, however that ends."""

    deadly, retries = (BrokenExecutor,), False

    def __init__(self, workers: int, *, hidden: Path | None = None):
        self._workers = workers
        self._hidden = () if hidden is None else (hidden,)
        self.width = workers + 1  # one is ready when a worker gets free
        method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        self._context = multiprocessing.get_context(method)
        if method == "forkserver":
            _start_fork_server(self._context)
        self._executor: ProcessPoolExecutor | None = None
        self._starting: Future | None = None  # done when the workers are there
        self._walls = False  # whether the workers need a zygote at once; they can start their own
        self._zygote: SandboxProcess | None = None  # of all workers

    def prepare(self, *, trusted: bool) -> None:
        self._walls = not trusted
        self._starting = Future()
        threading.Thread(target=self._launch, args=(self._starting,), daemon=True).start()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        if self._starting is None:
            self._starting = Future()
            self._launch(self._starting)
        try:
            self._starting.result()
        except SandboxError as problem:
            raise CannotStart(_refusal(str(problem))) from problem
        except BrokenExecutor as error:
            raise CannotStart(
                "The processes that judge submissions end as soon as they start. Check this machine with: course doctor"
            ) from error
        return self._executor.submit(function, *arguments)

    def restart(self) -> None:
        self.close()

    def close(self) -> None:
        if self._starting is not None:
            wait([self._starting])
            self._alive.close()  # whatever they are doing, the workers end now
            if self._executor is not None:
                self._executor.shutdown(wait=True, cancel_futures=True)
            self._ends.close()
            self._executor = self._starting = None
            if self._zygote is not None:
                self._zygote.end()
                self._zygote = None

    def _launch(self, starting: Future) -> None:
        self._ends, self._alive = self._context.Pipe(duplex=False)
        control = None
        if self._walls:
            try:
                self._zygote = SandboxProcess.start("zygote", hidden=self._hidden)
            except SandboxError as problem:
                starting.set_exception(problem)
                return
            control = self._zygote.control
        self._executor = ProcessPoolExecutor(
            self._workers,
            mp_context=self._context,
            initializer=_begin_worker,
            initargs=(self._ends, self._hidden, control),
        )
        try:
            starting.set_result(self._executor.submit(os.getpid).result())
        except BaseException as error:
            starting.set_exception(error)


class Cluster(Pool):
    """The workers of a Dask scheduler, which itself gives to another what a lost one was doing."""

    retries = True

    def __init__(self, address: str):
        from course_lib.grading.cluster import dask_executor, deadly_errors

        self._executor = dask_executor(address)
        self.deadly = deadly_errors()
        self.width = 2 * self._executor.width

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        return self._executor.submit(function, *arguments)

    def prepare(self, *, trusted: bool) -> None:
        """The workers are there."""

    def restart(self) -> None:
        """The scheduler has done so."""

    def close(self) -> None:
        self._executor.shutdown(cancel_futures=True)


def _start_fork_server(context: Any) -> None:
    """Begins to import torch once for all workers, in the background; Ctrl-C is no matter of theirs."""
    from multiprocessing import forkserver

    context.set_forkserver_preload([__name__])
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(ends: Any, hidden: tuple[Path, ...], zygote: socket.socket | None) -> None:
    import torch

    _hide(*hidden)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of the terminal; one of them answers
    torch.set_num_threads(1)
    gc.freeze()  # what is there stays, so that no collection looks at it again
    threading.Thread(target=_end_with, args=(ends,), daemon=True).start()
    if zygote is not None:
        _borrow_zygote(zygote)


def _hide(*folders: Path) -> None:
    global _hidden
    _hidden = folders


def _end_with(pipe: Any) -> None:
    """Ends this process when the other end of the pipe is closed, by hand or because its holder was killed."""
    try:
        pipe.recv_bytes()
    except (EOFError, OSError):
        pass
    os._exit(1)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _refusal(problem: str) -> str:
    return f"{problem}. For students whom you trust, judge without a sandbox: --trusted-students"


def _sentence(problem: Exception) -> str:
    if isinstance(problem, SandboxError):
        return f"{problem}."
    return f"A submission could not be given to a worker, or its verdict not be taken: {problem!r}."


def _read(folders: Folders, name: str) -> AssignmentFiles:
    try:
        return read_assignment(folders.root, name)
    except ValueError as problem:
        raise CannotStart(str(problem)) from None
