"""The judge: asks a student's code in the box, compares with what it knows itself, and says how many points that earns.

Scores start at 0, and only a check here adds to them. What the code returns is data: nothing that it returns, raises
or prints can give points, and none of its words reach the findings that students read.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from course_lib.grading import names
from course_lib.grading.boxed.limits import LOST
from course_lib.grading.error_words import error_words
from course_lib.grading.intake import Submission
from course_lib.grading.sandbox import Box, BoxEnded, BoxLost, SandboxError, StudentError, Zygote
from course_lib.grading.spec import AssignmentFiles, Cell, HiddenCheck, LoadedAssignment, Task, load
from course_lib.grading.subject import Subject, Talk, in_words, seed_for
from course_lib.grading.wording import visible
from course_lib.tasks.findings import STOPPED, Fault, Finding

SCHEMA = 1
GRADED, ATTENTION = "graded", "needs attention"
SANDBOXED, TRUSTED = "bubblewrap", "none: trusted students"
LOAD_SECONDS = 10.0  # at most, each time a cell is run
QUICK_SECONDS = 1.0  # a cell that takes longer is slow: it is run again only for tasks that need it
AGAIN_SECONDS = 60.0  # what running slow cells again may take altogether: as long as the questions of one task
PRINTED = 2000  # characters
LONGEST_NAME = 40  # characters of a name that a student is told
NO_ANSWER = "no answer"
ENDED = "your code was ended"
LEFT_OUT = "a slow cell was left out"
NOT_YET = "not looked at"
NOT_JUDGED = "could not be judged"

_ENDINGS = {
    "time": "ran longer than {seconds:g} s",
    "cpu": "used more computing time than allowed",
    "memory": "used more memory than allowed",
    "processes": "started more processes or threads than allowed",
    "exit": "ended the process",
    "protocol": "disturbed the connection to the judge",
}

_NO_FAULT = {LOST: BoxLost, "closed": SandboxError}  # alone, and with the whole sandbox


_TOO_LONG = (
    "Look for a loop without end, for far too large tensors, for `num_workers` of a `DataLoader`, which wait for ever "
    "here; a training needs fewer steps, a smaller network."
)


def judge(submission: Submission, files: AssignmentFiles, *, key: bytes, zygote: Zygote) -> dict[str, Any]:
    """The verdict on one submission, as plain JSON values: points, findings and notes for each task.

    Equal submissions get equal verdicts under the same key, apart from "seconds". Raises ValueError for an empty key,
    and SandboxError if no box can be had, or one is lost.
    """
    if not key:
        raise ValueError("the instructor's key is empty: hidden inputs could be foreseen")
    start = time.monotonic()
    sitting = _Sitting(submission=submission, loaded=load(files), key=key, zygote=zygote)
    tasks = {task.name: sitting.judge_task(task) for task in sitting.loaded.assignment.tasks}
    seconds = round(time.monotonic() - start, 3)
    attention = dict.fromkeys(sitting.attention)
    return whole_verdict(submission, files, tasks, trusted=zygote.trusted, attention=attention, seconds=seconds)


def whole_verdict(
    submission: Submission,
    files: AssignmentFiles,
    tasks: Mapping[str, Any],
    *,
    trusted: bool,
    attention: Iterable[str],
    seconds: float = 0.0,
) -> dict[str, Any]:
    """The verdict on all tasks; `attention` is what an instructor has to know, and students are not told."""
    attention = list(attention)
    return {
        "schema": SCHEMA,
        "assignment": files.name,
        "student": submission.student,
        "submission": submission.sha256,
        "spec": files.hash,
        "sandbox": TRUSTED if trusted else SANDBOXED,
        "status": ATTENTION if attention or not submission.readable else GRADED,
        "readable": submission.readable,
        "notes": [*submission.notes, *attention],
        "student_notes": list(submission.notes),
        "tasks": dict(tasks),
        "seconds": seconds,
    }


@dataclass(frozen=True, kw_only=True)
class _Ending:
    """How a cell ended its box: the reason, what to tell the student, what had been printed."""

    reason: str
    finding: Finding
    printed: str


@dataclass(kw_only=True)
class _Sitting:
    """The judging of one submission: a fresh box for each task; cells that end a box are left out from then on."""

    submission: Submission
    loaded: LoadedAssignment
    key: bytes
    zygote: Zygote
    deadly: dict[str, _Ending] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)  # cells that stopped with an error when they were run
    missing: dict[str, tuple[str, str] | None] = field(default_factory=dict)  # by task, once asked for
    attention: list[str] = field(default_factory=list)
    taken: dict[str, float] = field(default_factory=dict)  # seconds: the longest that running an answer took
    again: float = field(default_factory=lambda: AGAIN_SECONDS)  # seconds left for running slow answers again
    left_out: dict[str, set[str]] = field(default_factory=dict)  # by task, slow answers that were not run for it

    def judge_task(self, task: Task) -> dict[str, Any]:
        if _bare(self.submission.answers.get(task.name, "")) in ("", _bare(self.loaded.stubs[task.name])):
            finding = Finding(misconception=NO_ANSWER, message="The cell is missing, empty or as it was handed out.")
            return _verdict(task, [[finding]] * len(task.checks), answered=False)
        box, stopped = self._loaded_box(task)
        if box is None:
            ending = self.deadly[task.name]
            findings = [[ending.finding]] * len(task.checks)
            return _verdict(task, findings, answered=True, ended=ending.reason, printed=ending.printed)
        with box:
            findings = list(self._judge_checks(task, box))
            ended = box.ended
        if failed := next(filter(None, findings), None):
            failed[:0] = [*self._lacks(task), *([] if stopped is None else [stopped])]
        return _verdict(task, findings, answered=True, ended=ended, printed=_printed(box))

    def _loaded_box(self, task: Task) -> tuple[Box | None, Finding | None]:
        """A box in which the cells up to the task's own have run, and what is to be said of that one.

        No box if the task's own cell ends it. A cell that ends the box is left out of the next.
        """
        while task.name not in self.deadly:
            self.left_out[task.name] = self._too_slow(task)
            box, stopped = self.zygote.box(task.limits), None
            try:
                for cell in self._cells(task):
                    stopped = self._run_cell(box, cell)
                return box, stopped
            except BoxEnded:
                box.close()  # after that the log is complete
                finding = _ended_finding(box.ended, LOAD_SECONDS, "While the cell was run, your code")
                self.deadly[cell.grade_id] = _Ending(reason=str(box.ended), finding=finding, printed=_printed(box))
                if cell.kind == "setup":
                    self.attention.append(f"The assignment's own cell {cell.grade_id!r} was ended ({box.ended}).")
            except BaseException:
                box.close()
                raise
        return None, None

    def _cells(self, task: Task) -> Iterator[Cell]:
        """What goes into the box: setup and answers up to the task's own."""
        left_out = self.deadly.keys() | self.left_out.get(task.name, set())
        for cell in self.loaded.cells:
            if cell.grade_id not in left_out:
                text = cell.source if cell.kind == "setup" else self.submission.answers.get(cell.grade_id, "")
                yield Cell(grade_id=cell.grade_id, kind=cell.kind, source=text)
            if cell.grade_id == task.name:
                return

    def _too_slow(self, task: Task) -> set[str]:
        """Slow answers to other tasks that are not run again for this one: it does without, or no time is left."""
        left, found = self.again, set()
        for name, seconds in self.taken.items():
            if seconds <= QUICK_SECONDS or name == task.name or name in self.deadly:
                continue
            if name not in self._needs[task.name] or seconds > left:
                found.add(name)
            else:
                left -= seconds
        return found

    @cached_property
    def _needs(self) -> dict[str, set[str]]:
        """For each answer those that it needs; found in a box, where it may take its time, and all if it is not."""
        known = [cell.grade_id for cell in self.loaded.cells if cell.kind == "solution"]
        found = self._ask_names("needs", [self.submission.answers.get(name, "") for name in known])
        if not isinstance(found, list) or len(found) != len(known):
            return dict.fromkeys(known, set(known))
        return {name: {known[place] for place in places} for name, places in zip(known, found, strict=True)}

    def _lacks(self, task: Task) -> list[Finding]:
        """What to say of slow answers that the task needs and was judged without."""
        left_out = self.left_out[task.name]
        lacking = left_out & self._needs[task.name] if left_out else left_out
        return [
            Finding(
                misconception=LEFT_OUT,
                message=f"This answer uses the one to “{other.title}”, whose cell takes more than {QUICK_SECONDS:g} s "
                f"to run. Such cells are run again for other tasks until {AGAIN_SECONDS:g} s are used up, as they "
                "were here: this task was judged without that cell.",
                hint="Take out of that cell what takes its time when it is run, such as a training or a test of your "
                "own, and leave the functions.",
            )
            for other in self.loaded.assignment.tasks
            if other.name in lacking
        ]

    def _run_cell(self, box: Box, cell: Cell) -> Finding | None:
        start = time.monotonic()
        try:
            kind = box.load(cell.source, seconds=LOAD_SECONDS)
        finally:
            self._count(cell, time.monotonic() - start)
        if kind is None:
            return None
        if cell.kind == "setup":
            self.attention.append(f"The assignment's own cell {cell.grade_id!r} stopped with an error ({kind}).")
        self.stopped.add(cell.grade_id)
        message, hint = error_words(kind, self._missing(cell.grade_id) if kind == "NameError" else None, running=True)
        return Finding(misconception=STOPPED, message=f"Already when the cell is run: {message}", hint=hint)

    def _count(self, cell: Cell, seconds: float) -> None:
        if cell.kind == "setup":
            return
        before = self.taken.get(cell.grade_id)
        if before is not None and seconds > QUICK_SECONDS:
            self.again -= seconds
        self.taken[cell.grade_id] = max(before or 0.0, seconds)

    def _missing(self, name: str) -> tuple[str, str] | None:
        """What to say of a name that the answer uses and that nothing defines, and what to try; None if all have one.

        Found in the student's text alone: what the error says of it may be made up.
        """
        if name not in self.missing:
            self.missing[name] = self._find_missing(name)
        return self.missing[name]

    def _find_missing(self, name: str) -> tuple[str, str] | None:
        task = next((task for task in self.loaded.assignment.tasks if task.name == name), None)
        if task is None:
            return None
        cells = list(self._cells(task))
        whole = [cell for cell in cells if cell.grade_id == name or cell.grade_id not in self.stopped]
        for known in (cells, whole):
            if found := self._undefined([cell.source for cell in known]):
                return self._where(found[0], task)
        return None

    def _undefined(self, texts: Sequence[str]) -> list[str]:
        """The names that the last of these texts uses and none defines; read in a box, where it may take its time."""
        found = self._ask_names("missing", texts)
        words = set(re.findall(r"\w+", texts[-1]))
        told = [word for word in found if isinstance(word, str)] if isinstance(found, list) else []
        return [word for word in told if word in words and len(word) <= LONGEST_NAME]

    def _ask_names(self, question: str, texts: Sequence[str]) -> Any:
        """What a function of `names` says of these texts, read in a box; None if it does not come to an answer."""
        try:
            with self.zygote.box() as box:
                box.load(Path(names.__file__).read_text(encoding="utf-8"))
                return box.call(question, list(texts))
        except StudentError:
            return None

    def _where(self, word: str, task: Task) -> tuple[str, str]:
        """What to say of a name that is not there when the task's cell is run."""
        defines = re.compile(rf"^(?:(?:def|class)\s+{word}\b|{word}\s*=[^=])", re.MULTILINE)
        before = True
        for other in self.loaded.assignment.tasks:
            if other.name == task.name:
                before = False
            elif defines.search(self.submission.answers.get(other.name, "")):
                what = f"it uses `{word}`, which the answer to “{other.title}” defines"
                if other.name in self.left_out.get(task.name, ()):
                    return f"{what}, but that cell took too long to be run again here", "Make it quick first."
                if before:
                    return f"{what}, but that cell did not run to its end", "Repair that answer first."
                return f"{what}, and that comes later", "Define it where it is needed first."
        if word in ("exit", "quit"):
            return f"it uses `{word}`, which is not there", "Leave it out: an answer must not end Python."
        return (
            f"it uses `{word}`, which is not defined",
            "The grader takes the cells that were handed out and no others: is it in a cell of your own? Move it into "
            "the answer.",
        )

    def _not_there(self, task: Task) -> tuple[str, str] | None:
        """What to say where the task's own function is not there, and what to try; None if the cell defines it."""
        function = task.function or task.name
        if task.name in self.stopped:
            return "the cell stopped before all its names were defined", "Repair what stops the cell first."
        if not self._undefined([self.submission.answers[task.name], function]):
            return None
        return (
            f"the task asks for `{function}`, which the cell does not define",
            "Give your function or class the name that it has in the task, letter for letter.",
        )

    def _judge_checks(self, task: Task, box: Box) -> Iterator[list[Finding]]:
        """What each check of a task found; after the end of the box, only how that came."""
        talk = Talk(
            box=box,
            seed=lambda label: self._seed(task, label),
            seconds=task.seconds,
            missing=cache(lambda: self._missing(task.name) or self._not_there(task)),
        )
        passed: set[str] = set()
        ended = None
        for check in task.checks:
            missing = [name for name in check.needs if name not in passed]
            if ended is not None:
                found = [ended]
            elif missing:
                found = [Finding(misconception=NOT_YET, message=f"This counts only together with: {missing[0]}")]
            else:
                found = self._judge_check(task, check, talk)
                if problem := _NO_FAULT.get(str(box.ended)):  # whatever the check made of it
                    raise problem("A box was lost while a check was carried out")
                if box.ended is not None:
                    ended = _ended_finding(box.ended, talk.limit, "Your code")
                    found = [ended]
            if not found:
                passed.add(check.name)
            yield found

    def _judge_check(self, task: Task, check: HiddenCheck, talk: Talk) -> list[Finding]:
        asked = talk.asked
        subject = Subject(check.function or task.function or task.name, talk, label=check.name, seconds=check.seconds)
        try:
            found = list(check.run(subject))
            if not all(isinstance(finding, Finding) for finding in found):
                raise TypeError("a check gives findings only")
            if not found and talk.asked == asked:
                raise RuntimeError("a check that asks nothing cannot be passed")
        except Fault as fault:
            found = [fault.finding]
        except SandboxError:
            raise
        except Exception as error:
            if talk.box.ended is None:
                name = f"{type(error).__name__} in the check {check.name!r} of task {task.name!r}"
                self.attention.append(f"A check could not be carried out: {name}.")
            message = "This check could not be carried out on your answer; your instructor is told."
            found = [Finding(misconception=NOT_JUDGED, message=message)]
        return [in_words(finding, talk) for finding in found]

    def _seed(self, task: Task, label: str) -> int:
        return seed_for(self.key, self.loaded.assignment.name, task.name, label, answers=self.submission.answers)


def _verdict(
    task: Task, findings: list[list[Finding]], *, answered: bool, ended: str | None = None, printed: str = ""
) -> dict[str, Any]:
    checks = [
        {
            "name": check.name,
            "points": 0.0 if found else float(check.points),
            "possible": float(check.points),
            "passed": not found,
            "findings": [asdict(finding) for finding in found],
        }
        for check, found in zip(task.checks, findings, strict=True)
    ]
    return {
        "points": sum(check["points"] for check in checks),
        "possible": float(task.points),
        "checks": checks,
        "answered": answered,
        "ended": ended,
        "printed": printed,
    }


def _ended_finding(reason: str | None, seconds: float, who: str) -> Finding:
    how = _ENDINGS.get(str(reason), "was stopped by the sandbox").format(seconds=seconds)
    return Finding(
        misconception=ENDED,
        message=f"{who} {how}. What comes after that in this task could not be looked at.",
        hint=_TOO_LONG
        if reason in ("time", "cpu")
        else "Look for far too large tensors, for processes that are started, for anything that ends Python.",
    )


def _printed(box: Box) -> str:
    return visible(box.log[: 4 * PRINTED].decode("utf-8", errors="replace")[:PRINTED])


def _bare(source: str) -> str:
    """The text without what changes nothing: spaces at the ends of lines, empty lines around it."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())
