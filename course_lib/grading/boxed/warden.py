"""The warden of a box: a process of ours outside it that counts what it uses, and ends it.

The kernel's own limits hold for one process each; the warden adds up all processes of the box. It also ends the box
when the judge closes the lifeline or dies, which closes it too.
"""

import os
import select
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from .limits import Limits

INTERVAL = 0.05  # seconds between two looks
PAGE = os.sysconf("SC_PAGE_SIZE")  # bytes
TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What all processes of a box use at one moment; memory in bytes without files, CPU time in seconds."""

    processes: int
    memory: int
    cpu_seconds: float


@dataclass
class Meter:
    """Adds up what a process and all its descendants use, those that are gone included."""

    first: int
    seen: dict[tuple[int, str], float] = field(default_factory=dict)  # (process, start) -> CPU seconds of its own

    def read(self) -> Usage:
        """Processes too short-lived to be seen count once somebody has waited for them."""
        family = self.family()
        memory, waited_for = 0, 0.0
        for process, (start, own, children) in family.items():
            self.seen[process, start] = own
            waited_for += own + children
            memory += anonymous_memory(process)
        return Usage(processes=len(family), memory=memory, cpu_seconds=max(waited_for, sum(self.seen.values())))

    def family(self) -> dict[int, tuple[str, float, float]]:
        """Start, own CPU seconds, and those of children that were waited for, of each process of the box."""
        parents, times = {}, {}
        for entry in os.listdir("/proc"):
            if entry.isdigit() and (fields := read_fields(f"/proc/{entry}/stat")):
                process = int(entry)
                parents[process] = int(fields[1])
                own, children = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
                times[process] = fields[19], own * TICK, children * TICK
        family = {self.first} & times.keys()
        while new := {process for process, parent in parents.items() if parent in family} - family:
            family |= new
        return {process: times[process] for process in family}


def read_fields(path: str) -> list[str]:
    """The fields of a process behind its name, which may hold anything; [] if it is gone."""
    try:
        return Path(path).read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def anonymous_memory(process: int) -> int:
    """Bytes in memory that come from no file; what is shared with the zygote counts for each process."""
    fields = read_fields(f"/proc/{process}/statm")
    return (int(fields[1]) - int(fields[2])) * PAGE if fields else 0


def excess(usage: Usage, limits: Limits) -> str | None:
    """Which limit is broken."""
    if usage.memory > limits.memory:
        return "memory"
    if usage.cpu_seconds > limits.cpu_seconds:
        return "cpu"
    if usage.processes > limits.processes:
        return "processes"
    return None


def watch(box: int, lifeline: socket.socket, limits: Limits) -> NoReturn:
    """Waits until the box ends or must be ended, tells the judge why, and ends itself.

    The end of the lifeline is the judge's sign that no process of the box is left: the kernel ends them all with their
    first, and waiting for that one waits for all.
    """
    meter = Meter(box)
    signs = select.poll()
    signs.register(lifeline, select.POLLIN)
    end = os.pidfd_open(box)
    signs.register(end, select.POLLIN)
    reason = None
    while reason is None:
        happened = dict(signs.poll(INTERVAL * 1000))
        if end in happened:
            reason = "exit"
        elif happened:
            reason = "closed"
        else:
            reason = excess(meter.read(), limits)
    os.kill(box, signal.SIGKILL)
    _, status = os.waitpid(box, 0)
    if reason == "exit" and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        reason = "memory"  # nobody in the box can kill its first process, so the kernel did, short of memory
    try:
        lifeline.send(reason.encode())
    except OSError:
        pass  # the judge is gone
    lifeline.close()
    os._exit(0)
