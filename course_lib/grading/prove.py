"""`course assign prove NAME`: shows that an assignment's checks give the points that an answer deserves.

The release must give nothing away. The reference must earn everything, the cells as they are handed out nothing, and
each known-wrong answer must fail what it should. Wrong answers come from a task's table: its mistakes and the reference
with an argument that it ignores, which are asked here, and changes of the reference's own text, which are judged as
submissions are, in the sandbox. So is the reference that returns its result in another style, a list or an array, say:
where the visible check accepts that, it must earn everything.

Of alternative tasks all are proved together, then each in the notebook that is released with it; the solution of one
earns nothing in the place of another.
"""

import contextlib
import io
import itertools
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from course_lib.grading.alternatives import every_choice, slots
from course_lib.grading.folders import assignments_folder
from course_lib.grading.intake import Submission
from course_lib.grading.judge import GRADED, Verdict
from course_lib.grading.leaks import leaks
from course_lib.grading.pools import executor, judge_one, lost_ones
from course_lib.grading.spec import AssignmentFiles, LoadedAssignment, load, read_assignment
from course_lib.grading.stripped import student_version
from course_lib.grading.validation import visible_tasks
from course_lib.grading.wording import one_line
from course_lib.tasks import Task, run_checks
from course_lib.tasks.wrong import ignored, in_other_styles, undetected, wrong_answers

KEYS = tuple(bytes([number]) * 32 for number in range(1, 4))  # three draws of hidden inputs


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One answer to judge, or all of them: its task ("" for all), the text of each cell, and what must come of it.

    `fails` are the names of the checks that it must fail, and no others; "all" of them; or None for whichever. `says`
    is the misconception that the report has to name. `files` are those of one release, None with all alternatives.
    """

    task: str
    name: str
    answers: Mapping[str, str]
    fails: tuple[str, ...] | str | None
    says: str = ""
    files: AssignmentFiles | None = None


def prove(name: str, *, folder: str | os.PathLike | None = None, workers: int | None = None) -> int:
    """Judges reference, release and wrong answers of an assignment, and prints what each earned.

    Returns 0 if everything is as it should be, else 1 after one line for each deviation. Raises CannotStart for an
    unknown assignment, files that do not fit each other, and where there is no sandbox.
    """
    folders = assignments_folder(folder)
    found: list[str] = []
    files = read_assignment(folders.root, name)
    loaded = load(files)
    planned = trials(loaded) + list(of_each_other(files))
    for number, choose in enumerate(every_choice(files.source_notebook, files.place), 1):
        released = files.chosen(choose)
        found += leaks(files, student_version(released.source_notebook, files.place), folders.source(name))
        if released != files:
            planned += as_released(released, files, trial=f"the reference in draw {number}")
    for line, deviations in run_trials(planned, files, hidden=folders.root, workers=workers):
        print(line)
        found += deviations
    tasks = loaded.assignment.tasks
    found += [line for task in tasks for line in (*undetected(task), *ignored(task))]
    for line in found:
        print(f"✗ {line}")
    if not found:
        mistakes = sum(len(mistake.ways) for task in tasks for mistake in task.mistakes)
        wrong = sum(1 for trial in planned if trial.task)
        print(
            f"✓ {len(planned)} judgements, {wrong} answers that are wrong or in another style: each earned what it "
            f"deserves; {mistakes} mistakes in tables: each was named."
        )
    return int(bool(found))


def trials(loaded: LoadedAssignment) -> list[Trial]:
    """All that has to be judged."""
    right = {cell.grade_id: cell.source for cell in loaded.cells if cell.kind == "solution"}
    planned = [
        Trial(task="", name="the reference", answers=right, fails=()),
        Trial(task="", name="the cells as handed out", answers=loaded.stubs, fails="all"),
    ]
    for task in loaded.assignment.tasks:
        for wrong in wrong_answers(task, right[task.name]):
            expected = {"fails": wrong.fails, "says": wrong.says}
            planned.append(_in_place(right, task, wrong.name, wrong.text, **expected))
    return planned + list(_in_other_styles(loaded, right))


def as_released(released: AssignmentFiles, files: AssignmentFiles, *, trial: str) -> Iterator[Trial]:
    """What can differ from draw to draw: the alternatives that were drawn, and solutions that use an alternative."""
    loaded = load(released)
    right = {cell.grade_id: cell.source for cell in loaded.cells if cell.kind == "solution"}
    of_slots = slots(files.source_notebook, files.place).values()
    names = {name for alternatives in of_slots for tasks in alternatives.values() for name in tasks}
    for task in loaded.assignment.tasks:
        if names.intersection(re.findall(r"\w+", right[task.name])):
            yield replace(_in_place(right, task, trial, right[task.name], fails=()), files=released)


def of_each_other(files: AssignmentFiles) -> Iterator[Trial]:
    """The solution of each alternative, under the name of another one of its slot."""
    loaded = load(files)
    right = {cell.grade_id: cell.source for cell in loaded.cells if cell.kind == "solution"}
    for alternatives in slots(files.source_notebook, files.place).values():
        tasks = [next(task for task in loaded.assignment.tasks if task.name in one) for one in alternatives.values()]
        for task, other in itertools.permutations(tasks, 2):
            text = re.sub(rf"\b{other.name}\b", task.name, right[other.name])
            yield _in_place(right, task, f"the solution of {other.name}", text, fails="all")


def _in_place(right: Mapping[str, str], task: Task, name: str, text: str, **expected: Any) -> Trial:
    """The reference with another answer to one task; of the others only what it may use."""
    used = {other: source for other, source in right.items() if re.search(rf"\b{other}\b", text)} | {task.name: text}
    return Trial(task=task.name, name=name, answers=used, **expected)


def _in_other_styles(loaded: LoadedAssignment, right: Mapping[str, str]) -> Iterator[Trial]:
    """Answers in other styles that pass the visible check: nothing passes there and fails here."""
    shown, names = visible_tasks(loaded.assignment.name), {"__name__": "__main__"}
    texts = [
        (task, *style)
        for task in loaded.assignment.tasks
        if task.name in shown
        for style in in_other_styles(task, right[task.name])
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in loaded.cells if texts else ():
            exec(cell.source, names)
        for task, name, text in texts:
            exec(text, own := dict(names))
            if run_checks(own[task.name], shown[task.name].all_checks, asks=task.asks).passed:
                yield _in_place(right, task, f"as {name}", text, fails=())


def run_trials(
    planned: list[Trial], files: AssignmentFiles, *, hidden: Path, workers: int | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Judges each trial, several at a time, the reference with every key: a line on each, and its deviations.

    No box sees the folder `hidden`. Raises CannotStart where there is no sandbox, or a judging process is lost.
    """
    jobs = [(trial, key) for trial in planned for key in (KEYS if trial.fails == () and not trial.task else KEYS[:1])]
    with executor(workers=workers, hidden=hidden, trusted=False) as (pool, _):
        asked = [
            pool.submit(judge_one, submission(trial, files), trial.files or files, key, False, hidden)
            for trial, key in jobs
        ]
        for (trial, _), future in zip(jobs, asked, strict=True):
            with lost_ones([submission(trial, files)]):
                earned, possible, deviations = examine(trial, future.result())
            sign, task = "✗" if deviations else "✓", trial.task and f"{trial.task}: "
            yield f"{sign} {task}{one_line(trial.name)}: {earned:g} of {possible:g} points", deviations


def submission(trial: Trial, files: AssignmentFiles) -> Submission:
    """The trial as if a student had handed it in."""
    return Submission(student=trial.name, assignment=files.name, sha256="0" * 64, answers=trial.answers)


def examine(trial: Trial, verdict: Verdict) -> tuple[float, float, list[str]]:
    """The points that a trial earned, those that are possible, and in what way that is not what it deserves."""
    judged = [task for name, task in verdict["tasks"].items() if trial.task in ("", name)]
    place = f"{trial.task}: {trial.name!r}" if trial.task else trial.name
    deviations = [f"{place} {line}" for line in _deviations(trial, judged, verdict)]
    return sum(task["points"] for task in judged), sum(task["possible"] for task in judged), deviations


def _deviations(trial: Trial, judged: list[Verdict], verdict: Verdict) -> Iterator[str]:
    checks = [check for task in judged for check in task["checks"]]
    for check in checks if trial.fails is not None else ():
        should_fail = trial.fails == "all" or check["name"] in trial.fails
        if check["passed"] and should_fail:
            yield f"passes the check {check['name']!r}, which it should fail"
        if not check["passed"] and not should_fail:
            reasons = "; ".join(f"{found['misconception']}: {found['message']}" for found in check["findings"])
            yield f"fails the check {check['name']!r}, which it should pass ({reasons})"
    if trial.fails is None and all(check["passed"] for check in checks):
        yield "earns all points"
    told = dict.fromkeys(found["misconception"] for check in checks for found in check["findings"])
    if trial.says and trial.says not in told:
        yield f"is not told {trial.says!r}, but: {', '.join(told) or 'nothing'}"
    if verdict["status"] != GRADED:
        yield f"needs attention: {' '.join(verdict['notes'])}"
