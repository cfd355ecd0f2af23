"""`course data`: which real data sets there are, and how to get one."""

import shutil
from pathlib import Path

from course_lib.data.fetching import fetch, find_set, is_here, megabytes, sets_folder
from course_lib.data.place import CannotStart
from course_lib.data.sets import SETS


def list_sets() -> int:
    """Prints the sets by name, and which of them are here."""
    print("course data fetch NAME    fetches one of these, once, and checks it:\n")
    for name, known in SETS.items():
        size = "size not known" if known.size is None else megabytes(known.size)
        print(f"  {name:<20}{size:>15}   {'here' if is_here(name) else '    '}   {known.title}")
        print(f"{'':<48}{known.source}; licence: {known.licence}{'. ' * bool(known.note)}{known.note}")
    print(f"\nThey are kept in {sets_folder()}.")
    return 0


def fetch_set(name: str, *, to: Path | None = None) -> int:
    """Fetches a set, and copies it to a folder if one is named. Raises CannotStart, with what to do, if it cannot."""
    known = find_set(name)
    files = fetch(name)
    folder = sets_folder() if to is None else to
    try:
        for path in files.values() if to is not None else ():
            to.mkdir(parents=True, exist_ok=True)
            part = to / f".{path.name}.part"
            shutil.copyfile(path, part)
            part.replace(to / path.name)
    except OSError as problem:
        raise CannotStart(f"{to} cannot be written: {problem.strerror}.") from problem
    for path in files.values():
        print(folder / (path.relative_to(folder) if to is None else path.name))
    print(f"\n{known.title}. Licence: {known.licence}. See {known.source}")
    return 0
