"""nbgrader's exchange: a folder that instructor and students share, laid out so that nbgrader's own tools can go on.

    ROOT/COURSE/outbound/05/attention.ipynb                                   what students fetch
    ROOT/COURSE/inbound/STUDENT+05+TIME+RANDOM/attention.ipynb, timestamp.txt   what they hand in
    ROOT/COURSE/feedback/HASH.html                                            what nbgrader release_feedback returns

HASH comes from submission_secret.txt beside the notebook, which its student and the instructor can read. Nothing here
needs nbgrader: students have none. Unlike nbgrader's, it takes a submission only from the account that it names.
"""

import hashlib
import os
import re
import secrets
import shutil
import sys
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from course_lib.data.place import CannotStart
from course_lib.grading.folders import CONFIG, FILE_BYTES, TIMESTAMP, read_config, read_small, storable

VARIABLE = "COURSE_EXCHANGE"
TIME_FORMAT = "%Y-%m-%d %H:%M:%S.%f UTC"  # as nbgrader writes it
SECRET = "submission_secret.txt"


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


def find_exchange(course_directory: Path | None) -> Exchange | None:
    """The exchange in COURSE_EXCHANGE, else the one that an nbgrader_config.py names; None where neither does.

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


def is_plain_name(text: str) -> bool:
    """Whether this can name a course or a student in a path: letters, digits and . _ - @, no leading dot."""
    return storable(text) and re.fullmatch(r"\w[\w.@-]*", text) is not None


def plain(name: str) -> str:
    """A person's name as it can stand in a path: letters of any alphabet stay, blanks become hyphens."""
    return re.sub(r"[^\w.@-]+", "-", unicodedata.normalize("NFC", name)).strip("-.")


def hand_in(
    exchange: Exchange, assignment: str, student: str, moment: datetime, file: str, content: bytes
) -> tuple[Path, str]:
    """Puts a submission into inbound/, whole or not at all, beside the earlier ones; returns its folder and secret.

    Where inbound/ hands on its group, the instructor's, only that and the student can read it. Raises CannotStart where
    handing in is not possible, or the account has another name.
    """
    if exchange.check_owner and not is_account(student, os.geteuid()):
        raise CannotStart(
            f"Nothing was submitted: the exchange takes submissions under the name of your account, and not as "
            f"{student!r}. Type `whoami`, and name it with --student."
        )
    time, secret = moment.astimezone(UTC).strftime(TIME_FORMAT), secrets.token_hex(32)
    place = exchange.inbound / f"{student}+{assignment}+{time}+{secrets.token_urlsafe(9)}"
    part = exchange.inbound / f".{secrets.token_hex(12)}.part"
    try:
        part.mkdir(mode=0o700)
        ours = part.stat().st_gid == exchange.inbound.stat().st_gid != os.getegid()
        for name, text in {file: content, TIMESTAMP: time.encode(), SECRET: secret.encode()}.items():
            (part / name).write_bytes(text)
            (part / name).chmod(0o644)
        part.chmod(0o750 if ours else 0o755)
        os.rename(part, place)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise CannotStart(
            f"Nothing was submitted: the exchange {exchange.inbound} does not take it ({error.strerror}). Try again, "
            "and if it says so again, tell your instructor this sentence."
        ) from error
    return place, secret


def is_account(name: str, number: int) -> bool:
    """Whether the account of this machine with this number has this name."""
    import pwd  # which Windows has not

    try:
        return pwd.getpwuid(number).pw_name == name
    except KeyError:
        return False


def feedback_page(exchange: Exchange, secret: str, notebook: str) -> bytes | None:
    """The page that nbgrader's release_feedback wrote for a submission; None where there is none."""
    name = hashlib.md5(secret.encode() + notebook.encode(), usedforsecurity=False).hexdigest()
    return read_small(exchange.root / exchange.course / "feedback" / f"{name}.html", FILE_BYTES)
