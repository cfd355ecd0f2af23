"""Boxes: processes in which a student's code answers the judge, and can do nothing else.

A `Zygote` is a process with torch loaded, the first one in a sandbox of bubblewrap's. It forks one `Box` at a time, in
some hundredths of a second; a box forks a copy of itself for each task. Requests and replies go through a socket (see
`boxed.wire`); what is printed goes nowhere. Limits count processor time, so that a busy machine changes no verdict.
"""

import contextlib
import functools
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from torch import Tensor

from course_lib.grading import bubblewrap, seccomp
from course_lib.grading.boxed.wire import Handle, WireError, pack, receive
from course_lib.tasks.core import Gradients

START_SECONDS = 120  # at most for loading torch
END_SECONDS = 20  # at most until a box is gone
WALL = 10  # wall seconds for each CPU second that is allowed
ALLOW = (
    "allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1 (Debian), "
    "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), "
    "sudo sysctl user.max_user_namespaces=10000 (Red Hat); in a container, start it so that it may make them"
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What all processes of a box together may use; a box that goes beyond is ended."""

    memory: int = 3 << 30  # bytes; also the address space of each process
    processes: int = 32  # threads count
    disk: int = 64 << 20  # bytes in each of /tmp and /dev/shm, and in one file
    open_files: int = 128  # of each process
    reply_bytes: int = 64 << 20  # of tensors in one answer


class SandboxError(Exception):
    """There is no sandbox here, or it broke; no student's fault."""


class StudentError(Exception):
    """The student's code raised: the kind of the error, its own words, and the line, " in line 2, `...`"."""

    def __init__(self, kind: str, words: str = "", line: str = "", *, entered: bool = True, unwritten: bool = False):
        super().__init__(words)
        self.kind, self.words, self.line, self.entered, self.unwritten = kind, words, line, entered, unwritten


class BoxEnded(StudentError):
    """The box is gone: `reason` is "time", "memory", "processes", "exit", "protocol" or "closed"."""

    def __init__(self, reason: str):
        super().__init__("BoxEnded", reason)
        self.reason = reason


@dataclass
class Clock:
    """CPU seconds that are allowed from `start` on, a moment of `time.monotonic`, and WALL times as many in all."""

    seconds: float
    start: float

    def is_over(self, used_since: Any) -> bool:
        """Whether they are used up; `used_since(moment)` gives CPU seconds, and is asked only where it matters."""
        passed = time.monotonic() - self.start
        return passed >= self.seconds and (passed >= WALL * self.seconds or used_since(self.start) >= self.seconds)

    @property
    def left(self) -> float:
        """Wall seconds until it is to be looked at again."""
        return max(0.02, self.start + self.seconds - time.monotonic())


class Zygote(contextlib.AbstractContextManager):
    """Makes one box after the other. With `trusted=True` they are plain processes without walls.

    `hidden` names folders that no box may see even if they lie where Python's libraries do.
    Raises SandboxError, with what to do, where there is no sandbox.
    """

    def __init__(self, *, trusted: bool = False, hidden: Sequence[Path] = (), limits: Limits | None = None):
        self.trusted, self.limits, self._hidden = trusted, limits or Limits(), tuple(hidden)
        self.control: socket.socket | None = None
        if not trusted:
            self._start()

    def box(self) -> "Box":
        """A fresh box; the one before has to be closed. Raises SandboxError if there cannot be one."""
        if self.trusted:
            return Box(PlainBody(self.limits), self.limits)
        for _ in range(2):
            if self.control is None:
                self._start()
            with contextlib.suppress(OSError):
                return Box(WalledBody(self), self.limits)
            self.close()  # the system has ended it, such as when memory ran out
        raise SandboxError("The sandbox makes no box")

    def close(self) -> None:
        """Ends the box that there is, too."""
        if self.control is not None:
            self.control.close()
            self.control = None
            try:
                self._process.wait(timeout=END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self) -> None:
        if (problem := bubblewrap.problem()) is not None:
            raise SandboxError(problem)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        errors, filter_ = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        with theirs, errors, filter_:
            filter_.write(seccomp.program())
            filter_.seek(0)
            given = theirs.fileno(), filter_.fileno()
            user, disk = bubblewrap.claim_user(self.control), self.limits.disk
            self._process = subprocess.Popen(
                bubblewrap.command(*given, json.dumps(asdict(self.limits)), disk, user, self._hidden),
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=given,
                start_new_session=True,  # Ctrl-C is for the judge
                env={},
            )
            theirs.close()
            self.control.settimeout(START_SECONDS)
            with contextlib.suppress(OSError):
                if self.control.recv(64) == b"ready":
                    return
            self.close()
            errors.seek(0)
            raise SandboxError(_why_not(errors.read()[-2000:].decode(errors="replace").strip()))


@functools.cache
def sandbox_problem() -> str | None:
    """Why there can be no sandbox here, in one sentence that says what to do; None if there can: one was tried."""
    try:
        with Zygote() as zygote:
            zygote.box().close()
    except (SandboxError, OSError) as problem:
        return f"{problem}."
    return None


class Box(contextlib.AbstractContextManager):
    """One student's code behind walls, or what is left of it.

    Every method raises BoxEnded once the box has ended, and StudentError if the student's code raises; WireError for an
    argument that cannot be sent; SandboxError if the sandbox broke, which is not the student's fault.
    """

    def __init__(self, body: "WalledBody | PlainBody", limits: Limits):
        self.ended: str | None = None
        self.copy_ended: str | None = None  # the same of the copy, which may end alone
        self.task: Clock | None = None  # what all questions together may use, while a copy answers
        self.slow = 0.0  # the limit that was broken, in CPU seconds
        self._body, self._limits = body, limits

    def used_since(self, moment: float) -> float:
        """CPU seconds of all its processes since then."""
        return self._body.used_since(moment)

    def load(self, source: str, *, seconds: float = 10, definitions: bool = False) -> StudentError | None:
        """Runs a cell's code, or only its definitions; returns the error that it raised, or None."""
        try:
            self._ask("load", seconds, source=source, definitions=definitions)
        except BoxEnded:
            raise
        except StudentError as error:
            return error
        return None

    def uses(self, sources: Sequence[str], names: Sequence[Sequence[str]]) -> list[Any]:
        """Where each source uses one of its names (see `worker.uses`); asked of a box in which nothing has run yet."""
        found = self._ask("uses", 20, sources=list(sources), names=[list(some) for some in names])
        return found if isinstance(found, list) and len(found) == len(names) else [None] * len(names)

    def fingerprints(self, sources: Sequence[str]) -> list[str]:
        """What each source is but for names, comments and order (see `worker.fingerprints`); asked as `uses` is."""
        found = self._ask("fingerprints", 20, sources=list(sources))
        good = isinstance(found, list) and len(found) == len(sources) and all(isinstance(one, str) for one in found)
        return found if good else [""] * len(sources)

    def call(self, target: str | Handle, *args: Any, keep: bool = False, seconds: float = 5, **kwargs: Any) -> Any:
        """What a function of the student's returns, or a handle on it if it shall stay in the box (`keep`).

        Handles may be among the arguments. A function that overwrites an array among them is a StudentError.
        """
        value = self._ask("call", seconds, target=target, keep=keep, args=list(args), kwargs=kwargs)
        if keep and not isinstance(value, Handle):
            raise self._end("protocol")
        return value

    def state(self, handle: Handle, new: dict[str, Tensor] | None = None, *, seconds: float = 5) -> dict[str, Tensor]:
        """The parameters and buffers of a module in the box, by name; first `new` ones overwrite them all."""
        value = self._ask("state", seconds, handle=handle, new=new)
        if not _is_named_tensors(value):
            raise StudentError("TypeError", "the module's state is no dictionary of tensors")
        return value

    def gradients(
        self, target: str | Handle, *args: Any, output_gradient: Tensor, seconds: float = 5, **kwargs: Any
    ) -> Gradients:
        """Gradients of <output, output_gradient> with respect to the arguments and, of a module, the parameters."""
        given = {"target": target, "args": list(args), "kwargs": kwargs, "output_gradient": output_gradient}
        match self._ask("gradients", seconds, **given):
            case {"inputs": list(inputs), "parameters": dict(parameters)} if len(inputs) == len(args):
                if all(map(_is_gradient, args, inputs)) and _is_named_tensors(parameters):
                    return Gradients(inputs, parameters)
        raise StudentError("TypeError", "the gradients are none")

    @contextlib.contextmanager
    def copy(self, seconds: float) -> Iterator["Box"]:
        """Within, a copy of the box answers, and may use so many CPU seconds; then it is as it was, or has ended."""
        self._ask("fork", END_SECONDS)
        self.task, self.copy_ended = Clock(seconds, time.monotonic()), None
        try:
            yield self
            with contextlib.suppress(BoxEnded):
                self._ask("end", END_SECONDS)
        finally:
            self.task = self.copy_ended = None

    def close(self) -> None:
        """Ends all its processes and waits until they are gone."""
        if self.ended is None:
            self._end("closed")

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(self, operation: str, seconds: float, **request: Any) -> Any:
        if over := self.ended or self.copy_ended:
            raise BoxEnded(over)
        question = pack({"operation": operation, **request}, strict=True)
        clocks = [Clock(seconds, time.monotonic()), *([self.task] if self.task else [])]
        try:
            self._body.line.settimeout(WALL * seconds)
            self._body.line.sendall(question)
            reply = receive(lambda count: self._read(count, clocks), most=self._limits.reply_bytes)
        except TimeoutError:
            raise self._end("time") from None
        except WireError:
            raise self._end("protocol") from None
        except (EOFError, OSError):
            raise self._end(None) from None
        match reply:
            case {"ended": True, **rest} if not rest and self.task:  # the copy has; the box goes on
                self.copy_ended = "exit"
                raise BoxEnded("exit")
            case {"error": {"kind": str(kind), **told}, **rest} if not rest:
                raise _student_error(kind, told)
            case {"value": value, **rest} if not rest:
                return value
        raise self._end("protocol")

    def _read(self, count: int, clocks: Sequence[Clock]) -> bytes:
        """Exactly so many bytes. Raises TimeoutError when a clock is over, even if there is more to come."""
        data, line = bytearray(), self._body.line
        while len(data) < count:
            line.settimeout(min(clock.left for clock in clocks))
            with contextlib.suppress(TimeoutError):
                part = line.recv(min(count - len(data), 1 << 20))
                if not part:
                    raise EOFError
                data += part
            for clock in clocks:
                if clock.is_over(self._body.used_since):
                    self.slow = clock.seconds
                    raise TimeoutError
        return bytes(data)

    def _end(self, reason: str | None) -> BoxEnded:
        found = self._body.end(soon=reason is None)
        self._body.line.close()
        broken = found if found in ("memory", "processes") else ""  # and that may be why its time was over
        self.ended = self.copy_ended = broken or reason or found or "closed"
        if not found:
            raise SandboxError("The sandbox ended with its box")
        return BoxEnded(self.ended)


class WalledBody:
    """A box in the sandbox."""

    def __init__(self, zygote: Zygote):
        self._zygote, self._reason = zygote, ""
        self.line, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(zygote.control, [b"box"], [theirs.fileno()])

    def used_since(self, moment: float) -> float:
        """CPU seconds of all its processes since then; infinite for a box that has just ended."""
        with contextlib.suppress(OSError):
            self._zygote.control.send(f"used {moment}".encode())
            kind, _, value = self._hear(END_SECONDS).partition(" ")
            return float(value) if kind == "used" else float("inf")
        return float("inf")

    def end(self, *, soon: bool) -> str:
        """Ends them all, waits until they are gone, and says why; empty if nobody is left to say it.

        With `soon` it seems to be ending by itself.
        """
        try:
            if soon and not self._reason:  # it has closed its line: gone by itself, or to disturb
                with contextlib.suppress(TimeoutError):
                    self._hear(3)
            if not self._reason:
                self._zygote.control.send(b"end")
            while not self._reason:
                self._hear(END_SECONDS)
        except OSError:
            self._zygote.close()
        return "protocol" if soon and self._reason == "closed" else self._reason

    def _hear(self, seconds: float) -> str:
        self._zygote.control.settimeout(seconds)
        message = self._zygote.control.recv(64).decode()
        if not message:
            raise OSError("the zygote is gone")
        if message.startswith("ended "):
            self._reason = message.split()[1]
        return message


class PlainBody:
    """A process without walls, for students who are trusted, and for one's own code on one's own machine."""

    def __init__(self, limits: Limits):
        token = secrets.token_hex(16)
        with socket.create_server(("127.0.0.1", 0)) as server:
            asked = str(server.getsockname()[1]), token, str(limits.reply_bytes)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", f"{__package__}.boxed.worker", *asked],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd=tempfile.gettempdir(),
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **bubblewrap.SETTINGS},
            )
            server.settimeout(START_SECONDS)
            try:
                self.line, _ = server.accept()
                self.line.settimeout(START_SECONDS)
                if self.line.recv(len(token), socket.MSG_WAITALL) != token.encode():
                    raise OSError
            except OSError:
                self._process.kill()
                raise SandboxError("A process for the answers does not start") from None
        self._seen = {0.0: 0.0}

    def used_since(self, moment: float) -> float:
        """As of a walled one; what was used before is known from the first time that somebody asks."""
        with contextlib.suppress(psutil.Error):
            first = psutil.Process(self._process.pid)
            used = sum(sum(process.cpu_times()[:2]) for process in (first, *first.children(recursive=True)))
            return used - self._seen.setdefault(moment, max(0.0, used - (time.monotonic() - moment)))
        return 0.0  # one of them has just ended: the next look counts

    def end(self, *, soon: bool) -> str:
        """As of a walled one, as far as its processes can be found."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=3 if soon else 0)
        by_itself = self._process.poll() is not None
        with contextlib.suppress(OSError, AttributeError):  # Windows knows no groups
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        return "exit" if by_itself else "protocol" if soon else "closed"


def _student_error(kind: str, told: Mapping[str, Any]) -> StudentError:
    texts = [told.get(name) if isinstance(told.get(name), str) else "" for name in ("words", "line")]
    flags = {name: told.get(name) is True for name in ("entered", "unwritten")}
    return StudentError(kind, *texts, **flags)


def _is_named_tensors(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(k, str) and isinstance(part, Tensor) for k, part in value.items())


def _is_gradient(of: Any, gradient: Any) -> bool:
    if gradient is None:
        return True
    return isinstance(of, Tensor) and isinstance(gradient, Tensor) and gradient.shape == of.shape


def _why_not(complaint: str) -> str:
    """What to do about what bubblewrap, or our process in it, said."""
    last = complaint.splitlines()[-1] if complaint else ""
    if "Unknown option" in last:
        return f"The sandbox needs bubblewrap 0.8 or newer ({last}): update it"
    denied = ("namespace", "uid map", "Operation not permitted", "Permission denied")
    if any(sign in last for sign in denied) and "source path" not in last:  # a file that cannot be shown
        return f"This system denies what the sandbox needs ({last}); {ALLOW}"
    return f"The sandbox does not start: {last or 'it ended without a word'}"
