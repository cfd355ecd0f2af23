"""Hidden checks: what an answer must do, written in a few lines; see `spec` for the tasks that they belong to."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from course_lib import tasks
from course_lib.grading.subject import RemoteModule, Subject, kind_of
from course_lib.tasks.findings import (
    GRADIENT_DIFFERS,
    NOT_FINITE,
    NUMBER_TYPE,
    RANDOM,
    WRONG_SHAPE,
    WRONG_TYPE,
    Finding,
    general,
    other_type,
)

DIFFERS = "result differs from the reference"
TOO_LITTLE_LEARNT = "has not learnt enough"


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


def property_check(
    check: tasks.Check,
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
    same_type: bool = False,
    message: str = "The numbers differ from what the formula gives.",
    hint: str = "Compare with the formula term by term, on an input small enough to work out by hand.",
    misconception: str = DIFFERS,
    mistakes: tuple[Mistake, ...] = (),
    detects: tuple[str, ...] = (),
    function: str = "",
    needs: tuple[str, ...] = (),
    seconds: float = 5.0,
) -> HiddenCheck:
    """The answer gives what the reference gives on seeded inputs: same kind of result, shape and values.

    `tolerance` is absolute and relative; with `same_type` the numbers must have as many bits, too. An answer that
    agrees with one of the `mistakes`, or gives another result when asked again, is told so; any other gets `message`,
    which must hold nothing of the inputs.
    """
    _check_tolerance(name, tolerance)

    def run(subject: Subject) -> list[Finding]:
        arguments = _given(inputs(subject))
        wanted = _worth_points(reference(*arguments.args, **arguments.kwargs))
        actual = subject.call(*arguments.args, **arguments.kwargs)
        wrong = difference(actual, wanted, tolerance)
        if wrong != DIFFERS:
            if wrong is None:
                return other_type(actual, wanted.dtype) if same_type else []
            return [Finding(misconception=wrong, message="")]
        for mistake in mistakes:
            if difference(actual, mistake.formula(*arguments.args, **arguments.kwargs), tolerance) is None:
                return [Finding(misconception=mistake.misconception, message=mistake.message, hint=mistake.hint)]
        again = subject.call(*arguments.args, **arguments.kwargs)
        if difference(again, actual, tolerance) == DIFFERS:
            return [general(RANDOM)]
        return [Finding(misconception=misconception, message=message, hint=hint)]

    typed = (NUMBER_TYPE,) if same_type else ()
    named = tuple(dict.fromkeys((*detects, *(mistake.misconception for mistake in mistakes), *typed, misconception)))
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
        values = subject.draw_parameters(ours)
        theirs = subject.make(subject.name, *made.args, **made.kwargs)
        theirs.set_parameters(values)
        arguments = _given(inputs(subject))
        args = [_leaf(value) if gradients else value for value in arguments.args]
        wanted = _worth_points(ours(*args, **arguments.kwargs))
        actual = theirs.call(*arguments.args, **arguments.kwargs)
        wrong = difference(actual, wanted, tolerance)
        if wrong == DIFFERS:
            again = theirs.call(*arguments.args, **arguments.kwargs)
            if difference(again, actual, tolerance) == DIFFERS:
                return [general(RANDOM)]
        if wrong is not None:
            return [Finding(misconception=misconception if wrong == DIFFERS else wrong, message=message, hint=hint)]
        if gradients:
            arrived = subject.random(*wanted.shape)
            wanted.backward(arrived)
            found = theirs.gradients(*arguments.args, output_gradient=arrived, **arguments.kwargs)
            pairs = [(found.parameters.get(name), value.grad) for name, value in ours.named_parameters()]
            given_args = zip(found.inputs, args, strict=True)
            pairs += [(own, arg.grad) for own, arg in given_args if isinstance(arg, Tensor)]
            if any(difference(own, grad, tolerance) for own, grad in pairs if grad is not None):
                return [general(GRADIENT_DIFFERS)]
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
            reached = subject.once(f"learns: {name}", lambda trainer: float(score(trainer, train(trainer))))
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
