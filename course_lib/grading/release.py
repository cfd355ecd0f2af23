"""`course assign release`: the students' version of an assignment, and the proof that it gives nothing away."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import nbformat

from course_lib.data.place import CannotStart
from course_lib.grading.exchange import find_exchange, publish
from course_lib.grading.folders import (
    CONFIG,
    Folders,
    assignments_folder,
    grading_lock,
    need_nbgrader,
    programs_on_path,
    read_config,
)
from course_lib.grading.spec import AssignmentFiles, load, read_assignment
from course_lib.grading.stripped import NOT_OURS, student_version
from course_lib.grading.wording import counted, points

MARKS = ("BEGIN SOLUTION", "END SOLUTION", *NOT_OURS)
TELLING = 20  # characters: a shorter line, such as `return x`, can stand anywhere by chance
LEFT_OUT = {".ipynb_checkpoints", "__pycache__"}


def release(name: str, *, folder: Path | None = None) -> int:
    """Makes release/NAME with nbgrader, registers its cells and points in the gradebook, and fills the exchange.

    Grades that are there stay. What nbgrader made is compared with what we make of the source ourselves: with a
    solution, a hidden check or an output in it nothing is released. Raises CannotStart, saying why, if there is no
    release.
    """
    need_nbgrader(f"assign release {name}")
    folders = assignments_folder(folder)
    exchange = find_exchange(folders.root)
    try:
        files = read_assignment(folders.root, name)
        loaded = load(files)
        expected = student_version(files.source_notebook, f"source/{files.name}/{files.notebook}.ipynb")
    except ValueError as problem:
        raise CannotStart(f"{problem} Nothing was released.") from None
    with grading_lock(folders), tempfile.TemporaryDirectory(prefix=".release-", dir=folders.root) as scratch:
        for register in (False, True):  # into the gradebook only what may be released
            made = generate(folders, name, Path(scratch) / f"{register}", gradebook=register)
            if problems := list(release_problems(files, expected, made)):
                listed = "".join(f"\n  - {problem}" for problem in problems[:10])
                raise CannotStart(
                    f"The release would give something away, and nothing was released:{listed}\nCorrect "
                    f"{folders.source(name) / (files.notebook + '.ipynb')} (or {CONFIG}), then release again."
                )
        put_in_place(made, folders.release(name))
    total = sum(loaded.check_points.values()) + sum(loaded.manual_cells.values())
    print(f"Assignment {name}, {loaded.assignment.title}: released, without solutions, hidden checks and outputs.")
    print(
        f"  {counted(len(loaded.check_points), 'task')} judged by checks, "
        f"{counted(len(loaded.manual_cells), 'written answer')} graded by hand; {points(total)} points in all."
    )
    print(f"  The students' version: {folders.release(name) / (files.notebook + '.ipynb')}")
    print(f"  The gradebook knows its cells and points: {folders.gradebook}")
    if exchange is None:
        print(
            "  There is no exchange: hand that file out, or let students run `course assign fetch "
            f"{name}`. For an exchange set c.Exchange.root in {CONFIG}, or COURSE_EXCHANGE."
        )
    else:
        print(f"  In the exchange, for `course assign fetch {name}`: {publish(exchange, folders, name)}")
    print(f"Next, when students have handed in: course assign collect {name}, then course grade {name}")
    return 0


def generate(folders: Folders, name: str, into: Path, *, gradebook: bool) -> Path:
    """Lets nbgrader make the students' version below `into`, and register it in the gradebook if asked to.

    Returns its folder. Raises CannotStart with nbgrader's own words if it cannot.
    """
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.utils import capture_log

    config = read_config(folders.root)
    config.CourseDirectory.release_directory = into.relative_to(folders.root).as_posix()
    config.CourseDirectory.db_url = f"sqlite:///{folders.gradebook}"
    config.SaveCells.enabled = gradebook
    directory = CourseDirectory(config=config, root=str(folders.root), assignment_id=name)
    converter = GenerateAssignment(coursedir=directory, config=config, no_database=not gradebook)
    new_gradebook = not folders.gradebook.exists()
    with programs_on_path():
        outcome = capture_log(converter)
    if not outcome["success"]:
        if new_gradebook:
            folders.gradebook.unlink(missing_ok=True)  # without its version, later nbgraders could not upgrade it
        said = (outcome.get("log") or outcome["error"]).strip().splitlines()
        told = [line for line in said if re.match(r"\s*[\w.]*(Error|Exception)\b", line)] or said[-1:]
        raise CannotStart(f"nbgrader could not make the release, and nothing was released. It says: {told[-1].strip()}")
    return into / name


def release_problems(files: AssignmentFiles, expected: nbformat.NotebookNode, made: Path) -> Iterator[str]:
    """What in a release's folder students must not get; nothing for a good release.

    Each cell must be what we make of the source ourselves, and no line that stands only in a solution or a hidden
    check appears in any file.
    """
    released = {
        path.relative_to(made).as_posix(): path.read_bytes().decode("utf-8", errors="replace")
        for path in sorted(made.rglob("*"))
        if path.is_file() and not LEFT_OUT & set(path.relative_to(made).parts)
    }
    notebook = f"{files.notebook}.ipynb"
    if notebook not in released:
        yield f"{notebook} is missing."
        return
    cells = nbformat.reads(released[notebook], as_version=4).cells
    if [cell.cell_type for cell in cells] != [cell.cell_type for cell in expected.cells]:
        yield "It has other cells than the source."
    for number, (cell, ours) in enumerate(zip(cells, expected.cells, strict=False), start=1):
        if cell.source.strip() != ours.source.strip():
            yield f"Cell {number} is not the source with its solutions taken out."
        if cell.get("outputs") or cell.get("execution_count") is not None:
            yield f"Cell {number} holds an output."
    secrets = dict(_secret_lines(files, expected))
    for name, text in released.items():
        if name.endswith(".ipynb") and name != notebook:
            yield f"{name} is a second notebook."
        if name.endswith((".ipynb", ".json")):
            text += "\n" + json.dumps(json.loads(text), ensure_ascii=False).replace("\\n", "\n").replace('\\"', '"')
        squeezed = "\n".join(_squeeze(line) for line in text.splitlines())
        yield from (f"{name} holds the mark {mark!r}." for mark in MARKS if mark in text)
        yield from (f"{name} holds a line of {place}: {line}" for line, place in secrets.items() if line in squeezed)


def put_in_place(made: Path, place: Path) -> None:
    """Moves a finished release to its place; the one that was there goes only when the new one is complete."""
    place.parent.mkdir(parents=True, exist_ok=True)
    old = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        if place.exists():
            os.rename(place, old / place.name)
        os.rename(made, place)
    finally:
        if not place.exists() and (old / place.name).exists():
            os.rename(old / place.name, place)
        shutil.rmtree(old, ignore_errors=True)


def _secret_lines(files: AssignmentFiles, expected: nbformat.NotebookNode) -> Iterator[tuple[str, str]]:
    """Telling lines of solutions and hidden checks, blanks squeezed, that the students' version does not hold."""
    visible = "\n".join(_squeeze(line) for cell in expected.cells for line in cell.source.splitlines())
    given = "\n".join(_squeeze(line) for cell in expected.cells if _is_setup(cell) for line in cell.source.splitlines())
    for line in map(_squeeze, files.checks.decode("utf-8", errors="replace").splitlines()):
        if _is_telling(line) and line not in given and not line.startswith(("import ", "from ")):
            yield line, "the hidden checks"
    for cell in nbformat.reads(files.source_notebook.decode("utf-8"), as_version=4).cells:
        tags: Mapping[str, object] = cell.metadata.get("nbgrader", {})
        for line in map(_squeeze, cell.source.splitlines() if tags.get("solution") else ()):
            if _is_telling(line) and line not in visible:
                yield line, f"the solution of {tags.get('grade_id')!r}"


def _is_setup(cell: nbformat.NotebookNode) -> bool:
    tags = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and bool(tags.get("locked")) and not tags.get("grade")


def _is_telling(line: str) -> bool:
    return len(line) >= TELLING and any(letter.isalnum() for letter in line)


def _squeeze(line: str) -> str:
    return " ".join(line.split())
