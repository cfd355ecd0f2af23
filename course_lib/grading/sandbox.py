"""Boxes: processes in which a student's code answers the judge, and can do nothing else.

A `Zygote` is a process with torch loaded in a sandbox made by bubblewrap. It forks a `Box` in some hundredths of a
second; each box has its own walls (see `boxed.confine`). Requests and replies go through two pipes (see `boxed.wire`).
"""

import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, runtime_checkable

import numpy as np
import psutil
from torch import Tensor

from course_lib.grading import bubblewrap
from course_lib.grading.boxed.limits import Limits
from course_lib.grading.boxed.wire import Handle, WireError, arrays_in, pack
from course_lib.grading.boxed.worker import CUT_OFF, ERROR_NAMES, OWN_ERROR, TOO_LARGE
from course_lib.grading.lines import Line, PolledLine, ThreadedLine

__all__ = [
    "Box",
    "BoxEnded",
    "Gradients",
    "Handle",
    "Limits",
    "SandboxError",
    "StudentError",
    "Zygote",
    "missing_for_sandbox",
    "sandbox_problem",
]

ATTEMPTS = 3  # at making a box
START_SECONDS = 120  # at most for loading torch
GRACE = 3  # seconds between the end of a box's pipes and its own
END_SECONDS = 20  # at most until the processes of a box are gone

INSTALL = "install bubblewrap: sudo apt-get install bubblewrap"
ALLOW = (
    "allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1 (Debian), "
    "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), "
    "sudo sysctl user.max_user_namespaces=10000 (Red Hat); in a container, start it so that it may make them"
)


class SandboxError(Exception):
    """There is no sandbox here, or it broke; no student's fault."""


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
        was still alive then, and empty if nobody is left to say it.
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
        _close_in_children(self.lifeline)
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


class Borrowed:
    """A zygote that another process has started, and ends."""

    def __init__(self, control: socket.socket):
        self.control = control
        _close_in_children(control)

    def ask(self, message: bytes, descriptors: Sequence[int]) -> None:
        socket.send_fds(self.control, [message], descriptors)

    def alive(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            return self.control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        return True

    def complaint(self) -> str:
        """What it says, its owner hears."""
        return ""

    def end(self) -> None:
        """Gives it back."""
        self.control.close()


class SandboxProcess:
    """A Python process of ours in bubblewrap, asked by a socket; it ends when the socket's other end closes.

    The socket, `control`, may be lent to other processes, which then ask, too.
    """

    def __init__(self, process: subprocess.Popen, control: socket.socket, errors: BinaryIO):
        self.process, self.control, self.errors = process, control, errors

    @classmethod
    def start(cls, module: str, *, hidden: Iterable[Path] = ()) -> "SandboxProcess":
        """Runs a module of `boxed`. Raises SandboxError if it does not come up, with what it said."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        errors = tempfile.TemporaryFile()
        with theirs:
            process = subprocess.Popen(
                bubblewrap.command(module, str(theirs.fileno()), hidden=hidden),
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the judge
                env={},
            )
        started = cls(process, ours, errors)
        _close_in_children(ours)
        ours.settimeout(START_SECONDS)
        try:
            ready = ours.recv(64) == b"ready"
        except OSError:
            ready = False
        if not ready:
            started.end()
            raise SandboxError(explain_failure(started.complaint()))
        return started

    def ask(self, message: bytes, descriptors: Sequence[int]) -> None:
        socket.send_fds(self.control, [message], descriptors)

    def alive(self) -> bool:
        """Also waits a moment for one that is about to end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=0.2)
        return self.process.returncode is None

    def complaint(self) -> str:
        """The last line of what it wrote to standard error."""
        self.errors.seek(0)
        lines = self.errors.read()[-2000:].decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def end(self) -> None:
        """Ends it and all its boxes."""
        self.control.close()
        try:
            self.process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            for child in psutil.Process(self.process.pid).children():  # the first of its process namespace
                child.kill()
            self.process.kill()
            self.process.wait()


_lifelines: "weakref.WeakSet[socket.socket]" = weakref.WeakSet()


def _close_in_children(line: socket.socket) -> None:
    """A forked child must not hold a lifeline, or nothing would end when its parent dies."""
    _lifelines.add(line)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: [line.close() for line in list(_lifelines)])


def missing_for_sandbox() -> str | None:
    """What can be seen to be missing here, in one sentence that says what to do, without starting anything."""
    if sys.platform != "linux":
        return f"The sandbox needs Linux, and this is {sys.platform}."
    if shutil.which("bwrap") is None:
        return f"There is no bubblewrap here; {INSTALL}"
    if (folder := bubblewrap.misplaced()) is not None:
        return f"Python lies in {folder}, and no box sees the machine's /tmp: set the course up in another folder."
    return None


@functools.cache
def sandbox_problem() -> str | None:
    """Why there can be no sandbox here, in one sentence that says what to do; None if there can: one was tried."""
    if (missing := missing_for_sandbox()) is not None:
        return missing
    try:
        SandboxProcess.start("trial").end()
    except SandboxError as problem:
        return str(problem)
    return None


def explain_failure(complaint: str) -> str:
    """What to do about what bubblewrap, or our process in it, said."""
    denied = ("namespace", "uid map", "Operation not permitted", "Permission denied")
    if any(sign in complaint for sign in denied) and "source path" not in complaint:  # a file that cannot be shown
        return f"This system denies what the sandbox needs ({complaint}); {ALLOW}"
    return f"The sandbox does not start: {complaint or 'it ended without a word'}"
