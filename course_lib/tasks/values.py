"""Results that are no tensors but lists, pairs or texts: each becomes a row of numbers, and those can be compared."""

import contextlib
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.tasks.findings import UNEXPLAINED, WRONG_TYPE, CheckFailed, Finding, general

KINDS = (list, tuple, str)  # of a reference's result that is compared in this way
MOST_SHOWN = 90  # characters


def as_tensor(value: Any) -> Tensor:
    """The value as a tensor, if it is one, a number, or an array or a list of numbers: fails if it is none."""
    if isinstance(value, Tensor):
        return value
    needs_gradient = isinstance(value, list | tuple) and any(getattr(part, "requires_grad", False) for part in value)
    if isinstance(value, bool | int | float | list | tuple | np.ndarray | np.generic) and not needs_gradient:
        with contextlib.suppress(ValueError, TypeError, RuntimeError, OverflowError):
            return _tensor_of(value)
    if isinstance(value, tuple | list) and any(isinstance(part, Tensor) for part in value):
        seen = f"Your function returned a {type(value).__name__} of {len(value)}, but one tensor is asked for."
        hint = "Return the result alone, without what led to it; `torch.stack` makes one tensor of a list of tensors."
        raise CheckFailed(Finding(WRONG_TYPE, seen, hint))
    seen = f"Your function returned {'nothing' if value is None else f'a value of type `{type(value).__name__}`'}."
    raise CheckFailed(Finding(WRONG_TYPE, seen, "Return a `torch.Tensor`; is there a `return` at the end?"))


def bring(value: Any, wanted: Any) -> Any:
    """The value in the form of the wanted one, whatever the kinds of its lists and numbers: fails if it has none.

    A tuple has a fixed number of parts, a list has any.
    """
    try:
        return _like(value, wanted)
    except (ValueError, TypeError, OverflowError):
        seen = f"Your function returned {kind_of(value)}, but {kind_of(wanted)} is needed."
        raise CheckFailed(general(WRONG_TYPE, seen)) from None


def row_of(value: Any) -> Tensor:
    """The numbers in a value, behind the length of each of its parts."""
    numbers = _numbers(value)
    return torch.tensor(numbers, dtype=torch.float64 if any(isinstance(n, float) for n in numbers) else None)


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


def _like(value: Any, wanted: Any) -> Any:
    if isinstance(wanted, Tensor):
        tensor = _tensor_of(value) if not isinstance(value, Tensor) else value
        if _numbers_in(tensor) == _numbers_in(wanted):
            return tensor
        made = tensor.to(wanted.dtype)
        if not torch.equal(made.to(tensor.dtype), tensor):
            raise ValueError("numbers that are no truth values, or not whole")
        return made
    if isinstance(value, Tensor | np.ndarray | np.generic):
        value = value.tolist()
    kind, parts = type(wanted), isinstance(value, list | tuple)
    if kind is tuple and parts:
        return tuple(_like(*pair) for pair in zip(value, wanted, strict=True))
    if kind is list and parts:
        return [_like(part, wanted[0]) for part in value] if wanted else [*value]
    if kind in (bool, int, float) and isinstance(value, bool | int | float):
        if kind is float or kind(value) == value:
            return kind(value)
    elif isinstance(value, kind):
        return value
    raise TypeError("a value of another kind")


def _tensor_of(value: Any) -> Tensor:
    """Torch refuses arrays that are read backwards."""
    return torch.tensor(np.ascontiguousarray(value) if isinstance(value, np.ndarray) and value.ndim else value)


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
