"""Where the course lies on this machine, and which notebook a person means by "5" or "attention"."""

import re
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


def lessons() -> list[Path]:
    """The notebooks of all lessons, in the order of the course."""
    return sorted((course_folder() / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def find_lesson(name: str) -> Path:
    """The notebook meant by a number ("5", "05"), a part of its name ("attention") or a path.

    Raises CannotStart if no lesson or more than one fits.
    """
    known = lessons()
    if name.endswith(".ipynb"):
        found = [path for path in (Path(name), course_folder() / "notebooks" / name) if path.is_file()][:1]
    elif name.isdecimal():
        found = [path for path in known if int(path.name[:2]) == int(name)]
    else:
        words = re.sub(r"[\W_]+", "_", name.lower()).strip("_")
        found = [path for path in known if words and words in path.stem]
        found = [path for path in found if words in (path.stem, path.stem[3:])] or found
    if len(found) == 1:
        return found[0]
    fits = ", ".join(path.stem for path in found or known) or "none yet"
    problem = f"More than one lesson fits {name!r}" if found else f"There is no lesson {name!r}"
    raise CannotStart(f"{problem}. Name one by its number or its name: {fits}.")
