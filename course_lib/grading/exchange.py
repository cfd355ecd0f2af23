"""nbgrader's exchange: a folder that instructor and students share, laid out so that nbgrader's own tools can go on.

    ROOT/COURSE/outbound/05/attention.ipynb                                   what students fetch
    ROOT/COURSE/inbound/STUDENT+05+TIME+RANDOM/attention.ipynb, timestamp.txt   what they hand in
    ROOT/COURSE/feedback/HASH.html                                            what nbgrader release_feedback returns

HASH comes from submission_secret.txt beside the notebook, which its student and the instructor can read.
Nothing here needs nbgrader: students have none.
"""

import os
import re
import secrets
import shutil
import stat
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from course_lib.data.place import CannotStart
from course_lib.grading.folders import NAME_LENGTH, TIMESTAMP, storable

VARIABLE = "COURSE_EXCHANGE"
CONFIG = "nbgrader_config.py"
TIME_FORMAT = "%Y-%m-%d %H:%M:%S.%f UTC"  # as nbgrader writes it

SECRET = "submission_secret.txt"
SECRET_BYTES = 200
EVERYONE_FETCHES = 0o755
EVERYONE_ADDS = 0o3733  # add, but not list nor remove: nobody sees who else has submitted; what is added gets our group
READABLE = 0o644
OWNER_AND_GROUP = 0o750


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """The exchange of one course."""

    root: Path
    course: str
    check_owner: bool = True  # a submission must belong to the account that its name says

    @property
    def inbound(self) -> Path:
        return self.root / self.course / "inbound"

    def outbound(self, assignment: str) -> Path:
        return self.root / self.course / "outbound" / assignment


@dataclass(frozen=True, kw_only=True)
class Handed:
    """The name of a folder in inbound/, taken apart."""

    student: str
    assignment: str
    moment: datetime
    folder: str


def find_exchange(course_directory: Path | None) -> Exchange | None:
    """The exchange in COURSE_EXCHANGE, else the one that an nbgrader_config.py names; None where neither does.

    Settings come from Jupyter's configuration folders and, with more weight, from the course directory.
    Raises CannotStart if a configuration cannot be read, or the exchange has no name for the course.
    """
    config = read_config(course_directory)
    root = os.environ.get(VARIABLE) or str(config.Exchange.get("root", ""))
    if not root:
        return None
    if sys.platform == "win32":
        raise CannotStart(f"An exchange ({root}) works on Linux and macOS only. Without one, hand in the file itself.")
    course = str(config.CourseDirectory.get("course_id", "")).strip()
    if not course and len(found := [path.parent.name for path in Path(root).expanduser().glob("*/outbound")]) == 1:
        course = found[0]  # a student has no course directory, and here is only one course
    if not is_plain_name(course):
        raise CannotStart(
            f"The exchange {root} needs the course's name, letters and digits: set c.CourseDirectory.course_id in "
            f"{CONFIG} ({course!r} is there)."
        )
    check = config.ExchangeCollect.get("check_owner", config.Exchange.get("check_owner", True))
    return Exchange(root=Path(root).expanduser().absolute(), course=course, check_owner=bool(check))


def read_config(course_directory: Path | None):
    """nbgrader's settings as a traitlets Config. Raises CannotStart, naming the file, if one cannot be read."""
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


def is_plain_name(text: str) -> bool:
    """Whether this can name a course or a student in a path: letters, digits and . _ - @, no leading dot."""
    return storable(text) and re.fullmatch(r"\w[\w.@-]*", text) is not None


def plain(name: str) -> str:
    """A person's name as it can stand in a path: letters of any alphabet stay, blanks become hyphens."""
    return re.sub(r"[^\w.@-]+", "-", unicodedata.normalize("NFC", name)).strip("-.")


def publish(exchange: Exchange, assignment: str, files: dict[str, bytes]) -> Path:
    """Put a release where students fetch it; each file is replaced whole, files of an earlier release go.

    Raises CannotStart where that is not allowed, or where students could put something else in its place.
    """
    place = exchange.outbound(assignment)
    course = exchange.root / exchange.course
    try:
        _make_folder(exchange.root, EVERYONE_FETCHES)
        _make_folder(course, EVERYONE_FETCHES)
        _make_folder(place.parent, EVERYONE_FETCHES)
        _make_folder(exchange.inbound, EVERYONE_ADDS)
        _make_folder(place, EVERYONE_FETCHES)
        for folder in (exchange.root, course, place.parent, place):
            _refuse_open(folder)
        for folder in (course, place.parent, place, exchange.inbound):
            _refuse_foreign(folder)
        if (mode := stat.S_IMODE(exchange.inbound.stat().st_mode)) & EVERYONE_ADDS != EVERYONE_ADDS:
            exchange.inbound.chmod(mode | EVERYONE_ADDS)  # made by nbgrader
        for name, content in files.items():
            path = place / name
            _make_folder(path.parent, EVERYONE_FETCHES)
            part = path.with_name(f".{path.name}.part")
            part.write_bytes(content)
            part.chmod(READABLE)
            os.replace(part, path)
        for path in [path for path in place.rglob("*") if path.is_file()]:
            if path.relative_to(place).as_posix() not in files:
                path.unlink()
    except OSError as error:
        raise CannotStart(
            f"The release could not be put into the exchange: {error.strerror} ({error.filename}). The exchange must "
            f"belong to you, and {exchange.root} must exist or be yours to make; then release again."
        ) from error
    return place


def hand_in(exchange: Exchange, assignment: str, student: str, moment: datetime, files: dict[str, bytes]) -> Path:
    """Put a submission into inbound/, whole or not at all, beside the earlier ones; returns its folder.

    Where inbound/ hands on its group, the instructor's, only that and the student can read it. Raises CannotStart where
    handing in is not possible.
    """
    time = moment.astimezone(UTC).strftime(TIME_FORMAT)
    place = exchange.inbound / f"{student}+{assignment}+{time}+{secrets.token_urlsafe(9)}"
    part = exchange.inbound / f".{secrets.token_hex(12)}.part"
    try:
        part.mkdir(mode=0o700)
        inbound = exchange.inbound.stat()
        ours = bool(inbound.st_mode & stat.S_ISGID) and part.stat().st_gid == inbound.st_gid
        beside = {TIMESTAMP: time.encode("ascii"), SECRET: secrets.token_hex(32).encode("ascii")}
        for name, content in (files | beside).items():
            with (part / name).open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            (part / name).chmod(READABLE)
        part.chmod(OWNER_AND_GROUP if ours else EVERYONE_FETCHES)
        os.rename(part, place)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise CannotStart(
            f"Nothing was submitted: the exchange {exchange.inbound} does not take it ({error.strerror}). Try again, "
            "and if it says so again, tell your instructor this sentence."
        ) from error
    return place


def handed_in(exchange: Exchange, assignment: str) -> Iterator[Handed | str]:
    """What lies in inbound/ for an assignment: names taken apart, or a sentence on why a name is refused.

    Raises CannotStart if the folder cannot be read.
    """
    try:
        names = sorted(os.listdir(exchange.inbound))
    except OSError as error:
        raise CannotStart(
            f"The exchange's folder {exchange.inbound} cannot be read: {error.strerror}. It is made by: "
            f"course assign release {assignment}"
        ) from error
    for name in names:
        parts = name.rsplit("+", 3)
        if name.startswith(".") or (len(parts) == 4 and parts[1] != assignment):
            continue  # on its way, or of another assignment
        handed = parse_handed(name) if len(name) < 3 * NAME_LENGTH else None
        if handed is not None and handed.assignment == assignment:
            yield handed
        elif handed is None:
            yield f"{name[:100]!r} in the exchange has no name of the kind STUDENT+{assignment}+TIME+RANDOM."


def parse_handed(name: str) -> Handed | None:
    """Take the name of a submission's folder apart, as nbgrader writes it with or without the random part."""
    for parts in (name.rsplit("+", 3), name.rsplit("+", 2)):
        if len(parts) >= 3 and is_plain_name(parts[0]) and is_plain_name(parts[1]):
            moment = parse_time(parts[2])
            if moment is not None:
                return Handed(student=parts[0], assignment=parts[1], moment=moment, folder=name)
    return None


def parse_time(text: str) -> datetime | None:
    """The moment that nbgrader wrote, in UTC; None if the text is none."""
    *moment, zone = text.split() if text.count(" ") == 2 else (text, "UTC")
    try:
        if re.fullmatch(r"[+-]\d{4}", zone):
            return datetime.fromisoformat("T".join(moment) + zone).astimezone(UTC)
        parsed = datetime.fromisoformat("T".join(moment))
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=UTC if zone == "UTC" else ZoneInfo(zone))
        return parsed.astimezone(UTC)
    except (ValueError, OverflowError, ZoneInfoNotFoundError):
        return None


def _refuse_open(path: Path) -> None:
    """Raises CannotStart for a folder in which anybody can put one thing in place of another."""
    mode = path.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise CannotStart(
            f"Every account of this machine can rename and replace what lies in {path}, a whole course, too. Its owner "
            f"types: chmod o-w {path}   (or, where students use nbgrader's own commands: chmod +t {path}). Then "
            "release again."
        )


def _refuse_foreign(path: Path) -> None:
    """Raises CannotStart for a folder of another account, which could replace what lies in it."""
    owner = path.stat().st_uid
    if owner not in (0, os.geteuid()):
        raise CannotStart(
            f"{path} belongs to another account ({owner}), which could replace what lies in it. The exchange must "
            "belong to you: rename that folder or choose another, then release again."
        )


def _make_folder(path: Path, mode: int) -> None:
    if not path.is_dir():
        path.mkdir(parents=True)
        path.chmod(mode)  # mkdir's own mode is cut by the umask
