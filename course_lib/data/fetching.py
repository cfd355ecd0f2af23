"""Real data sets, fetched once and checked: resumed where a connection broke, kept in the course's home."""

import hashlib
import os
import shutil
import ssl
import time
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from course_lib.data.place import CannotStart, course_home
from course_lib.data.sets import SETS, DataFile, DataSet

MIRROR = "COURSE_DATA_MIRROR"  # a folder or an http address, asked before all others
SILENCE = 30  # seconds until a server answers, and between two of its bytes
PATIENCE, SLOWEST = 60, 1000  # after so many seconds a server must have sent so many bytes a second
CHUNK = 2**16  # bytes
TOLD = 10  # seconds between two lines about a long download


class Failed(Exception):
    """One address did not give the file; the message says why."""


def sets_folder() -> Path:
    """Where fetched sets are kept: the folder `data` in the course's home."""
    return course_home() / "data"


def find_set(name: str) -> DataSet:
    """The set of this name. Raises CannotStart, with all names, for another."""
    if name not in SETS:
        raise CannotStart(f"There is no data set {name!r}. There are: {', '.join(SETS)}.")
    return SETS[name]


def fetch(name: str, *, say: Callable[[str], None] = print) -> dict[str, Path]:
    """The files of a set by their names without folders, fetched if they are not here yet; `say` takes lines of text.

    A file that is here is looked at again: a damaged one is fetched anew. A download that broke off waits beside it
    as NAME.part and is resumed by the next call.
    Raises CannotStart, saying what to do, for an unknown name, and if a file is not to be had or not what it should be.
    """
    return {Path(file.path).name: fetch_file(name, file, say=say) for file in find_set(name).files}


def is_here(name: str) -> bool:
    """Whether all files of a set are here, and whole."""
    return all(is_whole(sets_folder() / file.path, file) for file in find_set(name).files)


def fetch_file(name: str, file: DataFile, *, say: Callable[[str], None]) -> Path:
    """One file of a set. Raises CannotStart as `fetch`."""
    kept, problems = sets_folder() / file.path, {}
    if is_whole(kept, file):
        return kept
    for address in addresses(file):
        host = urlsplit(address).hostname or address
        try:
            download(address, kept, file, say=say)
            return kept
        except Failed as problem:
            problems[host] = str(problem)
        except OSError as problem:
            raise CannotStart(
                f"{kept} cannot be written: {problem.strerror or problem}. Make room there, or name another folder in "
                "COURSE_HOME."
            ) from problem
    reasons = "; ".join(f"{host} {why}" for host, why in problems.items()) or f"it is in no folder named by {MIRROR}"
    raise CannotStart(
        f"The data set {name} needs {kept.name}, which is not here and could not be fetched: {reasons}. Connect to the "
        f"network and run `course data fetch {name}`, copy the folder {sets_folder()} from a machine that has it, or "
        f"name a mirror in {MIRROR}."
    )


def addresses(file: DataFile) -> list[str]:
    """Where to ask for a file, in order: the mirror (if it is a folder, only for what it has), then its own."""
    mirror, own = os.environ.get(MIRROR), list(file.addresses)
    if not mirror:
        return own
    if mirror.startswith(("http://", "https://")):
        return [f"{mirror.rstrip('/')}/{file.path}", *own]
    place = Path(mirror).expanduser() / file.path
    return [str(place), *own] if place.is_file() else own


def is_whole(path: Path, file: DataFile) -> bool:
    """Whether a file is there and what it should be, as far as that is known."""
    if not path.is_file() or file.size not in (None, path.stat().st_size):
        return False
    return file.checksum is None or file.checksum == checksum(path, file.checksum.partition(":")[0])


def checksum(path: Path, algorithm: str = "sha256") -> str:
    """Such as "sha256:..."."""
    with path.open("rb") as opened:
        return f"{algorithm}:{hashlib.file_digest(opened, algorithm).hexdigest()}"


def download(address: str, kept: Path, file: DataFile, *, say: Callable[[str], None]) -> None:
    """Puts one file in its place, by pooch, once it is all there and its checksum is right.

    Raises Failed otherwise: then nothing is in its place.
    """
    pooch = pooch_package()
    size = "" if file.size is None else f" ({megabytes(file.size)})"
    say(f"Fetching {kept.name}{size} from {urlsplit(address).hostname or Path(address).parent} ...")
    kept.parent.mkdir(parents=True, exist_ok=True)
    if kept.exists():
        kept.unlink()  # damaged, and pooch takes a file without a known checksum as it is
    downloader = Downloader(kept.with_name(kept.name + ".part"), file.size, say)
    try:
        pooch.retrieve(address, known_hash=file.checksum, fname=kept.name, path=kept.parent, downloader=downloader)
    except ValueError as problem:
        raise Failed("gave another file than the course knows (its checksum differs)") from problem
    if file.checksum is None:
        say(f"  {checksum(kept)}: the course knows no checksum to compare it with.")


class Downloader:
    """What pooch calls to get a file: it goes on with what an earlier start has left in `part`."""

    def __init__(self, part: Path, size: int | None, say: Callable[[str], None]):
        self.part, self.size, self.say = part, size, say

    def __call__(self, address: str, output_file: Path | str, pooch: Any) -> None:
        expected = self.size
        if urlsplit(address).scheme in ("http", "https"):
            expected = self.from_server(address)
        else:
            copy_file(address, self.part)
        have = self.part.stat().st_size
        if self.size is not None and have > self.size:
            self.part.unlink()
            raise Failed(f"gave another file than the course knows (more than its {self.size:,} bytes)")
        if expected is not None and have < expected:
            raise Failed(f"broke off after {have:,} of {expected:,} bytes: run it again to go on from there")
        os.replace(self.part, output_file)

    def from_server(self, address: str) -> int | None:
        """Appends to the part what the server has beyond it; returns how long the whole should be, if that is known.

        Raises Failed, in words, for all that goes wrong.
        """
        have = self.part.stat().st_size if self.part.exists() else 0
        if have and have == self.size:
            return self.size
        request = Request(address, headers={"Range": f"bytes={have}-"} if have else {})
        try:
            with urlopen(request, timeout=SILENCE, context=certificates()) as answer:
                have = have if answer.status == 206 else 0  # 200: the server sends it all once more
                left = answer.headers.get("Content-Length")
                with self.part.open("ab" if have else "wb") as opened:
                    self.copy(answer, opened, have)
        except HTTPError as problem:
            if problem.code == 416:  # the part is as long as the file, or longer
                self.part.unlink()
            raise Failed(f"answered {problem.code} {problem.reason}") from problem
        except (URLError, HTTPException, TimeoutError, ConnectionError) as problem:
            if isinstance(getattr(problem, "reason", problem), TimeoutError):
                raise Failed(f"did not answer within {SILENCE} seconds") from problem
            if isinstance(problem, URLError):
                raise Failed("cannot be reached") from problem
            raise Failed("broke the connection off: run it again to go on from there") from problem
        return self.size if left is None else have + int(left)

    def copy(self, answer: HTTPResponse, opened: BinaryIO, have: int) -> None:
        """Writes what comes, tells how far it is, and gives up a server that sends too much or too slowly."""
        began = told = time.monotonic()
        start = have
        while chunk := answer.read1(CHUNK):
            opened.write(chunk)
            have, now = have + len(chunk), time.monotonic()
            if self.size is not None and have > self.size:
                return
            if now - began > PATIENCE and (have - start) / (now - began) < SLOWEST:
                raise Failed(f"sends less than {SLOWEST:,} bytes a second: run it again to go on from there")
            if now - told > TOLD:
                told = now
                self.say(f"  {megabytes(have)}" + ("" if self.size is None else f" of {megabytes(self.size)}"))


def copy_file(source: str, target: Path) -> None:
    """A file of a mirror on this machine. Raises Failed if that cannot be done."""
    try:
        shutil.copyfile(source, target)
    except OSError as problem:
        target.unlink(missing_ok=True)
        raise Failed(f"could not be copied: {problem.strerror}") from problem


def certificates() -> ssl.SSLContext:
    """Those of the system and of the package certifi, which pooch brings along: some systems have none of their own."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def pooch_package() -> ModuleType:
    """The package pooch. Raises CannotStart, with the command that installs it, without it."""
    try:
        import pooch
    except ImportError:
        raise CannotStart(
            "Downloads need the package pooch: python -m pip install 'pooch>=1.8,<2' (or run `python3 course.py data "
            "fetch NAME`, which installs it)."
        ) from None
    pooch.get_logger().setLevel("WARNING")  # we say ourselves what is fetched
    return pooch


def megabytes(size: int) -> str:
    """A size in millions of bytes, as people read it."""
    return f"{size / 1e6:.1f} MB"
