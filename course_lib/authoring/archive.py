"""The files of the course beside its wheel: `python -m course_lib.authoring.archive --to dist`.

The archive holds the lessons, data and checkpoints, and the assignments as students get them: no solution, no hidden
check. Equal files make an equal archive, byte by byte.
"""

import argparse
import json
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from course_lib.data.place import MARK, course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.student import find_release

OTHERS = ("LICENSE", "LICENSE-TEXT.md", "CHANGELOG.md", "constraints.txt")
MOMENT = (2000, 1, 1, 0, 0, 0)  # of every file: when one was checked out is no part of it


def contents(course: Path) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each file of the archive; folders and files whose names begin with a dot stay out."""
    project = tomllib.loads((course / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    yield MARK, (json.dumps({"version": project["version"]}) + "\n").encode()
    lessons = sorted((course / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    data = sorted(path for path in (course / "data").rglob("*") if path.is_file())
    for path in [*(course / name for name in OTHERS), *lessons, *data]:
        name = path.relative_to(course).as_posix()
        if not any(part.startswith((".", "__pycache__")) for part in name.split("/")):
            yield name, path.read_bytes()
    assignments = Folders(root=course / "notebooks" / "assignments")
    for name in assignments.assignments():
        release = find_release(name, assignments.root, exchange=False)
        yield f"notebooks/assignments/release/{name}/{release.notebook}.ipynb", release.content


def write_archive(course: Path, to: Path) -> Path:
    """Writes course-files-VERSION.zip into a folder; returns its path."""
    files = dict(contents(course))
    to.mkdir(parents=True, exist_ok=True)
    target = to / f"course-files-{json.loads(files[MARK])['version']}.zip"
    part = target.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, MOMENT)
            entry.external_attr = 0o644 << 16  # else other unpackers would close the file to everybody else
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    part.replace(target)
    return target


def argument_parser() -> argparse.ArgumentParser:
    """The options of this module."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.authoring.archive", description=__doc__.split("\n")[0])
    parser.add_argument("--to", type=Path, default=Path("dist"), help="the folder (dist)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the archive and says how large it is."""
    target = write_archive(course_folder(), argument_parser().parse_args(arguments).to)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
