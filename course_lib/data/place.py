"""Where the course lies on this machine."""

import os
from pathlib import Path

from platformdirs import user_data_path

import course_lib


class CannotStart(Exception):
    """A sentence for the terminal that says what is wrong and what to do; the `course` command shows it alone."""


def course_folder() -> Path:
    """The folder that holds notebooks/, tests/ and pyproject.toml.

    Raises CannotStart where the package was installed without its notebooks.
    """
    folder = Path(course_lib.__file__).resolve().parents[1]
    if not (folder / "notebooks").is_dir():
        raise CannotStart(
            f"There are no notebooks in {folder}: this course_lib was installed without them. Fetch the whole course "
            "and start it there with: python3 course.py lab"
        )
    return folder


def course_home() -> Path:
    """The folder of the course's own files: `COURSE_HOME`, or the user's data folder."""
    home = os.environ.get("COURSE_HOME")
    return Path(home).expanduser() if home else user_data_path("course_lib", appauthor=False)
