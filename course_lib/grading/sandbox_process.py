"""Processes of ours in bubblewrap, and what to say where there can be none.

Nothing here needs torch: what is started here loads it while others still do so themselves.
"""

import contextlib
import functools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

import psutil

from course_lib.grading import bubblewrap

START_SECONDS = 120  # at most for loading torch
END_SECONDS = 20  # at most until it is gone

INSTALL = "install bubblewrap: sudo apt-get install bubblewrap"
ALLOW = (
    "allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1 (Debian), "
    "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), "
    "sudo sysctl user.max_user_namespaces=10000 (Red Hat); in a container, start it so that it may make them"
)


class SandboxError(Exception):
    """There is no sandbox here, or it broke; no student's fault."""


class Borrowed:
    """A zygote that another process has started, and ends."""

    def __init__(self, control: socket.socket):
        self.control = control
        close_in_children(control)

    def ask(self, message: bytes, descriptors: Sequence[int]) -> None:
        socket.send_fds(self.control, [message], descriptors)

    def alive(self) -> bool:
        try:
            return self.control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:  # it has nothing to say
            return True
        except OSError:  # it ended with our question unread
            return False

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
        close_in_children(ours)
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


def close_in_children(line: socket.socket) -> None:
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
