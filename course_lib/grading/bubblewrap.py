"""The command line of the sandbox: what of this machine is inside, and who one is there.

Inside are Python's interpreter and libraries, read-only, and the package `boxed`; nothing else of the disk.
"""

import contextlib
import os
import shutil
import socket
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import course_lib
from course_lib.grading import boxed

BOXED = Path(boxed.__file__).parent
SETPRIV = os.path.realpath(shutil.which("setpriv") or "/usr/bin/setpriv")
INSIDE = "/course"  # where the package `boxed` is found
FIRST_USER, USERS = 60_001, 500  # of nobody: each of root's sandboxes runs as one of these
SYSTEM = "/usr/lib /usr/lib32 /usr/lib64 /lib /lib32 /lib64 /etc/ld.so.cache /nix/store".split()
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
SETTINGS = {
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OMP_THREAD_LIMIT": "8",  # whoever asks torch for more, as on a large machine, gets these
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONBREAKPOINT": "0",  # breakpoint() does nothing: nobody types an answer
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "TORCH_COMPILE_DISABLE": "1",  # there is no C++ compiler: torch.compile gives the function back
}


def command(control: int, filter_: int, limits: str, disk: int, user: int, hidden: Iterable[Path]) -> list[str]:
    """Runs `boxed.zygote` with these descriptors of a socket and a seccomp filter, and limits as JSON.

    Root's runs as `user`; `hidden` folders are empty inside; `disk` is how many bytes a box may write.
    """
    python, libraries = interpreter(), library_folders()
    visible = outermost([*map(Path, SYSTEM), python.parent.parent / "lib", standard_library(), *libraries])
    options = [
        *("--as-pid-1", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--hostname", "box", "--new-session", "--clearenv", "--seccomp", str(filter_)),
        *("--proc", "/proc", "--perms", "1777", "--size", str(disk), "--tmpfs", "/tmp", "--perms", "0755"),
        *("--tmpfs", "/dev", "--perms", "1777", "--size", str(disk), "--tmpfs", "/dev/shm"),
        *(part for name in DEVICES for part in ("--dev-bind", name, name)),
    ]
    if os.getuid() != 0:  # root needs none, and changes the user inside
        options += ["--unshare-user", "--disable-userns"]
    for path in [*visible, python, *([Path(SETPRIV)] if os.getuid() == 0 else [])]:
        options += bind(path)
    options += [*parents(Path(INSIDE) / "boxed"), "--ro-bind", str(BOXED), f"{INSIDE}/boxed"]
    for path in map(inside, covered(hidden, visible)):
        options += ["--tmpfs", str(path), "--remount-ro", str(path)]
    options += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]
    environment = SETTINGS | {"HOME": "/tmp", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin", "USER": "student"}
    environment["PYTHONPATH"] = ":".join([INSIDE, *(str(inside(path)) for path in libraries)])
    options += [option for name, value in environment.items() for option in ("--setenv", name, value)]
    # -S: no site, whose .pth files name folders of the instructor's; -P: no module from the working folder
    run = [str(python), "-S", "-P", "-m", "boxed.zygote", str(control), limits]
    return [str(shutil.which("bwrap")), *options, "--", *as_user(user), *run]


def problem() -> str | None:
    """What is missing for a sandbox here, in one sentence that says what to do, without starting anything."""
    if sys.platform != "linux":
        return f"The sandbox needs Linux, and this is {sys.platform}"
    if shutil.which("bwrap") is None:
        return "There is no bubblewrap here; install it: sudo apt-get install bubblewrap"
    for path in (interpreter(), standard_library()):
        if path.is_relative_to("/tmp"):
            return f"Python lies in {path}, and no box sees the machine's /tmp: set the course up in another folder"
    return None


def inside(path: Path) -> Path:
    """Where a folder of the machine is found inside: under its own name, unless that is in /tmp."""
    return Path(INSIDE, "tmp", path.relative_to("/tmp")) if path.is_relative_to("/tmp") else path


def interpreter() -> Path:
    """The file of the interpreter itself, behind all links and virtual environments."""
    return Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()


def standard_library() -> Path:
    return Path(os.__file__).resolve().parent


def library_folders() -> list[Path]:
    """The folders with torch, numpy, einops and what they need."""
    packages = [Path(str(find_spec(name).origin)).resolve().parent.parent for name in ("torch", "numpy", "einops")]
    others = [Path(path).resolve() for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    return [path for path in dict.fromkeys([*packages, *others]) if path.is_dir()]


def outermost(paths: Iterable[Path]) -> list[Path]:
    """Those that exist and do not lie in another one."""
    found = [path for path in dict.fromkeys(paths) if path.exists()]
    return [path for path in found if not any(path != other and path.is_relative_to(other) for other in found)]


def bind(path: Path) -> list[str]:
    """Options that show a file or folder inside, read-only."""
    if path.is_symlink():  # /lib is one on most systems
        return ["--symlink", os.readlink(path), str(path)]
    return [*parents(inside(path)), "--ro-bind", str(path), str(inside(path))]


def parents(path: Path) -> list[str]:
    """Options that make the folders above a path; bubblewrap itself would shut them to all but root."""
    folders = reversed(path.parents[:-1])
    return [option for folder in folders for option in ("--perms", "0755", "--dir", str(folder))]


def covered(hidden: Iterable[Path], visible: Iterable[Path]) -> list[Path]:
    """The folders of ours and of the instructor's that lie in what is visible inside."""
    ours = Path(course_lib.__file__).parent
    secret = [ours, ours.parent / "notebooks", *hidden]
    secret += [Path(os.environ["COURSE_ASSIGNMENTS"])] if "COURSE_ASSIGNMENTS" in os.environ else []
    found = dict.fromkeys(path.resolve() for path in secret if path.is_dir())
    return [path for path in found if any(path.is_relative_to(folder.resolve()) for folder in visible)]


def claim_user(control: socket.socket) -> int:
    """A user whom no other sandbox has, since the kernel counts by user: the open socket bears its number as a name."""
    for user in range(FIRST_USER, FIRST_USER + USERS):
        with contextlib.suppress(OSError):
            control.bind(f"\0course-box-{user}")
            return user
    raise OSError(f"{USERS} sandboxes are at work already")


def as_user(user: int) -> list[str]:
    """The command that root's sandbox begins with: it gives up all privileges, for this program and its children."""
    if os.getuid() != 0:
        return []
    return [
        *(SETPRIV, f"--reuid={user}", f"--regid={user}", "--clear-groups"),
        *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--"),
    ]
