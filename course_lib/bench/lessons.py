"""What a learner costs a hub: memory and processor time of each lesson, and how many cores a class keeps busy.

python -m course_lib.bench.lessons [05 07 ...] [--learners 60] [--cores 4 8 16 32] [--keep measured.json]

Each lesson runs from top to bottom in a kernel with one thread, one lesson at a time, and what that kernel and its
children use is read every tenth of a second. Learners are then simulated with these numbers: they read, run a cell,
read on, and share the cores while their cells run.
"""

import argparse
import json
import os
import platform
import random
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import psutil

from course_lib.commands.execute import execute_notebook, reproducible_environment
from course_lib.commands.lessons import find_lesson, lessons
from course_lib.data.place import CannotStart
from course_lib.training.parallel import usable_cores

EVERY = 0.1  # seconds between two looks at a kernel's memory
CELL_SECONDS = 3600  # a cell may take so long: other work may share the machine
MINUTES = 200  # of a lesson, in which a learner runs all of its cells
START = 600.0  # seconds in which a class begins: nobody runs the first cell at the same moment
LEARNERS, CORES = 60, (4, 8, 16, 32)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What one lesson needs: for each code cell its processor seconds, and the memory when it was done."""

    lesson: str
    cpu: list[float]  # processor seconds of the kernel and its children, each cell
    memory: list[int]  # bytes of resident memory (RSS) of the kernel and its children, after each cell
    peak: int  # bytes: the largest that was seen at any time

    @property
    def total(self) -> float:
        """Processor seconds of the whole lesson."""
        return sum(self.cpu)


class Watch:
    """Memory and processor time of this process's children, looked at in a thread."""

    def __init__(self):
        self.peak, self.now, self.cpu = 0, 0, 0.0
        self._own = psutil.Process()
        self._ended = threading.Event()

    def look(self) -> None:
        """Reads both once. A child that ended counts in its parent's time."""
        memory, cpu = 0, 0.0
        for child in self._own.children(recursive=True):
            with suppress(psutil.Error):  # it ended between two lines
                times = child.cpu_times()
                cpu += (
                    times.user
                    + times.system
                    + getattr(times, "children_user", 0)
                    + getattr(times, "children_system", 0)
                )
                memory += child.memory_info().rss
        self.now, self.cpu, self.peak = memory, max(cpu, self.cpu), max(memory, self.peak)

    def _look_on(self) -> None:
        while not self._ended.wait(EVERY):
            self.look()

    @classmethod
    @contextmanager
    def children(cls) -> Iterator["Watch"]:
        """Watches all processes that are started in the block."""
        watch = cls()
        thread = threading.Thread(target=watch._look_on, daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            watch._ended.set()
            thread.join()


def measure(path: Path) -> Needs:
    """Runs a lesson and returns what it needed. Raises CannotStart with the cell that failed, if one did."""
    clock, memory = [0.0], []
    with Watch.children() as watch, reproducible_environment() as environment:

        def on_cell(done: int, total: int) -> None:
            watch.look()
            clock.append(watch.cpu)
            memory.append(watch.now)

        report = execute_notebook(path, timeout=CELL_SECONDS, on_cell=on_cell, env=environment | {"COURSE_STRICT": "0"})
    if report.error:
        raise CannotStart(f"{path.stem} was not measured: {report.error}.")
    cpu = [after - before for before, after in zip(clock, clock[1:], strict=False)]
    return Needs(lesson=path.stem[:2], cpu=cpu, memory=memory, peak=max(watch.peak, *memory))


@dataclass(frozen=True, kw_only=True)
class Class:
    """How a class fared that ran one lesson on so many cores."""

    busy: float  # cores that were busy on average
    most: int  # cells that ran at the same time, at most
    slower: float  # seconds that cells took over their processor seconds: 1 if nobody ever waited


def simulate(cells: Sequence[float], *, learners: int, cores: int, minutes: float = MINUTES, seed: int = 0) -> Class:
    """Simulates learners who each run the cells once, second by second, and share the cores equally.

    Between two cells a learner reads for an exponentially distributed time whose mean fills the `minutes`. One cell
    uses one core at most. Raises ValueError without cells, learners or cores.
    """
    if not cells or learners < 1 or cores < 1:
        raise ValueError(f"a class needs cells, learners and cores, not {len(cells)}, {learners} and {cores}")
    draw = random.Random(seed)
    pause = max(minutes * 60 - sum(cells), 1.0) / len(cells)
    wait = [draw.uniform(0, START) for _ in range(learners)]  # seconds until a learner's next cell
    left = [0.0] * learners  # processor seconds of the cell that runs
    following = [0] * learners
    worked = spent = seconds = 0.0
    most = 0
    while any(left) or any(cell < len(cells) for cell in following):
        seconds += 1
        running = sum(amount > 0 for amount in left)
        most = max(most, running)
        share = min(1.0, cores / running) if running else 0.0
        for one in range(learners):
            if left[one] > 0:
                done = min(share, left[one])
                left[one] -= done
                worked += done
                spent += done / share
                if left[one] == 0:
                    wait[one] = draw.expovariate(1 / pause)
            elif following[one] < len(cells):
                wait[one] -= 1
                if wait[one] <= 0:
                    left[one] = cells[following[one]]
                    following[one] += 1
                    if left[one] == 0:
                        wait[one] = draw.expovariate(1 / pause)
    return Class(busy=worked / seconds, most=most, slower=spent / worked if worked else 1.0)


def print_needs(measured: Sequence[Needs]) -> None:
    """Prints one line for each lesson, as a table of Markdown."""
    print("| lesson | cells | processor seconds | median cell | longest cell | memory, median | memory, peak |")
    print("|---|---|---|---|---|---|---|")
    for needs in measured:
        seconds = f"{needs.total:.0f} | {median(needs.cpu):.2f} | {max(needs.cpu):.0f}"
        memory = f"{median(needs.memory) / 2**30:.2f} GiB | {needs.peak / 2**30:.2f} GiB"
        print(f"| {needs.lesson} | {len(needs.cpu)} | {seconds} | {memory} |")


def together(cells: Sequence[float], *, learners: int, cores: int) -> float:
    """Seconds until all learners have the result of the longest cell, if they start it at the same moment."""
    return max(cells) * max(1.0, learners / cores)


def print_classes(measured: Sequence[Needs], learners: int, cores: Sequence[int]) -> None:
    """Prints how a class fares with the lesson that needs most processor time."""
    needs = max(measured, key=lambda needs: needs.total)
    print(
        f"\n{learners} learners run lesson {needs.lesson} within {MINUTES} minutes, and begin within {START / 60:.0f}."
    )
    print("\n| cores | busy on average | cells at once, at most | slower than alone | the longest cell, all at once |")
    print("|---|---|---|---|---|")
    for count in cores:
        fared = simulate(needs.cpu, learners=learners, cores=count)
        wait = together(needs.cpu, learners=learners, cores=count)
        print(f"| {count} | {fared.busy:.1f} | {fared.most} | {fared.slower:.2f} times | {wait:.0f} s |")


def main(arguments: Sequence[str] = ()) -> int:
    """Measures the named lessons, or all, and prints both tables."""
    parser = argparse.ArgumentParser(prog="course bench lessons", description=__doc__.split("\n")[0])
    parser.add_argument("lessons", nargs="*", help="numbers or names; all if left out")
    parser.add_argument("--learners", type=int, default=LEARNERS, help=f"size of the class ({LEARNERS})")
    parser.add_argument("--cores", type=int, nargs="+", default=CORES, help="cores of the hub")
    parser.add_argument("--keep", type=Path, help="a JSON file: what it has is not measured again")
    asked = parser.parse_args(arguments)
    kept = json.loads(asked.keep.read_text("utf-8")) if asked.keep and asked.keep.exists() else {}
    measured, failed = [], 0
    for path in [find_lesson(name) for name in asked.lessons] or lessons():
        try:
            needs = Needs(**kept[path.stem]) if path.stem in kept else measure(path)
        except CannotStart as problem:  # the others can be measured all the same
            print(problem, file=sys.stderr, flush=True)
            failed += 1
            continue
        kept[path.stem] = asdict(needs)
        if asked.keep:
            asked.keep.write_text(json.dumps(kept), "utf-8")
        measured.append(needs)
        print(f"{path.stem}: {needs.total:.0f} s, {needs.peak / 2**30:.2f} GiB", file=sys.stderr, flush=True)
    if not measured:
        return 1
    load = f", load {os.getloadavg()[0]:.1f} at the end" if hasattr(os, "getloadavg") else ""
    print(f"{usable_cores()} cores, {platform.machine()}{load}; one thread for each kernel.\n")
    print_needs(measured)
    print_classes(measured, asked.learners, asked.cores)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
