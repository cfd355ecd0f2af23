"""`course assign prove NAME`: shows that an assignment's checks give the points that an answer deserves.

The reference must earn everything, the cells as they are handed out nothing, and each known-wrong answer must fail
what it should. Wrong answers come from a task's table: its mistakes, which are asked here, and changes of the
reference's own text, which are judged as submissions are, in the sandbox.
"""

import os
import threading
import types
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from course_lib.data.place import CannotStart
from course_lib.grading.folders import Folders, assignments_folder
from course_lib.grading.intake import Submission
from course_lib.grading.judge import GRADED, judge
from course_lib.grading.sandbox import SandboxError, Zygote
from course_lib.grading.spec import AssignmentFiles, LoadedAssignment, Task, load, read_assignment
from course_lib.grading.tables import rewritten, unproved

FILE = "wrong_solutions.py"
FEWEST = 6  # wrong solutions of a task
MOST_WORKERS = 8  # each holds a process with torch
KEYS = tuple(bytes([number]) * 32 for number in range(1, 4))  # three draws of hidden inputs


@dataclass(frozen=True, kw_only=True)
class WrongSolution:
    """An answer with a known mistake: the whole text of the cell, and what its judging must show.

    Give either `passes` or `fails`, names of the task's checks: all others do the opposite. A check that is not
    reached because it `needs` another counts as failed. `says` is the misconception that the report has to name; with
    nothing but that, whatever fails will do. Raises ValueError if both are given or neither is.
    """

    name: str
    answer: str
    passes: tuple[str, ...] | None = None
    fails: tuple[str, ...] | None = None
    says: str = ""

    def __post_init__(self) -> None:
        if (self.passes is None) == (self.fails is None) and not (self.says and self.passes is None):
            raise ValueError(f"the wrong solution {self.name!r} needs either passes or fails")

    def failing(self, task: Task) -> frozenset[str] | None:
        """The checks that it has to fail, None for any. Raises ValueError for a name that is none of the task's."""
        if self.passes is self.fails is None:
            return None
        names = {check.name for check in task.checks}
        listed = set(self.fails if self.passes is None else self.passes)
        if unknown := sorted(listed - names):
            raise ValueError(
                f"the wrong solution {self.name!r} names {unknown[0]!r}, which is no check of task {task.name!r}"
            )
        return frozenset(listed if self.passes is None else names - listed)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One answer to judge, or all of them: its task ("" for all), its text, and what it must earn and fail.

    Without `failing` it must earn less than everything.
    """

    task: str
    name: str
    answers: Mapping[str, str]
    deserves: float
    failing: frozenset[str] | None
    says: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a trial earned, and in what way that is not what it deserves."""

    trial: Trial
    earned: float
    possible: float
    deviations: tuple[str, ...]


def prove(name: str, *, folder: str | os.PathLike | None = None, workers: int | None = None) -> int:
    """Judges reference, release and wrong solutions of an assignment, and prints what each earned.

    Returns 0 if everything is as it should be, else 1 after one line for each deviation. Raises CannotStart for an
    unknown assignment, files that do not fit each other, and where there is no sandbox.
    """
    folders = assignments_folder(folder)
    try:
        files = read_assignment(folders.root, name)
        wrong = read_wrong_solutions(folders, name)
        planned = trials(load(files), wrong)
        outcomes = run_trials(planned, files, workers=workers)
    except (ValueError, SandboxError) as problem:
        raise CannotStart(str(problem)) from None
    console = Console(soft_wrap=True)
    console.print(_table(outcomes))
    found = [*gaps(load(files), wrong), *(line for outcome in outcomes for line in outcome.deviations)]
    for line in found:
        console.print(f"✗ {line}", style="red", markup=False, highlight=False)
    if not found:
        count = sum(map(len, wrong.values()))
        mistakes = sum(len(mistake.ways) for table in load(files).assignment.tables for mistake in table.mistakes)
        named = f", {mistakes} mistakes in tables: each was named" if mistakes else ""
        console.print(f"✓ {len(planned)} judgements, {count} wrong solutions: each earned what it deserves{named}.")
    return 1 if found else 0


def read_wrong_solutions(folders: Folders, name: str) -> dict[str, tuple[WrongSolution, ...]]:
    """The wrong solutions of each task, from its table or from a file.

    Raises ValueError where there is neither, and for a file that does not define them.
    """
    loaded = load(read_assignment(folders.root, name))
    solutions = {cell.grade_id: cell.source for cell in loaded.cells if cell.kind == "solution"}
    wrong = {
        table.name: tuple(
            WrongSolution(name=told, answer=text, **expected)
            for told, text, expected in rewritten(table, solutions[table.name])
        )
        for table in loaded.assignment.tables
    }
    path = folders.hidden(name) / FILE
    if wrong and not path.is_file():
        return wrong
    if not path.is_file():
        raise ValueError(f"Assignment {name} has no wrong solutions to prove it with: {path} is missing.")
    module = types.ModuleType(f"wrong_solutions_{name}")
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except Exception as error:
        raise ValueError(f"{path} does not load: {type(error).__name__}: {error}") from error
    written = getattr(module, "WRONG", None)
    if not isinstance(written, dict):
        raise ValueError(f"{path} has to define WRONG, a dictionary from tasks to wrong solutions.")
    return wrong | {task: (*wrong.get(task, ()), *solutions) for task, solutions in written.items()}


def trials(loaded: LoadedAssignment, wrong: Mapping[str, tuple[WrongSolution, ...]]) -> list[Trial]:
    """Everything that is to be judged. Raises ValueError for an unknown task or check, or a name given twice."""
    tasks = {task.name: task for task in loaded.assignment.tasks}
    if unknown := sorted(wrong.keys() - tasks.keys()):
        raise ValueError(f"There are wrong solutions for {unknown[0]!r}, which is no task of the assignment.")
    reference = {cell.grade_id: cell.source for cell in loaded.cells if cell.kind == "solution"}
    all_checks = frozenset(check.name for task in tasks.values() for check in task.checks)
    planned = [
        Trial(task="", name="the reference", answers=reference, deserves=loaded.assignment.points, failing=frozenset()),
        Trial(task="", name="the release", answers=loaded.stubs, deserves=0.0, failing=all_checks),
    ]
    for task in tasks.values():
        solutions = wrong.get(task.name, ())
        names = [solution.name for solution in solutions]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"Task {task.name!r} has two wrong solutions with the name {twice[0]!r}.")
        for solution in solutions:
            failing = solution.failing(task)
            planned.append(
                Trial(
                    task=task.name,
                    name=solution.name,
                    answers={task.name: solution.answer},
                    deserves=sum(check.points for check in task.checks if check.name not in (failing or ())),
                    failing=failing,
                    says=solution.says,
                )
            )
    return planned


def gaps(loaded: LoadedAssignment, wrong: Mapping[str, tuple[WrongSolution, ...]]) -> list[str]:
    """What the wrong solutions leave unproved: too few of a task, one that fails nothing, a check that none fails."""
    lines = []
    tables = {table.name: table for table in loaded.assignment.tables}
    for task in loaded.assignment.tasks:
        if task.name in tables:
            lines += unproved(tables[task.name])
            continue
        solutions = wrong.get(task.name, ())
        if len(solutions) < FEWEST:
            lines.append(f"{task.name}: {len(solutions)} wrong solutions, at least {FEWEST} are needed")
        lines += [
            f"{task.name}: {solution.name!r} fails no check, so it proves nothing"
            for solution in solutions
            if not solution.failing(task)
        ]
        failed = {name for solution in solutions for name in solution.failing(task)}
        lines += [
            f"{task.name}: no wrong solution fails the check {check.name!r}"
            for check in task.checks
            if check.name not in failed
        ]
    return lines


def run_trials(planned: list[Trial], files: AssignmentFiles, *, workers: int | None = None) -> list[Outcome]:
    """Judges each trial, several at a time, the reference with every key; raises SandboxError without a sandbox."""
    jobs = [(trial, key) for trial in planned for key in (KEYS if trial.failing == frozenset() else KEYS[:1])]
    own = threading.local()
    made: list[Zygote] = []

    def work(job: tuple[Trial, bytes]) -> Outcome:
        if not hasattr(own, "zygote"):
            own.zygote = Zygote()
            made.append(own.zygote)
        return examine(*job, files, own.zygote)

    try:
        with ThreadPoolExecutor(min(len(jobs), workers or os.cpu_count() or 1, MOST_WORKERS)) as pool:
            return list(pool.map(work, jobs))
    finally:
        for zygote in made:
            zygote.close()


def examine(trial: Trial, key: bytes, files: AssignmentFiles, zygote: Zygote) -> Outcome:
    """Judges one trial and compares."""
    submission = Submission(student=trial.name, assignment=files.name, sha256="0" * 64, answers=trial.answers)
    verdict = judge(submission, files, key=key, zygote=zygote)
    judged = verdict["tasks"] if not trial.task else {trial.task: verdict["tasks"][trial.task]}
    return Outcome(
        trial=trial,
        earned=sum(task["points"] for task in judged.values()),
        possible=sum(task["possible"] for task in judged.values()),
        deviations=tuple(_deviations(trial, judged, verdict)),
    )


def _deviations(trial: Trial, judged: Mapping[str, Any], verdict: Mapping[str, Any]) -> Iterator[str]:
    place = f"{trial.task}: {trial.name!r}" if trial.task else trial.name
    found = []
    for task in judged.values():
        for check in task["checks"]:
            found += [finding["misconception"] for finding in check["findings"]]
            if trial.failing is None:
                continue
            if check["passed"] and check["name"] in trial.failing:
                yield f"{place} passes the check {check['name']!r}, which it should fail"
            if not check["passed"] and check["name"] not in trial.failing:
                reasons = "; ".join(f"{f['misconception']}: {f['message']}" for f in check["findings"])
                yield f"{place} fails the check {check['name']!r}, which it should pass ({reasons})"
    earned = sum(task["points"] for task in judged.values())
    if trial.failing is None:
        if earned > trial.deserves - 0.5:
            yield f"{place} earns all points"
    elif abs(earned - trial.deserves) > 1e-9:
        yield f"{place} earns {earned:g} points in place of {trial.deserves:g}"
    if trial.says and trial.says not in found:
        named = ", ".join(dict.fromkeys(found)) or "nothing"
        yield f"{place} is not told {trial.says!r}, but: {named}"
    if verdict["status"] != GRADED:
        yield f"{place} needs attention: {' '.join(verdict['notes'])}"


def _table(outcomes: list[Outcome]) -> Table:
    table = Table("task", "answer", "fails", "earns", "deserves", "")
    for outcome in outcomes:
        trial = outcome.trial
        table.add_row(
            trial.task,
            trial.name,
            "some" if trial.failing is None else str(len(trial.failing)),
            f"{outcome.earned:g} of {outcome.possible:g}",
            "less" if trial.failing is None else f"{trial.deserves:g}",
            "✗" if outcome.deviations else "✓",
        )
    return table
