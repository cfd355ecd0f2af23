"""The judge: asks a student's code in the box, compares with what it knows itself, and says how many points that earns.

Scores start at 0, and only a check here adds to them. What the code returns is data: nothing that it returns, raises
or prints can give points. Each cell is run once; each task is asked in a copy of the box as it is then.
"""

import contextlib
import functools
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from course_lib.grading.intake import Submission
from course_lib.grading.sandbox import Box, BoxEnded, SandboxError, StudentError, Zygote
from course_lib.grading.spec import AssignmentFiles, Cell, LoadedAssignment, load
from course_lib.grading.subject import Subject, Talk, in_words, seed_for
from course_lib.grading.wording import visible
from course_lib.tasks import Check, Task
from course_lib.tasks.findings import FORBIDDEN, STOPPED, CheckFailed, Finding, general
from course_lib.tasks.slips import NO_SUCH_NAME

GRADED, ATTENTION = "graded", "needs attention"
SANDBOXED, TRUSTED = "bubblewrap", "none: trusted students"
LOAD_SECONDS = 10.0  # of processor time, for one cell, and again for its definitions alone
CALL_SECONDS = 5.0  # of processor time, for one call where the task says nothing else
AGAIN_SECONDS = 60.0  # for running cells again, after tasks that ended the box
TOLD = 600  # characters that are kept of a finding
NO_ANSWER = "no answer"
ENDED = "your code was ended"
NOT_YET = "not looked at"
NOT_JUDGED = "could not be judged"
BLANK = Finding(NO_ANSWER, "The cell is missing, empty or as it was handed out.")

_ENDINGS = {
    "time": "used more than {seconds:g} s of processor time, or waited far longer than that",
    "memory": "used more memory than allowed",
    "processes": "started more processes or threads than allowed",
    "exit": "ended the process",
    "protocol": "disturbed the connection to the judge",
}
_TOO_LONG = "Look for a loop without end, for far too large tensors; a training needs fewer steps, a smaller network."
_TOO_MUCH = "Look for far too large tensors, for processes that are started, for anything that ends Python."

Verdict = dict[str, Any]


def judge(submission: Submission, files: AssignmentFiles, *, key: bytes, zygote: Zygote) -> Verdict:
    """The verdict on one submission, as plain JSON values: points, findings and notes for each task.

    Equal submissions get equal points under the same key. Raises ValueError for an empty key, and SandboxError if the
    sandbox broke.
    """
    if not key:
        raise ValueError("the instructor's key is empty: hidden inputs could be foreseen")
    sitting = _Sitting(submission=submission, loaded=load(files), key=key, zygote=zygote, box=zygote.box())
    try:
        fingerprints, published = sitting.fingerprints()
        tasks = sitting.judge_all()
    finally:
        sitting.box.close()
    alike = {"fingerprints": fingerprints, "published": published}
    return _verdict(submission, files, tasks, trusted=zygote.trusted, attention=sitting.attention) | alike


def lost_verdict(submission: Submission, files: AssignmentFiles, *, trusted: bool, note: str) -> Verdict:
    """The verdict on a submission that could not be judged: no points, and a person has to look at it."""
    lost = Finding(NOT_JUDGED, "This could not be judged; your instructor is told.")
    tasks = {
        task.name: _verdict_on_task(task, lost, answered=task.name in submission.answers)
        for task in load(files).assignment.tasks
    }
    return _verdict(submission, files, tasks, trusted=trusted, attention=[note])


def _verdict(
    submission: Submission, files: AssignmentFiles, tasks: Verdict, *, trusted: bool, attention: list[str]
) -> Verdict:
    """The verdict on all tasks; `attention` is what an instructor has to know, and students are not told."""
    return {
        "assignment": files.name,
        "student": submission.student,
        "submission": submission.sha256,
        "spec": files.hash,
        "sandbox": TRUSTED if trusted else SANDBOXED,
        "status": ATTENTION if attention or not submission.readable else GRADED,
        "readable": submission.readable,
        "notes": [*submission.notes, *dict.fromkeys(attention)],
        "student_notes": list(submission.notes),
        "tasks": tasks,
    }


def _verdict_on_task(
    task: Task, found: Finding | list[list[Finding]], *, answered: bool, measured: Mapping[str, float] | None = None
) -> Verdict:
    """What each check found, or the one finding that costs all of them; `measured` is in the unit of the task."""
    findings = [[found]] * len(task.scored) if isinstance(found, Finding) else found
    checks = [
        {
            "name": check.name,
            "points": 0.0 if found else float(check.points),
            "possible": float(check.points),
            "passed": not found,
            "findings": [_plain(finding) for finding in found],
        }
        for check, found in zip(task.scored, findings, strict=True)
    ]
    points = sum(check["points"] for check in checks)
    score = {"score": fmean(measured.values())} if measured else {}
    return {"points": points, "possible": float(task.points), "checks": checks, "answered": answered} | score


@dataclass(kw_only=True)
class _Sitting:
    """The judging of one submission in one box, or in several where tasks end it."""

    submission: Submission
    loaded: LoadedAssignment
    key: bytes
    zygote: Zygote
    box: Box
    ran: list[Cell] = field(default_factory=list)  # those that did not end the box
    slow: set[str] = field(default_factory=set)  # of which only the definitions are run
    again: float = AGAIN_SECONDS  # left for running them again
    attention: list[str] = field(default_factory=list)
    measured: dict[str, dict[str, float]] = field(default_factory=dict)  # by task and check

    def fingerprints(self) -> tuple[dict[str, str], list[str]]:
        """What tells an answer that somebody else has written, too, and the tasks whose solution it is as published.

        Asked before any code of an answer runs. Nothing is deducted for it: an instructor may want to ask.
        """
        cells = {cell.grade_id: cell.source for cell in self.loaded.cells if cell.kind == "solution"}
        answers = {name: text for name, text in self.submission.answers.items() if name in cells}
        with contextlib.suppress(StudentError):
            found = self.box.fingerprints([*answers.values(), *(cells[name] for name in answers)])
            pairs = dict(zip(answers, zip(found[: len(answers)], found[len(answers) :], strict=True), strict=True))
            own = {name: one for name, (one, _) in pairs.items() if one}
            return own, [name for name in own if pairs[name][0] == pairs[name][1]]
        return {}, []

    def judge_all(self) -> Verdict:
        """Runs one cell after the other, and asks a task as soon as its own cell has run."""
        tasks = {task.name: task for task in self.loaded.assignment.tasks}
        found: dict[str, Any] = {}
        stops: dict[str, Finding | None] = {}
        settled = self._settled(tasks.values())
        for cell in self.loaded.cells:
            task = tasks.get(cell.grade_id)
            if task:
                cell = replace(cell, source=self.submission.answers.get(task.name, ""))
            try:
                stops[cell.grade_id] = self._run(cell)
                found[cell.grade_id] = settled.get(cell.grade_id) or (task and self._judge_task(task, stops[task.name]))
            except BoxEnded as end:
                found[cell.grade_id] = _ended_finding(end.reason, LOAD_SECONDS, "While the cell was run, your code")
                if not task:
                    self.attention.append(f"The assignment's own cell {cell.grade_id!r} was ended ({end.reason}).")
        for task in tasks.values():  # a helper may stand in an answer further down
            if task.name not in settled and _lacks_a_name(found[task.name]) and not self.box.ended:
                found[task.name] = self._judge_task(task, stops[task.name])
        return {
            name: _verdict_on_task(
                task, found[name], answered=found[name] is not BLANK, measured=self.measured.get(name)
            )
            for name, task in tasks.items()
        }

    def _settled(self, tasks: Iterable[Task]) -> dict[str, Finding]:
        """What is found before any code of an answer runs: that there is none, or what it uses and its task forbids."""
        answers, stubs = self.submission.answers, self.loaded.stubs
        found = {t.name: BLANK for t in tasks if _bare(answers.get(t.name, "")) in ("", _bare(stubs[t.name]))}
        asked = [task for task in tasks if task.forbids and task.name not in found]
        with contextlib.suppress(StudentError):
            uses = self.box.uses([answers[task.name] for task in asked], [task.forbids for task in asked])
            for task, use in zip(asked, uses, strict=True):
                if use:
                    found[task.name] = general(FORBIDDEN, f"Line {use[1]}, `{use[2]}`, uses `{use[0]}`.")
        return found

    def _run(self, cell: Cell) -> Finding | None:
        """Runs a cell, in a new box behind those before if there is none; what to say of an error in it.

        Of a cell that takes too long only the definitions are run. Raises BoxEnded if it ends the box all the same, or
        no time is left to run those before it again.
        """
        if self.box.ended:
            self.box = self.zygote.box()
            start = time.monotonic()
            for before in self.ran:
                if self.again <= 0:
                    self.box.close()
                    raise BoxEnded("time")
                self.box.load(before.source, seconds=LOAD_SECONDS, definitions=before.grade_id in self.slow)
                self.again, start = self.again - self.box.used_since(start), time.monotonic()
        try:
            error = self.box.load(cell.source, seconds=LOAD_SECONDS, definitions=cell.grade_id in self.slow)
        except BoxEnded as end:
            if end.reason != "time" or cell.grade_id in self.slow:
                raise
            self.slow.add(cell.grade_id)  # such as a training that was tried below the answer
            return self._run(cell)
        self.ran.append(cell)
        if error is None:
            return None
        if cell.kind == "setup":
            self.attention.append(f"The assignment's own cell {cell.grade_id!r} stopped: {error.kind}: {error.words}")
        told = in_words(error)
        return Finding(STOPPED, f"Already when the cell is run: {told.message}", told.hint)

    def _judge_task(self, task: Task, stopped: Finding | None) -> list[list[Finding]]:
        """What each check of a task found, asked in a copy of the box; what stopped the cell is told first."""
        seconds = self.loaded.assignment.seconds_of(task)
        try:
            with self.box.copy(seconds):
                findings = self._judge_checks(task)
        except BoxEnded as end:  # it could not be copied
            findings = [[_ended_finding(end.reason, seconds, "Your code")] for _ in task.scored]
        if stopped and (failed := next(filter(None, findings), None)):
            failed.insert(0, stopped)
        return findings

    def _judge_checks(self, task: Task) -> list[list[Finding]]:
        """What each check of a task found; after the end of the copy, only how that came.

        The example is a gate: it is public, and an answer that fails it fails every check.
        """
        answers = self.submission.answers
        seed = functools.partial(seed_for, self.key, self.loaded.assignment.name, task.name, answers=answers)
        talk, findings = Talk(box=self.box, seed=seed), []
        gate = [found for example in task.by_hand for found in self._judge_check(task, example, talk)]
        ended, general_ones = None, {part.name for part in task.also} if task.cases else ()
        for check in task.scored:
            if ended is None and check.name in general_ones and findings[0]:
                found = [Finding(NOT_YET, f"This counts only together with: {task.scored[0].name}")]
            elif ended is None:
                found = self._judge_check(task, check, talk)
                if reason := self.box.copy_ended:  # whatever the check made of it
                    ended = _ended_finding(reason, self.box.slow, "Your code")
            findings.append(found if ended is None else [ended])
        return [[*gate, *found] for found in findings]

    def _judge_check(self, task: Task, check: Check, talk: Talk) -> list[Finding]:
        asked = talk.asked
        subject = Subject(task.name, talk, label=check.name, asks=task.asks, seconds=task.seconds or CALL_SECONDS)
        try:
            found = list(check.run(subject))
            if not found and talk.asked == asked:
                raise RuntimeError("a check that asks nothing cannot be passed")
            if task.measure and subject.measured is not None and math.isfinite(subject.measured):
                self.measured.setdefault(task.name, {})[check.name] = float(subject.measured)
            return found
        except CheckFailed as fault:
            return [fault.finding]
        except SandboxError:
            raise
        except Exception as error:
            if self.box.copy_ended is None:
                name = f"{type(error).__name__} in the check {check.name!r} of task {task.name!r}"
                self.attention.append(f"A check could not be carried out: {name}.")
            return [Finding(NOT_JUDGED, "This check could not be carried out on your answer; your instructor is told.")]


def _lacks_a_name(found: Finding | list[list[Finding]]) -> bool:
    """Whether an answer used a name that was not there when it was asked."""
    return isinstance(found, list) and any(part.misconception == NO_SUCH_NAME for check in found for part in check)


def _plain(finding: Finding) -> dict[str, str]:
    """A finding as it is kept: words of a student's in it are cut off, and show what steers or hides."""
    texts = {"misconception": finding.misconception, "message": finding.message, "hint": finding.hint}
    return {name: visible(text[:TOLD].encode("utf-8", errors="replace").decode()) for name, text in texts.items()}


def _ended_finding(reason: str, seconds: float, who: str) -> Finding:
    how = _ENDINGS.get(reason, "was stopped by the sandbox").format(seconds=seconds)
    message = f"{who} {how}. What comes after that in this task could not be looked at."
    return Finding(ENDED, message, _TOO_LONG if reason == "time" else _TOO_MUCH)


def _bare(source: str) -> str:
    """The text without what changes nothing: spaces at the ends of lines, empty lines around it."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())
