"""The sandbox's first process: forks one box at a time, with torch loaded, watches it, and cleans up behind it.

`python -m boxed.zygote FD LIMITS`, in bubblewrap. Messages on FD, a socket of packets:

    box                with a descriptor, the box's line          -> ended REASON, once it is gone
    used SECONDS       CPU seconds since that moment of the clock -> used SECONDS
    end                ends the box

As the first process of its namespace it hears no signal from inside, and all end with it; it ends with the socket.
"""

import ctypes
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

from .worker import preload, serve

INTERVAL = 0.05  # seconds between two looks
TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds
DUMPABLE, NO_NEW_PRIVILEGES = 4, 38  # prctl(2)
prctl = ctypes.CDLL(None).prctl


def main(descriptor: int, limits: dict[str, int]) -> None:
    """Makes boxes until the socket is closed."""
    prctl(DUMPABLE, 0, 0, 0, 0)  # a box, of the same user, cannot look into this process
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    preload()
    control = socket.socket(fileno=descriptor)
    control.send(b"ready")
    while True:
        message, lines, *_ = socket.recv_fds(control, 4096, 1)
        if not message:
            os._exit(0)
        if not lines:  # to a box that has just ended
            continue
        box = os.fork()
        if box == 0:
            become_box(limits, *lines)
        os.close(*lines)
        reason = Watch(box, control, limits).until_it_ends()
        clean_up()
        control.send(f"ended {reason}".encode())


def become_box(limits: dict[str, int], line: int) -> None:
    """Goes on as a box: with its line, its limits, and nothing else."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0), os.dup2(nothing, 1), os.dup2(nothing, 2)
    line = os.dup2(line, 3)
    os.closerange(4, 1 << 16)
    prctl(DUMPABLE, 1, 0, 0, 0)
    prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    Path("/proc/self/oom_score_adj").write_text("1000")  # when memory runs out, the box goes first
    amounts = {"AS": limits["memory"], "CORE": 0, "FSIZE": limits["disk"], "NOFILE": limits["open_files"]}
    for name, amount in (amounts | {"NPROC": 4 * limits["processes"], "MSGQUEUE": 0}).items():  # until Watch looks
        kind = getattr(resource, f"RLIMIT_{name}")
        _, most = resource.getrlimit(kind)
        resource.setrlimit(kind, (min(amount, most),) * 2 if most != resource.RLIM_INFINITY else (amount, amount))
    serve(socket.socket(fileno=line), most=limits["reply_bytes"])


class Watch:
    """Looks after one box until it ends, breaks a limit, or the judge wants it ended."""

    def __init__(self, box: int, control: socket.socket, limits: dict[str, int]):
        self.box, self.control, self.limits = box, control, limits
        self.before = ended_ones()
        self.history = [(time.monotonic(), 0.0)]  # CPU seconds of all processes of the box

    def until_it_ends(self) -> str:
        """Why it ended: "exit" by itself, "closed" by the judge, or the limit that it broke."""
        end = os.pidfd_open(self.box)
        signs = select.poll()
        signs.register(end, select.POLLIN)
        signs.register(self.control, select.POLLIN)
        try:
            while True:
                left, broken = self.history[-1][0] + INTERVAL - time.monotonic(), ""
                heard = {number for number, _ in signs.poll(max(0.0, left) * 1000)}
                if self.control.fileno() in heard:
                    question, _, since = self.control.recv(64).decode().partition(" ")
                    if not question:
                        os._exit(0)
                    if question == "end":
                        return "closed"
                    broken = self.look()
                    self.control.send(f"used {self.used_since(float(since))}".encode())
                if end in heard:
                    return "exit"
                if not broken and time.monotonic() >= self.history[-1][0] + INTERVAL:
                    broken = self.look()
                if broken:
                    return broken
        finally:
            os.close(end)

    def look(self) -> str:
        """Counts what all processes of the box use now; the limit that is broken, or nothing."""
        while reap(os.WNOHANG):  # a box's orphans are children of this process
            pass
        count, memory, cpu = 0, 0, ended_ones() - self.before
        for entry in filter(str.isdigit, os.listdir("/proc")):
            if entry == "1":
                continue
            try:
                fields = Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()
                status = Path(f"/proc/{entry}/status").read_text(errors="replace")
            except OSError:
                continue
            count += int(fields[17])  # threads
            cpu += sum(map(int, fields[11:15])) * TICK
            memory += sum(
                int(line.split()[1]) << 10 for line in status.split("\n") if line.startswith(("RssAnon", "RssShm"))
            )
        self.history.append((time.monotonic(), cpu))
        return "memory" if memory > self.limits["memory"] else "processes" if count > self.limits["processes"] else ""

    def used_since(self, moment: float) -> float:
        """CPU seconds since then; in doubt too few."""
        now = self.history[-1][1]
        return now - next((cpu for when, cpu in self.history if when >= moment), now)


def clean_up() -> None:
    """Nothing of a box stays: no process, which this one ends with a signal that none can refuse, and no file."""
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if not reap():
            break
    for folder in ("/tmp", "/dev/shm"):
        for place, inner, _ in os.walk(folder):
            for path in (f"{place}/{name}" for name in inner):
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        for entry in os.scandir(folder):
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)


def reap(options: int = 0) -> bool:
    """Takes leave of a process that has ended; False if there is none."""
    try:
        return os.waitpid(-1, options)[0] != 0
    except ChildProcessError:
        return False


def ended_ones() -> float:
    """CPU seconds of all processes that have ended here."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]))
