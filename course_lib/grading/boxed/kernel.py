"""The few calls of the Linux kernel for which Python has no function."""

import ctypes
import os
from typing import Any

_library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS = 0x00020000, 0x08000000, 0x10000000, 0x20000000  # unshare(2)
READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS = 1, 2, 4, 8  # mount(2)
REMOUNT, BIND, RECURSIVE, PRIVATE = 1 << 5, 1 << 12, 1 << 14, 1 << 18
COLLAPSE = 25  # madvise(2), from Linux 6.1 on
DIE_WITH_PARENT, SECCOMP, DROP_FROM_BOUNDING_SET, NO_NEW_PRIVILEGES = 1, 22, 24, 38  # prctl(2)
CAPABILITIES_VERSION_3 = 0x20080522


def unshare(namespaces: int) -> None:
    """Moves this process (for processes: its children) into namespaces of its own. Raises OSError."""
    _call("unshare", namespaces)


def enter_namespace(descriptor: int, kind: int) -> None:
    """Moves this process (for processes: its children) into a namespace that is there. Raises OSError."""
    _call("setns", descriptor, kind)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Mounts a file system. Raises OSError."""
    texts = [text.encode() if text is not None else None for text in (source, target, kind, options)]
    _call("mount", *texts[:3], ctypes.c_ulong(flags), texts[3])


def collapse(address: int, length: int) -> None:
    """Puts so many bytes of this process's memory into as few pages as there can be. Raises OSError."""
    _call("madvise", ctypes.c_void_p(address), ctypes.c_size_t(length), COLLAPSE)


def set_process_option(option: int, *values: Any) -> None:
    """prctl(2). Raises OSError."""
    _call("prctl", option, *(ctypes.c_ulong(value) if isinstance(value, int) else value for value in values))


def drop_capabilities() -> None:
    """Gives up all privileges of this process, and those that a program started by it could be granted."""
    for capability in range(64):
        try:
            set_process_option(DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)
        except OSError:  # the kernel knows no more of them
            break
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION_3, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())


def _call(name: str, *arguments: Any) -> None:
    if getattr(_library, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
