"""One table for a task: from it come the check of an exercise, the checks of an assignment, the findings and the proof.

A task's `reference` is its solution; a `Mistake` is a change of the solution's text. What a learner's function returns
is compared with the reference on fresh numbers of drawn sizes, then with each mistake and each pair of mistakes.
"""

import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.tasks.core import Check, Draw, Probe, Report, is_real, run_checks
from course_lib.tasks.findings import (
    CUT_OFF,
    FORBIDDEN,
    GRADIENT_DIFFERS,
    GRADIENT_LOST,
    NOT_AS_BY_HAND,
    NOT_FINITE,
    NUMBER_TYPE,
    RANDOM,
    CheckFailed,
    Finding,
    general,
    other_type,
    unexplained,
)
from course_lib.tasks.slips import describe, forbidden_names
from course_lib.tasks.solution import Changes, Solution, run
from course_lib.tasks.values import KINDS, as_tensor, bring, differs, row_of, written

DRAWS = 3  # of each case
TRAINING_SECONDS = 300.0  # of processor time, for tasks that train: what is enough on any machine
SAME = 6  # where all sizes are one


@dataclass(frozen=True)
class Mistake:
    """A way to go wrong: its name, what it does, a hint, and the changes of the solution's text that make it.

    `ways` are several of them, each a tuple of changes, (old, new). It costs points in the cases that `costs` names, in
    all if it names none. Without words, `says`, it is told by a check of its own or a general one. `place` is where it
    is written.
    """

    name: str
    says: str
    hint: str
    _: KW_ONLY
    ways: tuple[Changes, ...] = ()
    costs: tuple[str, ...] = ()
    place: str = field(default="", compare=False)

    @property
    def finding(self) -> Finding:
        return Finding(self.name, self.says, self.hint)


@dataclass(frozen=True)
class TaskInput:
    """What a learner's function is asked: its arguments in their order; of a module, how it is made, and with what."""

    args: tuple[Any, ...]
    build: tuple[Any, ...] = ()
    parameters: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One thing that is asked, in words that a learner reads, and how its inputs are drawn.

    `default_finding` is said of a result that no mistake explains.
    """

    name: str
    inputs: Callable[[Draw], TaskInput | tuple]
    points: float = 0.0
    tolerance: float = 1e-4
    default_finding: Finding | None = None

    def counts(self, mistake: Mistake) -> bool:
        """Whether this is the case in which the mistake costs points."""
        return not mistake.costs or self.name in mistake.costs


@dataclass(frozen=True)
class Also:
    """A general property, written once for all tasks; it takes the task and whom to ask.

    It is worth one point; `replace(gradients, points=3)` makes it worth more.
    """

    name: str
    detects: tuple[str, ...]
    run: Callable[["Task", Probe], list[Finding]]
    points: float = 1.0


@dataclass(frozen=True)
class Measure:
    """What the answers to an open task are compared by: a name with its unit, and which end is the better one."""

    name: str
    lower_is_better: bool


@dataclass(frozen=True)
class Task:
    """What is asked of a learner, and all that is known about how it goes wrong.

    `asks` are the parameters as the text writes them, "q, k, mask=None"; those with a default are given by name.
    `module` is a class with the parameters that are asked for, where the answer is a class.
    `example` are inputs and results worked out by hand; `checks` are those that no formula can express. `seconds` is
    what one call may take. An open task has a `measure`: its checks put what they found into `probe.measured`.
    Raises ValueError for a task that asks nothing.
    """

    name: str
    title: str
    _: KW_ONLY
    asks: str
    reference: Callable[..., Any] | None = None
    module: Callable[..., nn.Module] | None = None
    cases: tuple[Case, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    also: Sequence[Also] = ()
    example: tuple[tuple[TaskInput | tuple, Any], ...] = ()
    checks: tuple[Check, ...] = ()
    forbids: Sequence[str] = ()
    seconds: float | None = None
    measure: Measure | None = None
    minutes: int = 0
    stretch: bool = False
    text: str = ""
    hints: tuple[str, ...] = ()
    solution: str = ""

    def __post_init__(self) -> None:
        if not self.all_checks:
            raise ValueError(f"task {self.name!r} asks nothing: give cases, checks or an example")

    @cached_property
    def all_checks(self) -> tuple[Check, ...]:
        """Everything that is asked, one check for each case and property."""
        checks = [
            Check(
                name=case.name,
                detects=tuple(mistake.name for mistake in self.mistakes if mistake.ways and case.counts(mistake)),
                run=partial(self._ask_case, case),
                gate=True,
                points=case.points,
            )
            for case in self.cases
        ]
        checks += [
            Check(name=part.name, detects=part.detects, run=partial(part.run, self), gate=True, points=part.points)
            for part in self.also
        ]
        return (*checks, *self.checks, *self.by_hand)

    @property
    def by_hand(self) -> tuple[Check, ...]:
        """The check of the example, if there is one."""
        if not self.example:
            return ()
        return (Check(name="the example worked out by hand", detects=(NOT_AS_BY_HAND,), run=self._ask_example),)

    def finding(self, name: str) -> Finding:
        """What is said of the mistake with this name. Raises KeyError if there is none."""
        return {mistake.name: mistake.finding for mistake in self.mistakes}[name]

    @cached_property
    def scored(self) -> tuple[Check, ...]:
        """The checks that are worth points."""
        return tuple(check for check in self.all_checks if check.points)

    @property
    def points(self) -> float:
        return math.fsum(check.points for check in self.scored)

    def run(self, function: Any) -> Report:
        """Checks a learner's function, up to the first thing that is wrong."""
        if self.forbids and (found := forbidden_names(function, self.forbids)):
            name, number, line = found[0]
            return Report(findings=[general(FORBIDDEN, f"Line {number}, `{line}`, calls `{name}`.")])
        return run_checks(function, self.all_checks, asks=self.asks)

    # asking -----------------------------------------------------------------------------------------------------

    def draw(self, case: Case | None, draw: Draw) -> TaskInput:
        """Inputs of a case; without one, those of the first case or of the example."""
        case = case or next(iter(self.cases), None)
        given = _given(case.inputs(draw) if case else self.example[0][0])
        if self.module is None or given.parameters:
            return given
        shapes = {name: value.shape for name, value in self.module(*given.build).named_parameters()}
        return replace(given, parameters={name: draw(*shape) / shape[-1] ** 0.5 for name, shape in shapes.items()})

    def draw_single(self, case: Case, draw: Draw) -> TaskInput | None:
        """Inputs of a case whose first size is 1, most often a batch of one; None where the formula has no such."""
        draw.single = True
        try:
            given = self.draw(case, draw)
            right = _as_tensor(self.right(given))
        except (RuntimeError, IndexError, ValueError):
            return None
        finally:
            drawn, draw.single = not draw.single, False
        return given if drawn and bool(right.isfinite().all()) else None

    def right(self, given: TaskInput, way: Changes = ()) -> Any:
        """What the reference gives, or what a mistake gives that is made in this way."""
        made = (given.build, given.parameters) if given.build else ()
        if not isinstance(self.reference, Solution):
            return self.reference(*made, *given.args)
        result = run(self.reference.changed(way), *made, *map(_own, given.args))
        return float(result) if type(result) is int else result  # 3.0 is as right as 3, and 3.5 is compared with it

    def split(self, args: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments by place and by name: those that have a default in `asks` are given by name."""
        parts = [part.partition("=") for part in self.asks.split(", ")]
        placed = sum(1 for _, equals, _ in parts if not equals)
        named = [name for name, equals, _ in parts if equals]
        args = [_own(value) for value in args]
        return list(args[:placed]), dict(zip(named, args[placed:], strict=False))

    def whom(self, probe: Probe, given: TaskInput) -> Probe:
        """Whom to ask: the function itself, or the module that it makes, with the given parameters."""
        if not given.build:
            return probe
        module = probe.make(self.name, *given.build, asks=", ".join(inspect.signature(self.module).parameters))
        module.set_parameters(given.parameters)
        return module

    def ask(self, probe: Probe, given: TaskInput, wanted: Any) -> Tensor:
        """The result as a tensor, of whatever shape; a list or a text as a row of numbers."""
        args, kwargs = self.split(given.args)
        asked = self.whom(probe, given)
        if isinstance(wanted, float):
            return torch.tensor(asked.number(*args, **kwargs))
        if isinstance(wanted, KINDS) or not is_real(wanted):
            return _as_tensor(bring(asked.call(*args, **kwargs), wanted))
        return asked.tensor(*args, finite=False, **kwargs)

    def _ask_case(self, case: Case, probe: Probe) -> list[Finding]:
        for _ in range(DRAWS):
            if found := self._ask_once(case, probe, self.draw(case, probe.draw)):
                return found
        given = self.draw_single(case, probe.draw)
        return self._ask_once(case, probe, given) if given else []

    def _ask_once(self, case: Case, probe: Probe, given: TaskInput) -> list[Finding]:
        wanted = self.right(given)
        right = _as_tensor(wanted)
        try:
            actual = self.ask(probe, given, wanted)
            if _agree(actual, right, case.tolerance):
                return []
            named = self.explain(actual, given, case.tolerance)
            args, kwargs = self.split(given.args)
            if named is None and actual.shape != right.shape and not isinstance(wanted, KINDS):
                self.whom(probe, given).tensor(*args, shape=right.shape, **kwargs)  # ends in a CheckFailed that says so
        except CheckFailed:
            if named := self._explain_square(case, probe):
                return named
            raise
        if named is not None:
            costs = list(dict.fromkeys(mistake.finding for mistake in named if case.counts(mistake)))
            if costs or not _all_the_same(actual):  # a mistake that costs elsewhere costs nothing here
                return costs
        if not _agree(self.ask(probe, given, wanted), actual, case.tolerance):
            return [general(RANDOM)]
        if case.default_finding:
            return [case.default_finding]
        if isinstance(wanted, KINDS):
            told = describe(self.asks, given.args, {})
            return [differs(told, bring(self.whom(probe, given).call(*args, **kwargs), wanted), wanted)]
        if not actual.isfinite().all():
            given = describe(self.asks, given.args, {})
            return [general(NOT_FINITE, f"With {given} the result holds NaN or infinity.")]
        return [unexplained(actual.float(), right.float(), case.tolerance)]

    def explain(self, actual: Tensor, given: TaskInput, tolerance: float = 1e-4) -> list[Mistake] | None:
        """The fewest mistakes, two at most, that turn the formula into what came; None if none do.

        A result without a single finite number names a mistake only if no other would give the same.
        """
        matching = (mistakes for mistakes, way in self.ways if self._is_made(actual, given, way, tolerance))
        found = next(matching, None)
        if found and not actual.isfinite().any() and any(len(other) == 1 and other != found for other in matching):
            return None
        return found

    def _is_made(self, actual: Tensor, given: TaskInput, way: Changes, tolerance: float) -> bool:
        try:
            return _agree(actual, _as_tensor(self.right(given, way)), tolerance)
        except Exception:  # this mistake cannot be made with tensors of these shapes, or not beside the other one
            return False

    @cached_property
    def ways(self) -> list[tuple[list[Mistake], Changes]]:
        """Each mistake in each of its ways, then each pair that changes different parts."""
        single = [([mistake], way) for mistake in self.mistakes if mistake.says for way in mistake.ways]
        pairs = [
            ([*first] if first == second else [*first, *second], (*one, *two))
            for (first, one), (second, two) in itertools.combinations(single, 2)
            if not dict(one).keys() & dict(two).keys()
        ]
        return single + pairs

    def _explain_square(self, case: Case, probe: Probe) -> list[Finding]:
        """Some mistakes need axes of one size to show themselves as what they are."""
        given = self.draw(case, Draw(0, same=SAME))
        try:
            actual = self.ask(probe, given, self.right(given))
        except CheckFailed:
            return []
        named = self.explain(actual, given, case.tolerance) or []
        return [mistake.finding for mistake in named]

    def _ask_example(self, probe: Probe) -> list[Finding]:
        for inputs, wanted in self.example:
            by_hand = torch.tensor(wanted)
            actual = self.ask(probe, _given(inputs), wanted if isinstance(wanted, float) else by_hand)
            if not _agree(actual, by_hand, 1e-4):
                seen = f"For the example your result is {_numbers(actual)}; by hand it is {_numbers(by_hand)}."
                return [general(NOT_AS_BY_HAND, seen)]
        return []


# general properties -----------------------------------------------------------------------------------------


def _own(value: Any) -> Any:
    """A module is copied: whoever is called may train it; so is a generator, which all who are called find the same."""
    if isinstance(value, torch.Generator):
        return torch.Generator(value.device).set_state(value.get_state())
    return deepcopy(value) if isinstance(value, nn.Module) else value


def _keeps_type(task: Task, probe: Probe) -> list[Finding]:
    given = task.draw(None, probe.draw)
    for number_type, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-9)):
        typed = _of_type(given, number_type)
        args, kwargs = task.split(typed.args)
        actual = as_tensor(task.whom(probe, typed).call(*args, **kwargs))
        if other := other_type(actual, number_type):
            return other
        if task.reference and not _agree(actual, task.right(typed), tolerance):
            return [general(NUMBER_TYPE)]
    return []


def _gradients_right(task: Task, probe: Probe) -> list[Finding]:
    given = task.draw(None, probe.draw)
    args, kwargs = task.split(given.args)
    asked = task.whom(probe, given)
    leaves = [value.clone().requires_grad_() if is_real(value) else value for value in args]
    own = {name: value.clone().requires_grad_() for name, value in given.parameters.items()}
    if task.reference is None:
        arriving = torch.ones_like(asked.tensor(*args, **kwargs))
    else:
        wanted = task.right(replace(given, args=(*leaves, *kwargs.values()), parameters=own))
        arriving = probe.draw(*wanted.shape)
        wanted.backward(arriving)
    theirs = asked.gradients(*args, output_gradient=arriving, **kwargs)
    names = [part.split("=")[0] for part in task.asks.split(", ")]
    pairs = {name: (found, leaf) for name, found, leaf in zip(names, theirs.inputs, leaves, strict=False)}
    pairs = {name: pair for name, pair in pairs.items() if is_real(pair[1])}
    pairs |= {name: (theirs.parameters.get(name), leaf) for name, leaf in own.items()}
    wanted_gradients = {name: _gradient(leaf) for name, (_, leaf) in pairs.items()}
    needed = {name for name, gradient in wanted_gradients.items() if task.reference is None or gradient.any()}
    if lost := [f"`{name}`" for name, (found, _) in pairs.items() if found is None and name in needed]:
        return [general(GRADIENT_LOST, f"The result is there, but no gradient flows back to {', '.join(lost)}.")]
    flowing = {name: found for name, (found, _) in pairs.items() if found is not None}
    if task.reference and not all(_agree(found, wanted_gradients[name], 1e-3) for name, found in flowing.items()):
        return [general(GRADIENT_DIFFERS)]
    return []


def _gradient(leaf: Tensor) -> Tensor:
    """What has come back to it; zeros where nothing of the result depends on it, such as an expert that none chose."""
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


keeps_type = Also(
    "numbers of 32 bits stay what they are, those of 64 keep their precision", (NUMBER_TYPE,), _keeps_type
)
gradients = Also(
    "gradients flow back, and they are right", (CUT_OFF, GRADIENT_LOST, GRADIENT_DIFFERS), _gradients_right
)


# numbers ----------------------------------------------------------------------------------------------------


def _given(inputs: TaskInput | tuple) -> TaskInput:
    """Arguments as they are given to a function; lists of numbers become tensors."""
    given = inputs if isinstance(inputs, TaskInput) else TaskInput(tuple(inputs))
    return replace(given, args=tuple(map(_tensors, given.args)))


def _tensors(value: Any) -> Any:
    return torch.tensor(value) if isinstance(value, list) and _is_number(value) else value


def _is_number(value: Any) -> bool:
    return _is_number(value[0]) if isinstance(value, list) and value else isinstance(value, float)


def _of_type(given: TaskInput, number_type: torch.dtype) -> TaskInput:
    """The inputs in numbers of this type, thirds, so that no shorter type can hold them."""
    args = tuple(value.to(number_type) / 3 if is_real(value) else value for value in given.args)
    return replace(given, args=args)


def _as_tensor(value: Any) -> Tensor:
    return row_of(value) if isinstance(value, KINDS) else torch.as_tensor(value)


def _agree(actual: Tensor, wanted: Tensor, tolerance: float) -> bool:
    if actual.shape != wanted.shape:
        return False
    if not is_real(wanted):
        return bool((actual == wanted).all())
    actual, wanted = actual.detach().double(), wanted.detach().double()
    return torch.allclose(actual, wanted, atol=tolerance, rtol=tolerance, equal_nan=True)


def _all_the_same(values: Tensor) -> bool:
    return bool((values == values.flatten()[0]).all())


def _numbers(values: Tensor) -> str:
    if values.numel() > 16:
        return f"a tensor of shape {tuple(values.shape)}"
    rounded = ", ".join(map(written, values.flatten().tolist()))
    return f"({rounded})" + (f" in the shape {tuple(values.shape)}" if values.dim() != 1 else "")
