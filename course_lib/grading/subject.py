"""The student's answer behind the wall, as checks see it: a probe whose calls go through the box.

What comes out of the box is plain tensors and plain values. What students read about it is a sentence of ours: the kind
of an error and never its text, because an answer can put hidden inputs into whatever it returns, raises or prints.
"""

import hashlib
import hmac
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.grading.boxed.wire import WireError, arrays_in
from course_lib.grading.boxed.worker import CUT_OFF
from course_lib.grading.error_words import error_words
from course_lib.grading.sandbox import Box, Gradients, Handle, StudentError
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import (
    CHANGES_INPUT,
    OTHER_PARAMETERS,
    STOPPED,
    WORDS,
    WRONG_TYPE,
    Fault,
    Finding,
    general,
)
from course_lib.tasks.findings import CUT_OFF as NO_GRADIENT

T = TypeVar("T")
SHORTEST_WAIT = 0.01  # seconds; what a call gets when the time of its task is used up: the box then ends for "time"


class Told(Finding):
    """A finding in words of ours."""


@dataclass(kw_only=True)
class Talk:
    """What all checks of one task share: the box, the time left in it, and what was made there once.

    `seed(label)` gives the seed of the inputs with this label; `seconds` is the wall time for all answers together.
    """

    box: Box
    seed: Callable[[str], int]
    seconds: float = math.inf
    asked: int = 0  # how often anything was asked of the box
    error: str | None = None  # the kind of the last error there
    returned: str = ""  # the kind of the last result, in words
    limit: float = 0.0  # the limit that the last question had to keep: its own, or that of all together
    missing: Callable[[], tuple[str, str] | None] = lambda: None  # of a NameError: which name, and what to try
    made: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)


class Subject(Probe):
    """A function or class of the student's answer: called like a probe, asked through the box.

    `name` is what the answer calls it, `seconds` the wall time of one call.
    """

    def __init__(self, name: str, talk: Talk, *, label: str, seconds: float = 5.0):
        super().__init__(self._call, seed=talk.seed(label))
        self.name, self.talk, self.seconds = name, talk, seconds
        self._target: str | Handle = name

    @property
    def box(self) -> Box:
        return self.talk.box

    def draw_parameters(self, module: nn.Module, *, std: float = 0.2) -> dict[str, Tensor]:
        """Gives a module of the judge's own seeded normal numbers for parameters, and returns them by name."""
        values = {name: std * self.random(*value.shape) for name, value in module.named_parameters()}
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(values[name])
        return values

    def function(self, name: str) -> "Subject":
        """Another function of the same answer, with the same inputs to draw from."""
        return self._sibling(Subject, name, name)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """As `Probe.call`, with texts that students may read; arrays in lists and dictionaries are guarded, too."""
        return self._guarded(super().call, args, kwargs)

    def tensor(self, *args: Any, shape: Sequence[int] | None = None, finite: bool = True, **kwargs: Any) -> Tensor:
        """As `Probe.tensor`; a Fault, too, for a tensor that does not hold floating-point numbers."""
        with self._own_words():
            result = super().tensor(*args, shape=shape, finite=finite, **kwargs)
        if self.talk.returned != FLOATS:
            raise Fault(self._found(WRONG_TYPE))
        return result

    def number(self, *args: Any, **kwargs: Any) -> float:
        """As `Probe.number`, with texts that students may read."""
        with self._own_words():
            return super().number(*args, **kwargs)

    def make(self, name: str, *args: Any, seconds: float | None = None, **kwargs: Any) -> "RemoteModule":
        """The module that the class `name` makes, or that the function `name` trains; it stays in the box.

        A Fault if it stops with an error or overwrites what it was given. `seconds` is the wall time for this one call.
        """
        handle = self._once_called(name, args, kwargs, seconds=seconds, keep=True)
        return self._sibling(RemoteModule, name, handle)

    def gradients(self, *args: Any, output_gradient: Tensor, **kwargs: Any) -> Gradients:
        """The gradients that reach the tensors among `args` (None where none does), and the parameters.

        A Fault if it stops with an error, or none can flow back from its result.
        """

        def question(wait: float) -> Gradients:
            return self.box.gradients(self._target, *args, output_gradient=output_gradient, seconds=wait, **kwargs)

        try:
            return self._ask(question)
        except Fault:
            if self.talk.error == CUT_OFF:
                raise Fault(general(NO_GRADIENT)) from None
            raise

    def once(self, label: str, work: Callable[["Subject"], T]) -> T:
        """What `work` gives, done once for all checks of the task, with inputs that depend on `label` alone.

        For work that costs much, such as a training whose result several checks look at. A Fault in it is a Fault for
        each of them.
        """
        if label not in self.talk.made:
            try:
                self.talk.made[label] = work(
                    Subject(self.name, self.talk, label=f"once: {label}", seconds=self.seconds)
                )
            except Fault as fault:
                self.talk.made[label] = fault
        self.talk.asked += 1
        if isinstance(self.talk.made[label], Fault):
            raise self.talk.made[label]
        return self.talk.made[label]

    def _sibling(self, kind: type["Subject"], name: str, target: str | Handle) -> Any:
        sibling = kind(name, self.talk, label="", seconds=self.seconds)
        sibling._target, sibling.draw = target, self.draw
        return sibling

    def _run(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return self._function(*args, **kwargs)  # warnings are given behind the wall

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        result = self._wait(lambda wait: self.box.call(self._target, *args, seconds=wait, **kwargs))
        self.talk.returned = kind_of(result)
        return result

    def _once_called(
        self,
        target: str | Handle,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        seconds: float | None,
        method: str | None = None,
        keep: bool = False,
    ) -> Any:
        """One call beside the probe's own function, with the same net: the judge's tensors stay as they are."""

        def question(*given: Any, **named: Any) -> Any:
            return self._wait(
                lambda wait: self.box.call(target, *given, method=method, keep=keep, seconds=wait, **named), seconds
            )

        return self._guarded(Probe(question).call, args, kwargs)

    def _guarded(self, ask: Callable[..., T], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> T:
        """Asks with copies, so that nothing of the judge's own can be overwritten; a Fault where a copy was."""
        given = [list(args), dict(kwargs)]
        sent_args, sent_kwargs = sent = _copied(given)
        with self._own_words():
            result = ask(*sent_args, **sent_kwargs)
        if not all(map(_same, arrays_in(given), arrays_in(sent))):
            raise Fault(self._found(CHANGES_INPUT))
        return result

    def _ask(self, question: Callable[[float], T], seconds: float | None = None) -> T:
        """As `_wait`, with a Fault in place of an error."""
        try:
            return self._wait(question, seconds)
        except StudentError as error:
            raise Fault(self._found(STOPPED)) from error

    def _wait(self, question: Callable[[float], T], seconds: float | None = None) -> T:
        self.talk.asked += 1
        self.talk.error = None
        allowed = self.seconds if seconds is None else seconds
        left = self.talk.started + self.talk.seconds - time.monotonic()
        self.talk.limit = allowed if allowed <= left else self.talk.seconds
        try:
            return question(max(SHORTEST_WAIT, min(allowed, left)))
        except StudentError as error:
            self.talk.error = error.kind
            raise

    @contextmanager
    def _own_words(self) -> Iterator[None]:
        try:
            yield
        except Fault as fault:
            raise Fault(in_words(fault.finding, self.talk)) from None

    def _found(self, misconception: str) -> Finding:
        return in_words(Finding(misconception, ""), self.talk)


class RemoteModule(Subject, ModuleProbe):
    """A module that lives in the box; calling it runs its `forward`, its parameters can be read and set."""

    def method(self, name: str, *args: Any, seconds: float | None = None, **kwargs: Any) -> Any:
        """What another method than `forward` returns; a Fault if it overwrites what it was given."""
        result = self._once_called(self._target, args, kwargs, seconds=seconds, method=name)
        self.talk.returned = kind_of(result)
        return result

    def parameters(self) -> dict[str, Tensor]:
        """The module's parameters, and buffers if it has any, by name."""
        return self._ask(lambda wait: self.box.parameters(self._target, seconds=wait))

    def set_parameters(self, values: Mapping[str, Tensor]) -> None:
        """Replaces the parameters of these names; a Fault if the module has none of one name, or of another shape.

        What else it has, such as buffers of its own, stays.
        """
        own = self.parameters()
        if any(name not in own or own[name].shape != value.shape for name, value in values.items()):
            raise Fault(self._found(OTHER_PARAMETERS))
        try:
            self._ask(lambda wait: self.box.set_parameters(self._target, {**own, **values}, seconds=wait))
        except WireError:  # so many of its own that they fit through the wall in one direction only
            raise Fault(self._found(OTHER_PARAMETERS)) from None


FLOATS = "a tensor of floating-point numbers"


def kind_of(value: Any) -> str:
    """What kind of value came out of the box, in words of ours: one of a dozen."""
    if isinstance(value, Tensor):
        if value.is_floating_point():
            return FLOATS
        return "a tensor of " + ("truth values" if value.dtype == torch.bool else "numbers that are not floating point")
    for kinds, words in (
        (type(None), "nothing"),
        (bool, "a truth value"),
        (int | float, "a number"),
        (str, "text"),
        (list | tuple, "a list or tuple"),
        (dict, "a dictionary"),
    ):
        if isinstance(value, kinds):
            return words
    return "a NumPy array" if type(value).__module__ == "numpy" else "an object of another kind"


def in_words(finding: Finding, talk: Talk) -> Finding:
    """The finding as a student may read it: what a probe saw is said in general, without any number or name seen."""
    if isinstance(finding, Told):  # what was said of this error; the last one may be another
        return finding
    if finding.misconception == STOPPED:
        words = error_words(talk.error, talk.missing() if talk.error == "NameError" else None)
    elif finding.misconception == WRONG_TYPE:
        kind = talk.returned or "something else"
        words = f"Your code returned {kind} where something else is needed.", WORDS[WRONG_TYPE][1]
    elif finding.misconception in WORDS:
        words = WORDS[finding.misconception]
    else:
        return finding
    return Told(finding.misconception, *words)


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor | np.ndarray):
        return value.clone() if isinstance(value, Tensor) else value.copy()
    if isinstance(value, list | tuple):
        return type(value)(map(_copied, value))
    return {key: _copied(part) for key, part in value.items()} if isinstance(value, dict) else value


def _same(old: Tensor | np.ndarray, new: Tensor | np.ndarray) -> bool:
    return torch.equal(old, new) if isinstance(old, Tensor) else np.array_equal(old, new)


def seed_for(key: bytes, *labels: str, answers: Mapping[str, str]) -> int:
    """The seed of hidden inputs: HMAC-SHA256 under the instructor's key of the labels and all answers, 63 bits."""
    message = json.dumps([labels, sorted(answers.items())]).encode("ascii")
    return int.from_bytes(hmac.digest(key, message, hashlib.sha256)[:8], "big") >> 1
