"""The command line of the sandbox: what of this machine is inside, and who one is there.

Inside are Python's interpreter and libraries, read-only, and the package `boxed`; nothing else of the disk.
"""

import os
import shutil
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import course_lib
from course_lib.grading import boxed
from course_lib.grading.boxed.confine import DEVICES

BOXED = Path(boxed.__file__).parent
INSIDE = "/course"  # where the package `boxed` is found
FIRST_USER, USERS = 60_001, 500  # of nobody: root's sandboxes run as one of these
SYSTEM = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/nix/store")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")  # where malloc reads whether there are any
EXCHANGES = ("/usr/local/share/nbgrader", "/usr/share/nbgrader", "/srv/nbgrader")
SETTINGS = {
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OMP_THREAD_LIMIT": "8",  # whoever asks torch for more, as on a large machine, gets these
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONBREAKPOINT": "0",  # breakpoint() does nothing: nobody types an answer
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "PYTHONUTF8": "1",
    "TORCH_COMPILE_DISABLE": "1",  # there is no C++ compiler: torch.compile gives the function back
}


def command(module: str, *arguments: str, hidden: Iterable[Path] = ()) -> list[str]:
    """Runs a module of `boxed` in the sandbox; `hidden` folders are empty there. Needs bwrap and, for root, setpriv."""
    python, libraries = interpreter(), library_folders()
    visible = outermost([*map(Path, SYSTEM), python.parent.parent / "lib", standard_library(), *libraries])
    options = [
        *("--unshare-user-try", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--hostname", "box", "--new-session", "--clearenv"),
        *("--proc", "/proc", "--perms", "1777", "--tmpfs", "/tmp", *devices()),
    ]
    if os.getuid() == 0:  # then user namespaces are not needed, and the user is changed inside
        options = options[1:]
    for path in visible:
        options += bind(path)
    programs = [python, *([Path(setpriv())] if os.getuid() == 0 else [])]
    for path in [*programs, *([HUGE_PAGES] if HUGE_PAGES.exists() else [])]:
        options += bind(path)
    options += [*parents(Path(INSIDE) / "boxed"), "--ro-bind", str(BOXED), f"{INSIDE}/boxed"]
    for path in map(inside, covered(hidden, visible)):
        options += ["--tmpfs", str(path), "--remount-ro", str(path)]
    options += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]
    environment = SETTINGS | {
        # a process of huge pages is forked in a fraction of the time; see also boxed.preload.gather_pages
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "HOME": "/tmp",
        "LC_ALL": "C.UTF-8",
        "PATH": "/usr/bin",
        "PYTHONPATH": ":".join([INSIDE, *(str(inside(path)) for path in libraries)]),
        "USER": "student",  # torch asks for a name, and there is no list of users
    }
    for name, value in environment.items():
        options += ["--setenv", name, value]
    # -S: no site, whose .pth files name folders of the instructor's; -P: no module from the working folder
    run = [str(python), "-S", "-P", "-m", f"boxed.{module}", *arguments]
    return [str(shutil.which("bwrap")), *options, "--", *as_nobody(), *run]


def misplaced() -> Path | None:
    """What of Python itself lies in /tmp, where a box has its own files and would not see it."""
    return next((path for path in [interpreter(), standard_library()] if path.is_relative_to("/tmp")), None)


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
    options = []
    for folder in reversed(path.parents[:-1]):
        options += ["--perms", "0755", "--dir", str(folder)]
    return options


def devices() -> list[str]:
    """Options for a /dev with the harmless ones only."""
    options = ["--perms", "0755", "--tmpfs", "/dev", "--perms", "1777", "--dir", "/dev/shm"]
    for name in DEVICES:
        options += ["--dev-bind", name, name]
    return options


def covered(hidden: Iterable[Path], visible: Iterable[Path]) -> list[Path]:
    """The folders of ours and of the instructor's that lie in what is visible inside."""
    ours = Path(course_lib.__file__).parent
    secret = [ours, ours.parent / "notebooks", *map(Path, EXCHANGES), *hidden]
    if "COURSE_ASSIGNMENTS" in os.environ:
        secret.append(Path(os.environ["COURSE_ASSIGNMENTS"]))
    visible = [path.resolve() for path in visible]
    found = [path.resolve() for path in secret if path.is_dir()]
    return [path for path in dict.fromkeys(found) if any(path.is_relative_to(folder) for folder in visible)]


def as_nobody() -> list[str]:
    """The command that root's sandbox begins with: it gives up all privileges, for this program and its children."""
    if os.getuid() != 0:
        return []
    user = str(FIRST_USER + os.getpid() % USERS)
    return [
        *(setpriv(), "--reuid", user, "--regid", user, "--clear-groups"),
        *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--"),
    ]


def setpriv() -> str:
    return os.path.realpath(shutil.which("setpriv") or "/usr/bin/setpriv")
