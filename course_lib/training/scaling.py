"""A sweep: one function, many settings, one line of JSON for each run that is finished.

A line holds a run's settings and its result: {"run": {...}, "result": {...}}. The settings are its name. A sweep that
was stopped goes on with the runs that have no line yet; one that is asked for more settings runs those alone.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from course_lib.training.parallel import run_jobs
from course_lib.training.progress import Progress

Plain = dict[str, Any]


def sweep(
    function: Callable[..., Mapping[str, Any]],
    runs: Sequence[Mapping[str, Any]],
    *,
    records: Path | str | None = None,
    workers: int | None = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> list[Plain]:
    """The result of `function(**run)` for every run, in the order of the runs, each with the run's settings in front.

    Runs go one after another here, on `workers` processes, or on any `executor`: threads, processes, or a Dask
    client's `get_executor()`; see `run_jobs`. With a file `records` each result is kept there as soon as there is one,
    and what stands there is not run again. After a change of the function itself, delete the file.

    Raises ValueError for a run that is named twice, for settings or results that are not plain values, and for a file
    that holds something else; JobFailed, with the run's settings, as soon as one run fails.
    """
    names = [run_name(run) for run in runs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"a run is asked for twice: {twice[0]}")
    path = None if records is None else Path(records)
    done = {} if path is None else read_records(path)
    waiting = [index for index, name in enumerate(names) if name not in done]

    def keep(position: int, result: Mapping[str, Any]) -> None:
        index = waiting[position]
        line = plain_json({"run": dict(runs[index]), "result": dict(result)})
        if path is not None:
            append_line(path, line)
        done[names[index]] = json.loads(line)["result"]

    run_jobs(
        function,
        [runs[index] for index in waiting],
        workers=workers,
        executor=executor,
        progress=progress,
        on_result=keep,
    )
    return [json.loads(name) | done[name] for name in names]


def run_name(run: Mapping[str, Any]) -> str:
    """The settings of a run as text, the same in whatever order they are given. Raises ValueError if not plain."""
    return plain_json(dict(run), sort_keys=True)


def read_records(path: Path) -> dict[str, Plain]:
    """The results in a file, by the names of their runs. A last line that was cut off does not count, and is removed.

    Raises ValueError for any other line that is no record.
    """
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole, _, rest = text.rpartition("\n")
    if rest:  # the line was being written when the sweep was stopped
        path.write_text(f"{whole}\n" if whole else "", encoding="utf-8", newline="\n")
    results = {}
    for number, line in enumerate(whole.split("\n") if whole else [], start=1):
        try:
            record = json.loads(line)
            results[run_name(record["run"])] = record["result"]
        except (json.JSONDecodeError, KeyError, TypeError):
            raise ValueError(f"line {number} of {path} is no record of a run: {line[:80]!r}") from None
    return results


def append_line(path: Path, line: str) -> None:
    """Adds a line that outlives a crash of the machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


def plain_json(value: Any, **options: Any) -> str:
    """JSON of plain, finite values. Raises ValueError for others."""
    try:
        return json.dumps(value, allow_nan=False, **options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a sweep keeps plain, finite values alone, got {value!r}: {error}") from error
