"""nbgrader's own `autograde`, and the button in formgrader, with the judge in place of a kernel.

In nbgrader_config.py:

    c.Autograde.sanitize_preprocessors = ["course_lib.grading.nbgrader_plugin.StartFromRelease"]
    c.Autograde.autograde_preprocessors = [
        "course_lib.grading.nbgrader_plugin.JudgeSubmission",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]

No student's code runs in a kernel then, and verdicts are those of `course grade`: the judge reads the file in
submitted/ itself, and records points and penalties. nbgrader's own clean-up is not needed (it keeps the last
of cells that are there twice, and gives up the whole class then), nor are SaveAutoGrades and AssignLatePenalties.
"""

from pathlib import Path
from typing import Any

import bleach
import nbformat
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbgrader.preprocessors import NbGraderPreprocessor

from course_lib.data.place import CannotStart
from course_lib.grading.batch import Batch
from course_lib.grading.folders import Folders, grading_lock
from course_lib.grading.gradebook import Gradebook, graded_notebook
from course_lib.grading.spec import read_released

SECONDS_TO_WAIT = 10  # for another grader


class StartFromRelease(NbGraderPreprocessor):
    """Puts the notebook as it was released in place of the submitted one: no odd cell of it reaches nbgrader."""

    def preprocess(self, nb: nbformat.NotebookNode, resources: dict[str, Any]) -> tuple[nbformat.NotebookNode, dict]:
        """The released notebook. Raises FileNotFoundError, naming it, for one that is not released."""
        asked = resources["nbgrader"]
        path = _course_directory(resources).release(asked["assignment"]) / f"{asked['notebook']}.ipynb"
        return nbformat.read(path, as_version=4), resources


class JudgeSubmission(NbGraderPreprocessor):
    """Judges the submission in the sandbox, records the verdict, and gives nbgrader the graded notebook.

    It fails closed: whatever goes wrong is an error, nbgrader keeps no graded notebook then, and the gradebook gets no
    points.
    """

    def preprocess(self, nb: nbformat.NotebookNode, resources: dict[str, Any]) -> tuple[nbformat.NotebookNode, dict]:
        """The graded notebook in place of what was submitted.

        Raises CannotStart without a sandbox, while another grader is at work, or for an assignment that is not
        released; ValueError if its files are not in order.
        """
        folders, asked = _course_directory(resources), resources["nbgrader"]
        files = read_released(folders.root, asked["assignment"])
        with (
            grading_lock(folders, seconds=SECONDS_TO_WAIT),
            Gradebook(folders.gradebook, assignment=files.name, notebook=files.notebook, config=self.config) as book,
        ):
            batch = Batch(folders=folders, files=files, book=book)
            submission, verdict = batch.grade_here(asked["student"])
        graded = graded_notebook(batch.release, {**submission.answers, **submission.written}, verdict)
        return nbformat.reads(graded.decode("utf-8"), as_version=4), resources


def _course_directory(resources: dict[str, Any]) -> Folders:
    """The course directory that the notebook's folder belongs to. Raises CannotStart for another layout."""
    place, asked = Path(resources["metadata"]["path"]).absolute(), resources["nbgrader"]
    folders = Folders(root=place.parents[2])
    names = asked["student"], asked["assignment"]
    if place not in (folders.submitted(*names), folders.autograded(*names)):
        raise CannotStart(
            f"{place} is not where the judge expects it: leave CourseDirectory.directory_structure and the names of "
            "the folders in nbgrader_config.py as nbgrader has them."
        )
    return folders


# written answers --------------------------------------------------------------------------------------------

TAGS = set(
    "a abbr b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li ol p pre s samp "
    "small span strong sub summary sup table tbody td tfoot th thead tr u ul var".split()
)
PROTOCOLS = {"data", "http", "https", "mailto"}
PICTURES = tuple(f"data:image/{kind};base64," for kind in ("gif", "jpeg", "png", "webp"))


def safe_markdown(source: str) -> str:
    """The HTML of a Markdown text: without scripts, forms, styles, ids and classes, and with pictures only from itself.

    nbgrader's formgrader puts the HTML in a written answer into its page as it is, and a page of JupyterLab's may start
    programs on the instructor's machine and change grades. nbgrader_config.py puts this filter in nbconvert's place.
    Ids and classes go because formgrader finds its boxes for points and comments by them.
    """
    renderer = IPythonRenderer(escape=False, allow_harmful_protocols=False, exclude_anchor_links=True)
    html = MarkdownWithMath(renderer=renderer).render(source)
    return bleach.clean(html, tags=TAGS, attributes=_harmless, protocols=PROTOCOLS, strip=True)


def _harmless(tag: str, name: str, value: str) -> bool:
    if (tag, name) == ("a", "href"):
        return not value.strip().lower().startswith("data:")
    if (tag, name) == ("img", "src"):
        return value.startswith(PICTURES)
    return name in ("title", "alt", "colspan", "rowspan", "start")
