"""Asking a learner's function: calls with a safety net, and checks that never raise.

The same questions serve notebooks, tests and graders: wrong shapes, exceptions and NaN become findings like every other
mistake.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_lib.tasks.findings import (
    CHANGES_INPUT,
    CUT_OFF,
    GRADIENT_LOST,
    NOT_FINITE,
    NUMBER_TYPE,
    OTHER_PARAMETERS,
    STOPPED,
    UNWRITTEN,
    WRONG_SHAPE,
    WRONG_TYPE,
    CheckFailed,
    Finding,
    general,
)
from course_lib.tasks.slips import TURNS_ALL_AXES, describe, is_stub, slip_of, stops_at_stub, turns_all_axes, where
from course_lib.tasks.values import as_tensor


class Draw:
    """Seeded numbers: `draw(2, 3)` is a normal (2, 3) tensor; with `same`, all drawn sizes are that one.

    With `single` the next size that is drawn, most often that of the batch, is 1.
    """

    def __init__(self, seed: int, *, same: int | None = None):
        self.generator, self.same, self.single = torch.Generator().manual_seed(seed), same, False

    def __call__(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Whole numbers from `low` up to, but not including, `high`."""
        return torch.randint(low, high, shape, generator=self.generator)

    def sizes(self, count: int, low: int = 2, high: int = 8) -> list[int]:
        """So many sizes from `low` to `high`, no two alike, so that no axis can be taken for another."""
        drawn = (torch.randperm(high + 1 - low, generator=self.generator)[:count] + low).tolist()
        if self.single:
            drawn[0], self.single = 1, False
        return drawn if self.same is None else [self.same] * count

    def mask(self, *shape: int, blind: bool = False) -> Tensor:
        """True with probability one half; every row sees its first key and not its last, but a blind second none."""
        mask = torch.rand(*shape, generator=self.generator) > 0.5
        mask[..., 0], mask[..., -1] = True, False
        mask[..., 1, :] &= not blind
        return mask


class Gradients(NamedTuple):
    """With respect to each positional argument (None: none arrives), and to each parameter of a module."""

    inputs: list[Tensor | None]
    parameters: dict[str, Tensor]


class Probe:
    """A learner's function with a safety net: calls that fail, or return what they should not, end in a `CheckFailed`.

    `asks` are the parameters as the task writes them, "q, k, mask=None".
    """

    def __init__(self, function: Any, *, seed: int = 0, asks: str = ""):  # Any: it may be no function at all
        self._function, self.asks = function, asks
        self.draw = Draw(seed)
        self.warned: list[str] = []
        self.measured: float | None = None  # what a check found, in the unit of its task's `measure`

    def random(self, *shape: int) -> Tensor:
        """Numbers from the standard normal distribution, the same for the same seed."""
        return self.draw(*shape)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Whole numbers from `low` up to, but not including, `high`, the same for the same seed."""
        return self.draw.integers(low, high, *shape)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Whatever the function returns: fails if it raises or writes into its inputs."""
        args, kwargs = [_copy(value) for value in args], {name: _copy(value) for name, value in kwargs.items()}
        before = [_copy(value) for value in (*args, *kwargs.values())]
        try:
            result = self._run(args, kwargs)
        except (Exception, SystemExit) as error:
            raise CheckFailed(self._stopped(error, args, kwargs)) from None
        if not all(map(_same, before, (*args, *kwargs.values()))):
            raise CheckFailed(general(CHANGES_INPUT))
        return result

    def _run(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        with warnings.catch_warnings(record=True) as caught:  # they would bury the verdict
            warnings.simplefilter("always")
            always = torch.is_warn_always_enabled()
            torch.set_warn_always(True)  # torch itself warns only once, and a learner tries again
            try:
                return self._function(*args, **kwargs)
            finally:
                torch.set_warn_always(always)
                self.warned = [str(warning.message) for warning in caught]

    def _stopped(self, error: BaseException, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Finding:
        if stops_at_stub(error):
            return general(UNWRITTEN)
        kind, reason = type(error).__name__, str(error).strip().split("\n")[0]
        text = f"{kind}: {reason}" if reason else kind
        seen = f"With {describe(self.asks, args, kwargs)} your function stopped{where(error)}: {text}"
        slip = slip_of(error, self.asks, self.warned)
        return Finding(slip.name, seen, slip.hint) if slip else general(STOPPED, seen)

    def tensor(self, *args: Any, shape: Sequence[int] | None = None, finite: bool = True, **kwargs: Any) -> Tensor:
        """The returned tensor, in float32; a number, an array or a list of numbers is made one.

        Fails if it is none of these (a tuple of tensors is none), or has not the wanted shape, or (unless `finite` is
        False) not only finite numbers.
        """
        result = as_tensor(self.call(*args, **kwargs)).detach()
        if result.dtype in (torch.float16, torch.bfloat16):
            seen = f"The result holds numbers of type `{result.dtype}`, of three digits: too few to be compared."
            raise CheckFailed(general(NUMBER_TYPE, seen))
        result = result.float()
        given = describe(self.asks, args, kwargs)
        if shape is not None and tuple(result.shape) != tuple(shape):
            seen = f"With {given} the result has shape {tuple(result.shape)}, but {tuple(shape)} is needed."
            turned = turns_all_axes(self.warned)
            raise CheckFailed(
                Finding(TURNS_ALL_AXES.name, seen, TURNS_ALL_AXES.hint) if turned else general(WRONG_SHAPE, seen)
            )
        if finite and not result.isfinite().all():
            raise CheckFailed(general(NOT_FINITE, f"With {given} the result holds NaN or infinity."))
        return result

    def number(self, *args: Any, **kwargs: Any) -> float:
        """The returned number: fails if it is none."""
        result = self.call(*args, **kwargs)
        try:
            number = float(result.detach() if isinstance(result, Tensor) else result)
        except Exception:
            seen = f"Your function returned a value of type `{type(result).__name__}`, not a number."
            raise CheckFailed(general(WRONG_TYPE, seen)) from None
        if not math.isfinite(number):
            raise CheckFailed(general(NOT_FINITE, f"Your function returned {number}."))
        return number

    def gradients(self, *args: Any, output_gradient: Tensor, **kwargs: Any) -> Gradients:
        """The gradients that reach the tensors among `args`, and the parameters of a module.

        Fails if no gradient can flow back from the result.
        """
        leaves = [value.clone().requires_grad_() if is_real(value) else value for value in args]
        try:
            result = as_tensor(self.call(*leaves, **kwargs))
        except CheckFailed as fault:
            # torch refuses NumPy where gradients are wanted
            raise CheckFailed(general(CUT_OFF)) if "call numpy()" in fault.finding.message else fault from None
        if not result.requires_grad:
            raise CheckFailed(general(CUT_OFF))
        sources = {place: leaf for place, leaf in enumerate(leaves) if is_real(leaf)}
        if isinstance(self._function, nn.Module):
            named = self._function.named_parameters(remove_duplicate=False)
            sources |= {name: value for name, value in named if value.requires_grad}
        try:
            found = torch.autograd.grad(result, list(sources.values()), output_gradient, allow_unused=True)
        except RuntimeError as error:
            raise CheckFailed(_no_way_back(error)) from None
        arrived = {name: gradient for name, gradient in zip(sources, found, strict=True) if gradient is not None}
        inputs = [arrived.pop(place, None) for place in range(len(leaves))]
        return Gradients(inputs, arrived)

    def once(self, label: str, work: Callable[["Probe"], Any]) -> Any:
        """What `work` gives; a judge does it once for all checks that share the label."""
        return work(self)

    def make(self, name: str, *args: Any, asks: str | None = None, **kwargs: Any) -> "ModuleProbe":
        """The module that a class makes, or that a function trains; `name` is what the task calls it.

        Fails if something else comes back. `asks` are the parameters of `__init__`, where they are others than those
        of the task.
        """
        maker = type(self)(self._function, asks=self.asks if asks is None else asks)
        module = maker.call(*args, **kwargs)
        if not isinstance(module, nn.Module):
            kind = "nothing" if module is None else f"a value of type `{type(module).__name__}`"
            hint = "A layer is a class that begins with `class Name(nn.Module):`; a function has to return one."
            raise CheckFailed(Finding(WRONG_TYPE, f"`{name}` gave {kind}, but a `torch.nn.Module` is needed.", hint))
        if is_stub(type(module).forward) and not [*module.parameters()]:
            raise CheckFailed(general(UNWRITTEN))
        made = ModuleProbe(module, asks=self.asks)
        made.draw = self.draw
        return made


class ModuleProbe(Probe):
    """A learner's module, called with the same safety net; its parameters can be read and set."""

    def parameters(self) -> dict[str, Tensor]:
        """The module's parameters by name, as copies."""
        return {name: value.detach().clone() for name, value in self._function.named_parameters()}

    def set_parameters(self, values: Mapping[str, Tensor]) -> None:
        """Replaces all parameters, one by any of its names: fails if the module's own have others, or other shapes."""
        own = dict(self._function.named_parameters(remove_duplicate=False))
        asked_for = {id(own[name]) for name in values if name in own}
        shapes = {name: tuple(value.shape) for name, value in own.items()}
        for name in [*values, *(name for name, value in own.items() if id(value) not in asked_for)]:
            wanted = tuple(values[name].shape) if name in values else None
            if shapes.get(name) != wanted:
                there = f"has shape {shapes[name]}" if name in own else f"is not there, only {', '.join(own) or 'none'}"
                needed = f"{wanted} is needed" if wanted is not None else "it was not asked for"
                raise CheckFailed(general(OTHER_PARAMETERS, f"The parameter `{name}` {there}; {needed}."))
        with torch.no_grad():
            for name, value in values.items():
                own[name].copy_(value)


@dataclass(frozen=True, kw_only=True)
class Check:
    """A property with a name, the misconceptions that it can tell apart, and the code that looks for them.

    After a `gate` that finds something the checks behind it are left out: they would only repeat it. In an assignment
    it is worth `points`.
    """

    name: str
    detects: tuple[str, ...]
    run: Callable[[Probe], Iterable[Finding]]
    gate: bool = False
    points: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Report:
    """What the checks found; nothing found means passed."""

    findings: list[Finding] = field(default_factory=list)
    checks_run: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.findings

    @property
    def written(self) -> bool:
        """Whether there was anything to check."""
        return UNWRITTEN not in self.misconceptions

    @property
    def misconceptions(self) -> list[str]:
        return [finding.misconception for finding in self.findings]


def run_checks(function: Any, checks: Sequence[Check], *, seed: int = 0, asks: str = "") -> Report:
    """Runs the checks on a learner's function; each misconception is named once.

    Raises ValueError if there is no check: nothing checked is not passed.
    """
    if not checks:
        raise ValueError("give at least one check: a function that nothing was asked of has not passed")
    if is_stub(function):
        return Report(findings=[general(UNWRITTEN)])
    findings: dict[str, Finding] = {}
    done = []
    for check in checks:
        done.append(check.name)
        new = _run_one(check, Probe(function, seed=seed, asks=asks))
        for finding in new:
            findings.setdefault(finding.misconception, finding)
        if new and check.gate:
            break
    return Report(findings=list(findings.values()), checks_run=done)


def _run_one(check: Check, probe: Probe) -> list[Finding]:
    try:
        return list(check.run(probe))
    except CheckFailed as fault:
        return [fault.finding]
    except Exception as error:  # an object that only pretends to be a tensor; still no traceback
        text = f"The result could not be looked at: {type(error).__name__}: {error}"
        return [Finding(WRONG_TYPE, text, "Return a plain `torch.Tensor`.")]


def _no_way_back(error: RuntimeError) -> Finding:
    """What is said of a result whose gradient torch cannot compute: most often a number was overwritten in place."""
    reason = str(error).strip().split("\n")[0].split(":")[0]
    hint = "Use `x = x / y` instead of `x /= y`: what is overwritten in place may be needed for the gradient."
    return Finding(GRADIENT_LOST, f"The result is there, but its gradient cannot be computed: {reason}.", hint)


def is_real(value: Any) -> bool:
    """Whether it is a tensor of floating-point numbers."""
    return isinstance(value, Tensor) and value.is_floating_point()


def _copy(value: Any) -> Any:
    if isinstance(value, list):
        return [_copy(part) for part in value]
    return value.clone() if isinstance(value, Tensor) else value


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, Tensor):
        return old.shape == new.shape and bool(((old == new) | (old.isnan() & new.isnan())).all())
    return not isinstance(old, list) or (len(old) == len(new) and all(map(_same, old, new)))
