"""How fast `course grade` is beside `nbgrader autograde`, on the same submissions of assignment 05.

python -m course_lib.bench.grading [--submissions 200] [--nbgrader 8] [--growth 10 100 1000]

Submissions are the reference, the cells as handed out, known-wrong answers, and mixtures; a comment makes each of them
another. Both begin from nothing: imports and sandboxes count. nbgrader takes long, so it grades a sample of them.
"""

import argparse
import contextlib
import io
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_lib.grading.folders import TIMESTAMP, Folders, assignments_folder, write_whole
from course_lib.grading.release import release
from course_lib.grading.spec import AssignmentFiles, load, read_assignment
from course_lib.tasks.wrong import wrong_answers

ASSIGNMENT = "05"
TARGET = 40.0  # times as fast as nbgrader
KINDS = ("the reference", "cells as handed out", "wrong answers", "a mixture of these")


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Wall seconds of one run: in all, and until the first of its submissions was done, if that is known."""

    submissions: int
    total: float
    first: float | None = None

    @property
    def each(self) -> float:
        return self.total / self.submissions

    @property
    def further(self) -> float | None:
        """Seconds for each submission after the first."""
        if self.first is None or self.submissions < 2:
            return None
        return (self.total - self.first) / (self.submissions - 1)


def answers(files: AssignmentFiles, wrong: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Without end, the answers of one submission after the other, in turns of the KINDS; no two answers are equal.

    A cell that nobody has written in stays as it was handed out.
    """
    loaded = load(files)
    reference = {cell.grade_id: cell.source for cell in loaded.cells if cell.kind == "solution"}
    for number in itertools.count():
        kind, turn = number % len(KINDS), number // len(KINDS)
        chosen = {}
        for place, (task, right) in enumerate(reference.items()):
            mistaken = wrong[task][turn % len(wrong[task])]
            mixed = (right, loaded.stubs[task], mistaken)[(turn + place) % 3]
            chosen[task] = (right, loaded.stubs[task], mistaken, mixed)[kind]
        yield {
            task: text if text == loaded.stubs[task] else f"{text}\n# submission {number}"
            for task, text in chosen.items()
        }


def make_course(root: Path, count: int) -> Folders:
    """A course directory with the assignment released and so many submissions."""
    theirs, ours = assignments_folder(), Folders(root=root)
    for place in ("source", "hidden"):
        shutil.copytree(getattr(theirs, place)(ASSIGNMENT), getattr(ours, place)(ASSIGNMENT))
    shutil.copy(theirs.config, ours.config)
    with contextlib.redirect_stdout(io.StringIO()):
        release(ASSIGNMENT, folder=root)
    files = read_assignment(root, ASSIGNMENT)
    right = {cell.grade_id: cell.source for cell in load(files).cells if cell.kind == "solution"}
    tables = load(files).assignment.tasks
    wrong = {table.name: [answer.text for answer in wrong_answers(table, right[table.name])] for table in tables}
    blank = json.loads((ours.release(ASSIGNMENT) / f"{files.notebook}.ipynb").read_bytes())
    for number, given in zip(range(count), answers(files, wrong), strict=False):
        for cell in blank["cells"]:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id")
            cell["source"] = given.get(name, cell["source"])
        blank["metadata"]["submission"] = number  # where nothing was answered, too, no two files are equal
        place = ours.submitted(f"student{number:04}", ASSIGNMENT)
        write_whole(place / f"{files.notebook}.ipynb", json.dumps(blank))
        write_whole(place / TIMESTAMP, "2026-01-01 12:00:00 UTC")
    return ours


def time_course(folders: Folders, count: int, *, workers: int | None = None) -> Timing:
    """How long `course grade` takes for all that was submitted. Raises ValueError if not all were graded."""
    command = [sys.executable, "-m", "course_lib.cli", "grade", ASSIGNMENT, f"--folder={folders.root}"]
    start = time.time()
    done = subprocess.run(
        [*command, *([] if workers is None else [f"--workers={workers}"])], capture_output=True, text=True
    )
    end = time.time()
    if f"{count} graded now" not in done.stdout:
        raise ValueError(f"not all of {count} submissions were graded: {done.stdout}{done.stderr}")
    first = min(path.stat().st_mtime for path in folders.root.glob(f"autograded/*/{ASSIGNMENT}/*.ipynb"))
    return Timing(submissions=count, total=end - start, first=first - start)


def time_nbgrader(folders: Folders, students: Sequence[str], scratch: Path) -> Timing:
    """How long nbgrader's own `autograde` takes, in one process; it runs each notebook in a kernel.

    Raises ValueError with the end of what it said if it did not grade them all.
    """
    for place in ("source", "release"):
        shutil.copytree(folders.root / place, scratch / place)
    shutil.copy(folders.gradebook, scratch / folders.gradebook.name)
    for student in students:
        shutil.copytree(folders.submitted(student, ASSIGNMENT), Folders(root=scratch).submitted(student, ASSIGNMENT))
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "autograde", ASSIGNMENT, f"--course-dir={scratch}"],
        cwd=scratch,
        env=os.environ | {"PATH": tools},
        capture_output=True,
        text=True,
    )
    end = time.monotonic()
    graded = len(list(scratch.glob(f"autograded/*/{ASSIGNMENT}/*.ipynb")))
    if graded < len(students):
        raise ValueError(f"nbgrader graded {graded} of {len(students)} submissions: {done.stderr[-2000:]}")
    return Timing(submissions=len(students), total=end - start)


def main(arguments: Sequence[str] = ()) -> int:
    """Prints what was measured; returns 0 if the target was reached, otherwise 1."""
    parser = argparse.ArgumentParser(prog="bench_grading", description=__doc__.split("\n")[0])
    parser.add_argument("--submissions", type=int, default=200, help="how many course grade grades (200)")
    parser.add_argument("--nbgrader", type=int, default=8, help="how many of them nbgrader grades (8)")
    parser.add_argument(
        "--growth", type=int, nargs="*", default=[], help="sizes of further classes, such as 10 100 1000"
    )
    parser.add_argument("--workers", type=int, help="processes of course grade (one for each core)")
    asked = parser.parse_args(arguments)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    busy = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    print(f"Assignment {ASSIGNMENT}; submissions in turns: {', '.join(KINDS)}.")
    print(f"Wall seconds; {cores} cores, {platform.machine()}{busy}\n")
    print(f"{'':<34}{'submissions':>12}{'total':>9}{'each':>9}{'first':>9}{'further':>9}")
    with tempfile.TemporaryDirectory(prefix="bench-grading-") as scratch:
        folders = make_course(Path(scratch) / "course", asked.submissions)
        students = sample(folders.students(ASSIGNMENT), asked.nbgrader)
        theirs = time_nbgrader(folders, students, Path(scratch) / "nbgrader")
        _print_timing("nbgrader autograde, a sample", theirs)
        ours = time_course(folders, asked.submissions, workers=asked.workers)
        _print_timing(f"course grade, {asked.workers or cores} processes", ours)
        ratio = theirs.each / ours.each
        print(f"\ncourse grade is {ratio:.1f} times as fast (aim: {TARGET:g}){'' if ratio >= TARGET else '  MISSED'}")
        for count in asked.growth:
            further = make_course(Path(scratch) / f"class-of-{count}", count)
            _print_timing(f"course grade, a class of {count}", time_course(further, count, workers=asked.workers))
            shutil.rmtree(further.root)
    return 0 if ratio >= TARGET else 1


def sample(students: Sequence[str], count: int) -> list[str]:
    """So many students, spread evenly, with each of the KINDS as often as the others."""
    rounds, further = divmod(min(count, len(students)), len(KINDS))
    turns = len(students) // len(KINDS)
    chosen = [turn * turns // rounds * len(KINDS) + kind for turn in range(rounds) for kind in range(len(KINDS))]
    return [students[index] for index in chosen] + list(students[len(students) - further :] if further else [])


def _print_timing(what: str, timing: Timing) -> None:
    numbers = f"{timing.total:>9.1f}{timing.each:>9.3f}"
    if timing.further is not None:
        numbers += f"{timing.first:>9.1f}{timing.further:>9.3f}"
    print(f"{what:<34}{timing.submissions:>12}{numbers}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
