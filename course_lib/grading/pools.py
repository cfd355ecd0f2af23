"""Where submissions are judged: processes of this machine, or the workers of a Dask scheduler.

Each worker keeps its sandbox for the next submission. Nothing but answers, assignment and key travels to it.
"""

import contextlib
import gc
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from course_lib.data.place import CannotStart
from course_lib.grading.intake import Submission
from course_lib.grading.judge import Verdict, judge, lost_verdict
from course_lib.grading.sandbox import SandboxError, Zygote
from course_lib.grading.spec import AssignmentFiles

SECONDS_TO_CONNECT = 5
ATTEMPTS = 2  # at judging a submission whose worker died
CRASHED = "Judging this submission ended the grading process twice. Look at it by hand, or judge it again with --again."
NO_SCHEDULER = (
    "No Dask scheduler answers at {!r}. Start one with `dask scheduler`, its workers with `dask worker ADDRESS`, and "
    "give the address that it prints, such as tcp://10.0.0.1:8786."
)

_of_this_thread = threading.local()
_hidden: tuple[Path, ...] = ()  # folders that no box may see, wherever they lie


def judge_one(submission: Submission, files: AssignmentFiles, key: bytes, trusted: bool) -> Verdict:
    """The verdict on one submission; what executors run, here or elsewhere. The sandbox is kept for the next.

    Raises SandboxError if there is no sandbox; any other error is a matter of this submission and becomes a note.
    """
    for attempt in range(ATTEMPTS):
        try:
            return judge(submission, files, key=key, zygote=_zygote(trusted))
        except SandboxError:
            close_zygotes()
            if attempt:
                raise
        except Exception as error:
            problem = f"It could not be judged ({type(error).__name__}). Look at it by hand, or use --again."
            return lost_verdict(submission, files, trusted=trusted, note=problem)
    raise AssertionError("an attempt returns or raises")


def warm_up(trusted: bool) -> None:
    """Starts what judging needs, where that takes seconds."""
    if not trusted:
        _zygote(trusted)


def close_zygotes() -> None:
    """Ends the sandboxes that this thread keeps."""
    for zygote in _of_this_thread.__dict__.pop("zygotes", {}).values():
        zygote.close()


def hide(*folders: Path) -> None:
    """Keeps these folders from all boxes of sandboxes that this process starts from now on."""
    global _hidden
    _hidden = folders


@contextlib.contextmanager
def executor(
    *, workers: int | None, cluster: str | None, hidden: Path, trusted: bool
) -> Iterator[tuple[Callable[[], Executor], int]]:
    """Gives what makes an executor, anew if the last one broke, and how many submissions to send there at a time.

    The first one begins at once to start its sandboxes. Raises CannotStart if dask is not installed, no scheduler
    answers within a few seconds, or it has no worker.
    """
    with contextlib.ExitStack() as stack:
        if cluster is not None:
            client = stack.enter_context(_client(cluster))
            yield lambda: client.get_executor(pure=False), 2 * sum(client.nthreads().values())
            return
        count = workers or _cores()

        def make() -> Executor:
            return stack.enter_context(ProcessPoolExecutor(count, _context(), _begin, (hidden,)))

        try:
            first = [make()]
            for _ in range(count):
                first[0].submit(warm_up, trusted)
            yield lambda: first.pop() if first else make(), count + 1  # one is ready when a worker gets free
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.kill()  # whatever it is doing: its sandbox ends with it
            raise


def judge_all(
    submissions: Iterable[Submission],
    arguments: Callable[[Submission], tuple[Any, ...]],
    make: Callable[[], Executor],
    width: int,
    crashed: Callable[[Submission], Verdict],
) -> Iterator[tuple[Submission, Verdict]]:
    """Each submission with its verdict, in the order in which they get done.

    `arguments` says what to call. Where a worker dies, all that were at work are judged once more, one at a time; the
    one that ends a worker again gets the verdict of `crashed`.
    """
    source, waiting, again = iter(submissions), {}, []
    pool = make()
    while True:
        while len(waiting) < (width if not again else 1):
            submission = again[0] if again else next(source, None)
            if submission is None:
                break
            try:
                waiting[pool.submit(*arguments(submission))] = submission
            except BrokenExecutor:  # a worker has died meanwhile
                again += [other for other in (*waiting.values(), submission) if other not in again]
                waiting, pool = {}, make()
        if not waiting:
            return
        broken = False
        for future in sorted(wait(waiting, return_when=FIRST_COMPLETED).done, key=_went_wrong):  # verdicts first
            submission = waiting.pop(future)
            verdict = _result(future)
            if verdict is None and submission not in again:
                again.append(submission)
                broken = True
                continue
            if verdict is None:
                verdict, broken = crashed(submission), True
            if submission in again:
                again.remove(submission)
            yield submission, verdict
        if broken:
            again += [submission for submission in waiting.values() if submission not in again]
            waiting.clear()
            pool = make()


def _went_wrong(future: Future) -> bool:
    return future.cancelled() or future.exception() is not None


def _result(future: Future) -> Verdict | None:
    """The verdict, None where its worker died."""
    try:
        return future.result()
    except BrokenExecutor:
        return None
    except CancelledError:
        raise CannotStart("The cluster was lost. What was graded so far is kept; start again.") from None
    except SandboxError as problem:
        raise CannotStart(f"{problem}. What was graded so far is kept.") from problem
    except Exception as problem:
        if type(problem).__name__ == "KilledWorker":  # Dask has tried it on several
            return None
        raise CannotStart(
            f"A submission could not be judged elsewhere: {problem!r}. What was graded is kept."
        ) from problem


def refusal(problem: str) -> str:
    """What to say where there is no sandbox."""
    return f"{problem}. For students whom you trust, judge without a sandbox: --trusted-students"


def _client(address: str) -> Any:
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError as error:
        raise CannotStart(
            "Grading on a cluster needs dask, which is not installed here. In the folder of the course this installs "
            "it: pip install --editable '.[dask]'"
        ) from error
    try:
        with socket.create_connection(get_address_host_port(address), timeout=SECONDS_TO_CONNECT):
            pass
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except Exception as error:  # whatever listens there instead of a scheduler may answer anything
        raise CannotStart(NO_SCHEDULER.format(address)) from error
    if not client.nthreads():
        client.close()
        raise CannotStart(f"The Dask scheduler at {address} has no worker. Start one with: dask worker {address}")
    return client


def _context() -> Any:
    """A process that has imported all, and forks the workers."""
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload([__name__])
    return context


def _begin(hidden: Path) -> None:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of the terminal; one of them answers
    torch.set_num_threads(1)
    hide(hidden)
    gc.freeze()  # what is there stays, so that no collection looks at it again
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()  # until the grader is gone, however it ended
    os._exit(1)


def _zygote(trusted: bool) -> Zygote:
    kept = _of_this_thread.__dict__.setdefault("zygotes", {})
    if trusted not in kept:
        kept[trusted] = Zygote(trusted=trusted, hidden=_hidden)
    return kept[trusted]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
