"""Which notebook a person means by "5" or "attention"."""

import re
from pathlib import Path

from course_lib.data.place import CannotStart, course_folder

__all__ = ["CannotStart", "course_folder", "find_lesson", "lessons"]


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
