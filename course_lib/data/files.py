"""Where the course's own data lie: the repository's folder data/, next to the package, or what COURSE_DATA names."""

import os
from pathlib import Path

from course_lib.data.place import beside_package, unpacked_folder

VARIABLE = "COURSE_DATA"


def data_folder() -> Path:
    """The folder that holds the course's data: the one in COURSE_DATA, else data/ beside the package or unpacked.

    It need not exist: training writes its checkpoints below it.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    own = beside_package()
    return ((not (own / "notebooks").is_dir() and unpacked_folder()) or own) / "data"


def data_path(*parts: str) -> Path:
    """The path of an existing file or folder of the course's data: `data_path("prose", "README.md")`.

    Raises ValueError if the path leads out of the data folder, and FileNotFoundError, saying what to do, if it is
    missing.
    """
    folder = data_folder()
    path = folder.joinpath(*parts)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{'/'.join(parts)!r} leads out of the course's data folder {folder}: name a file inside it.")
    if not path.exists():
        raise FileNotFoundError(
            f"The course's data lack {'/'.join(parts) or 'their folder'!r} (looked in {folder}). They are part of the "
            f"repository: fetch them with `git restore data`, or set {VARIABLE} to the folder that holds them."
        )
    return path
