"""Where a student gets an assignment from: the exchange, or the course itself, without its solutions."""

from dataclasses import dataclass
from pathlib import Path

from course_lib.data.place import CannotStart
from course_lib.grading.exchange import Exchange, find_exchange, is_plain_name
from course_lib.grading.folders import FILE_BYTES, Folders, assignments_folder, read_small
from course_lib.grading.notebook_format import nbformat
from course_lib.grading.stripped import student_version


@dataclass(frozen=True, kw_only=True)
class Release:
    """An assignment as students get it; `origin` says in words where it comes from."""

    name: str
    notebook: str  # without .ipynb
    content: bytes
    origin: str


def title(release: Release) -> str:
    """The first heading of the notebook."""
    cells = nbformat.reads(release.content.decode("utf-8"), as_version=4).cells
    lines = [line for cell in cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
    return next((line.lstrip("# ") for line in lines if line.startswith("# ")), release.notebook)


def student_places(folder: Path | None = None) -> tuple[Folders | None, Exchange | None]:
    """The course directory, if this machine has one that is open to this account, and the exchange, if there is one."""
    try:
        folders = assignments_folder(folder)
    except CannotStart:
        if folder is not None:
            raise
        folders = None
    return folders, find_exchange(folders.root if folders else None)


def available(folders: Folders | None, exchange: Exchange | None) -> list[str]:
    """The names of all assignments that can be fetched."""
    if exchange is not None:
        place = exchange.outbound("x").parent
        return sorted(entry.name for entry in place.iterdir() if entry.is_dir()) if place.is_dir() else []
    if folders is None:
        return []
    released = [path.name for path in (folders.root / "release").glob("*") if path.is_dir() and path.name[0] != "."]
    return sorted({*folders.assignments(), *released})


def find_release(name: str, folder: Path | None = None) -> Release:
    """The assignment from the exchange if there is one, else from the course itself, without its solutions.

    Raises CannotStart if there is no such assignment.
    """
    folders, exchange = student_places(folder)
    if is_plain_name(name):
        if exchange is not None:
            found, where = only_notebook(exchange.outbound(name)), f"the exchange ({exchange.outbound(name)})"
        elif folders is not None and (found := only_notebook(folders.source(name))):
            return _stripped(name, found)
        elif folders is not None:
            found, where = only_notebook(folders.release(name)), str(folders.release(name))
        else:
            found = None
        if found is not None:
            return Release(name=name, notebook=found.stem, content=read_notebook(found), origin=where)
    there = ", ".join(available(folders, exchange)) or "none yet"
    raise CannotStart(f"There is no assignment {name!r} in {origin(folders, exchange)}. There are: {there}.")


def origin(folders: Folders | None, exchange: Exchange | None) -> str:
    """In words, where assignments come from on this machine."""
    if exchange is not None:
        return f"the exchange {exchange.root}"
    return str(folders.root) if folders else "this installation of the course"


def only_notebook(folder: Path) -> Path | None:
    """The one notebook in a folder; None if there is none or more than one."""
    found = sorted(path for path in folder.glob("*.ipynb") if not path.name.startswith("."))
    return found[0] if len(found) == 1 else None


def _stripped(name: str, source: Path) -> Release:
    try:
        notebook = student_version(read_notebook(source), str(source))
    except ValueError as problem:
        raise CannotStart(f"Assignment {name} cannot be handed out: {problem}") from None
    content = (nbformat.writes(notebook) + "\n").encode("utf-8")
    return Release(name=name, notebook=source.stem, content=content, origin=f"the course ({source.parents[2]})")


def read_notebook(path: Path) -> bytes:
    """The bytes of a notebook of bearable size. Raises CannotStart for anything else."""
    content = read_small(path, FILE_BYTES)
    if content is None:
        limit = FILE_BYTES // 1_000_000
        raise CannotStart(f"{path} cannot be read: it is no ordinary file, not readable, or larger than {limit} MB.")
    return content
