"""How much a box may use."""

import math
import os
from dataclasses import dataclass

if os.name == "posix":  # there is none on Windows
    import resource

LOST = "lost"  # why a box ended that ended by no fault of its own


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What all processes of a box together may use; a box that goes beyond is ended."""

    memory: int = 3 << 30  # bytes; also the address space of each process
    cpu_seconds: float = 30
    processes: int = 32  # threads count
    disk: int = 64 << 20  # bytes in /tmp and /dev/shm together
    open_files: int = 128  # of each process
    reply_bytes: int = 64 << 20  # arrays and texts in one answer
    log_bytes: int = 64 << 10  # what is kept of the printed text


def limit_process(limits: Limits, *, own_user: bool) -> None:
    """Sets the kernel's limits of this process and of those that it starts.

    The number of processes counts by user, so it is limited only in a box that has its own (`own_user`).
    """
    cpu = max(1, math.ceil(limits.cpu_seconds))  # the kernel warns then, and kills a second later
    amounts = {
        "RLIMIT_AS": limits.memory,
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": cpu + 1,
        "RLIMIT_FSIZE": limits.disk,
        "RLIMIT_NOFILE": limits.open_files,
    }
    if own_user:
        amounts |= {
            "RLIMIT_NPROC": limits.processes,
            "RLIMIT_SIGPENDING": 4 * limits.processes,
            "RLIMIT_MSGQUEUE": 0,
        }
    for name, amount in amounts.items():
        if hasattr(resource, name):
            kind = getattr(resource, name)
            _, hardest = resource.getrlimit(kind)
            if hardest != resource.RLIM_INFINITY:
                amount = min(amount, hardest)
            resource.setrlimit(kind, (min(cpu, amount) if name == "RLIMIT_CPU" else amount, amount))
