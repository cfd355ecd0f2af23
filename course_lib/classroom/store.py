"""What a learner has done, kept in one small JSON file outside the notebooks.

The file is replaced as a whole (written beside, flushed to the disk, renamed), so a crash leaves the old or the new
state and never half of one. Each change is merged, under a lock, into what the file holds at that moment, so two
notebooks at once keep each other's entries. A file that cannot be understood is set aside as a `.broken` copy.
"""

import contextlib
import errno
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from course_lib.data.place import course_home

SCHEMA = 1
KINDS = ("quizzes", "predictions", "exercises", "parts")  # parts are results and playgrounds

Entry = dict[str, Any]


class _Unreadable(Exception):
    """The file is not a whole progress file; the message says why."""


class _Newer(Exception):
    """The file was written by a newer version of the course, so it is left alone."""


def empty_lesson() -> Entry:
    """Return the record of a lesson in which nothing has been done."""
    return {"opened": False} | {kind: {} for kind in KINDS}


def _nothing() -> Entry:
    return {"schema": SCHEMA, "lessons": {}}


def _is_lesson(record: Any) -> bool:
    if not isinstance(record, dict) or not isinstance(record.get("opened"), bool):
        return False
    record.setdefault("parts", {})  # files of the first edition have none
    groups = [record.get(kind) for kind in KINDS]
    return all(isinstance(group, dict) and all(isinstance(e, dict) for e in group.values()) for group in groups)


def _parse(text: str) -> Entry:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise _Unreadable("it is cut off or damaged") from error
    if not isinstance(content, dict) or not isinstance(content.get("lessons"), dict):
        raise _Unreadable("it was not written by this course")
    schema = content.get("schema")
    if not isinstance(schema, int) or schema < SCHEMA:
        raise _Unreadable(f"its schema is {schema!r}, where {SCHEMA} was expected")
    if schema > SCHEMA:
        raise _Newer("the file there was written by a newer version of the course, and is left as it is")
    for lesson in content["lessons"].values():
        if not _is_lesson(lesson):
            raise _Unreadable("it was not written by this course")
    return content


class ProgressStore:
    """The progress file under `home`; every method is safe to call whatever state the file is in."""

    def __init__(self, home: Path | None = None) -> None:
        self.path = (home or course_home()) / "progress.json"
        self._unsaved: list[tuple[str, Callable[[Entry], None]]] = []
        self._notices: list[str] = []
        self._said: set[str] = set()
        self._mutex = threading.RLock()

    def lessons(self) -> dict[str, Entry]:
        """Return the record of every lesson ever opened, with changes that could not be saved."""
        with self._mutex:
            try:
                content = self._read()
            except (OSError, _Unreadable, _Newer):  # the next change says so and sets the file aside
                content = _nothing()
            for lesson, change in self._unsaved:
                change(content["lessons"].setdefault(lesson, empty_lesson()))
            return content["lessons"]

    def entry(self, lesson: str, kind: str, name: str) -> Entry:
        """Return what is known of one item; empty when nothing is."""
        return self.lessons().get(lesson, empty_lesson())[kind].get(name, {})

    def open(self, lesson: str) -> None:
        """Record that a lesson was opened."""
        self._apply(lesson, lambda record: record.update(opened=True))

    def change(self, lesson: str, kind: str, name: str, change: Callable[[Entry], None]) -> None:
        """Apply `change` to the entry as it is in the file now, and save.

        Raises ValueError if `kind` is not one of `KINDS`.
        """
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, but got {kind!r}.")
        self._apply(lesson, lambda record: change(record[kind].setdefault(name, {})))

    def take_notices(self) -> list[str]:
        """Return what the learner should be told about the file, each thing once."""
        notices, self._notices = self._notices, []
        return notices

    def _apply(self, lesson: str, change: Callable[[Entry], None]) -> None:
        with self._mutex:
            self._unsaved.append((lesson, change))
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self._lock():
                    before = self._read_or_set_aside()
                    after = deepcopy(before)
                    for name, pending in self._unsaved:
                        pending(after["lessons"].setdefault(name, empty_lesson()))
                    if after != before:
                        self._write(after)
                self._unsaved.clear()
            except (OSError, _Newer) as error:
                reason = getattr(error, "strerror", None) or str(error)
                self._say(
                    f"Your progress cannot be saved in {self.path.parent}: {reason}. It is kept until this "
                    "notebook's kernel stops. To keep it for good, make that folder writable or set COURSE_HOME "
                    "to another one."
                )

    def _read_or_set_aside(self) -> Entry:
        try:
            return self._read()
        except _Unreadable as reason:
            number, copy = 1, self.path.with_suffix(".broken")
            while copy.exists():
                number += 1
                copy = self.path.with_suffix(f".broken-{number}")
            os.replace(self.path, copy)
            self._say(
                f"The progress file {self.path} could not be understood: {reason}. It is kept as {copy.name}, "
                "and your progress starts afresh."
            )
            return _nothing()

    def _read(self) -> Entry:
        try:
            return _parse(self.path.read_bytes().decode("utf-8", errors="replace"))
        except FileNotFoundError:
            return _nothing()

    def _write(self, content: Entry) -> None:
        draft = self.path.with_suffix(f".{os.getpid()}.tmp")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, sort_keys=True, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.path)

    def _say(self, notice: str) -> None:
        if notice not in self._said:
            self._said.add(notice)
            self._notices.append(notice)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        with self.path.with_suffix(".lock").open("a+b") as file:
            _lock_file(file)
            for orphan in self.path.parent.glob(f"{self.path.stem}.*.tmp"):  # of a process that was killed
                orphan.unlink(missing_ok=True)
            yield  # closing the file frees the lock


def _lock_file(file) -> None:
    """Wait for the lock on an open file; on a file system without locks, go on without."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP):
            raise
