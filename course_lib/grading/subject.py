"""The student's answer behind the wall, as checks see it: a probe whose calls go through the box.

What comes out of the box is plain tensors and plain values. Inputs are drawn from the instructor's key and the answers
themselves: what a student learns of them is void for any other answer, so findings may say what was seen.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from torch import Tensor

from course_lib.grading.boxed.wire import WireError
from course_lib.grading.boxed.worker import CHANGED, CUT_OFF, TOO_LARGE
from course_lib.grading.sandbox import Box, Handle, StudentError
from course_lib.tasks import findings
from course_lib.tasks.core import Gradients, ModuleProbe, Probe
from course_lib.tasks.findings import CheckFailed, Finding, general
from course_lib.tasks.slips import describe, slip_in

T = TypeVar("T")
NOT_HERE = {  # what is another where answers are judged, by the kind of the error
    "NameError": "Is the name spelt as where it is defined? The grader runs the cells that were handed out, and none "
    "that you have added.",
    "ModuleNotFoundError": "Use what the first cell imports: other packages are not there when answers are judged.",
    "EOFError": "Leave out `input()`: nobody types there.",
    "BdbQuit": "Leave out `set_trace()`: nobody types there.",
    "SystemExit": "Leave out `exit()`, `quit()` and `sys.exit()`.",
    "MemoryError": "Look for a tensor much larger than needed.",
    TOO_LARGE: "Is it a tensor much larger than asked for?",
} | dict.fromkeys(
    ("OSError", "FileNotFoundError", "PermissionError", "ConnectionError", "gaierror", "URLError"),
    "Answers are judged without files and without a network: compute what you need in the cell itself.",
)


@dataclass(kw_only=True)
class Talk:
    """What all checks of one task share: the box, `seed(label)` for the inputs with this label, what was made once."""

    box: Box
    seed: Callable[[str], int]
    asked: int = 0  # how often anything was asked of the box
    made: dict[str, Any] = field(default_factory=dict)


class Subject(Probe):
    """A function or class of the student's answer: called like a probe, asked through the box.

    `name` is what the answer calls it, `asks` its parameters as the task writes them, `seconds` the CPU time of a call.
    """

    def __init__(self, name: str, talk: Talk, *, label: str, asks: str = "", seconds: float = 5.0):
        super().__init__(self._call, seed=talk.seed(label), asks=asks)
        self.name, self.talk, self.seconds = name, talk, seconds
        self._target: str | Handle = name

    def make(self, name: str, *args: Any, asks: str | None = None, **kwargs: Any) -> "RemoteModule":
        """The module that the class `name` makes, or that the function `name` trains; it stays in the box.

        Fails if it stops with an error or overwrites what it was given. `asks` are those of `__init__`.
        """
        maker = self._sibling(Subject, name, name)
        maker._keep = True
        maker.asks = self.asks if asks is None else asks
        return self._sibling(RemoteModule, name, maker.call(*args, **kwargs))

    def gradients(self, *args: Any, output_gradient: Tensor, **kwargs: Any) -> Gradients:
        """The gradients that reach the tensors among `args` (None where none does), and the parameters.

        Fails if it stops with an error, or none can flow back from its result.
        """
        given = {"output_gradient": output_gradient, "seconds": self.seconds, **kwargs}
        return self._ask(lambda: self.talk.box.gradients(self._target, *args, **given), args, kwargs)

    def once(self, label: str, work: Callable[["Subject"], T]) -> T:
        """What `work` gives, done once for all checks of the task, with inputs that depend on `label` alone.

        For expensive work, such as a training whose result several checks use. A failed check in it is one for
        each of them.
        """
        made, label = self.talk.made, f"once: {label}"
        if label not in made:
            try:
                made[label] = work(Subject(self.name, self.talk, label=label, asks=self.asks, seconds=self.seconds))
            except CheckFailed as fault:
                made[label] = fault
        self.talk.asked += 1
        if isinstance(made[label], CheckFailed):
            raise made[label]
        return made[label]

    _keep = False

    def _sibling(self, kind: type["Subject"], name: str, target: str | Handle) -> Any:
        sibling = kind(name, self.talk, label="", asks=self.asks, seconds=self.seconds)
        sibling._target, sibling.draw = target, self.draw
        return sibling

    def _run(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return self._function(*args, **kwargs)  # warnings are given behind the wall

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        self.talk.asked += 1
        return self.talk.box.call(self._target, *args, keep=self._keep, seconds=self.seconds, **kwargs)

    def _ask(self, question: Callable[[], T], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> T:
        self.talk.asked += 1
        try:
            return question()
        except StudentError as error:
            raise CheckFailed(self._stopped(error, args, kwargs or {})) from error

    def _stopped(self, error: BaseException, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Finding:
        if not isinstance(error, StudentError):
            raise error
        return in_words(error, self.asks, f"With {describe(self.asks, args, kwargs)} your function")


class RemoteModule(Subject, ModuleProbe):
    """A module that lives in the box; calling it runs its `forward`, its parameters can be read and set."""

    def parameters(self) -> dict[str, Tensor]:
        """The module's parameters, and buffers if it has any, by name."""
        return self._ask(lambda: self.talk.box.state(self._target, seconds=self.seconds))

    def set_parameters(self, values: Mapping[str, Tensor]) -> None:
        """Replaces the parameters of these names: fails if the module has none of one name, or of another shape.

        What else it has, such as buffers of its own, stays.
        """
        own = self.parameters()
        if wrong := [name for name, value in values.items() if name not in own or own[name].shape != value.shape]:
            seen = f"The module needs a parameter `{wrong[0]}` of shape {tuple(values[wrong[0]].shape)}; it has "
            there = ", ".join(f"`{name}` {tuple(value.shape)}" for name, value in list(own.items())[:8])
            raise CheckFailed(general(findings.OTHER_PARAMETERS, f"{seen}{there or 'none'}."))
        try:
            self._ask(lambda: self.talk.box.state(self._target, {**own, **values}, seconds=self.seconds))
        except WireError:  # so many of its own that they fit through the wall in one direction only
            raise CheckFailed(general(findings.OTHER_PARAMETERS)) from None


def in_words(error: StudentError, asks: str = "", who: str = "Your code") -> Finding:
    """What a student reads about an error of theirs: Python's own words, their line, and what to try."""
    if error.unwritten:
        return general(findings.UNWRITTEN)
    if error.kind in (CUT_OFF, CHANGED):
        return general(findings.CUT_OFF if error.kind == CUT_OFF else findings.CHANGES_INPUT)
    kind = "its result is too large to be looked at" if error.kind == TOO_LARGE else error.kind
    text = f"{kind}: {error.words}" if error.words else kind
    seen = f"{who} stopped{error.line}: {text}"
    hint = NOT_HERE.get(error.kind, "")
    if slip := slip_in(error.words, asks, entered=error.entered):
        return Finding(slip.name, seen, hint or slip.hint)
    return Finding(findings.STOPPED, seen, hint or general(findings.STOPPED).hint)


def seed_for(key: bytes, *labels: str, answers: Mapping[str, str]) -> int:
    """The seed of hidden inputs: HMAC-SHA256 under the instructor's key of the labels and all answers, 63 bits."""
    message = json.dumps([labels, sorted(answers.items())]).encode("ascii")
    return int.from_bytes(hmac.digest(key, message, hashlib.sha256)[:8], "big") >> 1
