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

import re
import stat
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath

from course_lib.data.place import CannotStart
from course_lib.grading.exchange import (
    SECRET,
    TIME_FORMAT,
    VARIABLE,
    Exchange,
    find_exchange,
    is_account,
    is_plain_name,
    plain,
)
from course_lib.grading.folders import (
    CONFIG,
    FILE_BYTES,
    TIMESTAMP,
    Folders,
    assignments_folder,
    grading_lock,
    is_folder,
    one_notebook,
    read_small,
    write_whole,
)
from course_lib.grading.gradebook import parse_time, submitted_at
from course_lib.grading.wording import counted, one_line

NOT_READ = f"is a link, no ordinary file, damaged, of another account, or over {FILE_BYTES // 1_000_000} MB; refused."


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A notebook that may become a student's submission; `read` gives its bytes, None for what is no plain file."""

    student: str
    moment: datetime  # in UTC, and without a time zone, as nbgrader has them
    place: str  # for messages
    read: Callable[[], bytes | None]
    secret: bytes | None = None  # names the feedback in the exchange
    as_released: bool = True  # whether the file is named as it was handed out


def collect(name: str, *, source: Path | None = None, folder: Path | None = None) -> int:
    """Puts each student's newest submission into submitted/STUDENT/NAME; returns 1 if there was none at all.

    Without a `source` they come from the exchange. Doing it again changes nothing but for what is newer. Raises
    CannotStart if there is nothing to collect from.
    """
    folders, notes = assignments_folder(folder), []
    found = one_notebook(folders.source(name)) if is_plain_name(name) else None
    if found is None:
        known = ", ".join(folders.assignments()) or "none yet"
        raise CannotStart(
            f"There is no assignment {name!r} with one notebook in {folders.root / 'source'}. There are: {known}."
        )
    if source is not None:
        origin = Path(source).expanduser()
        candidates = from_export(origin, name, found.name, notes)
    else:
        exchange = find_exchange(folders.root)
        if exchange is None:
            raise CannotStart(
                "There is no exchange to collect from. Name the folder or .zip that you downloaded, with --from; or "
                f"set c.Exchange.root in {folders.config} (or {VARIABLE}) to your class's folder."
            )
        origin = exchange.inbound
        candidates = from_exchange(exchange, name, found.name, notes)
    done: dict[str, str] = {}
    with grading_lock(folders):
        for candidate in sorted(candidates, key=lambda c: (c.as_released, c.moment, c.place), reverse=True):
            if candidate.student not in done:  # one that cannot be read makes room for the one before
                if (content := candidate.read()) is not None:
                    done[candidate.student] = _store(folders, name, found.name, candidate, content, notes)
                else:
                    notes.append(f"{candidate.place}: {NOT_READ}")
    print(f"Assignment {name}: {counted(len(done), 'submission')} from {origin}.")
    for kind, number in Counter(done.values()).items():
        print(f"  {number} {kind}")
    for note in notes:
        print(f"  - {one_line(note, 400)}")
    if done and source is not None:
        print("  The times are the dates of the files, as the platform set them: compare some before points go off.")
    print(f"Next: course grade {name}" if done else "Nothing was collected.")
    return int(not done)


def from_exchange(exchange: Exchange, name: str, notebook: str, notes: list[str]) -> Iterator[Candidate]:
    """Everything handed in for an assignment, not yet opened. Raises CannotStart if inbound/ cannot be read."""
    try:
        folders = sorted(exchange.inbound.iterdir())
    except OSError as error:
        raise CannotStart(
            f"The exchange's folder {exchange.inbound} cannot be read: {error.strerror}. It is made by: "
            f"course assign release {name}"
        ) from error
    for folder in folders:
        student, assignment, moment, *_ = [*folder.name.split("+"), "", ""]
        moment = parse_time(moment) if is_plain_name(student) else None
        if folder.name.startswith(".") or (moment is not None and assignment != name):
            continue  # on its way, or of another assignment
        if moment is None:
            notes.append(f"{folder.name[:100]!r} in the exchange has no name of the kind STUDENT+{name}+TIME+RANDOM.")
            continue
        try:
            owner = folder.lstat().st_uid
        except OSError:
            continue  # taken away just now
        # The student owns the folder and may change it at any moment, for a link, too: what is read has to belong to
        # whoever made it, so that nobody hands in the file of another.
        secret = read_small(folder / SECRET, 200, owner=owner) or b""
        if exchange.check_owner and not is_account(student, owner):
            notes.append(
                f"{folder.name}: says that it is by {student}, but belongs to another account (number {owner}); "
                "refused. Where accounts are not the students' names, set c.ExchangeCollect.check_owner = False in "
                f"{CONFIG}."
            )
        elif is_folder(folder):
            yield Candidate(
                student=student,
                moment=moment,
                place=folder.name,
                read=partial(read_small, folder / notebook, FILE_BYTES, owner=owner),
                secret=secret if re.fullmatch(rb"[\w-]{16,}", secret) else None,
            )
        else:
            notes.append(f"{folder.name}: {NOT_READ}")


def from_export(source: Path, name: str, notebook: str, notes: list[str]) -> Iterator[Candidate]:
    """The notebooks in a folder or .zip whose names say whose they are. Raises CannotStart if it is neither."""
    if source.is_dir():
        entries = [
            (PurePosixPath(path.relative_to(source)), path.lstat().st_mtime, partial(read_small, path, FILE_BYTES))
            for path in source.rglob("*")
            if not path.is_dir()
        ]
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            packed = [entry for entry in archive.infolist() if not entry.is_dir()]
        entries = [  # a .zip holds local time, and -1 lets the system say whether that was summer time
            (PurePosixPath(entry.filename), time.mktime((*entry.date_time, 0, 0, -1)), partial(_unpack, source, entry))
            for entry in packed
        ]
    else:
        problem = "is neither a folder nor a .zip" if source.exists() else "does not exist"
        raise CannotStart(f"{source} {problem}. Name what you downloaded from Canvas or Moodle.")
    for path, seconds, read in entries:
        if any(part.startswith((".", "__MACOSX")) for part in path.parts) or path.name in (TIMESTAMP, SECRET):
            continue
        student = recognise(path, name) if path.suffix == ".ipynb" else None
        if student is None:
            notes.append(
                f"{path}: is no notebook, or its name does not say whose it is; left out. Rename it to "
                f"NAME_NUMBER_{notebook} and collect again."
            )
            continue
        as_released = Path(notebook).stem in path.stem  # platforms and browsers add to it
        moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
        yield Candidate(student=student, moment=moment, place=str(path), read=read, as_released=as_released)


def recognise(path: PurePosixPath, assignment: str) -> str | None:
    """Whose notebook this is by its name; None if that does not say."""
    text = "/".join(path.with_suffix("").parts[-3:])
    for pattern in (  # the platform's word on whose it is comes before the student's own
        r"(?P<name>[^/]+)_(?P<number>\d+)_assignsubmission_file_.*",
        r"(?P<name>[^/_]+)(_LATE)?_(?P<number>\d+)_\d+_[^/]+",
        rf"(?P<name>[^/]+)_{re.escape(assignment)}_\d{{8}}T\d{{6,12}}Z_[^/]+",
        r"(?P<name>[^/]+?)_(?P<number>\d+)_[^/]+",
        rf"(?P<name>[^/]+)(/{re.escape(assignment)})?/[^/]+",
    ):
        if found := re.fullmatch(rf"(.*?/)??{pattern}", text):
            parts = {"number": None} | found.groupdict()
            name = plain(parts["name"])
            student = f"{name}_{parts['number']}" if parts["number"] else name
            return student if name and is_plain_name(student) else None
    return None


def _store(folders: Folders, name: str, notebook: str, candidate: Candidate, content: bytes, notes: list[str]) -> str:
    """Writes one submission, unless it is there already or an equally new one is; says which."""
    place = folders.submitted(candidate.student, name)
    before = submitted_at(folders, candidate.student, name)
    there = read_small(place / notebook, FILE_BYTES)
    if there is not None and before is not None:
        if there == content:
            return "here already"
        if before >= candidate.moment:
            notes.append(
                f"{candidate.place}: differs from what was collected of {candidate.student}, but is no newer; left "
                f"out. To take it, delete {place} and collect again."
            )
            return "here already"
        (place / TIMESTAMP).unlink()  # interrupted from here on, the next run finds no time and writes again
    write_whole(place / notebook, content)
    (place / SECRET).unlink(missing_ok=True)  # of an earlier submission
    if candidate.secret is not None:
        write_whole(place / SECRET, candidate.secret)
    write_whole(place / TIMESTAMP, candidate.moment.strftime(TIME_FORMAT) + "\n")
    return "new" if there is None else "newer than before"


def _unpack(source: Path, entry: zipfile.ZipInfo) -> bytes | None:
    """The bytes of one file of a .zip; None if it is a link, damaged, or unpacks to too much, whatever it says."""
    try:
        with zipfile.ZipFile(source) as archive, archive.open(entry) as file:
            content = file.read(FILE_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError):
        return None
    ordinary = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)
    return content if ordinary and len(content) <= FILE_BYTES else None
