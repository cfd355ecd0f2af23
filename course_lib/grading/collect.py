"""`course assign collect`: takes in what students have handed in, from the exchange or a learning platform's export.

Files of a folder or .zip are recognised by their names:

    lovelaceada_12345_67890_attention.ipynb                       Canvas, also with _LATE, and -1, -2 at the end
    Ada Lovelace_12345_assignsubmission_file_/attention.ipynb     Moodle, a folder for each student
    Ada Lovelace_12345_assignsubmission_file_attention.ipynb      Moodle, all in one folder
    lovelace_12345_attention.ipynb                                name, number, notebook
    ada_05_20261121T113012Z_attention.ipynb                       as `course assign submit` names it
    ada/attention.ipynb                                           a folder for each student

The name and the number together are the student in the gradebook (`Ada-Lovelace_12345`), so that marks can be matched
with the platform's list again.
"""

import errno
import os
import re
import stat
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from course_lib.data.place import CannotStart
from course_lib.grading import exchange as exchanges
from course_lib.grading.exchange import (
    SECRET,
    SECRET_BYTES,
    Exchange,
    find_exchange,
    handed_in,
    is_plain_name,
    parse_time,
    plain,
)
from course_lib.grading.folders import (
    TIMESTAMP,
    Folders,
    assignments_folder,
    grading_lock,
    read_small,
    submitted_at,
    write_whole,
)
from course_lib.grading.handout import only_notebook
from course_lib.grading.intake import FILE_BYTES
from course_lib.grading.release import need_nbgrader
from course_lib.grading.wording import counted, one_line

MAX_FILES = 20_000  # in one folder or .zip
MAX_DEPTH = 4  # folders below the one that is named
BACKDATED = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class Content:
    """The bytes of a notebook; `secret` names its feedback in the exchange, None where it has no such name."""

    notebook: bytes
    secret: str | None = None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A notebook that may become a student's submission; `read` raises Refused, or gives what it holds."""

    student: str
    moment: datetime
    place: str  # for messages
    read: Callable[[], Content]
    named_as_released: bool = True


class Refused(Exception):
    """Why something is not taken in, in words that follow its place: "ada+05+...: is a symbolic link"."""


@dataclass
class Result:
    """What happened to the submissions."""

    new: list[str] = field(default_factory=list)
    newer: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def collect(name: str, *, source: Path | None = None, folder: Path | None = None) -> int:
    """Puts each student's newest submission into submitted/STUDENT/NAME; returns 1 if there was none at all.

    Without a `source` they come from the exchange. Doing it again changes nothing but for what is newer. Raises
    CannotStart if there is nothing to collect from.
    """
    need_nbgrader(f"assign collect {name}")
    folders = assignments_folder(folder)
    notebook = released_notebook(folders, name)
    result = Result()
    if source is not None:
        candidates = list(from_export(Path(source).expanduser(), name, notebook, result.notes))
        origin = str(source)
    else:
        exchange = find_exchange(folders.root)
        if exchange is None:
            raise CannotStart(
                "There is no exchange to collect from. Name the folder or .zip that you downloaded, with --from; or "
                f"set c.Exchange.root in {folders.config} (or {exchanges.VARIABLE}) to your class's folder."
            )
        candidates = list(from_exchange(exchange, name, notebook, result.notes))
        origin = str(exchange.inbound)
    with grading_lock(folders):
        take_newest(folders, name, notebook, candidates, result)
    print(summary(folders, name, origin, result, dated_by_files=source is not None))
    return 0 if result.new or result.newer or result.same else 1


def released_notebook(folders: Folders, name: str) -> str:
    """The file name of the assignment's notebook. Raises CannotStart if there is no such assignment."""
    found = sorted(folders.source(name).glob("*.ipynb")) if is_plain_name(name) else []
    if len(found) != 1:
        known = ", ".join(folders.assignments()) or "none yet"
        raise CannotStart(
            f"There is no assignment {name!r} with one notebook in {folders.root / 'source'}. There are: {known}."
        )
    return found[0].name


def take_newest(folders: Folders, name: str, notebook: str, candidates: list[Candidate], result: Result) -> None:
    """Takes in each student's newest candidate that can be read; a refused one makes room for the one before."""
    by_student = defaultdict(list)
    for candidate in candidates:
        by_student[candidate.student].append(candidate)
    for student in sorted(by_student):
        newest_first = sorted(by_student[student], key=lambda c: (c.named_as_released, c.moment, c.place), reverse=True)
        for candidate in newest_first:
            try:
                content = candidate.read()
            except Refused as reason:
                result.notes.append(f"{candidate.place}: {reason}")
            else:
                store(folders, name, notebook, candidate, content, result)
                break


def store(folders: Folders, name: str, notebook: str, candidate: Candidate, content: Content, result: Result) -> None:
    """Writes one submission, unless it is there already or an equally new one is."""
    student, place = candidate.student, folders.submitted(candidate.student, name)
    time = candidate.moment.strftime(exchanges.TIME_FORMAT)
    before = parse_time(submitted_at(folders, student, name) or "")
    there = read_small(place / notebook, FILE_BYTES)
    if there is not None and before is not None:
        if there == content.notebook or before >= candidate.moment:
            result.same.append(student)
            if there != content.notebook:
                result.notes.append(
                    f"{candidate.place}: differs from what was collected of {student}, but is no newer; left out. To "
                    f"take it, delete {place} and collect again."
                )
            return
        (place / TIMESTAMP).unlink()  # interrupted from here on, the next run finds no time and writes again
    write_whole(place / notebook, content.notebook)
    if content.secret is not None:
        write_whole(place / SECRET, content.secret)
    else:
        (place / SECRET).unlink(missing_ok=True)  # of an earlier submission
    write_whole(place / TIMESTAMP, time + "\n")
    (result.new if there is None else result.newer).append(student)


def summary(folders: Folders, name: str, origin: str, result: Result, *, dated_by_files: bool) -> str:
    """What a person reads after collecting."""
    there = len(result.new) + len(result.newer) + len(result.same)
    lines = [f"Assignment {name}: {counted(there, 'submission')} from {origin}."]
    if there:
        lines.append(
            f"  {len(result.new)} new, {len(result.newer)} newer than before, {len(result.same)} here already; "
            f"in {folders.root / 'submitted'}."
        )
    if result.notes:
        lines.append(f"  {counted(len(result.notes), 'note')}:")
        lines += [f"  - {one_line(note, 400)}" for note in result.notes]
    if there and dated_by_files:
        lines.append(
            "  The times are the dates of the files, as the platform set them: compare some before points go off for "
            "lateness."
        )
    if there and only_notebook(folders.release(name)) is None:
        lines.append(f"Next: course assign release {name}, which grading builds on; then course grade {name}")
    elif there:
        lines.append(f"Next: course grade {name}")
    else:
        lines.append("Nothing was collected.")
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------ from the exchange


def from_exchange(exchange: Exchange, name: str, notebook: str, notes: list[str]) -> Iterator[Candidate]:
    """Everything handed in for an assignment, not yet opened."""
    for handed in handed_in(exchange, name):
        if isinstance(handed, str):
            notes.append(handed)
            continue

        def read(handed=handed) -> Content:
            return read_handed(exchange, handed, notebook, notes)

        yield Candidate(student=handed.student, moment=handed.moment, place=handed.folder, read=read)


def read_handed(exchange: Exchange, handed: exchanges.Handed, notebook: str, notes: list[str]) -> Content:
    """What lies in a folder of inbound/, opened so that no link leads elsewhere; Refused if anything is odd.

    The student owns that folder and may change it at any moment: what is checked is what was opened, not a path.
    """
    try:
        folder = os.open(exchange.inbound / handed.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise Refused(_why(error, "folder")) from None
    try:
        owned = os.fstat(folder)
        content, status = _read_open(notebook, folder)
        secret = _read_secret(folder, owned.st_uid)
    finally:
        os.close(folder)
    if status.st_uid != owned.st_uid:
        raise Refused(f"holds a file that belongs to somebody else ({_account(status.st_uid)}); refused.")
    if exchange.check_owner and _account(owned.st_uid) != handed.student:
        raise Refused(
            f"says that it is by {handed.student}, but belongs to {_account(owned.st_uid)}; refused. Where accounts "
            f"are not the students' names, set c.ExchangeCollect.check_owner = False in {exchanges.CONFIG}."
        )
    changed = datetime.fromtimestamp(max(owned.st_ctime, status.st_ctime), UTC)  # set by the system alone
    if changed - handed.moment > BACKDATED:
        notes.append(
            f"{handed.folder}: says {handed.moment:%Y-%m-%d %H:%M} UTC, but was put there at {changed:%Y-%m-%d %H:%M} "
            "UTC. Was the exchange copied from elsewhere, or the time set back by hand? Taken in with the time it says."
        )
    return Content(notebook=content, secret=secret)


def _read_secret(folder: int, owner: int) -> str | None:
    """What the student's own file says, if it can be the name of a feedback."""
    try:
        content, status = _read_open(SECRET, folder)
    except Refused:
        return None
    text = content[:SECRET_BYTES].decode("ascii", errors="replace")
    return text if status.st_uid == owner and re.fullmatch(r"[\w-]{16,}", text, re.ASCII) else None


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file of bearable size; Refused for links, devices and all else."""
    return _read_open(path, None)[0]


def _read_open(path: str | Path, folder: int | None) -> tuple[bytes, os.stat_result]:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(path, flags, dir_fd=folder), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Refused(f"{Path(path).name} is no ordinary file; refused.")
            content = file.read(FILE_BYTES + 1)
    except OSError as error:
        raise Refused(f"{Path(path).name} {_why(error, 'file')}") from None
    return _bearable(content), status


def _bearable(content: bytes) -> bytes:
    if len(content) > FILE_BYTES:
        raise Refused(f"is larger than {FILE_BYTES // 1_000_000} MB; refused. Ask the student to clear its outputs.")
    return content


def _why(error: OSError, what: str) -> str:
    if error.errno in (errno.ELOOP, errno.EMLINK) or (error.errno == errno.ENOTDIR and what == "folder"):
        return f"is a link or no {what}; refused."
    if error.errno == errno.EISDIR:
        return "is no ordinary file; refused."
    if error.errno == errno.ENOENT:
        return "is missing."
    return f"cannot be read: {error.strerror}."


def _account(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"account number {uid}"


# ------------------------------------------------------------------------------------------------ from an export


def from_export(source: Path, name: str, notebook: str, notes: list[str]) -> Iterator[Candidate]:
    """The notebooks in a folder or .zip whose names say whose they are. Raises CannotStart if it is neither."""
    if source.is_dir():
        entries = _in_folder(source)
    elif zipfile.is_zipfile(source):
        entries = _in_zip(source)
    else:
        problem = "is neither a folder nor a .zip" if source.exists() else "does not exist"
        raise CannotStart(f"{source} {problem}. Name what you downloaded from Canvas or Moodle.")
    for number, (path, moment, read) in enumerate(entries, start=1):
        if number > MAX_FILES:
            raise CannotStart(f"{source} holds more than {MAX_FILES:,} files. Name this assignment's folder alone.")
        if ".." in path.parts:
            notes.append(f"{path}: leads out of the .zip; refused.")
            continue
        if any(part.startswith(".") or part == "__MACOSX" for part in path.parts) or path.name in (TIMESTAMP, SECRET):
            continue
        if path.suffix != ".ipynb":
            notes.append(f"{path}: is no notebook; left out.")
            continue
        whose = recognise(path, name, Path(notebook).stem)
        if whose is None:
            notes.append(
                f"{path}: its name does not say whose it is; left out. Rename it to NAME_NUMBER_{notebook} and collect "
                "again."
            )
            continue
        student, as_released, late = whose
        if late:
            notes.append(f"{path}: marked late by the platform.")
        yield Candidate(student=student, moment=moment, place=str(path), read=read, named_as_released=as_released)


def recognise(path: PurePosixPath, assignment: str, notebook: str) -> tuple[str, bool, bool] | None:
    """Whose notebook this is, whether it is named as it was released, and whether the platform says late; or None."""
    handed_in_as = rf"(?P<name>.+)_{re.escape(assignment)}_\d{{8}}T\d{{6}}Z_(?P<file>.+)"
    file, folder = path.stem, path.parent.name
    patterns = [  # the platform's word on whose it is comes before the student's own
        r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_file_(?P<file>.+)",
        r"(?P<name>[^_]+)(?P<late>_LATE)?_(?P<number>\d+)_\d+_(?P<file>.+)",
        handed_in_as,
        r"(?P<name>.+?)_(?P<number>\d+)_(?P<file>.+)",
    ]
    if found := re.fullmatch(r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_file_?", folder):
        parts = found.groupdict() | {"file": file}
    elif found := next(filter(None, (re.fullmatch(pattern, file) for pattern in patterns)), None):
        parts = found.groupdict()
    else:  # STUDENT/attention.ipynb or STUDENT/05/attention.ipynb
        parts = {"name": path.parent.parent.name if folder == assignment else folder, "file": file}
    name = plain(parts["name"])
    student = "_".join(filter(None, [name, parts.get("number")]))
    if not name or not is_plain_name(student):
        return None
    if found := re.fullmatch(handed_in_as, parts["file"]):
        parts["file"] = found["file"]
    repeated = r"(?:[ _-]?\(?\d+\)?)?"  # attention-1, attention (2)
    as_released = re.fullmatch(re.escape(notebook) + repeated, parts["file"]) is not None
    return student, as_released, bool(parts.get("late"))


def _in_folder(source: Path) -> Iterator[tuple[PurePosixPath, datetime, Callable[[], Content]]]:
    for place, folders, files in os.walk(source):
        depth = len(Path(place).relative_to(source).parts)
        folders[:] = sorted(folders) if depth < MAX_DEPTH else []
        for file in sorted(files):
            path = Path(place) / file
            moment = datetime.fromtimestamp(path.lstat().st_mtime, UTC)

            def read(path=path) -> Content:
                return Content(notebook=read_regular(path))

            yield PurePosixPath(path.relative_to(source).as_posix()), moment, read


def _in_zip(source: Path) -> Iterator[tuple[PurePosixPath, datetime, Callable[[], Content]]]:
    with zipfile.ZipFile(source) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    for entry in entries:

        def read(entry=entry) -> Content:
            return Content(notebook=_read_packed(source, entry))

        yield PurePosixPath(entry.filename), _packed_moment(entry), read


def _read_packed(source: Path, entry: zipfile.ZipInfo) -> bytes:
    kind = entry.external_attr >> 16
    if kind and stat.S_IFMT(kind) not in (0, stat.S_IFREG):
        raise Refused("is no ordinary file; refused.")
    try:
        with zipfile.ZipFile(source) as archive, archive.open(entry) as file:
            return _bearable(file.read(FILE_BYTES + 1))  # what it unpacks to, not what it says
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise Refused(f"cannot be unpacked ({type(error).__name__}).") from None


def _packed_moment(entry: zipfile.ZipInfo) -> datetime:
    try:
        return datetime(*entry.date_time).astimezone(UTC)  # a .zip holds local time
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
