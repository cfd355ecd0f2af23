"""Where submissions are judged: processes of this machine, or a cluster.

Nothing here needs torch: the processes load it while others still do so themselves.
"""

import contextlib
import gc
import multiprocessing
import os
import signal
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from course_lib.data.place import CannotStart
from course_lib.grading.folders import Folders, assignments_folder
from course_lib.grading.sandbox_process import SandboxError, SandboxProcess, missing_for_sandbox

WORK = f"{__package__}.judging"  # what workers do


@contextlib.contextmanager
def early(
    name: str, *, folder: str | os.PathLike | None, workers: int | None, cluster: str | None, trusted: bool
) -> Iterator["Processes | None"]:
    """Processes that start while this one imports what it needs to grade an assignment.

    None where there is something to be said first: `grade` says it. Raises CannotStart without a course directory.
    """
    folders = assignments_folder(folder)
    can_start = cluster is None and folders.hidden(name).is_dir() and (trusted or missing_for_sandbox() is None)
    if not can_start:
        yield None
        return
    pool = local_pool(folders, workers)
    pool.prepare(trusted=trusted)
    with contextlib.closing(pool):
        yield pool


def local_pool(folders: Folders, workers: int | None) -> "Processes":
    """So many processes of this machine, or as many as it has cores; their boxes never see the instructor's folder."""
    return Processes(workers or _cores(), hidden=folders.root)


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
            raise CannotStart(refusal(str(problem))) from problem
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
    """Begins to import what workers need, once for all, in the background; Ctrl-C is no matter of theirs."""
    from multiprocessing import forkserver, resource_tracker

    context.set_forkserver_preload([WORK, f"{__package__}.quick_end"])
    resource_tracker.ensure_running()  # which unblocks the signal again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(ends: Any, hidden: tuple[Path, ...], zygote: socket.socket | None) -> None:
    import torch

    from course_lib.grading.judging import borrow_zygote, hide

    hide(*hidden)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of the terminal; one of them answers
    torch.set_num_threads(1)
    gc.freeze()  # what is there stays, so that no collection looks at it again
    threading.Thread(target=_end_with, args=(ends,), daemon=True).start()
    if zygote is not None:
        borrow_zygote(zygote)


def _end_with(pipe: Any) -> None:
    """Ends this process when the other end of the pipe is closed, by hand or because its holder was killed."""
    try:
        pipe.recv_bytes()
    except (EOFError, OSError):
        pass
    os._exit(1)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def refusal(problem: str) -> str:
    """What to say where there is no sandbox."""
    return f"{problem}. For students whom you trust, judge without a sandbox: --trusted-students"
