"""Where things lie in a course directory, its settings, how its files are written whole, and the instructor's key."""

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partialmethod
from pathlib import Path

from course_lib.data.place import CannotStart, course_folder

VARIABLE = "COURSE_ASSIGNMENTS"
CONFIG = "nbgrader_config.py"
KEY_BYTES = 32
FILE_BYTES = 20_000_000  # of a notebook
TIMESTAMP = "timestamp.txt"
NAME_LENGTH = 128  # what the gradebook's columns hold
NAME_BYTES = 240  # a file's name has 255, and "." and ".json.part" are added to a student's


@dataclass(frozen=True, kw_only=True)
class Folders:
    """The places in an nbgrader course directory whose root is `root`."""

    root: Path

    config = property(lambda self: self.root / CONFIG)
    gradebook = property(lambda self: self.root / "gradebook.db")
    key = property(lambda self: self.root / "instructor.key")
    exports = property(lambda self: self.root / "exports")

    def _place(self, kind: str, *names: str) -> Path:
        return self.root.joinpath(kind, *names)

    source, hidden = partialmethod(_place, "source"), partialmethod(_place, "hidden")  # of an assignment
    release = partialmethod(_place, "release")
    submitted, autograded = partialmethod(_place, "submitted"), partialmethod(_place, "autograded")  # of a student's
    feedback = partialmethod(_place, "feedback")

    def assignments(self) -> list[str]:
        """The names of all assignments that have a source, in order."""
        return _folder_names(self.root / "source")

    def students(self, assignment: str) -> list[str]:
        """Who has submitted this assignment, in order; a symbolic link is no submission."""
        return [name for name in _folder_names(self.root / "submitted") if is_folder(self.submitted(name, assignment))]


def assignments_folder(chosen: str | os.PathLike | None = None) -> Folders:
    """The course directory: the one asked for, else COURSE_ASSIGNMENTS, else notebooks/assignments of the course.

    Raises CannotStart if it is no folder, or one that this account may not look into.
    """
    asked = chosen if chosen is not None else os.environ.get(VARIABLE)
    root = Path(asked).expanduser().absolute() if asked else course_folder() / "notebooks" / "assignments"
    if not root.is_dir():
        raise CannotStart(
            f"There is no course directory {root}. Name the folder that holds source/ and nbgrader_config.py with "
            f"--folder or in the environment variable {VARIABLE}."
        )
    if not os.access(root, os.R_OK | os.X_OK):
        raise CannotStart(f"The course directory {root} is closed to your account. Name your own with --folder.")
    return Folders(root=root)


def read_config(course_directory: Path | None):
    """nbgrader's settings as a traitlets Config: those of Jupyter's folders and, with more weight, the course's own.

    Raises CannotStart, naming the file, if one cannot be read.
    """
    from jupyter_core.paths import jupyter_config_path
    from traitlets.config.loader import Config, PyFileConfigLoader

    config = Config()
    places = [*reversed(jupyter_config_path()), *([str(course_directory)] if course_directory else [])]
    for place in dict.fromkeys(places):
        if (Path(place) / CONFIG).is_file():
            try:
                config.merge(PyFileConfigLoader(CONFIG, path=place).load_config())
            except Exception as error:
                raise CannotStart(
                    f"{Path(place) / CONFIG} cannot be read: {type(error).__name__}: {error}. Correct that line."
                ) from error
    return config


def instructor_key(folders: Folders) -> bytes:
    """The secret that seeds the hidden inputs, for the owner's eyes only (mode 0600); made on first use.

    Raises CannotStart if the file holds anything else: with a new key the inputs, and so some scores, would change.
    """
    if not folders.key.exists():
        write_whole(folders.key, secrets.token_hex(KEY_BYTES), mode=0o600)
    folders.key.chmod(0o600)
    text = (read_small(folders.key, 10 * KEY_BYTES) or b"").decode("ascii", errors="replace").strip()
    if not re.fullmatch(rf"[0-9a-fA-F]{{{2 * KEY_BYTES}}}", text):
        raise CannotStart(
            f"{folders.key} does not hold the instructor's key ({2 * KEY_BYTES} hexadecimal digits). Restore it from a "
            "copy; only if there is none, delete it: a new one is made, and hidden inputs are drawn anew."
        )
    return bytes.fromhex(text)


def write_whole(path: Path, content: str | bytes, *, mode: int = 0o666) -> None:
    """Writes a whole file, and the folders it lies in, or leaves the old one. Raises CannotStart if it cannot."""
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.touch(mode)
        part.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        os.replace(part, path)
    except OSError as error:
        raise CannotStart(
            f"{path} cannot be written: {error.strerror}. Make room, set the permissions right, or name another "
            "folder; then start again: what was done so far is kept."
        ) from error


def read_small(path: Path | str, limit: int, *, owner: int | None = None) -> bytes | None:
    """The content of a regular file of at most `limit` bytes; None for anything else, such as a link or a device.

    With `owner`, the number of an account, another account's file is none, either.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            opened = os.fstat(file.fileno())
            good = stat.S_ISREG(opened.st_mode) and owner in (None, opened.st_uid)
            content = file.read(limit + 1) if good else b""
    except OSError:
        return None
    return content if good and len(content) <= limit else None


@contextmanager
def grading_lock(folders: Folders, *, seconds: float = 0) -> Iterator[None]:
    """Keeps other graders off this course directory; waits so many seconds for one that is at work.

    The operating system gives the lock back when its holder ends, however it ends. Raises CannotStart if another
    grader still holds it.
    """
    from filelock import FileLock, Timeout

    try:
        held = FileLock(folders.root / ".grading.lock", timeout=seconds).acquire()
    except Timeout:
        raise CannotStart(
            f"Another grader is at work in {folders.root}. Wait until it has ended, then start again: what is graded "
            "by then is not graded twice."
        ) from None
    with held:
        yield


def storable(name: str) -> bool:
    """Whether the gradebook can hold this as a student's name, and the course directory a file of that name."""
    return 0 < len(name) <= NAME_LENGTH and name.isprintable() and len(name.encode()) <= NAME_BYTES


def one_notebook(folder: Path) -> Path | None:
    """The one notebook in a folder; None if there is none or more than one."""
    found = list(folder.glob("[!.]*.ipynb"))
    return found[0] if len(found) == 1 else None


def is_folder(path: Path) -> bool:
    """Whether this is a folder, and no link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


def _folder_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("[!.]*") if is_folder(path))
