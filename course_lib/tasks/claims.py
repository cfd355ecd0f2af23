"""Claims that a lesson makes about its own results, checked where the reader stands.

A claim that does not hold on a learner's machine is shown as such, and the lesson goes on. Where the course is built
and tested, the variable COURSE_STRICT is 1, and there it stops the notebook.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STRICT = "COURSE_STRICT"  # 1: a claim that does not hold raises ClaimError
RECORD = "COURSE_CLAIMS"  # the file to which each claim of a run is appended, one line of JSON each
DIFFERENT = "On this machine this result came out differently from the shipped one."
REASONS = (
    "a cell above was changed, left out or run twice: restart the kernel and run all cells;",
    "an experiment of yours changed a variable that the lesson goes on to use;",
    "another machine or library version: compare with `course doctor` and its red lines.",
)


class ClaimError(AssertionError):
    """A result of the lesson did not come out as the lesson says it does."""

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this: the reader needs the sentence, not the frames of this module.
        return str(self).splitlines()


@dataclass(frozen=True)
class Measured:
    """A number that a run gave, and the bound that a claim sets for it; true if the number is on the right side."""

    value: float
    bound: float
    larger: bool

    def __bool__(self) -> bool:
        return self.margin > 0

    def __str__(self) -> str:
        return f"{self.value:.4g} ({'more' if self.larger else 'less'} than {self.bound:.4g} was expected)"

    @property
    def margin(self) -> float:
        """How far the number is on the right side of the bound; negative on the wrong side."""
        return self.value - self.bound if self.larger else self.bound - self.value


def above(value: Any, bound: Any) -> Measured:
    """The condition that a measured number is larger than `bound`."""
    return Measured(float(value), float(bound), larger=True)


def below(value: Any, bound: Any) -> Measured:
    """The condition that a measured number is smaller than `bound`."""
    return Measured(float(value), float(bound), larger=False)


def strict() -> bool:
    """Whether a claim that does not hold stops the notebook, as where the course is built and tested."""
    return os.environ.get(STRICT) == "1"


def measurements(conditions: Sequence[Any]) -> str:
    """What was measured for the conditions of a claim, as text; empty if none of them is a Measured."""
    return "; ".join(str(condition) for condition in conditions if isinstance(condition, Measured))


def record(sentence: str, conditions: Sequence[Any]) -> None:
    """Append a claim to the file that COURSE_CLAIMS names, if it names one."""
    path = os.environ.get(RECORD)
    if not path:
        return
    measured = [[each.value, each.bound, each.larger] for each in conditions if isinstance(each, Measured)]
    entry = {"claim": sentence, "holds": all(bool(each) for each in conditions), "measured": measured}
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def claim(holds: object, sentence: str, *, measured: object = None) -> None:
    """Print `sentence` with a tick if `holds`, else what was expected and measured.

    `sentence` is printed on every machine alike, so it names the threshold and never a number measured in
    the run; `measured` is what the run gave, a value or a text with its unit, and appears only on failure.
    A `Measured` brings its own. Raises ClaimError if the claim does not hold where the course is
    built and tested, ValueError if `holds` is not a single truth value or `sentence` is empty.
    """
    if not sentence.strip():
        raise ValueError("a claim needs a sentence that says what is claimed; the one given is empty")
    try:
        true = bool(holds)
    except (ValueError, RuntimeError, TypeError) as error:
        shape = tuple(getattr(holds, "shape", ()))
        raise ValueError(
            f"a claim is one yes or no, but {type(holds).__name__} of shape {shape} was given for "
            f"{sentence!r}; reduce it first, for example with .all()"
        ) from error
    record(sentence, [holds])
    if true:
        print(f"✓ {sentence}")
        return
    if measured is None and isinstance(holds, Measured):
        measured = holds
    explanation = _explanation(sentence, measured)
    if strict():
        raise ClaimError(explanation)
    print(explanation)


def _explanation(sentence: str, measured: object) -> str:
    lines = [f"✗ {DIFFERENT}", f"  Expected: {sentence}"]
    if measured is not None:
        lines.append(f"  Measured: {measured}")
    lines += ["  What may be the reason:", *(f"  - {reason}" for reason in REASONS)]
    return "\n".join(lines)
