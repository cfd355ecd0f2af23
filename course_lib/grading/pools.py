"""Where submissions are judged: processes of this machine.

Each worker keeps its sandbox for the next submission. Nothing but answers, assignment and key travels to it.
"""

import contextlib
import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from concurrent.futures.process import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from course_lib.data.place import CannotStart
from course_lib.grading.intake import Submission
from course_lib.grading.judge import Verdict, judge, lost_verdict
from course_lib.grading.sandbox import SandboxError, Zygote
from course_lib.grading.spec import AssignmentFiles
from course_lib.grading.wording import one_line
from course_lib.training.parallel import usable_cores

LOOK_EVERY = 0.2  # seconds, whether to stop
KEPT = "What was graded so far is kept; start again."

_of_this_thread = threading.local()


def judge_one(submission: Submission, files: AssignmentFiles, key: bytes, trusted: bool, hidden: Path) -> Verdict:
    """The verdict on one submission; what executors run. The sandbox is kept for the next.

    Raises SandboxError if there is no sandbox; any other error is a matter of this submission and becomes a note.
    """
    for attempt in range(2):
        try:
            return judge(submission, files, key=key, zygote=_zygote(trusted, hidden))
        except SandboxError:
            close_zygotes()
            if attempt:
                raise
        except Exception as error:
            problem = f"It could not be judged ({type(error).__name__}). Look at it by hand, or use --again."
            return lost_verdict(submission, files, trusted=trusted, note=problem)
    raise AssertionError("an attempt returns or raises")


def close_zygotes() -> None:
    """Ends the sandboxes that this thread keeps."""
    for zygote in _of_this_thread.__dict__.pop("zygotes", {}).values():
        zygote.close()


@contextlib.contextmanager
def executor(*, workers: int | None, hidden: Path, trusted: bool) -> Iterator[tuple[Executor, int]]:
    """An executor whose processes start their sandboxes at once, and how many submissions it takes at a time."""
    count = workers or usable_cores()
    with ProcessPoolExecutor(count, _context(), _begin, (trusted, hidden)) as pool:
        try:
            for _ in range(count):
                pool.submit(os.getpid)
            yield pool, count + 1  # one is ready when a worker gets free
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.kill()  # whatever it is doing: its sandbox ends with it
            raise


def judge_all(
    submissions: Iterable[Submission],
    work: Callable[[Submission], Verdict],
    pool: Executor,
    width: int,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Submission, Verdict]]:
    """Each submission with its verdict, in the order in which they get done.

    Raises CannotStart where there is no sandbox any more, or a worker is lost, and KeyboardInterrupt once it is
    `stopped`.
    """
    source, waiting = iter(submissions), {}
    while True:
        if stopped():
            raise KeyboardInterrupt
        for submission in islice(source, width - len(waiting)):
            with lost_ones(waiting.values()):
                waiting[pool.submit(work, submission)] = submission
        if not waiting:
            return
        done = wait(waiting, LOOK_EVERY, return_when=FIRST_COMPLETED).done
        for future in sorted(done, key=lambda one: one.cancelled() or one.exception() is not None):  # verdicts first
            with lost_ones(waiting.values()):
                verdict = future.result()
            yield waiting.pop(future), verdict


@contextlib.contextmanager
def lost_ones(at_work: Iterable[Submission]) -> Iterator[None]:
    """Raises CannotStart, with who was at work, where there is no sandbox any more or a judging process is lost."""
    try:
        yield
    except SandboxError as problem:
        raise CannotStart(f"{problem}. {KEPT}") from problem
    except Exception as problem:  # broken, cancelled: no student's code, which is in the sandbox
        names = ", ".join(one_line(submission.student, 40) for submission in at_work)
        raise CannotStart(
            f"A process that judges was lost, as when memory runs out ({type(problem).__name__}), with one of these: "
            f"{names}. {KEPT}"
        ) from problem


def refusal(problem: str) -> str:
    """What to say where there is no sandbox."""
    return f"{problem}. For students whom you trust, judge without a sandbox: --trusted-students"


def _context() -> Any:
    """A process that has imported all, and forks the workers."""
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    context.set_forkserver_preload([__name__])
    return context


def _begin(trusted: bool, hidden: Path) -> None:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of the terminal; one of them answers
    torch.set_num_threads(1)
    gc.freeze()  # what is there stays, so that no collection looks at it again
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(SandboxError):  # whoever judges is told
        _zygote(trusted, hidden)


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()  # until the grader is gone, however it ended
    os._exit(1)


def _zygote(trusted: bool, hidden: Path) -> Zygote:
    kept = _of_this_thread.__dict__.setdefault("zygotes", {})
    if trusted not in kept:
        kept[trusted] = Zygote(trusted=trusted, hidden=(hidden,))
    return kept[trusted]
