"""Boxes: processes in which a student's code answers the judge, and can do nothing else.

A `Zygote` is a process with torch loaded in a sandbox made by bubblewrap. It forks a `Box` in some hundredths of a
second; each box has its own walls (see `boxed.confine`). Requests and replies go through two pipes (see `boxed.wire`).
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import psutil
from torch import Tensor

from course_lib.grading import bubblewrap
from course_lib.grading.boxed.limits import LOST, Limits
from course_lib.grading.boxed.wire import Handle, WireError, arrays_in, pack
from course_lib.grading.boxed.worker import CUT_OFF, ERROR_NAMES, OWN_ERROR, TOO_LARGE
from course_lib.grading.lines import Line, PolledLine, ThreadedLine
from course_lib.grading.sandbox_process import (
    END_SECONDS,
    Borrowed,
    SandboxError,
    SandboxProcess,
    close_in_children,
    sandbox_problem,
)

__all__ = [
    "Box",
    "BoxEnded",
    "BoxLost",
    "Gradients",
    "Handle",
    "Limits",
    "SandboxError",
    "StudentError",
    "Zygote",
    "sandbox_problem",
]

ATTEMPTS = 3  # at making a box
GRACE = 3  # seconds between the end of a box's pipes and its own


class StudentError(Exception):
    """The student's code raised; what it said stays in the box, since it may hold hidden inputs."""

    def __init__(self, kind: str):
        super().__init__(kind)
        self.kind = kind


class BoxEnded(StudentError):
    """The box is gone: `reason` is "time", "cpu", "memory", "processes", "exit", "protocol" or "closed"."""

    def __init__(self, reason: str):
        super().__init__(f"the box ended: {reason}")
        self.reason = reason


class BoxLost(SandboxError):
    """One box was lost, by no fault of its own; the others and what makes them are well."""


@dataclass(frozen=True, kw_only=True)
class Gradients:
    """With respect to each positional argument (None: not differentiable, or unused) and each parameter."""

    inputs: list[Tensor | None]
    parameters: dict[str, Tensor]


@runtime_checkable
class Body(Protocol):
    """The process of a box as the judge sees it: a line to talk by, and an end."""

    line: Line

    def end(self, *, seconds: float = 0) -> str:
        """Ends all its processes, waits until they are gone, and says why.

        One that seems to be ending by itself is given these `seconds` for it. The reason is "protocol" for one that
        was still alive then, "lost" if it is no fault of its own, and empty if nobody is left to say it.
        """


class Zygote:
    """Makes boxes. With `trusted=True` they are plain processes without walls.

    `hidden` names folders that no box may see even if they lie where Python's libraries do; `borrowed` is the control
    of another process's zygote, which is asked as long as it lives (see `SandboxProcess`).
    Raises SandboxError, with what to do, where there is no sandbox.
    """

    def __init__(self, *, trusted: bool = False, hidden: Sequence[Path] = (), borrowed: socket.socket | None = None):
        self.trusted = trusted
        self._hidden = tuple(hidden)
        self._lock = threading.Lock()
        self._process: SandboxProcess | Borrowed | None = None if borrowed is None else Borrowed(borrowed)
        if not trusted and borrowed is None:
            if (problem := sandbox_problem()) is not None:
                raise SandboxError(problem)
            self._process = SandboxProcess.start("zygote", hidden=self._hidden)

    def box(self, limits: Limits | None = None) -> "Box":
        """A fresh box. Raises SandboxError if there cannot be one."""
        limits = Limits() if limits is None else limits
        return Box(PlainBody(limits) if self.trusted else self._walled(limits))

    def close(self) -> None:
        """Ends all boxes, too."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def __enter__(self) -> "Zygote":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _walled(self, limits: Limits) -> "WalledBody":
        with self._lock:
            if self._process is None:
                raise SandboxError("this zygote is closed")
            for _ in range(ATTEMPTS):
                try:
                    return WalledBody(self._process, limits)
                except OSError as problem:
                    complaint = self._process.complaint() or str(problem)
                    if not self._process.alive():  # the system ended it, such as when memory ran out
                        self._process.end()
                        self._process = SandboxProcess.start("zygote", hidden=self._hidden)
            raise SandboxError(f"The sandbox makes no box: {complaint}")


class Box:
    """One student's code behind walls, or what is left of it.

    Every method raises BoxEnded once the box has ended, and StudentError if the student's code raises; WireError for an
    argument that cannot be sent; SandboxError if the box was lost, which is not the student's fault.
    """

    def __init__(self, body: Body):
        self.ended: str | None = None
        self._body = body

    @property
    def log(self) -> bytes:
        """What the student's code printed, up to the limit; all of it once the box is closed."""
        return self._body.line.printed

    def load(self, source: str, *, seconds: float = 10) -> str | None:
        """Runs a cell's code; returns the kind of error that it raised, or None."""
        try:
            self._ask("load", seconds, source=source)
        except BoxEnded:
            raise
        except StudentError as error:
            return error.kind
        return None

    def call(
        self,
        target: str | Handle,
        *args: Any,
        method: str | None = None,
        keep: bool = False,
        seconds: float = 5,
        **kwargs: Any,
    ) -> Any:
        """What a function of the student's returns, or a handle on it if it shall stay in the box (`keep`).

        Handles may be among the arguments. Arrays that the function overwrites are overwritten here, too.
        """
        reply = self._ask("call", seconds, target=target, method=method, keep=keep, args=list(args), kwargs=kwargs)
        self._overwrite(list(arrays_in([list(args), kwargs])), reply.get("changed"))
        if keep and not isinstance(reply.get("value"), Handle):
            raise self._end("protocol")
        return reply.get("value")

    def parameters(self, handle: Handle, *, seconds: float = 5) -> dict[str, Tensor]:
        """The parameters and buffers of a module in the box, by name."""
        value = self._ask("parameters", seconds, handle=handle).get("value")
        if not _is_named_tensors(value):
            raise StudentError(OWN_ERROR)
        return value

    def set_parameters(self, handle: Handle, values: Mapping[str, Tensor], *, seconds: float = 5) -> None:
        """Overwrites them all; names and shapes must be the module's own."""
        self._ask("set_parameters", seconds, handle=handle, values=dict(values))

    def gradients(
        self,
        target: str | Handle,
        *args: Any,
        output_gradient: Tensor,
        seconds: float = 5,
        **kwargs: Any,
    ) -> Gradients:
        """Gradients of <output, output_gradient> with respect to the arguments and, of a module, the parameters."""
        value = self._ask(
            "gradients", seconds, target=target, args=list(args), kwargs=kwargs, output_gradient=output_gradient
        ).get("value")
        match value:
            case {"inputs": list(inputs), "parameters": dict(parameters)}:
                fits = len(inputs) == len(args) and all(map(_is_gradient, args, inputs))
                if fits and _is_named_tensors(parameters):
                    return Gradients(inputs=inputs, parameters=parameters)
        raise StudentError(OWN_ERROR)

    def close(self) -> None:
        """Ends all its processes and waits until they are gone."""
        if self.ended is None:
            self._end("closed")
        self._body.line.close()

    def __enter__(self) -> "Box":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(self, operation: str, seconds: float, **request: Any) -> dict[str, Any]:
        if self.ended is not None:
            raise BoxEnded(self.ended)
        question = pack({"operation": operation, **request}, strict=True)
        try:
            reply = self._body.line.ask(question, seconds=seconds)
        except TimeoutError:
            raise self._end("time") from None
        except WireError:
            raise self._end("protocol") from None
        except (EOFError, OSError):
            raise self._end(None) from None
        match reply:
            case {"error": str(name), **rest} if not rest:
                raise StudentError(name if name in ERROR_KINDS else OWN_ERROR)
            case {"value": _, **rest} if rest.keys() <= {"changed"}:
                return reply
        raise self._end("protocol")

    def _overwrite(self, given: list[Tensor | np.ndarray], changed: Any) -> None:
        for index, value in changed.items() if isinstance(changed, dict) else ():
            if not (type(index) is int and 0 <= index < len(given) and _is_like(value, given[index])):
                raise self._end("protocol")
            old = given[index]
            if isinstance(old, np.ndarray):
                old[...] = value
            elif old.shape == value.shape:
                old.detach().copy_(value)
            else:
                old.data = value

    def _end(self, reason: str | None) -> BoxEnded:
        found = self._body.end(seconds=0 if reason else GRACE)
        self.ended = reason or found or "closed"
        if reason is None and found == LOST:
            raise BoxLost("The machine ran out of memory")
        if not (reason or found):
            raise SandboxError("The sandbox ended with all its boxes")
        return BoxEnded(self.ended)


REASONS = {signal.SIGKILL: "memory", signal.SIGXCPU: "cpu"} if os.name == "posix" else {}
ERROR_KINDS = frozenset([*ERROR_NAMES.values(), TOO_LARGE, CUT_OFF])


def _is_like(new: Any, old: Tensor | np.ndarray) -> bool:
    """Whether it can be what became of an array: a tensor, but no array, can be given another shape."""
    if isinstance(old, np.ndarray):
        return isinstance(new, np.ndarray) and new.dtype == old.dtype and new.shape == old.shape
    return isinstance(new, Tensor) and new.dtype == old.dtype


def _is_named_tensors(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and isinstance(part, Tensor) for name, part in value.items()
    )


def _is_gradient(of: Any, gradient: Any) -> bool:
    if gradient is None:
        return True
    return isinstance(of, Tensor) and isinstance(gradient, Tensor) and gradient.shape == of.shape


class WalledBody:
    """A box in the sandbox; its warden holds the other end of `lifeline` and ends it when this end closes."""

    def __init__(self, zygote: "SandboxProcess | Borrowed", limits: Limits):
        self.line: Line
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            ends = []
            for direction in ("w", "r", "r"):
                reading, writing = os.pipe()
                mine, other = (writing, reading) if direction == "w" else (reading, writing)
                theirs.callback(os.close, other)
                ends.append((ours.enter_context(open(mine, f"{direction}b", buffering=0)), other))
            self.lifeline, lifeline = socket.socketpair()
            ours.enter_context(self.lifeline)
            theirs.enter_context(lifeline)
            self.line = PolledLine(*(mine for mine, _ in ends), limits)
            zygote.ask(json.dumps(asdict(limits)).encode(), [*(other for _, other in ends), lifeline.fileno()])
            theirs.close()
            self.lifeline.settimeout(END_SECONDS)
            if self.lifeline.recv(64) != b"closed":
                raise OSError("the box could not be closed")
            ours.pop_all()
        close_in_children(self.lifeline)
        self._zygote = zygote

    def end(self, *, seconds: float = 0) -> str:
        """Ends all processes of the box, waits until they are gone, and says why; see `Body`."""
        reason = self._warden_says(seconds) if seconds else None
        if reason is None:
            with contextlib.suppress(OSError):  # the warden has just ended
                self.lifeline.shutdown(socket.SHUT_WR)
            reason = self._warden_says(END_SECONDS)
        if reason is None:  # it does not answer: with the zygote all its boxes end
            self._zygote.end()
        self.lifeline.close()
        return "protocol" if reason == "closed" else reason or ""

    def _warden_says(self, seconds: float) -> str | None:
        """Its last word, once it is gone; None if it still lives after so many seconds."""
        self.lifeline.settimeout(seconds)
        words = b""
        try:
            while part := self.lifeline.recv(64):
                words += part
        except TimeoutError:
            return None
        except OSError:
            pass
        return words.decode()


class PlainBody:
    """A process without walls, for students who are trusted."""

    def __init__(self, limits: Limits):
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "course_lib.grading.boxed.worker", json.dumps(asdict(limits))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            cwd=tempfile.gettempdir(),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **bubblewrap.SETTINGS},
        )
        process = self._process
        self.line = ThreadedLine(process.stdin, process.stdout, process.stderr, limits)

    def end(self, *, seconds: float = 0) -> str:
        """Ends the process and what it started, as far as that can be found."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=seconds)
        ended = self._process.poll()
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self._process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    process.kill()
        if os.name == "posix":
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        return "protocol" if ended is None else REASONS.get(-ended, "exit")
