"""`course assign prove NAME`: shows that an assignment's checks give the points that an answer deserves.

The reference must earn everything, the cells as they are handed out nothing, and each known-wrong answer must fail
what it should. Wrong answers come from a task's table: its mistakes, which are asked here, and changes of the
reference's own text, which are judged as submissions are, in the sandbox.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from course_lib.data.place import CannotStart
from course_lib.grading.folders import assignments_folder
from course_lib.grading.intake import Submission
from course_lib.grading.judge import GRADED, judge
from course_lib.grading.sandbox import SandboxError, Zygote
from course_lib.grading.spec import AssignmentFiles, LoadedAssignment, load, read_assignment
from course_lib.tasks import Task
from course_lib.tasks.wrong import WrongAnswer, unproved, wrong_answers

MOST_WORKERS = 8  # each holds a process with torch
KEYS = tuple(bytes([number]) * 32 for number in range(1, 4))  # three draws of hidden inputs


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One answer to judge, or all of them: its task ("" for all), its text, and what it must earn and fail.

    With `failing` None it must earn less than everything.
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
    """Judges reference, release and wrong answers of an assignment, and prints what each earned.

    Returns 0 if everything is as it should be, else 1 after one line for each deviation. Raises CannotStart for an
    unknown assignment, files that do not fit each other, and where there is no sandbox.
    """
    folders = assignments_folder(folder)
    try:
        files = read_assignment(folders.root, name)
        loaded = load(files)
        planned = trials(loaded)
        outcomes = run_trials(planned, files, workers=workers)
    except (ValueError, SandboxError) as problem:
        raise CannotStart(str(problem)) from None
    console = Console(soft_wrap=True)
    console.print(_table(outcomes))
    found = [line for task in loaded.assignment.tasks for line in unproved(task)]
    found += [line for outcome in outcomes for line in outcome.deviations]
    for line in found:
        console.print(f"✗ {line}", style="red", markup=False, highlight=False)
    if not found:
        mistakes = sum(len(mistake.ways) for task in loaded.assignment.tasks for mistake in task.mistakes)
        wrong = sum(1 for trial in planned if trial.task)
        console.print(
            f"✓ {len(planned)} judgements, {wrong} wrong answers: each earned what it deserves, {mistakes} mistakes in "
            "tables: each was named."
        )
    return 1 if found else 0


def trials(loaded: LoadedAssignment) -> list[Trial]:
    """All that has to be judged."""
    right = {cell.grade_id: cell.source for cell in loaded.cells if cell.kind == "solution"}
    tasks = loaded.assignment.tasks
    every = frozenset(check.name for task in tasks for check in task.scored)
    planned = [
        Trial(task="", name="the reference", answers=right, deserves=loaded.assignment.points, failing=frozenset()),
        Trial(task="", name="the cells as handed out", answers=dict(loaded.stubs), deserves=0.0, failing=every),
    ]
    for task in tasks:
        names = frozenset(check.name for check in task.scored)
        planned += [_trial(task, wrong, names, right) for wrong in wrong_answers(task, right[task.name])]
    return planned


def _trial(task: Task, wrong: WrongAnswer, names: frozenset[str], right: Mapping[str, str]) -> Trial:
    failing = names if wrong.fails == "all" else None if wrong.fails is None else frozenset(wrong.fails) & names
    lost = sum(check.points for check in task.scored if failing and check.name in failing)
    return Trial(
        task=task.name,
        name=wrong.name,
        answers={name: text for name, text in right.items() if name in wrong.text} | {task.name: wrong.text},
        deserves=task.points - lost,
        failing=failing,
        says=wrong.says,
    )


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
    checks = [check for task in judged.values() for check in task["checks"]]
    found = [finding["misconception"] for check in checks for finding in check["findings"]]
    for check in checks if trial.failing is not None else ():
        if check["passed"] and check["name"] in trial.failing:
            yield f"{place} passes the check {check['name']!r}, which it should fail"
        if not check["passed"] and check["name"] not in trial.failing:
            reasons = "; ".join(f"{f['misconception']}: {f['message']}" for f in check["findings"])
            yield f"{place} fails the check {check['name']!r}, which it should pass ({reasons})"
    earned = sum(task["points"] for task in judged.values())
    if trial.failing is None and earned > trial.deserves - 0.5:
        yield f"{place} earns all points"
    if trial.failing is not None and abs(earned - trial.deserves) > 1e-9:
        yield f"{place} earns {earned:g} points in place of {trial.deserves:g}"
    if trial.says and trial.says not in found:
        yield f"{place} is not told {trial.says!r}, but: {', '.join(dict.fromkeys(found)) or 'nothing'}"
    if verdict["status"] != GRADED:
        yield f"{place} needs attention: {' '.join(verdict['notes'])}"


def _table(outcomes: list[Outcome]) -> Table:
    table = Table("task", "answer", "fails", "earns", "deserves", "")
    for outcome in outcomes:
        trial, some = outcome.trial, outcome.trial.failing is None
        table.add_row(
            trial.task,
            trial.name,
            "some" if some else str(len(trial.failing)),
            f"{outcome.earned:g} of {outcome.possible:g}",
            "less" if some else f"{trial.deserves:g}",
            "✗" if outcome.deviations else "✓",
        )
    return table
