"""Property checks: what a function must do, and what is wrong in the head of one who wrote it otherwise.

The same checks serve notebooks, tests and graders. They take the learner's own function and never raise: wrong shapes,
exceptions and NaN become findings like every other mistake.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

STOPPED = "stopped with an error"
WRONG_TYPE = "wrong kind of result"
WRONG_SHAPE = "wrong shape"
NOT_FINITE = "NaN or infinity in the result"
CHANGES_INPUT = "changes its input"
UNEXPLAINED = "result differs from the formula"
OTHER_PARAMETERS = "parameters of other names or shapes"
NOT_AS_BY_HAND = "another result than by hand"
NUMBER_TYPE = "numbers of another type"
CUT_OFF = "cut off from its inputs"
GRADIENT_LOST = "gradient lost on the way"
RANDOM = "another result each time"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong: its name, what was seen, and where to look; texts may hold `code`."""

    misconception: str
    message: str
    hint: str = ""


class Fault(Exception):
    """Carries a finding out of a check that cannot go on."""

    def __init__(self, finding: Finding):
        super().__init__(finding.message)
        self.finding = finding


class Probe:
    """A learner's function with a safety net: calls that fail, or return what they should not, end in a `Fault`."""

    def __init__(self, function: Any, *, seed: int = 0):  # Any: the learner may have passed no function at all
        self._function = function
        self._generator = torch.Generator().manual_seed(seed)

    def random(self, *shape: int) -> Tensor:
        """Numbers from the standard normal distribution, the same for the same seed."""
        return torch.randn(*shape, generator=self._generator)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Whole numbers from `low` up to, but not including, `high`, the same for the same seed."""
        return torch.randint(low, high, shape, generator=self._generator)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Whatever the function returns; a Fault if it raises or writes into its inputs."""
        args, kwargs = [_copy(value) for value in args], {name: _copy(value) for name, value in kwargs.items()}
        before = [_copy(value) for value in (*args, *kwargs.values())]
        try:
            result = self._function(*args, **kwargs)
        except (Exception, SystemExit) as error:
            reason = str(error).strip().split("\n")[0]
            text = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
            raise Fault(
                Finding(
                    misconception=STOPPED,
                    message=f"With {_describe(args, kwargs)} your function stopped: {text}",
                    hint="Write down the shape after each line for these inputs, and look for the first that is wrong.",
                )
            ) from None
        for old, new in zip(before, (*args, *kwargs.values()), strict=True):
            if isinstance(old, Tensor) and not (old.shape == new.shape and torch.equal(old, new)):
                raise Fault(
                    Finding(
                        misconception=CHANGES_INPUT,
                        message="Your function overwrites a tensor that it was given.",
                        hint="Use `masked_fill` instead of `masked_fill_`, and `x = x + y` instead of `x += y`.",
                    )
                )
        return result

    def tensor(self, *args: Any, shape: Sequence[int] | None = None, finite: bool = True, **kwargs: Any) -> Tensor:
        """The returned tensor, in float32.

        A Fault if it is no tensor (a tuple of tensors is none), or has not the wanted shape, or (unless `finite` is
        False) not only finite numbers.
        """
        result = self.call(*args, **kwargs)
        if not isinstance(result, Tensor):
            raise Fault(_no_tensor(result))
        result = result.detach().float()
        if shape is not None and tuple(result.shape) != tuple(shape):
            raise Fault(
                Finding(
                    misconception=WRONG_SHAPE,
                    message=f"With {_describe(args, kwargs)} the result has shape {tuple(result.shape)}, "
                    f"but {tuple(shape)} is needed.",
                    hint="Name each axis of each intermediate result, and see which one went astray.",
                )
            )
        if finite and not result.isfinite().all():
            raise Fault(
                Finding(
                    misconception=NOT_FINITE,
                    message=f"With {_describe(args, kwargs)} the result holds NaN or infinity.",
                    hint="Look for 0/0, for the exponential of a large number, for a softmax over nothing but -inf.",
                )
            )
        return result

    def number(self, *args: Any, **kwargs: Any) -> float:
        """The returned number; a Fault if it is none."""
        result = self.call(*args, **kwargs)
        try:
            number = float(result)
        except Exception:
            raise Fault(
                Finding(
                    misconception=WRONG_TYPE,
                    message=f"Your function returned a value of type `{type(result).__name__}`, not a number.",
                    hint="Return one `float`.",
                )
            ) from None
        if not math.isfinite(number):
            raise Fault(Finding(misconception=NOT_FINITE, message=f"Your function returned {number}."))
        return number

    def reached(self, inputs: Mapping[str, Tensor], parameters: Sequence[str] = ()) -> dict[str, bool]:
        """Whether gradients flow back to each input, given by name in their order, and to parameters of a module.

        A Fault if no gradient can flow back from the result.
        """
        sources = {name: value.clone().requires_grad_() for name, value in inputs.items()}
        try:
            result = self.call(*sources.values())
        except Fault as fault:
            if "call numpy()" in fault.finding.message:  # torch refuses it where gradients are wanted
                raise Fault(cut_off()) from None
            raise
        if not isinstance(result, Tensor):
            raise Fault(_no_tensor(result))
        if not result.requires_grad:
            raise Fault(cut_off())
        own = dict(self._function.named_parameters()) if parameters else {}
        sources |= {name: own[name] for name in parameters if name in own and own[name].requires_grad}
        found = torch.autograd.grad(result.sum(), list(sources.values()), allow_unused=True)
        flowed = {name for name, gradient in zip(sources, found, strict=True) if gradient is not None}
        return {name: name in flowed for name in [*inputs, *(name for name in parameters if name in own)]}

    def make(self, name: str, *args: Any, **kwargs: Any) -> "ModuleProbe":
        """The module that a class makes, or that a function trains; `name` is what the task calls it.

        A Fault if something else comes back.
        """
        module = self.call(*args, **kwargs)
        if not isinstance(module, nn.Module):
            kind = "nothing" if module is None else f"a value of type `{type(module).__name__}`"
            raise Fault(
                Finding(
                    misconception=WRONG_TYPE,
                    message=f"`{name}` gave {kind}, but a `torch.nn.Module` is needed.",
                    hint="A layer is a class that begins with `class Name(nn.Module):`; a function has to return one.",
                )
            )
        return ModuleProbe(module)


class ModuleProbe(Probe):
    """A learner's module, called with the same safety net; its parameters can be read and set."""

    def parameters(self) -> dict[str, Tensor]:
        """The module's parameters by name, as copies."""
        return {name: value.detach().clone() for name, value in self._function.named_parameters()}

    def set_parameters(self, values: Mapping[str, Tensor]) -> None:
        """Replaces all parameters; a Fault if the module's own have other names or shapes."""
        own = {name: tuple(value.shape) for name, value in self.parameters().items()}
        wanted = {name: tuple(value.shape) for name, value in values.items()}
        if own != wanted:
            raise Fault(other_parameters(own, wanted))
        with torch.no_grad():
            for name, parameter in self._function.named_parameters():
                parameter.copy_(values[name])


@dataclass(frozen=True, kw_only=True)
class Check:
    """A property with a name, the misconceptions that it can tell apart, and the code that looks for them.

    After a `gate` that finds something the checks behind it are left out: they would only repeat it.
    """

    name: str
    detects: tuple[str, ...]
    run: Callable[[Probe], Iterable[Finding]]
    gate: bool = False


@dataclass(frozen=True, kw_only=True)
class Report:
    """What the checks found; nothing found means passed."""

    findings: list[Finding] = field(default_factory=list)
    checks_run: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.findings

    @property
    def misconceptions(self) -> list[str]:
        return [finding.misconception for finding in self.findings]


def run_checks(function: Any, checks: Sequence[Check], *, seed: int = 0) -> Report:
    """Runs the checks on a learner's function; each misconception is named once.

    Raises ValueError if there is no check: nothing checked is not passed.
    """
    if not checks:
        raise ValueError("give at least one check: a function that nothing was asked of has not passed")
    findings: dict[str, Finding] = {}
    done = []
    for check in checks:
        done.append(check.name)
        new = _run_one(function, check, seed)
        for finding in new:
            findings.setdefault(finding.misconception, finding)
        if new and check.gate:
            break
    return Report(findings=list(findings.values()), checks_run=done)


def explain(
    actual: Tensor,
    build: Callable[..., Tensor],
    options: Mapping[str, Mapping[Any, str | None]],
    *,
    tolerance: float = 1e-4,
    at_most: int | None = None,
) -> list[str] | None:
    """Which misconceptions turn the formula into what the learner's function returned.

    `build(**choice)` computes the result of one choice among the `options`, whose values map each alternative to the
    misconception behind it, None for the right one. Choices with fewer misconceptions are tried first, and none with
    more than `at_most`. Returns their names, [] if the result is right, and None if no choice explains it.
    """
    choices = [dict(zip(options, picked, strict=True)) for picked in product(*options.values())]

    def mistakes(choice: dict[str, Any]) -> list[str]:
        named = (options[part][picked] for part, picked in choice.items())
        return list(dict.fromkeys(name for name in named if name is not None))

    for choice in sorted(choices, key=lambda choice: len(mistakes(choice))):
        if at_most is not None and len(mistakes(choice)) > at_most:
            break
        try:
            candidate = build(**choice)
        except RuntimeError:  # this mistake cannot be made with tensors of these shapes
            continue
        if candidate.shape == actual.shape and torch.allclose(candidate, actual, atol=tolerance, rtol=tolerance):
            return mistakes(choice)
    return None


def worked_example(compute: Callable[[Probe], Tensor], wanted: Sequence[Any], *, tolerance: float = 1e-4) -> Check:
    """The check of an example that the task works out by hand: its message shows both results.

    `compute` gets the probe and returns what the learner's function makes of the example.
    """
    by_hand = torch.tensor(wanted)

    def run(probe: Probe) -> list[Finding]:
        actual = compute(probe)
        if actual.shape == by_hand.shape and torch.allclose(actual, by_hand, atol=tolerance, rtol=tolerance):
            return []
        return [
            Finding(
                misconception=NOT_AS_BY_HAND,
                message=f"For the example your result is {_numbers(actual)}; by hand it is {_numbers(by_hand)}.",
                hint="Print what your code has after each line, and compare with the steps of the example.",
            )
        ]

    return Check(name="the example worked out by hand", detects=(NOT_AS_BY_HAND,), run=run)


def has_type(compute: Callable[[Probe], Iterable[tuple[Any, torch.dtype]]], *, name: str) -> Check:
    """The check of number types: `compute` gives what the learner's function returned, each with the wanted type."""

    def run(probe: Probe) -> list[Finding]:
        for actual, wanted in compute(probe):
            if not isinstance(actual, Tensor):
                raise Fault(_no_tensor(actual))
            if found := other_type(actual, wanted):
                return found
        return []

    return Check(name=name, detects=(NUMBER_TYPE,), run=run)


def other_type(actual: Tensor, wanted: torch.dtype) -> list[Finding]:
    """The finding for numbers of another type than the wanted one; none if they are right."""
    if actual.dtype == wanted:
        return []
    return [
        Finding(
            misconception=NUMBER_TYPE,
            message=f"The result holds numbers of type `{actual.dtype}`, but `{wanted}` is needed.",
            hint="What you make yourself can be given a type: `torch.arange(n, dtype=x.dtype)`; `y.to(x.dtype)` "
            "changes it afterwards. NumPy makes numbers of 64 bits unless told otherwise.",
        )
    ]


def lets_gradients_through(
    compute: Callable[[Probe], tuple[Probe, Mapping[str, Tensor]]], *, parameters: Sequence[str] = ()
) -> Check:
    """The check that gradients flow back to all inputs and to the parameters of these names.

    `compute` returns whom to ask, the probe or a module that it makes, and the inputs by name, in their order.
    """

    def run(probe: Probe) -> list[Finding]:
        asked, inputs = compute(probe)
        lost = [f"`{name}`" for name, reached in asked.reached(inputs, parameters).items() if not reached]
        if not lost:
            return []
        return [
            Finding(
                misconception=GRADIENT_LOST,
                message=f"The result is there, but no gradient flows back from it to {', '.join(lost)}.",
                hint="Is something detached, computed under `no_grad`, or copied through `.data` or `.item()`?",
            )
        ]

    return Check(name="gradients flow back", detects=(CUT_OFF, GRADIENT_LOST), run=run)


def repeats(compute: Callable[[Probe], tuple[Any, Any]]) -> Check:
    """The check that the same inputs give the same: `compute` asks twice. A gate, as all else would only be noise."""

    def run(probe: Probe) -> list[Finding]:
        try:
            first, second = compute(probe)
        except Fault:  # other checks say so, and more about it
            return []
        if not (isinstance(first, Tensor) and isinstance(second, Tensor) and first.shape == second.shape):
            return []
        same = torch.allclose(first.double(), second.double(), atol=1e-4, equal_nan=True)
        return [] if same else [random_parts()]

    return Check(name="the same result each time", detects=(RANDOM,), run=run, gate=True)


def random_parts() -> Finding:
    """The finding for a function that gives another result when it is called again."""
    return Finding(
        misconception=RANDOM,
        message="Called again with the same inputs, your code gives another result: random parts?",
        hint="Look for `rand`, for dropout, for a tensor made with `empty` and not filled, for a value kept from call "
        "to call.",
    )


def cut_off() -> Finding:
    """The finding for a result that does not remember what it was computed from."""
    return Finding(
        misconception=CUT_OFF,
        message="The result is cut off from its inputs: no gradient flows back.",
        hint="Stay in torch: NumPy, `.tolist()`, `.item()`, `.detach()`, `.data` and `no_grad` cut it off.",
    )


def unexplained(actual: Tensor, wanted: Tensor) -> Finding:
    """The finding for a result of the right shape that is wrong in no way we know."""
    difference = (actual - wanted).abs().max().item()
    return Finding(
        misconception=UNEXPLAINED,
        message=f"The result is off by up to {difference:.2g}.",
        hint="Compare with the formula term by term, on an input small enough to work out by hand.",
    )


def other_parameters(own: Mapping[str, tuple[int, ...]], wanted: Mapping[str, tuple[int, ...]]) -> Finding:
    """The finding for a module whose parameters, given as shapes by name, are not those that were asked for."""
    missing = [name for name in wanted if name not in own]
    extra = [name for name in own if name not in wanted]
    if missing:
        there = ", ".join(f"`{name}`" for name in own) or "none"
        message = f"Your module has no parameter `{missing[0]}`; it has {there}."
    elif extra:
        message = f"Your module has a parameter `{extra[0]}` that was not asked for."
    else:
        name = next(name for name in wanted if own[name] != wanted[name])
        message = f"The parameter `{name}` has shape {own[name]}, but {wanted[name]} is needed."
    return Finding(
        misconception=OTHER_PARAMETERS,
        message=message,
        hint="Use the names and sizes of the task, and make each layer in `__init__`, after `super().__init__()`.",
    )


def _numbers(values: Tensor) -> str:
    if values.numel() > 16:
        return f"a tensor of shape {tuple(values.shape)}"
    rounded = [f"{value:.4g}" for value in values.flatten().tolist()]
    return f"({', '.join(rounded)})" + (f" in the shape {tuple(values.shape)}" if values.dim() != 1 else "")


def _run_one(function: Any, check: Check, seed: int) -> list[Finding]:
    try:
        return list(check.run(Probe(function, seed=seed)))
    except Fault as fault:
        return [fault.finding]
    except Exception as error:  # an object that only pretends to be a tensor; still no traceback
        text = f"The result could not be looked at: {type(error).__name__}: {error}"
        return [Finding(misconception=WRONG_TYPE, message=text, hint="Return a plain `torch.Tensor`.")]


def _no_tensor(result: Any) -> Finding:
    kind = type(result).__name__
    if isinstance(result, tuple | list) and any(isinstance(part, Tensor) for part in result):
        return Finding(
            misconception=WRONG_TYPE,
            message=f"Your function returned a {kind} of {len(result)}, but one tensor is asked for.",
            hint="Return the result alone, without what led to it; is there a comma after `return`?",
        )
    return Finding(
        misconception=WRONG_TYPE,
        message=f"Your function returned {'nothing' if result is None else f'a value of type `{kind}`'}.",
        hint="Return a `torch.Tensor`; is there a `return` at the end?",
    )


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _describe(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    def one(value: Any) -> str:
        if isinstance(value, Tensor):
            return f"shape {tuple(value.shape)}"
        text = repr(value)
        return text if len(text) <= 40 else f"a {type(value).__name__}"

    return "inputs of " + ", ".join([*map(one, args), *(f"{name} = {one(value)}" for name, value in kwargs.items())])
