"""What an assignment is: its tasks, their hidden checks and points, and the notebook that they belong to.

Hidden checks are those of the tasks (see `course_lib.tasks.table`) in `hidden/<assignment>/tasks.py`, and never leave
the judge's side:

    ASSIGNMENT = Assignment("05", notebook="attention", title="Attention", tasks=(ADDITIVE, LOCAL, TRAIN))
"""

import functools
import hashlib
import json
import math
import re
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from course_lib.grading.folders import Folders
from course_lib.grading.stripped import clear_solution
from course_lib.tasks import Task
from course_lib.tasks import __file__ as tasks_file

CHECK_PREFIX = "check-"
SECONDS = 30.0  # of processor time, for all questions of a task together
FILE = "tasks.py"
DECIDES_SCORES = ("boxed", "intake.py", "judge.py", "sandbox.py", "spec.py", "subject.py")
_GRADE_ID = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Assignment:
    """All tasks of one notebook; a task's name is the grade_id of its cell, and of its function or class.

    `seconds` are of processor time, by name, for tasks whose questions need more than SECONDS together. Raises
    ValueError for what cannot be judged: no task, a name twice or no grade_id, no check, one without points.
    """

    name: str
    _: KW_ONLY
    notebook: str
    title: str
    tasks: tuple[Task, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.tasks:
            raise ValueError(f"assignment {self.name!r} has no task")
        _only_once([task.name for task in self.tasks], f"assignment {self.name!r} has two tasks")
        for task in self.tasks:
            if not _GRADE_ID.fullmatch(task.name):
                raise ValueError(f"a task's name has letters, digits, _ and - only, got {task.name!r}")
            if not task.scored:
                raise ValueError(f"task {task.name!r} has no check that is worth points: nothing would be judged")
            _only_once([check.name for check in task.scored], f"task {task.name!r} has two checks")
            if poor := [check.name for check in task.scored if not 0 < check.points < math.inf]:
                raise ValueError(f"check {poor[0]!r} needs a positive number of points")

    @property
    def points(self) -> float:
        return math.fsum(task.points for task in self.tasks)

    def seconds_of(self, task: Task) -> float:
        """Processor time for all questions of a task together."""
        return self.seconds.get(task.name, SECONDS)


def _only_once(names: list[str], what: str) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{what} with the name {twice[0]!r}")


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

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the notebook, the checks and the code that decides scores."""
        parts = (self.name.encode(), self.notebook.encode(), self.source_notebook, self.checks, _code_hash().encode())
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


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


def read_assignment(folder: Path, name: str) -> AssignmentFiles:
    """The files of an assignment in a course directory.

    Raises ValueError for an unknown assignment, a file that is missing, checks that do not load, and a notebook that
    does not fit them.
    """
    folders = Folders(root=Path(folder))
    if name not in folders.assignments() or not _GRADE_ID.fullmatch(name):
        known = ", ".join(folders.assignments()) or "none"
        raise ValueError(f"There is no assignment {name!r} in {folders.root / 'source'}; there is: {known}.")
    checks = folders.hidden(name) / FILE
    if not checks.is_file():
        raise ValueError(f"Assignment {name} has no hidden checks: {checks} is missing.")
    text = checks.read_bytes()
    notebook = folders.source(name) / f"{_run_checks_file(name, text).notebook}.ipynb"
    if not notebook.is_file():
        raise ValueError(f"{checks} is for the notebook {notebook.stem!r}, but {notebook} is missing.")
    files = AssignmentFiles(name=name, notebook=notebook.stem, source_notebook=notebook.read_bytes(), checks=text)
    load(files)
    return files


@functools.lru_cache(maxsize=8)
def load(files: AssignmentFiles) -> LoadedAssignment:
    """The assignment in these files. Raises ValueError if checks and notebook do not fit each other."""
    assignment = _run_checks_file(files.name, files.checks)
    place = f"source/{files.name}/{files.notebook}.ipynb"
    if (assignment.name, assignment.notebook) != (files.name, files.notebook):
        raise ValueError(
            f"hidden/{files.name}/{FILE} is for assignment {assignment.name!r} and notebook "
            f"{assignment.notebook!r}, but these are the files of {files.name!r} and {files.notebook!r}."
        )
    cells: list[Cell] = []
    points: dict[str, float] = {}
    manual: dict[str, float] = {}
    seen: set[str] = set()
    for grade_id, tags, is_code, source in _nbgrader_cells(files.source_notebook, place):
        if grade_id in seen:
            raise ValueError(f"{place} has two cells with the grade_id {grade_id!r}; nbgrader needs each only once.")
        seen.add(grade_id)
        grade, solution = bool(tags.get("grade")), bool(tags.get("solution"))
        if grade:
            (manual if solution else points)[grade_id] = float(tags.get("points", 0))
        elif is_code and (solution or tags.get("locked")):
            cells.append(Cell(grade_id=grade_id, kind="solution" if solution else "setup", source=source))
    _check_fit(assignment, cells, points, place)
    try:
        stubs = {cell.grade_id: clear_solution(cell.source) for cell in cells if cell.kind == "solution"}
    except ValueError as problem:
        raise ValueError(f"{place}: {problem}.") from None
    return LoadedAssignment(
        assignment=assignment,
        cells=tuple(cells),
        stubs=stubs,
        check_points={task.name: points[check_cell(task.name)] for task in assignment.tasks},
        manual_cells=manual,
    )


def _check_fit(assignment: Assignment, cells: list[Cell], points: dict[str, float], place: str) -> None:
    solutions = {cell.grade_id for cell in cells if cell.kind == "solution"}
    tasks = {task.name for task in assignment.tasks}
    if missing := sorted(tasks - solutions):
        raise ValueError(f"{place} has no solution cell {missing[0]!r}, but tasks.py has a task of that name.")
    if extra := sorted(solutions - tasks):
        raise ValueError(f"{place} has a solution cell {extra[0]!r}, but tasks.py has no task of that name.")
    if extra := sorted(points.keys() - {check_cell(task) for task in tasks}):
        raise ValueError(f"{place} gives points to the cell {extra[0]!r}, which belongs to no task of tasks.py.")
    for task in assignment.tasks:
        cell = check_cell(task.name)
        if cell not in points:
            raise ValueError(f"{place} has no cell {cell!r} (grade: true, solution: false) for the task's points.")
        if not math.isclose(points[cell], task.points):
            raise ValueError(
                f"The checks of task {task.name!r} give {task.points:g} points, but the cell {cell!r} in {place} says "
                f"{points[cell]:g}. Make them agree."
            )


def _nbgrader_cells(notebook: bytes, place: str) -> Iterator[tuple[str, Mapping[str, Any], bool, str]]:
    try:
        for cell in json.loads(notebook)["cells"]:
            tags = cell["metadata"].get("nbgrader")
            if tags and tags.get("grade_id"):
                yield tags["grade_id"], tags, cell["cell_type"] == "code", "".join(cell["source"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{place} cannot be read as a notebook: {type(error).__name__}: {error}") from error


def _run_checks_file(name: str, text: bytes) -> Assignment:
    place = f"hidden/{name}/{FILE}"
    module = types.ModuleType(f"hidden_checks_{hashlib.sha256(text).hexdigest()[:16]}")
    sys.modules[module.__name__] = module  # where dataclasses look up the names in their annotations
    try:
        exec(compile(text, place, "exec"), module.__dict__)
    except Exception as error:
        raise ValueError(f"{place} does not load: {type(error).__name__}: {error}") from error
    assignment = module.__dict__.get("ASSIGNMENT")
    if not isinstance(assignment, Assignment):
        raise ValueError(f"{place} has to define ASSIGNMENT = Assignment(...).")
    return assignment


@functools.cache
def _code_hash() -> str:
    """SHA-256 of the code that decides scores; of what is on disk when it is first asked for."""
    folder = Path(__file__).parent
    files = [*Path(tasks_file).parent.rglob("*.py"), *folder.parent.glob("lessons/*/assignment.py")]
    for part in DECIDES_SCORES:
        files += (folder / part).rglob("*.py") if (folder / part).is_dir() else [folder / part]
    digest = hashlib.sha256()
    for file in sorted(files):
        relative = file.relative_to(folder.parent).as_posix()
        digest.update(f"{relative}\n".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
