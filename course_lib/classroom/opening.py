"""The learner's own model takes over the weights of a trained one, and is compared with it part by part."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.classroom.output import GREEN, GREY, RED, say, varies
from course_lib.tasks.slips import is_stub, stops_at_stub, where

CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.Sequential)  # they have no lines of their own
TOLERANCE = 1e-5  # of an output, relative to its largest number

Names = Mapping[str, str]  # the learner's names of parts and parameters, where they are others -> the library's


@dataclass(frozen=True, kw_only=True)
class Shipped:
    """A trained model, the sizes in which the learner's class is built, and a real input for both."""

    model: Callable[[], nn.Module]
    sizes: Callable[[nn.Module], Mapping[str, Any]]  # the arguments of the learner's class, by name
    inputs: Callable[[], tuple[Tensor, ...]]
    names: Names = field(default_factory=dict)


class DoesNotOpen(Exception):
    """Says, in markup, why the learner's model cannot take over the weights, or what it computes otherwise."""


def load(shipped: Shipped, make: Any, ours: nn.Module, *, is_ours: bool = False) -> nn.Module | None:
    """Return the learner's model with the weights of ours, if both compute the same.

    Else say why not, and return None; an error in the learner's code is told, too. With `is_ours` the class is that of
    the exercise's solution.
    """
    ours.eval()
    called = f"`{getattr(make, '__name__', 'your model')}`"
    try:
        mine = None if is_stub(make) else _built(make, shipped.sizes(ours))
        if mine is None or not [*mine.parameters()]:
            say(f"○ {called} is not written yet, so the page goes on with ours; yours can follow.", GREY)
            return None
        count = copy_weights(ours, mine, shipped.names)
        difference, largest = compare(ours, mine, shipped.inputs(), shipped.names)
    except DoesNotOpen as problem:
        say(f"✗ **{called} does not open the trained weights yet**, so the page goes on with ours.\n\n{problem}", RED)
        return None
    differs = f"differs from the library's by at most {difference:.1g}" if difference else "is equal to the library's"
    said = (
        f"✓ **{called} opens the trained weights.** {count:,} parameters are copied, and on a real input its output "
        f"{varies(differs)}; the largest value there is {varies(f'{largest:.3g}')}."
    )
    if is_ours:
        say(f"{said} This is the class of the solution: write yours above, and run this cell again.", GREY)
    else:
        say(f"{said} From here on the page runs on **your** model.", GREEN)
    return mine


def _built(make: Any, sizes: Mapping[str, Any]) -> nn.Module:
    arguments = ", ".join(f"{name}={value!r}" for name, value in sizes.items())
    try:
        made = make(**sizes)
    except Exception as error:
        raise DoesNotOpen(
            f"Building it with `({arguments})` stopped{where(error)}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(made, nn.Module):
        raise DoesNotOpen(
            f"Called with `({arguments})` it gives a value of type `{type(made).__name__}`. It has to be a class that "
            "begins with `class Name(nn.Module):`."
        )
    return made


def copy_weights(ours: nn.Module, mine: nn.Module, names: Names) -> int:
    """Copy our weights into the learner's model by name, and return how many numbers that is.

    Raises DoesNotOpen for a parameter that is missing, additional, of another shape, or not shared where ours is.
    """
    wanted, found = ours.state_dict(keep_vars=True), mine.state_dict(keep_vars=True)
    own = {_translated(name, names): name for name in found}
    parameters = {name: value for name, value in wanted.items() if isinstance(value, nn.Parameter)}
    shared: dict[int, list[str]] = {}
    for name, value in parameters.items():
        shared.setdefault(id(value), []).append(name)

    missing = [group[0] for group in shared.values() if not any(name in own for name in group)]
    extra = [name for name, value in mine.named_parameters() if _translated(name, names) not in wanted]
    if missing:
        back = {theirs: hers for hers, theirs in names.items()}
        raise DoesNotOpen(_missing([_translated(name, back) for name in missing], extra))
    if extra:
        raise DoesNotOpen(
            f"It has {_listed(extra)}, which the trained model does not have. Is it needed? If so, compare with the "
            "architecture diagram; if not, delete it."
        )
    for name, value in wanted.items():
        if name in own and found[own[name]].shape != value.shape:
            hers, theirs = tuple(found[own[name]].shape), tuple(value.shape)
            turned = " Its two sizes are exchanged." if hers == theirs[::-1] else ""
            raise DoesNotOpen(f"`{own[name]}` has shape {hers}; {theirs} is needed.{turned}")
    for group in shared.values():
        there = [own[name] for name in group if name in own]
        if len({id(found[name]) for name in there}) > 1:
            raise DoesNotOpen(
                f"`{there[0]}` and `{there[1]}` are one matrix in the trained model: the weights are **tied**. Assign "
                "the same parameter to both in `__init__`."
            )
    with torch.no_grad():
        for name, value in wanted.items():
            if name in own:
                found[own[name]].copy_(value)
    return sum(parameter.numel() for parameter in mine.parameters())


def compare(ours: nn.Module, mine: nn.Module, inputs: tuple[Tensor, ...], names: Names) -> tuple[float, float]:
    """Return the largest difference of two models' outputs, and the largest value of ours.

    Raises DoesNotOpen, naming the first part whose result differs, if two models with the same weights do not agree.
    Parts are compared in the order in which ours finishes them; a part that only one of the two has is left out.
    """
    ours.eval(), mine.eval()
    right = _traced(ours, inputs)
    try:
        traced = _traced(mine, inputs)
    except Exception as error:
        if stops_at_stub(error):
            raise DoesNotOpen("Its `forward` is not written yet.") from error
        shapes = ", ".join(str(tuple(value.shape)) for value in inputs)
        raise DoesNotOpen(
            f"With an input of shape {shapes} it stopped{where(error)}: {type(error).__name__}: {error}"
        ) from error
    if _agree(right[""][1], traced[""][1]):
        expected, made = (of[""][1].double().flatten() for of in (right, traced))
        return (made - expected).abs().max().item(), expected.abs().max().item()
    hers = {_translated(name, names): (name, *values) for name, values in traced.items()}
    given_to = {hers[part][0]: given for part, (given, _) in right.items() if part in hers}
    before = ""
    for part, (given, made) in right.items():
        if part not in hers:
            continue
        name, her_given, her_made = hers[part]
        if _agree(made, her_made):
            before = name
        elif _agree(given, her_given):
            raise DoesNotOpen(_inside(mine, name, before, made, her_made))
        elif _size(given) == _size(her_given):  # else the two parts are asked for different things
            around = [name.rsplit(".", count)[0] for count in range(name.count(".") + 1)]
            astray = [one for one in around if one in given_to and not _agree(given_to[one], traced[one][0])]
            raise DoesNotOpen(_on_the_way(mine, before, astray[-1]))
    raise DoesNotOpen(_inside(mine, "", before, right[""][1], traced[""][1]))


def _traced(model: nn.Module, inputs: tuple[Tensor, ...]) -> dict[str, tuple[Any, Any]]:
    """What the first call of each part was given and made, by name, in the order in which the parts finish."""
    seen: dict[str, tuple[Any, Any]] = {}

    def noting(name: str) -> Callable[..., None]:
        def note(_module: nn.Module, given: tuple, made: Any) -> None:
            seen.setdefault(name, (given[0] if given else None, made[0] if isinstance(made, tuple) else made))

        return note

    handles = [part.register_forward_hook(noting(name)) for name, part in model.named_modules()]
    try:
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def _on_the_way(mine: nn.Module, before: str, name: str) -> str:
    """What to say if the part `name` gets another input than ours."""
    steps = name.split(".")
    around = (mine.get_submodule(".".join(steps[:count])) for count in reversed(range(len(steps))))
    kind = type(next(part for part in around if not isinstance(part, CONTAINERS))).__name__
    place = f"between `{before}` and `{name}`" if before else f"before `{name}`"
    return f"{_agreed(before)}The input of `{name}` differs. Look at the lines {place}, in `{kind}.forward`."


def _inside(mine: nn.Module, name: str, before: str, right: Tensor, hers: Any) -> str:
    """What to say if the part `name` gets the right input and makes something else of it."""
    part = mine.get_submodule(name)
    called = f"`{name}` gets the right input, but its" if name else "The"
    if not isinstance(hers, Tensor):
        return f"{_agreed(before)}{called} result is a value of type `{type(hers).__name__}`, not a tensor."
    if hers.shape != right.shape:
        seen = f"has shape {tuple(hers.shape)}, where {tuple(right.shape)} is needed"
    else:
        seen = f"differs by up to {(hers - right).abs().max().item():.2g}"
    kind = type(part).__name__
    place = f"in `{kind}.forward`" if any(part.children()) or not name else f"at the settings of this `{kind}`"
    return f"{_agreed(before)}{called} result {seen}. Look {place}."


def _agreed(before: str) -> str:
    return f"Up to and including `{before}` every result agrees with the library's. " if before else ""


def _missing(missing: list[str], extra: list[str]) -> str:
    said = f"It has no {_listed(missing)}."
    if close := difflib.get_close_matches(missing[0], extra, n=1):
        return f"{said} Is that what you call `{close[0]}`? The weights are copied by name: rename it."
    return f"{said} A parameter gets its name from the attribute that holds it: `self.head = nn.Linear(...)`."


def _listed(names: Iterable[str]) -> str:
    """The first name, and how many there are besides, those that differ only in a number counted together."""
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(re.sub(r"\d+", "0", name), []).append(name)
    told = [f"`{same[0]}`" + f" (in {len(same)} places)" * (len(same) > 1) for same in kinds.values()]
    return "parameter " + ", ".join(told[:3]) + f" and {len(told) - 3} others" * (len(told) > 3)


def _translated(name: str, names: Names) -> str:
    """A name of a part or parameter in the other model's words: the longest beginning that has another name there."""
    for hers in sorted(names, key=len, reverse=True):
        if name == hers or name.startswith(f"{hers}."):
            return names[hers] + name[len(hers) :]
    return name


def _size(value: Any) -> int | None:
    return value.numel() if isinstance(value, Tensor) else None


def _agree(right: Any, hers: Any) -> bool:
    if not (isinstance(right, Tensor) and isinstance(hers, Tensor)) or right.numel() != hers.numel():
        return right is None and hers is None
    right, hers = right.double().flatten(), hers.double().flatten()
    return bool(((right - hers).abs() <= TOLERANCE * right.abs().max()).all())
