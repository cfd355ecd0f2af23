"""A course directory with one small assignment that is not released yet, and what students make of it."""

import json
from pathlib import Path

from tests.grading.courses import NAME, NOTEBOOK, SUMS_CHECKS, small_course

CONFIG = Path(__file__).parents[2] / "notebooks" / "assignments" / "nbgrader_config.py"
SOLVED = {
    "add": "def add(a, b):\n    return a + b",
    "double": "def double(x):\n    return x + x",
    "why": "Because I say so.",
}


def unreleased_course(root, *, checks=SUMS_CHECKS, settings=""):
    """The instructor's files of the small assignment, with the course's own settings for nbgrader."""
    folders = small_course(Path(root), checks=checks)
    folders.config.write_text(CONFIG.read_text() + settings)
    return folders


def write_source(folders, notebook):
    (folders.source(NAME) / f"{NOTEBOOK}.ipynb").write_text(json.dumps(notebook))


def answer(path, **answers):
    """Fills in answers as a student does in JupyterLab, who also runs the cells."""
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = answers.get(grade_id, cell["source"])
        if cell["cell_type"] == "code":
            cell["execution_count"] = 7
    path.write_text(json.dumps(notebook, indent=2))


def add_cell(path, source):
    """Adds a cell of the student's own at the top."""
    notebook = json.loads(path.read_text())
    cell = {"cell_type": "code", "id": "mine", "metadata": {}, "source": source, "outputs": [], "execution_count": 1}
    notebook["cells"].insert(0, cell)
    path.write_text(json.dumps(notebook))
