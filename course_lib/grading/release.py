"""`course assign release`: the students' version of an assignment, and the proof that it gives nothing away."""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from course_lib.data.place import CannotStart
from course_lib.grading.exchange import CONFIG, VARIABLE, find_exchange, publish, read_config
from course_lib.grading.folders import Folders, assignments_folder, grading_lock
from course_lib.grading.notebook_format import nbformat
from course_lib.grading.spec import AssignmentFiles, load, read_assignment
from course_lib.grading.stripped import NOT_OURS, student_version
from course_lib.grading.wording import counted, points

MARKS = ("BEGIN SOLUTION", "END SOLUTION", *NOT_OURS)
TELLING = 20  # characters: a shorter line, such as `return x`, can stand anywhere by chance
LEFT_OUT = {".ipynb_checkpoints", "__pycache__"}


def release(name: str, *, folder: Path | None = None) -> int:
    """Makes release/NAME with nbgrader, registers its cells and points in the gradebook, and fills the exchange.

    Grades that are there stay. What nbgrader made is looked through before it is put in place: with a solution, a
    hidden check or an output in it nothing is released. Raises CannotStart, saying why, if there is no release.
    """
    need_nbgrader(f"assign release {name}")
    folders = assignments_folder(folder)
    exchange = find_exchange(folders.root)
    try:
        files = read_assignment(folders.root, name)
        loaded = load(files)
    except ValueError as problem:
        raise CannotStart(f"{problem} Nothing was released.") from None
    with grading_lock(folders), tempfile.TemporaryDirectory(prefix=".release-", dir=folders.root) as scratch:
        generate(folders, name, Path(scratch) / "trial", gradebook=False)
        refuse_leaks(folders, files, Path(scratch) / "trial" / name)
        generate(folders, name, Path(scratch) / "made", gradebook=True)
        made = refuse_leaks(folders, files, Path(scratch) / "made" / name)
        put_in_place(Path(scratch) / "made" / name, folders.release(name))
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
            f"{name}`. For an exchange set c.Exchange.root in {CONFIG}, or {VARIABLE}."
        )
    else:
        print(f"  In the exchange, for `course assign fetch {name}`: {publish(exchange, name, made)}")
    print(f"Next, when students have handed in: course assign collect {name}, then course grade {name}")
    return 0


def need_nbgrader(command: str) -> None:
    """Raises CannotStart, saying how to install them, if nbgrader and what else instructors need are not there."""
    try:
        import filelock  # noqa: F401
        import nbgrader  # noqa: F401
    except ImportError as error:
        raise CannotStart(
            f"nbgrader is not installed here ({error}). In the folder of the course this installs it and goes on: "
            f"python3 course.py {command}   (or, into another environment: pip install --editable '.[instructor]')"
        ) from error


def generate(folders: Folders, name: str, into: Path, *, gradebook: bool) -> None:
    """Lets nbgrader make the students' version in the folder `into`, and register it in the gradebook if asked to.

    Raises CannotStart with nbgrader's own words if it cannot.
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


@contextmanager
def programs_on_path() -> Iterator[None]:
    """Lets nbgrader find the programs of its own environment (alembic, for a new gradebook), activated or not."""
    before = os.environ.get("PATH")
    os.environ["PATH"] = os.pathsep.join(filter(None, [str(Path(sys.executable).parent), before]))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = before


def refuse_leaks(folders: Folders, files: AssignmentFiles, made: Path) -> dict[str, bytes]:
    """The files of a release by their names. Raises CannotStart if one of them gives something away."""
    released = {
        path.relative_to(made).as_posix(): path.read_bytes()
        for path in sorted(made.rglob("*"))
        if path.is_file() and not LEFT_OUT & set(path.relative_to(made).parts)
    }
    try:
        problems = release_problems(files, released)
    except ValueError as problem:
        problems = [str(problem)]
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems[:10])
        raise CannotStart(
            f"The release would give something away, and nothing was released:{listed}\nCorrect "
            f"{folders.source(files.name) / (files.notebook + '.ipynb')} (or {CONFIG}), then release again."
        )
    return released


def release_problems(files: AssignmentFiles, released: Mapping[str, bytes]) -> list[str]:
    """What in a release (its files by their names) students must not get; nothing on a good release.

    Each cell must be what we make of the source ourselves, there are no outputs and no execution counts, and no
    line that stands only in a solution or a hidden check appears anywhere in any file.
    """
    expected = student_version(files.source_notebook, f"source/{files.name}/{files.notebook}.ipynb")
    notebook = f"{files.notebook}.ipynb"
    problems = [f"{name} is a second notebook." for name in released if name.endswith(".ipynb") and name != notebook]
    if notebook not in released:
        return [*problems, f"{notebook} is missing."]
    made = nbformat.reads(released[notebook].decode("utf-8"), as_version=4)
    if [cell.cell_type for cell in made.cells] != [cell.cell_type for cell in expected.cells]:
        problems.append("It has other cells than the source.")
    for number, (cell, ours) in enumerate(zip(made.cells, expected.cells, strict=False), start=1):
        label = f"Cell {number} ({cell.metadata.get('nbgrader', {}).get('grade_id', 'no grade_id')})"
        if cell.source.strip() != ours.source.strip():
            problems.append(f"{label} is not the source with its solutions taken out.")
        if cell.get("outputs"):
            problems.append(f"{label} holds an output.")
        if cell.get("execution_count") is not None:
            problems.append(f"{label} holds an execution count.")
    secrets = list(secret_lines(files, expected))
    for name, content in released.items():
        text = content.decode("utf-8", errors="replace")
        squeezed = "\n".join(_squeeze(line) for line in [*_strings(text, name), *text.splitlines()])
        problems += [f"{name} holds the mark {mark!r}." for mark in MARKS if mark in text]
        problems += [f"{name} holds a line of {origin}: {line}" for origin, line in secrets if line in squeezed]
    return problems


def secret_lines(files: AssignmentFiles, expected: nbformat.NotebookNode) -> Iterator[tuple[str, str]]:
    """Lines of solutions and hidden checks, blanks squeezed, that the students' version has no reason to hold."""
    visible = "\n".join(_squeeze(line) for cell in expected.cells for line in cell.source.splitlines())
    setup = [cell for cell in expected.cells if _is_setup(cell)]
    given = "\n".join(_squeeze(line) for cell in setup for line in cell.source.splitlines())
    source = nbformat.reads(files.source_notebook.decode("utf-8"), as_version=4)
    for cell in source.cells:
        tags = cell.metadata.get("nbgrader", {})
        if tags.get("solution"):
            for line in map(_squeeze, cell.source.splitlines()):
                if _is_telling(line) and line not in visible:
                    yield f"the solution of {tags.get('grade_id')!r}", line
    for line in map(_squeeze, files.checks.decode("utf-8", errors="replace").splitlines()):
        if _is_telling(line) and line not in given and not line.startswith(("import ", "from ")):
            yield "the hidden checks", line


def put_in_place(made: Path, place: Path) -> None:
    """Moves a finished release to its place; the one that was there goes only when the new one is complete."""
    place.parent.mkdir(parents=True, exist_ok=True)
    old = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        if place.exists():
            os.rename(place, old / place.name)
        try:
            os.rename(made, place)
        except OSError:
            if (old / place.name).exists():
                os.rename(old / place.name, place)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _is_setup(cell: nbformat.NotebookNode) -> bool:
    tags = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and bool(tags.get("locked")) and not tags.get("grade")


def _is_telling(line: str) -> bool:
    return len(line) >= TELLING and any(letter.isalnum() for letter in line)


def _squeeze(line: str) -> str:
    return " ".join(line.split())


def _strings(text: str, name: str) -> list[str]:
    """The lines of all texts in a JSON file, at any depth; none for other files."""
    if not name.endswith((".ipynb", ".json")):
        return []
    found: list[str] = []

    def walk(value) -> None:
        if isinstance(value, str):
            found.extend(value.splitlines())
        elif isinstance(value, list):
            if value and all(isinstance(part, str) for part in value):
                walk("".join(value))
            else:
                for part in value:
                    walk(part)
        elif isinstance(value, dict):
            for part in value.values():
                walk(part)

    walk(json.loads(text))
    return found
