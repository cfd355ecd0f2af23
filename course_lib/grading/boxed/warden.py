"""The warden: counts from outside what each box uses, and ends it.

The kernel's own limits hold for one process each; the warden adds up all processes of a box. It also ends a box when
the judge closes its lifeline or dies, which closes it too.
"""

import glob
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .limits import LOST, Limits

INTERVAL = 0.05  # seconds between two looks
PAGE = os.sysconf("SC_PAGE_SIZE")  # bytes
TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What all processes of a box use at one moment; memory in bytes without files, CPU time in seconds."""

    processes: int
    memory: int
    cpu_seconds: float


@dataclass(frozen=True, kw_only=True)
class Process:
    """What the kernel says of one process: CPU seconds of its own, and those of children that were waited for."""

    parent: int
    start: str
    own: float
    children: float


@dataclass
class Meter:
    """Adds up what a process and all its descendants use, those that are gone included."""

    first: int  # as /proc has it
    seen: dict[tuple[int, str], float] = field(default_factory=dict)  # (process, start) -> CPU seconds of its own

    def read(self, processes: Mapping[int, Process] | None = None) -> Usage:
        """Processes too short-lived to be seen count once somebody has waited for them.

        `processes` are those of this moment, if they have been read already.
        """
        family = self.family(read_processes() if processes is None else processes)
        memory, waited_for = 0, 0.0
        for number, process in family.items():
            self.seen[number, process.start] = process.own
            waited_for += process.own + process.children
            memory += anonymous_memory(number)
        return Usage(processes=len(family), memory=memory, cpu_seconds=max(waited_for, sum(self.seen.values())))

    def family(self, processes: Mapping[int, Process]) -> dict[int, Process]:
        """The first one and its descendants."""
        family = {self.first} & processes.keys()
        while new := {number for number, process in processes.items() if process.parent in family} - family:
            family |= new
        return {number: processes[number] for number in family}


def read_processes() -> dict[int, Process]:
    """All processes that /proc shows, by number."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := read_fields(f"/proc/{entry}/stat")):
            own, children = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
            found[int(entry)] = Process(
                parent=int(fields[1]), start=fields[19], own=own * TICK, children=children * TICK
            )
    return found


def read_fields(path: str) -> list[str]:
    """The fields of a process behind its name, which may hold anything; [] if it is gone."""
    try:
        return Path(path).read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def anonymous_memory(process: int) -> int:
    """Bytes in memory that come from no file; what is shared with the zygote counts for each process."""
    pages = anonymous_pages(f"/proc/{process}/statm")
    if pages == 0:  # its first thread has ended; if there are others, only they can tell what they hold
        pages = max(map(anonymous_pages, glob.glob(f"/proc/{process}/task/*/statm")), default=0)
    return pages * PAGE


def anonymous_pages(path: str) -> int:
    fields = read_fields(path)
    return int(fields[1]) - int(fields[2]) if fields else 0


def excess(usage: Usage, limits: Limits) -> str | None:
    """Which limit is broken."""
    if usage.memory > limits.memory:
        return "memory"
    if usage.cpu_seconds > limits.cpu_seconds:
        return "cpu"
    if usage.processes > limits.processes:
        return "processes"
    return None


@dataclass(kw_only=True)
class Watched:
    """A box: its first process, a descriptor that can be read once all its processes are gone, and the judge's line."""

    process: int
    end: int
    lifeline: socket.socket
    limits: Limits
    meter: Meter
    memory: int = 0  # bytes, when it was last looked at
    reason: str | None = None  # why it was ended


def own_end(box: Watched, status: int, used: resource.struct_rusage) -> str:
    """Why a box ended that was not ended here.

    Nobody in it can kill its first process. If that was killed, the kernel did it: for its processor time, or because
    the machine ran out of memory, which others had taken if this box had less than half of what it may have.
    """
    if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
        return "exit"
    if used.ru_utime + used.ru_stime >= box.limits.cpu_seconds:
        return "cpu"
    return "memory" if max(box.memory, 1024 * used.ru_maxrss) > box.limits.memory / 2 else LOST


class Warden:
    """Watches boxes, children of this process, until somebody wants another: `control` can be read then.

    The end of a lifeline is the judge's sign that no process of the box is left: the kernel ends them all with their
    first, and that one's end is the last.
    """

    def __init__(self, control: int):
        self._control = control
        self._signs = select.poll()
        self._signs.register(control, select.POLLIN)
        self._boxes: dict[int, Watched] = {}  # by `end`
        self._lines: dict[int, Watched] = {}  # by the lifeline's descriptor, until it was heard
        self._next_look = 0.0

    def watch(self, process: int, lifeline: socket.socket, limits: Limits) -> None:
        """Takes charge of a box and its lifeline."""
        end = os.pidfd_open(process)
        if not self._boxes:
            self._next_look = time.monotonic() + INTERVAL
        box = Watched(process=process, end=end, lifeline=lifeline, limits=limits, meter=Meter(number_in_proc(end)))
        self._boxes[end] = self._lines[lifeline.fileno()] = box
        self._signs.register(end, select.POLLIN)
        self._signs.register(lifeline, select.POLLIN)

    def wait(self) -> None:
        """Watches all boxes until another one is wanted."""
        while self._control not in (heard := self._hear()):
            self._answer(heard)
        self._answer(heard)

    def _hear(self) -> set[int]:
        wait = max(0.0, self._next_look - time.monotonic()) * 1000 if self._boxes else None
        return {descriptor for descriptor, _ in self._signs.poll(wait)}

    def _answer(self, heard: set[int]) -> None:
        for descriptor in heard & self._lines.keys():
            self._end(self._lines[descriptor], "closed")
        for descriptor in heard & self._boxes.keys():
            self._bury(self._boxes.pop(descriptor))
        if self._boxes and time.monotonic() >= self._next_look:
            self._look()

    def _look(self) -> None:
        processes = read_processes()
        for box in self._boxes.values():
            usage = box.meter.read(processes)
            box.memory = usage.memory
            if reason := excess(usage, box.limits):
                self._end(box, reason)
        self._next_look = time.monotonic() + INTERVAL

    def _end(self, box: Watched, reason: str) -> None:
        if box.reason is None:
            box.reason = reason
            signal.pidfd_send_signal(box.end, signal.SIGKILL)
            self._hear_no_more(box)

    def _hear_no_more(self, box: Watched) -> None:
        self._signs.unregister(box.lifeline)
        del self._lines[box.lifeline.fileno()]

    def _bury(self, box: Watched) -> None:
        """Tells the judge why the box ended, by its reason as the last word."""
        _, status, used = os.wait4(box.process, 0)
        if box.reason is None:
            self._hear_no_more(box)
            box.reason = own_end(box, status, used)
        self._signs.unregister(box.end)
        os.close(box.end)
        with box.lifeline:
            try:
                box.lifeline.send(box.reason.encode())
            except OSError:
                pass  # the judge is gone


def number_in_proc(process: int) -> int:
    """The number that /proc has for the process of a descriptor; it may be that of an outer namespace."""
    for line in Path(f"/proc/self/fdinfo/{process}").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "Pid":
            return int(value)
    raise OSError(f"/proc/self/fdinfo/{process} names no process")
