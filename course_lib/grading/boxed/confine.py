"""The walls of a box: namespaces of its own, nothing to write to but a small /tmp, no privileges, few system calls."""

import os
import signal
from pathlib import Path

from . import kernel
from .limits import Limits, limit_process
from .syscalls import refuse_calls

FILES = 4096  # in /tmp and /dev/shm together


def leave_namespaces() -> None:
    """Moves this process into a user namespace of its own, and its next child into one of processes.

    Raises OSError where the system denies it.
    """
    user, group = os.getuid(), os.getgid()
    kernel.unshare(kernel.NEW_USER | kernel.NEW_PIDS | kernel.NEW_IPC)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def confine(limits: Limits) -> None:
    """Shuts this process, the first of its process namespace, in for good.

    Raises OSError where a wall cannot be built; nothing of a student's may run then.
    """
    kernel.set_process_option(kernel.DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    Path("/proc/self/oom_score_adj").write_text("1000")  # when the machine runs out of memory, the box goes first
    hide_files(limits.disk)
    os.setsid()
    limit_process(limits, own_user=True)
    kernel.drop_capabilities()
    refuse_calls()


def hide_files(disk: int) -> None:
    """Gives this process a /tmp and /dev/shm of its own, of `disk` bytes together, and hides /proc."""
    closed = kernel.NO_SETUID | kernel.NO_DEVICES
    kernel.unshare(kernel.NEW_MOUNTS)
    kernel.mount("none", "/", None, kernel.RECURSIVE | kernel.PRIVATE)
    kernel.mount("proc", "/proc", "tmpfs", closed | kernel.NO_PROGRAMS | kernel.READ_ONLY, "size=4k")
    kernel.mount("tmp", "/tmp", "tmpfs", closed, f"size={disk},nr_inodes={FILES},mode=700")
    kernel.mount("/tmp", "/dev/shm", None, kernel.BIND)
    os.chdir("/tmp")
