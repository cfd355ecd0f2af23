"""The calls of the kernel that a box may not make, as a seccomp filter written by hand.

A filter is a program of the classic Berkeley packet filter: each instruction loads a 32-bit word of the call's
description, or compares the loaded word and jumps, or returns what shall happen. See seccomp(2) and linux/filter.h.
"""

import ctypes
import errno
import functools
import platform
import struct
from dataclasses import dataclass

from .kernel import NO_NEW_PRIVILEGES, SECCOMP, set_process_option

# name: (number on x86_64, number on aarch64); None where there is no such call
REFUSED: dict[str, tuple[int | None, int | None]] = {
    # talking to anybody: the box has its two pipes
    "socket": (41, 198),
    "connect": (42, 203),
    "accept": (43, 202),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "bind": (49, 200),
    "listen": (50, 201),
    "socketpair": (53, 199),
    "accept4": (288, 242),
    "recvmmsg": (299, 243),
    "sendmmsg": (307, 269),
    # looking into other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "perf_event_open": (298, 241),
    # seeing and holding files that others use, too, such as those of the libraries
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "flock": (73, 32),
    # keyrings, which namespaces do not separate
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # new namespaces, mounts and roots: there all privileges could be had again
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # parts of the kernel that have been broken into often
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "personality": (135, 92),
    "modify_ldt": (154, None),
    "remap_file_pages": (216, 234),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    # memory that belongs to no process, which nobody could count
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "vmsplice": (278, 75),
    # the machine's own affairs
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "sync": (162, 81),
    "syncfs": (306, 267),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "iopl": (172, None),
    "ioperm": (173, None),
    "acct": (163, 89),
    "syslog": (103, 116),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "vhangup": (153, 58),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
}
CLONE, CLONE3, MMAP, FCNTL = (56, 220), (435, 435), (9, 222), (72, 25)
SETSID = (112, 157)  # kernels give each session its share of the processor: a box of many would take it from others
LAST_KNOWN = 450  # newer calls are answered as by a kernel that does not have them; libraries can do without

NEW_NAMESPACES = 0x7E020000  # clone's flags for user, process, network, IPC, host name, cgroup and mount namespaces
SHARED, ANONYMOUS = 0x01, 0x20  # mmap's flags
HOLDS = (6, 7, 37, 38, 1024, 1026)  # fcntl's commands: locks, locks of open files, leases, notices of changes

# seccomp_data: int nr; u32 arch; u64 instruction_pointer; u64 args[6]
NUMBER, ARCHITECTURE = 0, 4
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
NOTHING_DONE = ERROR | 0  # the call seems to have succeeded


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A processor architecture: its name in the kernel's audit, its column in the tables above."""

    audit: int
    column: int


MACHINES = {"x86_64": Machine(audit=0xC000003E, column=0), "aarch64": Machine(audit=0xC00000B7, column=1)}


class Program(ctypes.Structure):
    """How the kernel is given a filter: the number of its instructions and where they are."""

    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def refuse_calls() -> None:
    """Puts the filter on this process, and on all that it starts, for ever. Raises OSError."""
    program = filter_program(platform.machine())
    code = ctypes.create_string_buffer(program, len(program))
    description = Program(len(program) // 8, ctypes.addressof(code))
    set_process_option(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    set_process_option(SECCOMP, 2, ctypes.byref(description))


@functools.cache
def filter_program(machine: str) -> bytes:
    """The filter for a machine as Python's `platform` names it.

    Raises OSError for one without a table: a box without a filter is none.
    """
    if machine not in MACHINES:
        raise OSError(errno.ENOSYS, f"no filter of system calls for {machine}: only for {', '.join(MACHINES)}")
    audit, column = MACHINES[machine].audit, MACHINES[machine].column
    refused = sorted(numbers[column] for numbers in REFUSED.values() if numbers[column] is not None)
    return b"".join(
        [
            _load(ARCHITECTURE),
            *_unless(EQUAL, audit, [_return(KILL)]),  # 32-bit programs count their calls otherwise
            _load(NUMBER),
            *_when(EQUAL, CLONE3[column], [_return(ERROR | errno.ENOSYS)]),  # its flags lie out of sight: use clone
            *_when(AT_LEAST, LAST_KNOWN + 1, [_return(ERROR | errno.ENOSYS)]),  # and x32 calls, from 1 << 30 on
            *_when(EQUAL, SETSID[column], [_return(NOTHING_DONE)]),
            *(part for number in refused for part in _when(EQUAL, number, [_return(ERROR | errno.EPERM)])),
            *_when(
                EQUAL,
                CLONE[column],
                [_load_argument(0), *_when(ANY_BIT, NEW_NAMESPACES, [_return(ERROR | errno.EPERM)]), _return(ALLOW)],
            ),
            *_when(
                EQUAL,
                MMAP[column],
                [
                    _load_argument(3),
                    *_when(ANY_BIT, ANONYMOUS, _when(ANY_BIT, SHARED, [_return(ERROR | errno.EPERM)])),
                    _return(ALLOW),
                ],
            ),
            *_when(
                EQUAL,
                FCNTL[column],
                [
                    _load_argument(1),
                    *(part for hold in HOLDS for part in _when(EQUAL, hold, [_return(ERROR | errno.EPERM)])),
                    _return(ALLOW),
                ],
            ),
            _return(ALLOW),
        ]
    )


def _instruction(code: int, value: int, *, jump_true: int = 0, jump_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, jump_true, jump_false, value)


def _load(offset: int) -> bytes:
    return _instruction(LOAD, offset)


def _load_argument(index: int) -> bytes:
    return _load(16 + 8 * index)  # the lower half: both machines put it first


def _return(action: int) -> bytes:
    return _instruction(RETURN, action)


def _when(test: int, value: int, then: list[bytes]) -> list[bytes]:
    return [_instruction(test, value, jump_false=len(then)), *then]


def _unless(test: int, value: int, then: list[bytes]) -> list[bytes]:
    return [_instruction(test, value, jump_true=len(then)), *then]
