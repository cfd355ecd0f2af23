"""The files of a course that was installed from a wheel: lessons, checkpoints and data, unpacked where they are used.

`python -m course_lib.authoring.archive` makes the archive. It is an asset of the release whose address pyproject.toml
has under `[project.urls]`; COURSE_FILES names another place, a file or an http address.
"""

import json
import os
import tempfile
import zipfile
from importlib.metadata import metadata
from pathlib import Path, PurePosixPath

import course_lib
from course_lib.data.fetching import Failed, download
from course_lib.data.place import MARK, UNPACKED, CannotStart, beside_package, course_folder, course_home
from course_lib.data.sets import DataFile

VARIABLE = "COURSE_FILES"
PLACEHOLDER = "https://example.org/"  # of a course that nobody has published yet


def archive_name() -> str:
    """The name of the archive that belongs to this version of the library."""
    return f"course-files-{course_lib.__version__}.zip"


def get_files(source: Path | None = None) -> Path:
    """The folder of the course; unpacked into the folder `course` here, from `source` or the release, if need be.

    Nothing that is there is overwritten. Raises CannotStart, saying what to do, if the files are not to be had, or if
    there is a `source` and the files are here already.
    """
    try:
        folder = course_folder()
    except CannotStart:
        archive = Path(source).expanduser() if source else find_archive()
        folder = unpack(archive, Path.cwd() / UNPACKED)
    else:
        if source:
            raise CannotStart(
                f"The files of the course are here already, in {folder}, and --from was not needed. To unpack another "
                "archive, start in another folder."
            )
    say_other_version(folder)
    return folder


def say_other_version(folder: Path) -> None:
    """Prints a note if unpacked files are not of the library's version."""
    if folder == beside_package():
        return
    version = json.loads((folder / MARK).read_text(encoding="utf-8"))["version"]
    if version != course_lib.__version__:
        print(
            f"The files in {folder} are of version {version}, and course_lib is of version {course_lib.__version__}. "
            "Most lessons will run; if one does not, start in a new folder, and copy what you wrote there."
        )


def find_archive() -> Path:
    """The archive that COURSE_FILES names, or that of the release, fetched into the course's home.

    Raises CannotStart, saying what to do, if it is not to be had.
    """
    chosen = os.environ.get(VARIABLE) or f"{releases()}/{archive_name()}"
    if not chosen.startswith(("http://", "https://")):
        return Path(chosen).expanduser()
    other = (
        f"Copy {archive_name()} here from somebody who has it and start with: course lab --from {archive_name()}   (or "
        f"name its file or address in {VARIABLE})."
    )
    if chosen.startswith(PLACEHOLDER):
        raise CannotStart(f"The files of the course are not here, and this wheel names no release. {other}")
    kept = course_home() / "files" / archive_name()
    if zipfile.is_zipfile(kept):
        return kept
    try:
        download(chosen, kept, DataFile(path=kept.name, size=None, checksum=None, addresses=(chosen,)), say=print)
    except Failed as problem:
        raise CannotStart(f"{chosen} {problem}. {other}") from None
    return kept


def releases() -> str:
    """The address under which releases have their files, as the package's own metadata name it."""
    lines = metadata("course-lib").get_all("Project-URL") or []
    named = dict(line.split(", ", 1) for line in lines)
    return named.get("Releases", PLACEHOLDER).rstrip("/")


def unpack(archive: Path, folder: Path) -> Path:
    """Unpacks an archive into a new folder, in one step: half of it never stands there.

    Raises CannotStart if the folder is there, or the archive is none of the course's.
    """
    if folder.exists():
        raise CannotStart(f"{folder} is there already, and is not overwritten. Rename it, or start in another folder.")
    try:
        with zipfile.ZipFile(archive) as opened, tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            names = [PurePosixPath(name) for name in opened.namelist()]
            if MARK not in opened.namelist() or any(name.is_absolute() or ".." in name.parts for name in names):
                raise CannotStart(f"{archive} does not hold the files of the course. Take {archive_name()}.")
            print(f"Unpacking the course into {folder} ...", flush=True)
            opened.extractall(Path(scratch) / "new")
            (Path(scratch) / "new").rename(folder)
    except FileNotFoundError:
        raise CannotStart(f"There is no file {archive}. Take {archive_name()}.") from None
    except zipfile.BadZipFile:
        raise CannotStart(f"{archive} is damaged, or no zip file. Delete it and get {archive_name()} again.") from None
    except OSError as problem:
        reason = problem.strerror or problem
        raise CannotStart(f"{folder} could not be written: {reason}. Make room, or start in another folder.") from None
    return folder.resolve()


if __name__ == "__main__":  # a hub unpacks before it opens JupyterLab itself, see hub/values.yaml
    try:
        get_files()
    except CannotStart as problem:
        raise SystemExit(str(problem)) from None
