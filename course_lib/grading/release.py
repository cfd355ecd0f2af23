"""`course assign release`: the students' version of an assignment, and the proof that it gives nothing away."""

import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError
from nbgrader.exchange.default import ExchangeReleaseAssignment
from nbgrader.preprocessors import CheckCellMetadata, ComputeChecksums, SaveCells

from course_lib.data.place import CannotStart
from course_lib.grading.alternatives import drawn_by, first, slots
from course_lib.grading.exchange import Exchange, find_exchange
from course_lib.grading.folders import CONFIG, Folders, assignments_folder, grading_lock, read_config, write_whole
from course_lib.grading.leaks import leaks
from course_lib.grading.spec import AssignmentFiles, load, read_assignment, read_released
from course_lib.grading.stripped import student_version
from course_lib.grading.wording import counted, points


def release(name: str, *, folder: Path | None = None, draw: str | None = None) -> int:
    """Makes release/NAME, registers its cells and points in nbgrader's gradebook, and fills the exchange.

    Of alternative tasks the key `draw` draws one for each slot; without it the first of each is released. Grades that
    are there stay. With a solution, a hidden check or another alternative in any of its files nothing is released.
    Raises CannotStart, saying why, if there is no release.
    """
    if draw is not None and not draw.strip():
        raise CannotStart("--draw needs a key, such as a word that only this class has. Nothing was released.")
    folders = assignments_folder(folder)
    exchange = find_exchange(folders.root)
    directory = CourseDirectory(config=read_config(folders.root), root=str(folders.root))
    everything = read_assignment(folders.root, name)
    files = everything.chosen(first if draw is None else drawn_by(draw, name))
    loaded = load(files)
    if folders.release(name).exists() and (before := tasks_of(read_released(folders.root, name))) != tasks_of(files):
        raise CannotStart(
            f"Assignment {name} is released already, with other alternatives ({before}), and students may be at work "
            "on them. Nothing was released. Give the key of that release with --draw, or none if it had none. If "
            f"nobody has it yet, you can delete the folder {folders.release(name)} and release again."
        )
    notebook = student_version(files.source_notebook, files.place)
    file, place = f"{files.notebook}.ipynb", folders.release(name)
    with grading_lock(folders), tempfile.TemporaryDirectory(prefix=".release-", dir=folders.root) as scratch:
        made = Path(scratch) / "new"
        try:
            shutil.copytree(folders.source(name), made, ignore=shutil.ignore_patterns(*directory.ignore, file))
        except OSError as problem:
            raise CannotStart(f"{folders.source(name)} cannot be copied, and nothing was released: {problem}") from None
        ComputeChecksums().preprocess(notebook, {})
        write_whole(made / file, nbformat.writes(notebook) + "\n")
        if problems := list(leaks(everything, notebook, made)):
            listed = "".join(f"\n  - {problem}" for problem in problems[:10])
            raise CannotStart(
                f"The release would give something away, and nothing was released:{listed}\nCorrect what lies in "
                f"{folders.source(name)}, then release again."
            )
        register(notebook, files, folders, directory.course_id)
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            os.rename(place, Path(scratch) / "old")
        os.rename(made, place)
    total = sum(loaded.check_points.values()) + sum(loaded.manual_cells.values())
    print(f"Assignment {name}, {loaded.assignment.title}: released, without solutions, hidden checks and outputs.")
    print(
        f"  {counted(len(loaded.check_points), 'task')} judged by checks, "
        f"{counted(len(loaded.manual_cells), 'written answer')} graded by hand; {points(total)} points in all."
    )
    if there := slots(everything.source_notebook, everything.place):
        how = "the first of each, for want of --draw KEY" if draw is None else "drawn by the key; keep it"
        print(f"  Of {counted(len(there), 'task')} there are alternatives ({how}): {tasks_of(files)}.")
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


def tasks_of(files: AssignmentFiles) -> str:
    """The names of an assignment's tasks that are alternatives of others, as they stand in the files."""
    cells = slots(files.source_notebook, files.place).values()
    alternatives = set().union(*(names for slot in cells for names in slot.values()))
    return ", ".join(task.name for task in load(files).assignment.tasks if task.name in alternatives)


def register(notebook: nbformat.NotebookNode, files: AssignmentFiles, folders: Folders, course: str) -> None:
    """Enters an assignment's cells and points into the gradebook by nbgrader's own steps.

    Raises CannotStart with nbgrader's own words if it refuses, such as another cell where there are submissions.
    """
    url, new = f"sqlite:///{folders.gradebook}", not folders.gradebook.exists()
    names = {"assignment": files.name, "notebook": files.notebook, "db_url": url}
    try:
        CheckCellMetadata().preprocess(notebook, {})
        programs = str(Path(sys.executable).parent)  # alembic among them, by which nbgrader makes a new gradebook
        os.environ["PATH"] = os.pathsep.join([programs, os.environ.get("PATH", "")])
        with Gradebook(url, course) as book:
            assignment = book.update_or_create_assignment(files.name)
            others = [part.name for part in assignment.notebooks if part.name != files.notebook]
            if others and assignment.submissions:
                raise ValueError(f"there are submissions of the notebook {others[0]!r}")
            for other in others:
                book.remove_notebook(other, files.name)
        SaveCells().preprocess(notebook, {"nbgrader": names})
    except Exception as problem:
        if new:
            folders.gradebook.unlink(missing_ok=True)  # without its version, later nbgraders could not upgrade it
        raise CannotStart(f"nbgrader refuses the assignment, and nothing was released. It says: {problem}") from problem


class _Release(ExchangeReleaseAssignment):
    """nbgrader's own, which would open the exchange's root to everybody."""

    def ensure_root(self) -> None:
        if not Path(self.root).is_dir():
            self.ensure_directory(self.root, 0o755)
        elif Path(self.root).stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
            self.fail(f"everybody can replace what lies in {self.root} (chmod o-w {self.root}, or chmod +t)")


def publish(exchange: Exchange, folders: Folders, assignment: str) -> Path:
    """Puts a release where students fetch it, in place of an earlier one; returns its folder.

    Raises CannotStart where that is not allowed, or where students could put something else in its place.
    """
    config = read_config(folders.root)
    names = {"root": str(folders.root), "course_id": exchange.course, "assignment_id": assignment}
    try:
        _Release(CourseDirectory(config=config, **names), config=config, root=str(exchange.root), force=True).start()
        exchange.inbound.chmod(exchange.inbound.stat().st_mode | stat.S_ISVTX)  # what is handed in, nobody else removes
    except (ExchangeError, OSError, RuntimeError) as error:
        raise CannotStart(
            f"The release could not be put into the exchange {exchange.root}: {error}. It must belong to you, and its "
            "folder exist or be yours to make; then release again."
        ) from error
    return exchange.outbound(assignment)
