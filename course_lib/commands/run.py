"""Run lessons from top to bottom without a browser, and say how each went."""

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from course_lib.commands.lessons import CannotStart, find_lesson, lessons

CELL_SECONDS = 300


def run_lessons(names: Sequence[str] = (), *, timeout: float = CELL_SECONDS) -> int:
    """Execute the named lessons, or all; print a line each and a summary; return 1 if one failed, else 0.

    `timeout` is in seconds, for each cell. The notebooks on disk stay as they are.
    """
    from course_lib.commands.execute import execute_notebook  # takes a second: `course --help` does without

    paths = [find_lesson(name) for name in names] or lessons()
    if not paths:
        raise CannotStart("There are no lessons in the folder notebooks.")
    console = Console()
    reports = []
    for number, path in enumerate(paths, start=1):
        with Progress(*columns(), console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task(f"{number}/{len(paths)}  {path.stem}", total=None)

            def on_cell(done, total, progress=progress, task=task):
                progress.update(task, completed=done, total=total)

            report = interruptible(execute_notebook, path, timeout=timeout, on_cell=on_cell)
        reports.append(report)
        outcome = "failed" if report.error else "ok"
        line = f"{number}/{len(paths)}  {path.stem:32} {outcome:6} {report.cells:4} cells {report.seconds:7.1f} s"
        console.print(line, style="red" if report.error else "green", highlight=False)
    console.print(summary(reports))
    return int(any(report.error for report in reports))


def interruptible(function, *arguments, **options):
    """Call a function in a thread of its own, so that Ctrl-C reaches us: in the main thread nbclient would take it."""
    outcome = Future()

    def work():
        try:
            outcome.set_result(function(*arguments, **options))
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=work, daemon=True).start()
    while True:
        try:
            return outcome.result(timeout=0.2)  # Windows hears Ctrl-C only between two waits
        except TimeoutError:
            if outcome.done():
                raise
        except KeyboardInterrupt:
            for kernel in psutil.Process().children(recursive=True):
                kernel.kill()  # asked to stop, it would complain at length first
            raise CannotStart("Stopped.") from None


def columns():
    return TextColumn("{task.description:36}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()


def summary(reports) -> Table:
    """A table of time and outcome, one row for each report."""
    table = Table(title="Lessons", show_footer=True)
    failures = sum(report.error is not None for report in reports)
    table.add_column("lesson", footer=f"{len(reports)} in all")
    table.add_column("time", justify="right", footer=f"{sum(report.seconds for report in reports):.1f} s")
    table.add_column("outcome", overflow="fold", footer=f"{failures} failed" if failures else "all ran through")
    for report in reports:
        outcome = f"[red]{plain(report.error)}" if report.error else "[green]ok"
        table.add_row(Path(report.path).stem, f"{report.seconds:.1f} s", outcome)
    return table


def plain(text: str) -> str:
    return text.replace("[", r"\[")  # rich reads square brackets as its own markup
