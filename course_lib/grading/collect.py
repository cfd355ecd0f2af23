"""`course assign collect`: takes in what students have handed in, from the exchange or a learning platform's export.

Files of a folder or .zip are recognised by their names:

    lovelaceada_12345_67890_attention.ipynb                       Canvas, also with _LATE, and -1, -2 at the end
    Ada Lovelace_12345_assignsubmission_file_/attention.ipynb     Moodle, a folder for each student
    Ada Lovelace_12345_assignsubmission_file_attention.ipynb      Moodle, all in one folder
    ada_05_20261121T113012Z_attention.ipynb                       as `course assign submit` names it
    ada/attention.ipynb                                           a folder for each student

The name and the number together are the student in the gradebook (`Ada-Lovelace_12345`), so that marks can be matched
with the platform's list again.
"""

import os
import re
import stat
import unicodedata
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from course_lib.data.place import CannotStart
from course_lib.grading.exchange import (
    SECRET,
    SECRET_BYTES,
    TIME_FORMAT,
    VARIABLE,
    Exchange,
    Handed,
    find_exchange,
    handed_in,
    is_plain_name,
    parse_time,
)
from course_lib.grading.folders import (
    CONFIG,
    FILE_BYTES,
    TIMESTAMP,
    Folders,
    assignments_folder,
    grading_lock,
    need_nbgrader,
    read_small,
    submitted_at,
    write_whole,
)
from course_lib.grading.wording import counted, one_line

MAX_FILES = 20_000  # in one folder or .zip
NOT_READ = f"is a link, no ordinary file, or larger than {FILE_BYTES // 1_000_000} MB; refused."


class Refused(Exception):
    """Why something is not taken in, in words that follow its place: "ada+05+...: is a symbolic link"."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A notebook that may become a student's submission; `read` raises Refused, or gives its bytes and its secret."""

    student: str
    moment: datetime
    place: str  # for messages
    read: Callable[[], tuple[bytes, bytes | None]]
    as_released: bool = True  # whether the file is named as it was handed out


def collect(name: str, *, source: Path | None = None, folder: Path | None = None) -> int:
    """Puts each student's newest submission into submitted/STUDENT/NAME; returns 1 if there was none at all.

    Without a `source` they come from the exchange. Doing it again changes nothing but for what is newer. Raises
    CannotStart if there is nothing to collect from.
    """
    need_nbgrader(f"assign collect {name}")
    folders, notes = assignments_folder(folder), []
    notebook = _notebook(folders, name)
    if source is not None:
        origin = Path(source).expanduser()
        candidates = list(from_export(origin, name, notebook, notes))
    else:
        exchange = find_exchange(folders.root)
        if exchange is None:
            raise CannotStart(
                "There is no exchange to collect from. Name the folder or .zip that you downloaded, with --from; or "
                f"set c.Exchange.root in {folders.config} (or {VARIABLE}) to your class's folder."
            )
        origin = exchange.inbound
        candidates = list(from_exchange(exchange, name, notebook, notes))
    done: Counter[str] = Counter()
    with grading_lock(folders):
        by_student = defaultdict(list)
        for candidate in candidates:
            by_student[candidate.student].append(candidate)
        for student in sorted(by_student):  # a refused one makes room for the one before
            for candidate in sorted(
                by_student[student], key=lambda c: (c.as_released, c.moment, c.place), reverse=True
            ):
                try:
                    done[_store(folders, name, notebook, candidate, notes)] += 1
                    break
                except Refused as reason:
                    notes.append(f"{candidate.place}: {reason}")
    print("\n".join(_summary(folders, name, origin, done, notes, dated_by_files=source is not None)))
    return 0 if done else 1


def from_exchange(exchange: Exchange, name: str, notebook: str, notes: list[str]) -> Iterator[Candidate]:
    """Everything handed in for an assignment, not yet opened."""
    for handed in handed_in(exchange, name):
        if isinstance(handed, str):
            notes.append(handed)
            continue

        def read(handed=handed) -> tuple[bytes, bytes | None]:
            return _read_handed(exchange, handed, notebook)

        yield Candidate(student=handed.student, moment=handed.moment, place=handed.folder.name, read=read)


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
        if any(part.startswith((".", "__MACOSX")) for part in path.parts) or path.name in (TIMESTAMP, SECRET):
            continue
        whose = recognise(path, name, Path(notebook).stem) if path.suffix == ".ipynb" else None
        if whose is None:
            notes.append(
                f"{path}: is no notebook, or its name does not say whose it is; left out. Rename it to "
                f"NAME_NUMBER_{notebook} and collect again."
            )
            continue
        student, as_released, late = whose
        if late:
            notes.append(f"{path}: marked late by the platform.")
        yield Candidate(student=student, moment=moment, place=str(path), read=read, as_released=as_released)


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


def plain(name: str) -> str:
    """A person's name as it can stand in a path: letters of any alphabet stay, blanks become hyphens."""
    return re.sub(r"[^\w.@-]+", "-", unicodedata.normalize("NFC", name)).strip("-.")


def _notebook(folders: Folders, name: str) -> str:
    found = sorted(folders.source(name).glob("*.ipynb")) if is_plain_name(name) else []
    if len(found) != 1:
        known = ", ".join(folders.assignments()) or "none yet"
        raise CannotStart(
            f"There is no assignment {name!r} with one notebook in {folders.root / 'source'}. There are: {known}."
        )
    return found[0].name


def _store(folders: Folders, name: str, notebook: str, candidate: Candidate, notes: list[str]) -> str:
    """Writes one submission, unless it is there already or an equally new one is; says which."""
    content, secret = candidate.read()
    place = folders.submitted(candidate.student, name)
    before = parse_time(submitted_at(folders, candidate.student, name) or "")
    there = read_small(place / notebook, FILE_BYTES)
    if there is not None and before is not None:
        if there != content and before >= candidate.moment:
            notes.append(
                f"{candidate.place}: differs from what was collected of {candidate.student}, but is no newer; left "
                f"out. To take it, delete {place} and collect again."
            )
        if there == content or before >= candidate.moment:
            return "here already"
        (place / TIMESTAMP).unlink()  # interrupted from here on, the next run finds no time and writes again
    write_whole(place / notebook, content)
    (place / SECRET).unlink(missing_ok=True)  # of an earlier submission
    if secret is not None:
        write_whole(place / SECRET, secret)
    write_whole(place / TIMESTAMP, candidate.moment.strftime(TIME_FORMAT) + "\n")
    return "new" if there is None else "newer than before"


def _summary(
    folders: Folders, name: str, origin: Path, done: Counter[str], notes: list[str], *, dated_by_files: bool
) -> Iterator[str]:
    """What a person reads after collecting."""
    yield f"Assignment {name}: {counted(done.total(), 'submission')} from {origin}."
    if done:
        listed = ", ".join(f"{done[kind]} {kind}" for kind in ("new", "newer than before", "here already"))
        yield f"  {listed}; in {folders.root / 'submitted'}."
    if notes:
        yield f"  {counted(len(notes), 'note')}:"
        yield from (f"  - {one_line(note, 400)}" for note in notes)
    if done and dated_by_files:
        yield "  The times are the dates of the files, as the platform set them: compare some before points go off."
    if not done:
        yield "Nothing was collected."
    elif folders.release(name).is_dir():
        yield f"Next: course grade {name}"
    else:
        yield f"Next: course assign release {name}, which grading builds on; then course grade {name}"


def _read_handed(exchange: Exchange, handed: Handed, notebook: str) -> tuple[bytes, bytes | None]:
    """What lies in a folder of inbound/; Refused if it is no ordinary file, or belongs to another account.

    The student owns that folder and may change it at any moment: what is checked is what was opened, not a path.
    """
    try:
        folder = os.open(handed.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        raise Refused(NOT_READ) from None
    try:
        owner = _account(os.fstat(folder).st_uid)
        content = read_small(notebook, FILE_BYTES, dir_fd=folder)
        secret = read_small(SECRET, SECRET_BYTES, dir_fd=folder) or b""
    finally:
        os.close(folder)
    if content is None:
        raise Refused(NOT_READ)
    if exchange.check_owner and owner != handed.student:
        raise Refused(
            f"says that it is by {handed.student}, but belongs to {owner}; refused. Where accounts are not the "
            f"students' names, set c.ExchangeCollect.check_owner = False in {CONFIG}."
        )
    return content, secret if re.fullmatch(rb"[\w-]{16,}", secret) else None


def _account(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"account number {uid}"


def _in_folder(source: Path) -> Iterator[tuple[PurePosixPath, datetime, Callable[[], tuple[bytes, None]]]]:
    for path in sorted(source.rglob("*")):
        if path.is_dir():
            continue

        def read(path=path) -> tuple[bytes, None]:
            content = read_small(path, FILE_BYTES)
            if content is None:
                raise Refused(NOT_READ)
            return content, None

        moment = datetime.fromtimestamp(path.lstat().st_mtime, UTC)
        yield PurePosixPath(path.relative_to(source).as_posix()), moment, read


def _in_zip(source: Path) -> Iterator[tuple[PurePosixPath, datetime, Callable[[], tuple[bytes, None]]]]:
    with zipfile.ZipFile(source) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    for entry in entries:

        def read(entry=entry) -> tuple[bytes, None]:
            try:
                with zipfile.ZipFile(source) as archive, archive.open(entry) as file:
                    content = file.read(FILE_BYTES + 1)  # what it unpacks to, not what it says
            except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
                raise Refused(f"cannot be unpacked ({type(error).__name__}).") from None
            if len(content) > FILE_BYTES or stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
                raise Refused(NOT_READ)
            return content, None

        try:
            moment = datetime(*entry.date_time).astimezone(UTC)  # a .zip holds local time
        except (ValueError, OverflowError, OSError):
            moment = datetime.fromtimestamp(0, UTC)
        yield PurePosixPath(entry.filename), moment, read
