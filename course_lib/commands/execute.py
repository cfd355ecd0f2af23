"""Execute a notebook in a kernel of this interpreter and report how it went."""

import os
import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from course_lib.commands.files import code_cells, read_notebook, write_notebook

CELL_TIMEOUT = 900  # seconds: a busy machine is no fault of the lesson
AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
# With wider instructions, which not every processor has, sums round in another order: a training then ends elsewhere.
SAME_ARITHMETIC = AVX2 if platform.machine().lower() in ("x86_64", "amd64") else {}
ANSI_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What one execution of a notebook gave."""

    path: Path
    seconds: float  # wall time, the kernel's start included
    cells: int  # code cells that ran to their end
    error: str | None  # a sentence, or None if all went well
    cell_seconds: tuple[float, ...] = ()  # of each code cell that was started
    notebook: NotebookNode = field(repr=False)  # with the outputs of this run


def execute_notebook(
    path: str | os.PathLike,
    *,
    timeout: int | float = CELL_TIMEOUT,
    on_cell: Callable[[int, int], None] | None = None,
    write: bool = False,
    env: Mapping[str, str] | None = None,
) -> RunReport:
    """Run a notebook top to bottom as a person would: this interpreter's kernel, the notebook's folder.

    `timeout` is in seconds and for each cell. `on_cell(done, total)` is called after each code cell. The run
    stops at the first cell that fails; `write` stores the outputs in the file, and only if none failed. `env`
    adds variables to the kernel's environment. Raises ValueError if the file is not a readable notebook.
    """
    path = Path(path)
    notebook = read_notebook(path)
    started = time.perf_counter()
    run = _Run(notebook, on_cell)
    client = NotebookClient(
        notebook,
        km=_kernel_of_this_interpreter(),
        timeout=max(1, round(timeout)),
        iopub_timeout=60,  # on a busy machine a cell's last outputs come late; the default gives them up in silence
        raise_on_iopub_timeout=True,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent.resolve())}},
        on_cell_execute=run.cell_starts,
        on_cell_executed=run.cell_done,
    )
    client.owns_km = True  # so that the kernel ends with the run
    try:
        client.execute(env=_kernel_environment(env or {}))
        error = None
    except CellExecutionError as failure:
        error = f"code cell {run.started} raised {_plain(failure.ename)}: {_plain(failure.evalue)}"
    except CellTimeoutError:
        error = f"code cell {run.started} took longer than {timeout:g} s"
    except DeadKernelError:
        error = f"the kernel died in code cell {run.started}; it may have run out of memory"
    if write and error is None:
        write_notebook(notebook, path)
    return RunReport(
        path=path,
        seconds=time.perf_counter() - started,
        cells=run.done,
        error=error,
        cell_seconds=tuple(run.cell_seconds),
        notebook=notebook,
    )


class _Run:
    """Counts and times the cells of one execution for its report and its progress display."""

    def __init__(self, notebook: NotebookNode, on_cell: Callable[[int, int], None] | None):
        self.total = sum(bool(cell.source.strip()) for cell in code_cells(notebook))
        self.on_cell = on_cell
        self.started = self.done = 0
        self.cell_seconds: list[float] = []
        self._clock = 0.0

    def cell_starts(self, **_) -> None:
        self.started += 1
        self._clock = time.perf_counter()

    def cell_done(self, *, execute_reply, **_) -> None:
        self.cell_seconds.append(time.perf_counter() - self._clock)
        if execute_reply["content"]["status"] == "ok":
            self.done += 1
            if self.on_cell is not None:
                self.on_cell(self.done, self.total)


def _kernel_of_this_interpreter() -> AsyncKernelManager:
    # With no folder to search, the kernel spec manager falls back on ipykernel's own spec, which starts
    # sys.executable; a "python3" installed for the user or the system could belong to another interpreter.
    specs = KernelSpecManager(kernel_dirs=[], ensure_native_kernel=True)
    return AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs)


def _kernel_environment(changes: Mapping[str, str]) -> dict[str, str]:
    # An inherited drawing backend would keep figures from showing inline.
    return {key: value for key, value in os.environ.items() if key != "MPLBACKEND"} | dict(changes)


def _plain(text: str) -> str:
    return ANSI_COLOUR.sub("", text)


@contextmanager
def reproducible_environment() -> Iterator[dict[str, str]]:
    """Kernel variables for a repeatable run: one thread, no progress display, an empty home, claims that must hold.

    Each claim of the run is written to the file that COURSE_CLAIMS names.
    """
    with tempfile.TemporaryDirectory(prefix="course-home-") as home:
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        ipython = str(Path(home, "ipython"))  # start-up files of the author stay out
        claims = SAME_ARITHMETIC | {"COURSE_STRICT": "1", "COURSE_CLAIMS": str(Path(home, "claims.jsonl"))}
        yield ({"COURSE_HOME": home, "COURSE_PROGRESS": "off", "IPYTHONDIR": ipython} | threads | claims)
