"""Several trainings at once, one process each: three seeds on three cores take the time of one.

Processes are spawned, not forked (fork copies the locks of PyTorch's threads in any state), so the same call
works in a script and in a notebook, on Linux, macOS and Windows. A worker imports PyTorch once, which costs
it a few seconds.
"""

import hashlib
import json
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

import torch

from course_lib.training import checkpoints
from course_lib.training import progress as displays
from course_lib.training.progress import Progress

SECONDS_BETWEEN_REPORTS = 0.2


class JobFailed(RuntimeError):
    """A job raised an exception, or its process died."""


def usable_cores() -> int:
    """The cores that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_jobs(
    function: Callable,
    jobs: Sequence[Mapping[str, Any]],
    *,
    workers: int | None = None,
    threads_per_worker: int = 1,
    progress: Progress | None = None,
    executor: Executor | None = None,
    results: Path | str | None = None,
    on_result: Callable[[int, Any], None] | None = None,
) -> list[Any]:
    """Calls `function(**job)` for every job, several at a time; returns the results in the order of the jobs.

    `function` must live in a module that a new process can import. `workers` defaults to one per job, as far
    as there are cores; 0 runs the jobs here, one after the other. A result does not depend on `workers`:
    every job computes with `threads_per_worker` threads. The jobs' own progress (`progress.start`) is
    gathered into one line. An `executor`, such as a Dask client's `get_executor()`, replaces the processes; it brings
    its own workers and their threads, and only finished jobs count as progress. Its workers should be processes: jobs
    that share one run one after the other, for the random numbers are the process's.

    With a folder `results`, each result is saved there as soon as its job is finished, under the names of the function
    and its arguments (plain values), and a later call takes it from there: a sweep that was stopped goes on. After a
    change of the function itself, delete the folder. Results are pickled: open only a folder of your own.
    `on_result(index, result)` is called here as soon as a job is finished.

    Raises JobFailed, with the job's arguments, as soon as one job fails; the others are then stopped, as they
    are when the call is interrupted. Raises ValueError for a function that no other process can find, and for jobs that
    cannot be named.
    """
    jobs = [dict(job) for job in jobs]
    if workers is not None and workers < 0 or threads_per_worker < 1:
        raise ValueError(f"workers must be >= 0 and threads >= 1, got {workers} and {threads_per_worker}.")
    if not jobs:
        return []
    paths = {} if results is None else {i: _result_path(Path(results), function, job) for i, job in enumerate(jobs)}
    board = Board(jobs, paths, displays.start("jobs") if progress is None else progress)
    board.on_result = on_result
    try:
        if executor is not None:
            _gather(executor, _call_silently, function, board)
        elif workers == 0:
            _run_here(function, board, threads_per_worker)
        elif board.waiting:
            _check_importable(function)
            if workers is None:
                workers = max(1, usable_cores() // threads_per_worker)
            with _process_pool(min(workers, len(board.waiting)), threads_per_worker) as (pool, reports):
                _gather(pool, _call_reporting, function, board, reports)
    finally:
        board.display.close()
    return [board.results[index] for index in range(len(jobs))]


class Board:
    """Which jobs run, how far each is and with what result, and the display that shows it."""

    def __init__(self, jobs: list[dict[str, Any]], paths: dict[int, Path], display: Progress):
        self.jobs, self.paths, self.display = jobs, paths, display
        stored = {index: path for index, path in paths.items() if path.exists()}
        self.results = {index: torch.load(path, weights_only=False) for index, path in stored.items()}
        self.waiting = [index for index in range(len(jobs)) if index not in self.results]
        self.fractions = dict.fromkeys(self.results, 1.0)  # of each job that has begun
        self.latest = ""
        self.on_result: Callable[[int, Any], None] | None = None

    def report(self, index: int, done: int | float, total: int | float) -> None:
        self.fractions[index] = done / total if total else 0.0
        self.latest = f"{index + 1}/{len(self.jobs)} step {done:g}/{total:g}" if total else ""

    def finish(self, index: int, result: Any) -> None:
        if self.paths:
            checkpoints.write(self.paths[index], result)
        if self.on_result is not None:
            self.on_result(index, result)
        self.results[index], self.fractions[index] = result, 1.0

    def show(self) -> None:
        details = {"job": self.latest} if self.latest else {}
        self.display.update(round(sum(self.fractions.values()), 2), len(self.jobs), **details)

    def describe(self, index: int) -> str:
        arguments = ", ".join(f"{name}={_brief(value)}" for name, value in self.jobs[index].items())
        return f"job {index + 1} of {len(self.jobs)} ({arguments})"

    def describe_running(self) -> str:
        running = sorted(self.fractions.keys() - self.results.keys())
        return " and ".join(self.describe(index) for index in running) or "no job yet"


@dataclass(frozen=True)
class Failure:
    """An exception as text: the exception itself may be of a class that cannot travel between processes."""

    summary: str
    traceback: str


def _call(function: Callable, job: dict[str, Any]) -> Any:
    try:
        return function(**job)
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}", traceback.format_exc())


def _call_silently(function: Callable, job: dict[str, Any], index: int) -> Any:
    with _one_at_a_time, displays.using(displays.Silent):
        return _call(function, job)


def _call_reporting(function: Callable, job: dict[str, Any], index: int) -> Any:
    _worker_reports.put((index, 0, 0))
    with displays.using(lambda title: Reporter(index, _worker_reports)):
        return _call(function, job)


class Reporter:
    """A display that sends what it is told to the process that started this one."""

    def __init__(self, index: int, reports: SimpleQueue):
        self.index, self.reports, self.last_sent = index, reports, float("-inf")

    def update(self, done: int | float, total: int | float, **details: float | str) -> None:
        now = time.monotonic()
        if now - self.last_sent >= SECONDS_BETWEEN_REPORTS:
            self.last_sent = now
            self.reports.put((self.index, done, total))

    def close(self) -> None:
        pass


def _gather(
    executor: Executor, call: Callable, function: Callable, board: Board, reports: SimpleQueue | None = None
) -> None:
    futures = {executor.submit(call, function, board.jobs[index], index): index for index in board.waiting}
    if reports is not None:
        # The pool notices the death of a worker only if another job was submitted after that worker's start.
        executor.submit(os.getpid)
    pending: set[Future] = set(futures)
    try:
        while pending:
            board.show()
            done, pending = wait(pending, timeout=displays.SECONDS_BETWEEN_UPDATES, return_when=FIRST_COMPLETED)
            while reports is not None and not reports.empty():
                board.report(*reports.get())
            failures = []
            for future in done:
                try:
                    board.finish(futures[future], _result(future, futures[future], board))
                except JobFailed as failure:  # raised when those that finished beside it are saved
                    failures.append(failure)
            if failures:
                raise failures[0]
    finally:
        for future in pending:
            future.cancel()


def _result(future: Future, index: int, board: Board) -> Any:
    try:
        result = future.result()
    except BrokenExecutor as error:
        raise JobFailed(
            f"A worker process died while {board.describe_running()} ran; {len(board.results)} of "
            f"{len(board.jobs)} jobs were finished. Most often the memory ran out: try fewer `workers`. "
            'In a script, call run_jobs under `if __name__ == "__main__":`.'
        ) from error
    except Exception as error:  # the arguments or the result could not travel
        raise JobFailed(f"{board.describe(index)} failed: {type(error).__name__}: {error}") from error
    return _unless_failed(result, index, board)


def _unless_failed(result: Any, index: int, board: Board) -> Any:
    if not isinstance(result, Failure):
        return result
    error = JobFailed(f"{board.describe(index)} failed: {result.summary}")
    error.add_note(f"In the worker:\n{result.traceback}")
    raise error


def _run_here(function: Callable, board: Board, threads: int) -> None:
    threads_before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for index in board.waiting:
            board.show()
            board.finish(index, _unless_failed(_call_silently(function, board.jobs[index], index), index, board))
    finally:
        torch.set_num_threads(threads_before)


@contextmanager
def _process_pool(workers: int, threads: int):
    """A pool whose workers stop with the `with` block, whatever ends it, and with this process."""
    context = get_context("spawn")
    reports = context.SimpleQueue()
    lifeline, our_end = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, _start_worker, (threads, reports, lifeline))
    try:
        yield pool, reports
        pool.shutdown()
    finally:
        our_end.close()  # workers that still run take this as the sign to stop
        pool.shutdown(cancel_futures=True)
        lifeline.close()
        reports.close()


def _start_worker(threads: int, reports: SimpleQueue, lifeline: Connection) -> None:
    global _worker_reports
    _worker_reports = reports
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent decides
    torch.set_num_threads(threads)
    threading.Thread(target=_stop_with_parent, args=(lifeline,), daemon=True).start()


def _stop_with_parent(lifeline: Connection) -> None:
    lifeline.poll(None)  # returns when the other end is closed, also by the parent's death
    os._exit(1)


_one_at_a_time = threading.Lock()  # for each process; a job that starts jobs gives them to other processes
_worker_reports: SimpleQueue | None = None  # set in a worker when it starts


def _check_importable(function: Callable) -> None:
    name = getattr(function, "__qualname__", repr(function))
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"{name} cannot be sent to another process: define it at the top level of a module, "
            f"or run the jobs here with workers=0."
        ) from error
    in_notebook = not hasattr(sys.modules["__main__"], "__file__")
    if getattr(function, "__module__", None) == "__main__" and in_notebook:
        raise ValueError(
            f"{name} is defined in the notebook, where other processes cannot find it: "
            f"import it from a module, or run the jobs here with workers=0."
        )


def _result_path(folder: Path, function: Callable, job: dict[str, Any]) -> Path:
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '<unnamed>')}"
    try:
        arguments = json.dumps(job, sort_keys=True)
    except TypeError as error:
        raise ValueError(f"results are found by the jobs' arguments, which must be plain values: {error}") from error
    if "<" in name:  # <lambda>, <locals>
        raise ValueError(f"results are found by the function's name, but {name} may be any: define it in a module")
    return folder / f"{hashlib.sha256(f'{name} {arguments}'.encode()).hexdigest()[:32]}.pt"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
