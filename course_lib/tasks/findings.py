"""What is said of an answer: the general findings in words, and a wrong result beside the wanted one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

UNWRITTEN = "not written yet"
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
GRADIENT_DIFFERS = "gradient differs from the reference"
RANDOM = "another result each time"
FORBIDDEN = "a ready-made function"

_DETACHED = "Is something detached, computed under `no_grad`, copied through `.data` or `.item()`, or not used at all?"
WORDS = {  # of each: what to say where nothing of the inputs may be said, and a hint
    UNWRITTEN: ("There is nothing in it yet.", ""),
    STOPPED: (
        "Your function stopped with an error.",
        "Write down the shape after each line for these inputs, and look for the first that is wrong.",
    ),
    WRONG_TYPE: (
        "Your code returned a value of another kind than the task asks for.",
        "Look up in the task what is to be returned; is there a `return` at the end, a comma behind it?",
    ),
    WRONG_SHAPE: (
        "The result has not the shape that is needed.",
        "Name each axis of each intermediate result, try sizes that all differ, and see which axis goes astray.",
    ),
    NOT_FINITE: (
        "The result holds NaN or infinity.",
        "Look for 0/0, for the exponential of a large number, for a softmax over nothing but -inf.",
    ),
    CHANGES_INPUT: (
        "Your code overwrites what it was given.",
        "Use `masked_fill` instead of `masked_fill_`, `x = x + y` instead of `x += y`; or copy first: `x.clone()`, "
        "of a list `list(x)`.",
    ),
    UNEXPLAINED: (
        "The numbers differ from what the formula gives.",
        "Compare with the formula term by term, on an input small enough to work out by hand.",
    ),
    OTHER_PARAMETERS: (
        "The parameters of your module have not the names and shapes that the task asks for.",
        "Use the names and sizes of the task, and make each layer in `__init__`, after `super().__init__()`.",
    ),
    NOT_AS_BY_HAND: (
        "For the example your result is another than by hand.",
        "Print what your code has after each line, and compare with the steps of the example.",
    ),
    NUMBER_TYPE: (
        "The result holds numbers of another type than the inputs, or not to the precision of that type.",
        "What you make yourself can be given a type: `torch.arange(n, dtype=x.dtype)`. NumPy makes numbers of 64 bits "
        "unless told otherwise, `.float()` cuts them to 32.",
    ),
    CUT_OFF: (
        "The result is cut off from its inputs: no gradient flows back.",
        "Stay in torch: NumPy, `.tolist()`, `.item()`, `.detach()`, `.data` and `no_grad` cut it off.",
    ),
    GRADIENT_LOST: (
        "The result is there, but from it no gradient flows back to all inputs and parameters.",
        _DETACHED,
    ),
    GRADIENT_DIFFERS: ("The result is right, but the gradients that flow back through it are not.", _DETACHED),
    RANDOM: (
        "Called again with the same inputs, your code gives another result: random parts?",
        "Look for `rand`, for dropout, for a tensor made with `empty` and not filled, for a value kept from call to "
        "call.",
    ),
    FORBIDDEN: ("Your code calls what is to be written.", "Write it yourself: take its formula, step by step."),
}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: its name, what was seen, and where to look; texts may hold `code`."""

    misconception: str
    message: str
    hint: str = ""


class Row(NamedTuple):
    """A row of a result beside the wanted one; `first` is the column of the first difference, if it lies here."""

    place: tuple[int, ...]
    yours: list[float]
    wanted: list[float]
    first: int | None


@dataclass(frozen=True)
class Comparison(Finding):
    """A finding that shows some rows of the result."""

    rows: tuple[Row, ...] = ()


class CheckFailed(Exception):
    """Carries a finding out of a check that cannot go on."""

    def __init__(self, finding: Finding):
        super().__init__(finding.message)
        self.finding = finding


def general(name: str, seen: str = "") -> Finding:
    """A general finding, with what was seen in place of the general words."""
    message, hint = WORDS[name]
    return Finding(name, seen or message, hint)


def other_type(actual: Tensor, wanted: torch.dtype) -> list[Finding]:
    """The finding for numbers of another type than the wanted one; none if they are right."""
    seen = f"The result holds numbers of type `{actual.dtype}`, but `{wanted}` is needed."
    return [] if actual.dtype == wanted else [general(NUMBER_TYPE, seen)]


def unexplained(actual: Tensor, wanted: Tensor, tolerance: float = 1e-4) -> Comparison:
    """The finding for a result of the right shape that is wrong in no way we know: three rows of it."""
    actual, wanted = actual.double(), wanted.double()  # either may hold whole numbers
    return Comparison(
        UNEXPLAINED,
        f"The result is off by up to {(actual - wanted).abs().max().item():.2g}.",
        WORDS[UNEXPLAINED][1],
        rows=tuple(_rows(actual, wanted, tolerance)),
    )


def _rows(actual: Tensor, wanted: Tensor, tolerance: float) -> Iterator[Row]:
    """Three rows, from the one before the first difference on."""
    front, width = wanted.shape[:-1], wanted.shape[-1] if wanted.dim() else 1
    own, right = actual.reshape(-1, width), wanted.reshape(-1, width)
    first, column = (~torch.isclose(own, right, atol=tolerance, rtol=tolerance)).nonzero()[0].tolist()
    start = max(0, min(first - 1, len(own) - 3))
    for row in range(start, min(start + 3, len(own))):
        place = tuple(index.item() for index in torch.unravel_index(torch.tensor(row), front)) if front else ()
        yield Row(place, own[row].tolist(), right[row].tolist(), column if row == first else None)
