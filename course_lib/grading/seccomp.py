"""The calls of the kernel that a box may not make, as a seccomp filter for bubblewrap's `--seccomp`.

A program of the classic Berkeley packet filter: each instruction loads a 32-bit word of the call's description, or
compares the loaded word and jumps, or returns what shall happen. See seccomp(2) and linux/filter.h.
"""

import errno
import platform
import re
import struct

_TABLE = """
other kinds of sockets than those that a namespace shuts in: socket 41 198
looking into other processes: ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272,
    pidfd_getfd 438 438, perf_event_open 298 241
new namespaces, mounts and roots, where all privileges could be had again: unshare 272 97, setns 308 268, mount 165 40,
    umount2 166 39, pivot_root 155 41, chroot 161 51, open_tree 428 428, fsopen 430 430, mount_setattr 442 442,
    open_by_handle_at 304 265
parts of the kernel that no namespace separates, or that have been broken into often: add_key 248 217,
    request_key 249 218, keyctl 250 219, bpf 321 280, userfaultfd 323 282, io_uring_setup 425 425,
    fanotify_init 300 262, syslog 103 116
memory that belongs to no process, which nobody could count and the next box would find: shmget 29 194, semget 64 190,
    msgget 68 186, mq_open 240 180, memfd_create 319 279, memfd_secret 447 447
"""  # each with its numbers on x86_64 and on aarch64
REFUSED = {name: (int(x86), int(arm)) for name, x86, arm in re.findall(r"(\w+) (\d+) (\d+)", _TABLE)}
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # name in the kernel's audit, column above
CLONE, CLONE3 = (56, 220), 435
NEW_NAMESPACES = 0x7E020000  # clone's flags
LAST_KNOWN = 450  # newer calls are answered as by a kernel that does not have them; so are those of x32

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # places in the call's description


def program(machine: str = "") -> bytes:
    """The filter for a machine as Python's `platform` names it, this one by default.

    Raises OSError for one without a table: a box without a filter is none.
    """
    machine = machine or platform.machine()
    if machine not in MACHINES:
        raise OSError(errno.ENOSYS, f"there is no filter of system calls for {machine}, only for {', '.join(MACHINES)}")
    audit, column = MACHINES[machine]
    return b"".join(
        [
            _step(LOAD, ARCHITECTURE),
            _step(EQUAL, audit, otherwise=0, then=1),
            _step(RETURN, KILL),  # 32-bit programs count their calls otherwise
            _step(LOAD, NUMBER),
            *_answer(EQUAL, CLONE3, ERROR | errno.ENOSYS),  # its flags lie out of sight: libraries take clone then
            *_answer(AT_LEAST, LAST_KNOWN + 1, ERROR | errno.ENOSYS),
            *(part for numbers in REFUSED.values() for part in _answer(EQUAL, numbers[column], ERROR | errno.EPERM)),
            _step(EQUAL, CLONE[column], otherwise=3),
            _step(LOAD, FIRST_ARGUMENT),
            *_answer(ANY_BIT, NEW_NAMESPACES, ERROR | errno.EPERM),
            _step(RETURN, ALLOW),
        ]
    )


def _answer(test: int, value: int, action: int) -> list[bytes]:
    return [_step(test, value, otherwise=1), _step(RETURN, action)]


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """An instruction; a test skips so many further ones when it holds (`then`), or when it does not."""
    return struct.pack("=HBBI", code, then, otherwise, value)
