"""Where the course lies on this machine."""

from pathlib import Path

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
