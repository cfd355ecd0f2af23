"""Results that are no tensors but lists, pairs or texts: each becomes a row of numbers, and those can be compared."""

import math
from typing import Any

import torch
from torch import Tensor

from course_lib.tasks.findings import UNEXPLAINED, WRONG_TYPE, Fault, Finding, general

KINDS = (list, tuple, str)  # of a reference's result that is compared in this way
MOST_SHOWN = 90  # characters


def row_of(value: Any, wanted: Any) -> Tensor:
    """The numbers in a value, behind the length of each of its parts; a Fault if it is no value like `wanted`."""
    if not _is_like(value, wanted):
        seen = f"Your function returned {kind_of(value)}, but {kind_of(wanted)} is needed."
        raise Fault(general(WRONG_TYPE, seen))
    return torch.tensor(_numbers(value))


def differs(given: str, value: Any, wanted: Any) -> Finding:
    """The finding for a value that is wrong in no way we know; `given` is what the function was asked, in words."""
    where = ""
    while len(repr(_plain(value))) > MOST_SHOWN and len(value) == len(wanted):
        place = next(i for i, pair in enumerate(zip(value, wanted, strict=True)) if not _same(*pair))
        where, value, wanted = f"{where}[{place}]", value[place], wanted[place]
    place = f" at `{where}`" if where else ""
    seen = f"With {given} your function returned {_shown(value)}{place}; right is {_shown(wanted)}."
    return Finding(UNEXPLAINED, seen, "Work through a small input by hand, and print what your code has at each step.")


def kind_of(value: Any) -> str:
    """What a value is, in words: "a pair of a list and a tensor of truth values"."""
    if isinstance(value, Tensor):
        return f"a tensor of {_numbers_in(value)}"
    if isinstance(value, tuple) and value:
        name = "pair" if len(value) == 2 else f"tuple of {len(value)}"
        return f"a {name}: {', '.join(map(kind_of, value))}"
    return "nothing" if value is None else "text" if isinstance(value, str) else f"a {type(value).__name__}"


def _is_like(value: Any, wanted: Any) -> bool:
    """Whether the parts are of the same kinds; a tuple has a fixed number of parts, a list has any."""
    if isinstance(wanted, Tensor):
        return isinstance(value, Tensor) and _numbers_in(value) == _numbers_in(wanted)
    if isinstance(wanted, tuple):
        same = isinstance(value, list | tuple) and len(value) == len(wanted)
        return same and all(map(_is_like, value, wanted))
    if isinstance(wanted, list):
        return isinstance(value, list | tuple) and all(_is_like(part, wanted[0]) for part in value if wanted)
    if isinstance(wanted, float):
        return isinstance(value, int | float)
    return type(value) is type(wanted)


def _numbers_in(tensor: Tensor) -> str:
    return {torch.bool: "truth values"}.get(tensor.dtype, "numbers" if tensor.is_floating_point() else "whole numbers")


def _numbers(value: Any) -> list[float]:
    if isinstance(value, Tensor):
        return [value.dim(), *value.shape, *value.flatten().tolist()]
    if isinstance(value, str):
        return [len(value), *map(ord, value)]
    return [len(value), *(n for part in value for n in _numbers(part))] if isinstance(value, KINDS) else [value]


def _same(value: Any, wanted: Any) -> bool:
    return _numbers(value) == _numbers(wanted)


def _shown(value: Any) -> str:
    text = repr(_plain(value))
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def written(number: float) -> str:
    """A number in four digits, a whole one in all of them."""
    whole = math.isfinite(number) and number == round(number) and abs(number) < 1e9
    return f"{number:.0f}" if whole else f"{number:.4g}"
