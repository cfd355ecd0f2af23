"""What an assignment is: its tasks, their hidden checks and points, and the notebook that they belong to.

Hidden checks are those of the tasks (see `course_lib.tasks.table`) in `hidden/<assignment>/tasks.py`, and never leave
the judge's side:

    ASSIGNMENT = Assignment("05", notebook="attention", title="Attention", tasks=(ADDITIVE, LOCAL, TRAIN))

The right answer to a task is the notebook's solution; `tasks.md` beside it lists the known mistakes.
"""

import contextlib
import functools
import hashlib
import math
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

from course_lib.data.place import CannotStart
from course_lib.grading.alternatives import Choice, as_in, chosen, slots
from course_lib.grading.folders import FILE_BYTES, Folders, read_small
from course_lib.grading.stripped import read_notebook, student_version, tags_of
from course_lib.tasks import Task
from course_lib.tasks import __file__ as tasks_file
from course_lib.tasks.markdown import with_mistakes
from course_lib.tasks.solution import Solution

CHECK_PREFIX = "check-"
SECONDS = 30.0  # of processor time, for all questions of a task together
FILE, TEXTS = "tasks.py", "tasks.md"
DECIDES_SCORES = ("alternatives.py", "boxed/*.py", "intake.py", "judge.py", "sandbox.py", "spec.py", "subject.py")
_GRADE_ID = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Assignment:
    """All tasks of one notebook; a task's name is the grade_id of its cell, and of its function or class.

    Raises ValueError for what cannot be judged: no task, a name twice or no grade_id, no check, one without points.
    """

    name: str
    _: KW_ONLY
    notebook: str
    title: str
    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        if not self.tasks:
            raise ValueError(f"assignment {self.name!r} has no task")
        _only_once([task.name for task in self.tasks], f"assignment {self.name!r} has two tasks with the name")
        for task in self.tasks:
            if not _GRADE_ID.fullmatch(task.name):
                raise ValueError(f"a task's name has letters, digits, _ and - only, got {task.name!r}")
            if not task.scored:
                raise ValueError(f"task {task.name!r} has no check that is worth points: nothing would be judged")
            _only_once([check.name for check in task.scored], f"task {task.name!r} has two checks with the name")
            if poor := [check.name for check in task.scored if not 0 < check.points < math.inf]:
                raise ValueError(f"check {poor[0]!r} needs a positive number of points")

    def seconds_of(self, task: Task) -> float:
        """Processor time for all questions of a task together: twice that of a call, if it has a limit of its own."""
        return max(SECONDS, 2 * (task.seconds or 0))


def _only_once(names: list[str], what: str) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{what} {twice[0]!r}")


# files ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A code cell that is run before checks: its text, and whether it is "setup" or "solution"."""

    grade_id: str
    kind: str
    source: str


@dataclass(frozen=True, kw_only=True)
class AssignmentFiles:
    """An assignment as bytes, to be sent to whoever judges it."""

    name: str
    notebook: str
    source_notebook: bytes
    checks: bytes
    texts: bytes = b""

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the notebook, the checks, the mistakes and the code that decides scores."""
        parts = (self.name.encode(), self.notebook.encode(), self.source_notebook, self.checks, self.texts)
        parts += (_code_hash().encode(),)
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()

    @property
    def place(self) -> str:
        """The notebook in the course directory, for messages."""
        return f"source/{self.name}/{self.notebook}.ipynb"

    def chosen(self, choose: Choice) -> "AssignmentFiles":
        """These files with one alternative of each slot."""
        return replace(self, source_notebook=chosen(self.source_notebook, self.place, choose))


@dataclass(frozen=True, kw_only=True)
class LoadedAssignment:
    """An assignment that can be judged: `cells` in document order, and what the notebook says of the others.

    `stubs` has what a release holds in place of each solution, `check_points` the points of each task's check cell,
    `manual_cells` the points of each cell that is graded by hand.
    """

    assignment: Assignment
    cells: tuple[Cell, ...]
    stubs: Mapping[str, str]
    check_points: Mapping[str, float]
    manual_cells: Mapping[str, float]


def check_cell(task: str) -> str:
    """The grade_id of the cell that carries a task's points."""
    return CHECK_PREFIX + task


def read_released(folder: Path, name: str) -> AssignmentFiles:
    """The files of an assignment with the alternatives that are in its release, without one those that come first.

    Raises CannotStart as `read_assignment` does.
    """
    files = read_assignment(folder, name)
    release = Folders(root=Path(folder)).release(name) / f"{files.notebook}.ipynb"
    return files.chosen(as_in(read_small(release, FILE_BYTES) or b""))


def read_assignment(folder: Path, name: str) -> AssignmentFiles:
    """The files of an assignment in a course directory, with all alternatives of its tasks.

    Raises CannotStart for an unknown assignment, a file that is missing, checks that do not load, and a notebook that
    does not fit them.
    """
    folders = Folders(root=Path(folder))
    if name not in folders.assignments() or not _GRADE_ID.fullmatch(name):
        known = ", ".join(folders.assignments()) or "none"
        raise CannotStart(f"There is no assignment {name!r} in {folders.root / 'source'}; there is: {known}.")
    try:
        checks = (folders.hidden(name) / FILE).read_bytes()
        notebook = folders.source(name) / f"{_run_checks_file(name, checks).notebook}.ipynb"
        texts = folders.hidden(name) / TEXTS
        files = AssignmentFiles(
            name=name,
            notebook=notebook.stem,
            source_notebook=notebook.read_bytes(),
            checks=checks,
            texts=texts.read_bytes() if texts.exists() else b"",
        )
        load(files)
    except OSError as problem:
        raise CannotStart(f"Assignment {name} is not complete: {problem.filename}: {problem.strerror}.") from problem
    except ValueError as problem:
        raise CannotStart(str(problem)) from problem
    return files


@functools.lru_cache(maxsize=8)
def load(files: AssignmentFiles) -> LoadedAssignment:
    """The assignment in these files. Raises ValueError if they cannot be read or released, or do not fit each other."""
    assignment, place = _run_checks_file(files.name, files.checks), files.place
    slots(files.source_notebook, place)
    source, students = read_notebook(files.source_notebook, place), student_version(files.source_notebook, place)
    left_out = source.metadata.get("course", {}).get("left_out", [])
    assignment = replace(assignment, tasks=tuple(task for task in assignment.tasks if task.name not in left_out))
    named = [both for both in zip(source.cells, students.cells, strict=True) if tags_of(both[0]).get("grade_id")]
    _only_once([tags_of(cell)["grade_id"] for cell, _ in named], f"{place} has two cells with the grade_id")
    cells: list[Cell] = []
    stubs: dict[str, str] = {}
    points: dict[str, float] = {}
    manual: dict[str, float] = {}
    for cell, released in named:
        tags = tags_of(cell)
        grade_id, solution = tags["grade_id"], tags.get("solution")
        if tags.get("grade"):
            (manual if solution else points)[grade_id] = float(tags.get("points", 0))
        elif cell.cell_type == "code" and (solution or tags.get("locked")):
            cells.append(Cell(grade_id=grade_id, kind="solution" if solution else "setup", source=cell.source))
            stubs |= {grade_id: released.source} if solution else {}
    asked = {_in_words(task.name) for task in assignment.tasks}
    asked |= {_in_words(check_cell(task.name), task.points) for task in assignment.tasks}
    there = set(map(_in_words, stubs)) | {_in_words(name, number) for name, number in points.items()}
    if asked != there:
        missing, extra = (", ".join(sorted(cells)) or "nothing" for cells in (asked - there, there - asked))
        raise ValueError(f"{place} does not fit the tasks in {FILE}. It lacks: {missing}. It has too much: {extra}.")
    return LoadedAssignment(
        assignment=_with_solutions(assignment, cells, files.texts, left_out),
        cells=tuple(cells),
        stubs=stubs,
        check_points={task.name: points[check_cell(task.name)] for task in assignment.tasks},
        manual_cells=manual,
    )


def _with_solutions(assignment: Assignment, cells: list[Cell], texts: bytes, left_out: list[str]) -> Assignment:
    """The assignment whose tasks know the notebook's solutions and their mistakes; not those of tasks left out."""
    if not texts and all(task.reference or not task.cases for task in assignment.tasks):
        return assignment
    names: dict[str, Any] = {"__name__": "__main__"}
    solutions: dict[str, Solution] = {}
    for cell in cells:
        if cell.kind == "solution":
            solutions[cell.grade_id] = Solution(cell.source, names)
        with contextlib.suppress(Exception):  # of a cell that stops the sandbox tells which line it was
            exec(cell.source, names)
    tasks = [
        replace(task, reference=solutions[task.name]) if task.cases and not task.reference else task
        for task in assignment.tasks
    ]
    file = f"hidden/{assignment.name}/{TEXTS}"
    return replace(assignment, tasks=with_mistakes(tasks, texts, solutions, file, left_out))


def _in_words(cell: str, points: float | None = None) -> str:
    """A cell for a task as nbgrader's Create Assignment calls it."""
    return f"autograded answer {cell!r}" if points is None else f"autograded tests {cell!r} with {points:g} points"


def _run_checks_file(name: str, text: bytes) -> Assignment:
    place = f"hidden/{name}/{FILE}"
    module = types.ModuleType(f"hidden_checks_{hashlib.sha256(text).hexdigest()[:16]}")
    sys.modules[module.__name__] = module  # where dataclasses look up the names in their annotations
    try:
        exec(compile(text, place, "exec"), module.__dict__)
    except Exception as error:
        raise ValueError(f"{place} does not load: {type(error).__name__}: {error}") from error
    assignment = module.__dict__.get("ASSIGNMENT")
    if not isinstance(assignment, Assignment) or assignment.name != name:
        raise ValueError(f"{place} has to define ASSIGNMENT = Assignment({name!r}, ...).")
    return assignment


@functools.cache
def _code_hash() -> str:
    """SHA-256 of the code that decides scores; of what is on disk when it is first asked for."""
    folder = Path(__file__).parent
    files = [*Path(tasks_file).parent.rglob("*.py"), *folder.parent.glob("lessons/*/assignment.py")]
    files += [file for part in DECIDES_SCORES for file in folder.glob(part)]
    digest = hashlib.sha256()
    for file in sorted(files):
        relative = file.relative_to(folder.parent).as_posix()
        digest.update(f"{relative}\n".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
