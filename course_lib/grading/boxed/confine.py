"""The walls of a box: namespaces of its own, nothing to write to but a small /tmp, no privileges, few system calls."""

import os
import signal
from pathlib import Path

from . import kernel
from .limits import Limits, limit_process
from .syscalls import refuse_calls

FILES = 4096  # in /tmp and /dev/shm together
DEVICES = ("/dev/null", "/dev/random", "/dev/urandom")  # the machine's own: their times would tell the next box


def become_first() -> int:
    """Goes on as the first process of a process namespace of its own, where it may make one for each box.

    Returns a descriptor of that namespace. The process that was there before ends with the new one. Raises OSError
    where the system denies it.
    """
    leave_namespaces(kernel.NEW_PIDS)
    child = os.fork()
    if child != 0:
        os.waitpid(child, 0)
        os._exit(0)
    return os.open("/proc/self/ns/pid", os.O_RDONLY)


def fork_first(own: int) -> int:
    """`os.fork`, but the child is the first process of a namespace in this one's, `own` (see `become_first`)."""
    kernel.unshare(kernel.NEW_PIDS)
    child = None
    try:
        child = os.fork()
    finally:
        if child != 0:
            kernel.enter_namespace(own, kernel.NEW_PIDS)  # what is forked next is no child of that namespace
    return child


def leave_namespaces(others: int) -> None:
    """Moves this process into a user namespace of its own, and into `others`. Raises OSError where that is denied."""
    user, group = os.getuid(), os.getgid()
    kernel.unshare(kernel.NEW_USER | others)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def confine(limits: Limits) -> None:
    """Shuts this process, the first of its process namespace, in for good.

    Raises OSError where a wall cannot be built; nothing of a student's may run then.
    """
    kernel.set_process_option(kernel.DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    leave_namespaces(kernel.NEW_IPC)
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
    fixed = kernel.READ_ONLY | kernel.NO_SETUID | kernel.NO_PROGRAMS
    for device in DEVICES:
        kernel.mount(device, device, None, kernel.BIND)
        kernel.mount(device, device, None, kernel.REMOUNT | kernel.BIND | fixed)
    os.chdir("/tmp")
