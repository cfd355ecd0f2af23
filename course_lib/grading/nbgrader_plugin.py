"""nbgrader's own `autograde`, and the button in formgrader, with the judge in place of a kernel.

In nbgrader_config.py:

    c.Autograde.sanitize_preprocessors = ["course_lib.grading.nbgrader_plugin.StartFromRelease"]
    c.Autograde.autograde_preprocessors = [
        "course_lib.grading.nbgrader_plugin.JudgeSubmission",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]

No student's code runs in a kernel then, and verdicts are those of `course grade`: the judge reads the file in
submitted/ itself, and records scores, comments and penalties. nbgrader's own clean-up is not needed (it keeps the last
of cells that are there twice, and gives up the whole class then), nor are SaveAutoGrades and AssignLatePenalties, which
would take the judge's comments away.
"""

from pathlib import Path
from typing import Any

import nbformat
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool

from course_lib.data.place import CannotStart
from course_lib.grading.batch import Batch
from course_lib.grading.folders import Folders, grading_lock
from course_lib.grading.gradebook import Gradebook
from course_lib.grading.graded import graded_notebook
from course_lib.grading.spec import read_assignment

SECONDS_TO_WAIT = 10  # for another grader


class StartFromRelease(NbGraderPreprocessor):
    """Puts the notebook as it was released in place of the submitted one: no odd cell of it reaches nbgrader."""

    def preprocess(self, nb: nbformat.NotebookNode, resources: dict[str, Any]) -> tuple[nbformat.NotebookNode, dict]:
        """The released notebook. Raises CannotStart for an assignment that is not released."""
        asked = resources["nbgrader"]
        folders = _course_directory(Path(resources["metadata"]["path"]), asked)
        path = folders.release(asked["assignment"]) / f"{asked['notebook']}.ipynb"
        if not path.is_file():
            raise CannotStart(
                f"Assignment {asked['assignment']} is not released yet. Run first: course assign release "
                f"{asked['assignment']}"
            )
        return nbformat.read(path, as_version=4), resources


class JudgeSubmission(NbGraderPreprocessor):
    """Judges the submission in the sandbox, records the verdict, and gives nbgrader the graded notebook.

    It fails closed: whatever goes wrong is an error, nbgrader keeps no graded notebook then, and the gradebook gets no
    points.
    """

    trusted_students = Bool(
        False, help="Judge without a sandbox, where none can be had and all students are trusted."
    ).tag(config=True)

    def __call__(self, nb: nbformat.NotebookNode, resources: dict[str, Any]) -> tuple[nbformat.NotebookNode, dict]:
        """As `preprocess`; nbgrader would leave out a preprocessor that is switched off, and go on."""
        if not self.enabled:
            raise CannotStart(
                "JudgeSubmission is switched off in nbgrader's configuration, so nothing can be graded. Take the line "
                "that sets JudgeSubmission.enabled out of nbgrader_config.py."
            )
        return self.preprocess(nb, resources)

    def preprocess(self, nb: nbformat.NotebookNode, resources: dict[str, Any]) -> tuple[nbformat.NotebookNode, dict]:
        """The graded notebook in place of what was submitted.

        Raises CannotStart without a sandbox, while another grader is at work, or for an assignment that is not
        released; ValueError if its files are not in order.
        """
        asked = resources["nbgrader"]
        folders = _course_directory(Path(resources["metadata"]["path"]), asked)
        files = read_assignment(folders.root, asked["assignment"])
        if asked["notebook"] != files.notebook:
            raise CannotStart(
                f"The judge knows the notebook {files.notebook!r} of assignment {files.name}, and not "
                f"{asked['notebook']!r}."
            )
        with (
            grading_lock(folders, seconds=SECONDS_TO_WAIT),
            Gradebook(folders.gradebook, assignment=files.name, notebook=files.notebook, config=self.config) as book,
        ):
            batch = Batch(folders=folders, files=files, book=book, trusted=self.trusted_students)
            submission, verdict = batch.grade_here(asked["student"])
        graded = graded_notebook(batch.release, {**submission.answers, **submission.written}, verdict)
        return nbformat.reads(graded.decode("utf-8"), as_version=4), resources


def _course_directory(place: Path, asked: dict[str, Any]) -> Folders:
    """The course directory that the notebook's folder belongs to. Raises CannotStart for another layout."""
    place = place.absolute()
    folders = Folders(root=place.parents[2])
    names = asked["student"], asked["assignment"]
    if place not in (folders.submitted(*names), folders.autograded(*names)):
        raise CannotStart(
            f"{place} is not where the judge expects it: leave CourseDirectory.directory_structure and the names of "
            "the folders in nbgrader_config.py as nbgrader has them."
        )
    return folders
