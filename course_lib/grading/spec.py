"""What an assignment is: its tasks, their hidden checks and points, and the notebook that they belong to.

A check is written in a few lines, in `hidden/<assignment>/checks.py`, and never leaves the judge's side:

    ASSIGNMENT = Assignment(name="05", notebook="attention", title="Attention", tasks=(
        Task(name="softmax", title="A softmax that does not overflow", checks=(
            property_check(SOFTMAX[0], points=2),
            agrees("Inputs around 1000 stay finite", points=1, reference=lambda x: x.softmax(dim=-1),
                   inputs=lambda subject: given(1000 + subject.random(3, 7))),
        )),
    ))
"""

import functools
import hashlib
import json
import math
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib import properties
from course_lib.grading.folders import Folders
from course_lib.grading.sandbox import Limits
from course_lib.grading.subject import RemoteModule, Subject, kind_of
from course_lib.properties.core import NOT_FINITE, WRONG_SHAPE, WRONG_TYPE, Finding

DIFFERS = "result differs from the reference"
GRADIENT_DIFFERS = "gradient differs from the reference"
TOO_LITTLE_LEARNT = "has not learnt enough"
STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
WRITTEN_STUB = "YOUR ANSWER HERE"
CHECK_PREFIX = "check-"
DECIDES_SCORES = ("folders.py", "intake.py", "judge.py", "sandbox.py", "spec.py", "subject.py", "boxed")
_GRADE_ID = re.compile(r"[A-Za-z0-9_-]+")


# checks -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class HiddenCheck:
    """One thing that a task's answer must do, and the points for it; nothing found by `run` means passed.

    `name` says in words what is expected and is shown to the student. Texts of findings are shown, too: write no
    number into them that comes from hidden inputs. `function` is what the answer calls the function or class, the
    task's own unless given; `needs` names earlier checks of the task that must have passed, for a check that an answer
    of the right shape alone could pass. `seconds` is the wall time of one call in the box. Raises ValueError if it
    has no name, no positive number of points or no time.
    """

    name: str
    points: float
    run: Callable[[Subject], Iterable[Finding]]
    detects: tuple[str, ...] = ()
    seconds: float = 5.0
    function: str = ""
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("a check needs a name that says in words what is expected")
        if not (math.isfinite(self.points) and self.points > 0):
            raise ValueError(f"check {self.name!r} needs a positive number of points, got {self.points}")
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ValueError(f"check {self.name!r} needs a positive number of seconds, got {self.seconds}")


@dataclass(frozen=True, kw_only=True)
class Task:
    """One solution cell and its checks; `name` is the cell's grade_id, and that of its points is "check-<name>".

    `function` is the function or class that the cell defines, called like the task unless given; `seconds` is the wall
    time for all checks together. Raises ValueError for a name that cannot be a grade_id, for no check, and for checks
    of the same name or that need a check that does not stand before them.
    """

    name: str
    title: str
    checks: tuple[HiddenCheck, ...]
    function: str = ""
    limits: Limits = Limits()
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if not _GRADE_ID.fullmatch(self.name):
            raise ValueError(f"a task's name has letters, digits, _ and - only, got {self.name!r}")
        if not self.checks:
            raise ValueError(f"task {self.name!r} has no check: nothing checked earns no points")
        before: set[str] = set()
        for check in self.checks:
            if check.name in before:
                raise ValueError(f"task {self.name!r} has two checks with the name {check.name!r}")
            if unknown := set(check.needs) - before:
                raise ValueError(f"check {check.name!r} needs {sorted(unknown)}, which do not stand before it")
            before.add(check.name)

    @property
    def points(self) -> float:
        return math.fsum(check.points for check in self.checks)


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """All tasks of one notebook. Raises ValueError for no task, or for two of the same name."""

    name: str
    notebook: str
    title: str
    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        names = [task.name for task in self.tasks]
        if not names:
            raise ValueError(f"assignment {self.name!r} has no task")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"assignment {self.name!r} has two tasks with the name {twice[0]!r}")

    @property
    def points(self) -> float:
        return math.fsum(task.points for task in self.tasks)


def property_check(
    check: properties.Check,
    *,
    points: float,
    name: str | None = None,
    function: str = "",
    needs: tuple[str, ...] = (),
    seconds: float = 5.0,
) -> HiddenCheck:
    """A property check, the same as notebooks and pytest use, as a hidden check."""
    return HiddenCheck(
        name=check.name if name is None else name,
        points=points,
        run=check.run,
        detects=check.detects,
        function=function,
        needs=needs,
        seconds=seconds,
    )


@dataclass(frozen=True)
class Given:
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)


def given(*args: Any, **kwargs: Any) -> Given:
    """The arguments of one call, written as in the call."""
    return Given(args, kwargs)


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A reference with a known mistake in it, and what to tell the student whose answer agrees with it."""

    misconception: str
    formula: Callable[..., Any]
    message: str
    hint: str = ""


def agrees(
    name: str,
    *,
    points: float,
    inputs: Callable[[Subject], Given | tuple],
    reference: Callable[..., Any],
    tolerance: float = 1e-5,
    message: str = "The numbers differ from what the formula gives.",
    hint: str = "Compare with the formula term by term, on an input small enough to work out by hand.",
    misconception: str = DIFFERS,
    mistakes: tuple[Mistake, ...] = (),
    detects: tuple[str, ...] = (),
    function: str = "",
    needs: tuple[str, ...] = (),
    seconds: float = 5.0,
) -> HiddenCheck:
    """The answer gives what the reference gives on seeded inputs: same type, shape and values.

    `tolerance` is absolute and relative. An answer that agrees with one of the `mistakes` is told so; any other gets
    `message`, which must hold nothing of the inputs.
    """
    _check_tolerance(name, tolerance)

    def run(subject: Subject) -> list[Finding]:
        arguments = _given(inputs(subject))
        wanted = _worth_points(reference(*arguments.args, **arguments.kwargs))
        actual = subject.call(*arguments.args, **arguments.kwargs)
        wrong = difference(actual, wanted, tolerance)
        if wrong != DIFFERS:
            return [] if wrong is None else [Finding(misconception=wrong, message="")]
        for mistake in mistakes:
            if difference(actual, mistake.formula(*arguments.args, **arguments.kwargs), tolerance) is None:
                return [Finding(misconception=mistake.misconception, message=mistake.message, hint=mistake.hint)]
        return [Finding(misconception=misconception, message=message, hint=hint)]

    named = tuple(dict.fromkeys((*detects, *(mistake.misconception for mistake in mistakes), misconception)))
    return HiddenCheck(
        name=name, points=points, run=run, detects=named, function=function, needs=needs, seconds=seconds
    )


def module_agrees(
    name: str,
    *,
    points: float,
    build: Given | tuple,
    reference: Callable[..., nn.Module],
    inputs: Callable[[Subject], Given | tuple],
    gradients: bool = False,
    tolerance: float = 1e-5,
    message: str = "With the same parameters, your module gives other numbers than the formula.",
    hint: str = "Compare with the formula step by step, with parameters small enough to work out by hand.",
    misconception: str = DIFFERS,
    detects: tuple[str, ...] = (),
    function: str = "",
    needs: tuple[str, ...] = (),
    seconds: float = 5.0,
) -> HiddenCheck:
    """The answer's module, given the judge's own parameters, computes what the reference module computes.

    Both are made with the arguments `build`; `gradients` also compares those of inputs and parameters. The parameters'
    names and shapes must be the reference's.
    """
    _check_tolerance(name, tolerance)
    made = _given(build)

    def run(subject: Subject) -> list[Finding]:
        ours = reference(*made.args, **made.kwargs)
        values = subject.draw(ours)
        theirs = subject.make(subject.name, *made.args, **made.kwargs)
        theirs.set_parameters(values)
        arguments = _given(inputs(subject))
        args = [_leaf(value) if gradients else value for value in arguments.args]
        wanted = _worth_points(ours(*args, **arguments.kwargs))
        actual = theirs.call(*arguments.args, **arguments.kwargs)
        wrong = difference(actual, wanted, tolerance)
        if wrong is not None:
            return [Finding(misconception=misconception if wrong == DIFFERS else wrong, message=message, hint=hint)]
        if gradients:
            arrived = subject.random(*wanted.shape)
            wanted.backward(arrived)
            found = theirs.gradients(*arguments.args, output_gradient=arrived, **arguments.kwargs)
            pairs = [(found.parameters.get(name), value.grad) for name, value in ours.named_parameters()]
            pairs += [(own, arg.grad) for own, arg in zip(found.inputs, _tensors(args), strict=False)]
            if any(difference(own, grad, tolerance) for own, grad in pairs if grad is not None):
                return [
                    Finding(
                        misconception=GRADIENT_DIFFERS,
                        message="The result is right, but the gradients that flow back through it are not.",
                        hint="Is something detached, computed under `no_grad`, or copied through `.data` or `.item()`?",
                    )
                ]
        return []

    return HiddenCheck(
        name=name,
        points=points,
        run=run,
        detects=tuple(dict.fromkeys((*detects, misconception, *((GRADIENT_DIFFERS,) if gradients else ())))),
        function=function,
        needs=needs,
        seconds=seconds,
    )


def learns(
    name: str,
    *,
    levels: Mapping[float, float],
    train: Callable[[Subject], RemoteModule],
    score: Callable[[Subject, RemoteModule], float],
    message: str = "On inputs that the training has not seen, the trained model is right less often than that.",
    hint: str = "Does the loss fall from step to step? Try more steps, another learning rate, another seed.",
    function: str = "",
    seconds: float = 5.0,
) -> tuple[HiddenCheck, ...]:
    """One check for each level that the trained model's score has to reach: `levels` maps the score to its points.

    `train` makes the model in the box once for all levels, for example `subject.make(subject.name, x, y,
    seconds=20)`; `score` asks it for predictions on held-out inputs and says how many are right, from 0 to 1. `name`
    holds a `{level}` that is filled in: "At least {level:.0%} of held-out sequences are right". Raises ValueError if
    it does not, or for a level that is not in (0, 1].
    """
    if not levels or not all(0 < level <= 1 for level in levels):
        raise ValueError(f"levels are shares greater than 0 and at most 1, got {list(levels)}")
    if len({name.format(level=level) for level in levels}) < len(levels):
        raise ValueError(f"the name of a check that learns holds {{level}}, got {name!r}")

    def check(level: float, points: float) -> HiddenCheck:
        def run(subject: Subject) -> list[Finding]:
            reached = subject.once("learns", lambda trainer: float(score(trainer, train(trainer))))
            if reached >= level:  # NaN is not
                return []
            return [Finding(misconception=TOO_LITTLE_LEARNT, message=message, hint=hint)]

        return HiddenCheck(
            name=name.format(level=level),
            points=points,
            run=run,
            detects=(TOO_LITTLE_LEARNT,),
            function=function,
            seconds=seconds,
        )

    return tuple(check(level, points) for level, points in sorted(levels.items()))


def difference(actual: Any, wanted: Any, tolerance: float) -> str | None:
    """In what way a result differs from the wanted one: WRONG_TYPE, WRONG_SHAPE, NOT_FINITE, DIFFERS, or None.

    Tensors must be of the same family (floating point, complex, whole numbers, truth values) and shape; a list stands
    for a tuple; numbers are compared like tensors.
    """
    if isinstance(wanted, Tensor):
        if not isinstance(actual, Tensor) or _family(actual) != _family(wanted):
            return WRONG_TYPE
        if actual.shape != wanted.shape:
            return WRONG_SHAPE
        actual, wanted = actual.detach(), wanted.detach()
        if _family(wanted) in ("bool", "int"):
            return None if torch.equal(actual.long(), wanted.long()) else DIFFERS
        if wanted.isfinite().all() and not actual.isfinite().all():
            return NOT_FINITE
        wide = torch.complex128 if wanted.is_complex() else torch.float64
        return None if torch.allclose(actual.to(wide), wanted.to(wide), atol=tolerance, rtol=tolerance) else DIFFERS
    if isinstance(wanted, list | tuple):
        if not isinstance(actual, list | tuple) or len(actual) != len(wanted):
            return WRONG_TYPE
        wrongs = [difference(a, w, tolerance) for a, w in zip(actual, wanted, strict=True)]
        return next((wrong for wrong in wrongs if wrong), None)
    if isinstance(wanted, float):
        if isinstance(actual, Tensor) and actual.numel() == 1 and _family(actual) == "float":
            actual = actual.item()
        if isinstance(actual, bool) or not isinstance(actual, int | float):
            return WRONG_TYPE
        if math.isfinite(wanted) and not math.isfinite(actual):
            return NOT_FINITE
        return None if math.isclose(actual, wanted, rel_tol=tolerance, abs_tol=tolerance) else DIFFERS
    if kind_of(actual) != kind_of(wanted):
        return WRONG_TYPE
    return None if actual == wanted else DIFFERS


def _family(value: Tensor) -> str:
    if value.dtype == torch.bool:
        return "bool"
    return "float" if value.is_floating_point() else "complex" if value.is_complex() else "int"


def _given(arguments: Given | tuple) -> Given:
    return arguments if isinstance(arguments, Given) else Given(tuple(arguments))


def _leaf(value: Any) -> Any:
    return value.clone().requires_grad_() if isinstance(value, Tensor) and value.is_floating_point() else value


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    return (value for value in values if isinstance(value, Tensor))


def _worth_points(wanted: Any) -> Any:
    """The reference's result, unless knowing its shape would be enough to match it."""
    if isinstance(wanted, Tensor):
        if wanted.numel() == 0 or wanted.isnan().any():
            raise ValueError(f"the reference gives {wanted.numel()} numbers, or NaN: there is nothing to compare with")
        if wanted.numel() > 1 and (wanted == wanted.flatten()[0]).all():
            raise ValueError("the reference is the same number everywhere: whoever knows the shape would pass")
    return wanted


def _check_tolerance(name: str, tolerance: float) -> None:
    if not 0 < tolerance <= 0.1:
        raise ValueError(f"check {name!r} needs a tolerance greater than 0 and at most 0.1, got {tolerance}")


# files ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A code cell of the source notebook that is run before checks: its text as the instructor has it."""

    grade_id: str
    kind: str  # "setup" or "solution"
    source: str


@dataclass(frozen=True, kw_only=True)
class AssignmentFiles:
    """An assignment as bytes, to be sent to whoever judges it."""

    name: str
    notebook: str
    source_notebook: bytes
    checks: bytes

    @property
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


def clear_solution(source: str, *, stub: str = STUB) -> str:
    """The cell as it is released: each region from BEGIN SOLUTION to END SOLUTION replaced by the indented stub.

    As nbgrader does it: without such a region the whole cell becomes the stub. Raises ValueError for a region that
    begins twice or does not end.
    """
    released, inside, cleared = [], False, False
    for line in source.split("\n"):
        if "BEGIN SOLUTION" in line:
            if inside:
                raise ValueError("a second BEGIN SOLUTION stands before the END SOLUTION of the first")
            inside = cleared = True
            indent = line[: len(line) - len(line.lstrip())]
            released += [indent + part for part in stub.split("\n")]
        elif "END SOLUTION" in line:
            inside = False
        elif not inside:
            released.append(line)
    if inside:
        raise ValueError("a BEGIN SOLUTION has no END SOLUTION")
    return "\n".join(released) if cleared else stub


def read_assignment(folder: Path, name: str) -> AssignmentFiles:
    """The files of an assignment in a course directory.

    Raises ValueError for an unknown assignment, a file that is missing, checks that do not load, and a notebook that
    does not fit them.
    """
    folders = Folders(root=Path(folder))
    if name not in folders.assignments() or not _GRADE_ID.fullmatch(name):
        known = ", ".join(folders.assignments()) or "none"
        raise ValueError(f"There is no assignment {name!r} in {folders.root / 'source'}; there is: {known}.")
    checks = folders.hidden(name) / "checks.py"
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
            f"hidden/{files.name}/checks.py is for assignment {assignment.name!r} and notebook "
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
        if grade and solution:
            manual[grade_id] = float(tags.get("points", 0))
        elif grade:
            points[grade_id] = float(tags.get("points", 0))
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
        raise ValueError(f"{place} has no solution cell {missing[0]!r}, but checks.py has a task of that name.")
    if extra := sorted(solutions - tasks):
        raise ValueError(f"{place} has a solution cell {extra[0]!r}, but checks.py has no task of that name.")
    if extra := sorted(points.keys() - {check_cell(task) for task in tasks}):
        raise ValueError(f"{place} gives points to the cell {extra[0]!r}, which belongs to no task of checks.py.")
    for task in assignment.tasks:
        there = points.get(check_cell(task.name))
        if there is None:
            raise ValueError(
                f"{place} has no cell {check_cell(task.name)!r} (grade: true, solution: false) for the points of task "
                f"{task.name!r}."
            )
        if not math.isclose(there, task.points):
            raise ValueError(
                f"The checks of task {task.name!r} give {task.points:g} points, but the cell {check_cell(task.name)!r} "
                f"in {place} says {there:g}. Make them agree."
            )


def _nbgrader_cells(notebook: bytes, place: str) -> Iterator[tuple[str, Mapping[str, Any], bool, str]]:
    try:
        cells = json.loads(notebook)["cells"]
        for cell in cells:
            tags = cell["metadata"].get("nbgrader")
            if tags and tags.get("grade_id"):
                source = cell["source"]
                text = source if isinstance(source, str) else "".join(source)
                yield tags["grade_id"], tags, cell["cell_type"] == "code", text
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{place} cannot be read as a notebook: {type(error).__name__}: {error}") from error


def _run_checks_file(name: str, text: bytes) -> Assignment:
    place = f"hidden/{name}/checks.py"
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
    files = [*Path(properties.__file__).parent.rglob("*.py")]
    for part in DECIDES_SCORES:
        files += (folder / part).rglob("*.py") if (folder / part).is_dir() else [folder / part]
    digest = hashlib.sha256()
    for file in sorted(files):
        relative = file.relative_to(folder.parent).as_posix()
        digest.update(f"{relative}\n".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
