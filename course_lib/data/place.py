"""Where the course lies on this machine."""

import os
from pathlib import Path

from platformdirs import user_data_path

import course_lib

UNPACKED = "course"  # the folder into which `course lab` unpacks the course's files
MARK = "course-files.json"  # stands in it, and says of which version they are
VARIABLE = "COURSE_FOLDER"


class CannotStart(Exception):
    """A sentence for the terminal that says what is wrong and what to do; the `course` command shows it alone."""


def course_folder() -> Path:
    """The folder that holds notebooks/ and data/: the one around the package, else the unpacked files of the course.

    Raises CannotStart where the package was installed from a wheel and its files are not unpacked yet.
    """
    folder = beside_package()
    if (folder / "notebooks").is_dir():
        return folder
    if unpacked := unpacked_folder():
        return unpacked
    raise CannotStart(
        f"There are no notebooks in {folder}: this course_lib was installed without them, and neither this folder nor "
        "one above it holds the files of the course. Get them here, and start, with: course lab"
    )


def beside_package() -> Path:
    """The folder in which the package lies; in a clone it is the course's own."""
    return Path(course_lib.__file__).resolve().parents[1]


def unpacked_folder() -> Path | None:
    """The unpacked files of the course: named by COURSE_FOLDER, or in, beside or above the current folder."""
    here = Path.cwd()
    named = os.environ.get(VARIABLE)
    folders = [Path(named).expanduser()] if named else [here / UNPACKED, here, *here.parents]
    return next((folder.resolve() for folder in folders if (folder / MARK).is_file()), None)


def course_home() -> Path:
    """The folder of the course's own files: `COURSE_HOME`, or the user's data folder."""
    home = os.environ.get("COURSE_HOME")
    return Path(home).expanduser() if home else user_data_path("course_lib", appauthor=False)
