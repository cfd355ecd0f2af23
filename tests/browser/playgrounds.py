"""The playgrounds of some lessons in one notebook, live in JupyterLab."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.classroom.output import WIDGET_VIEW
from course_lib.commands.files import read_notebook, write_notebook
from tests.axe import axe_script
from tests.browser.lab import AXE, NotebookPage
from tests.browser.played import Played

THEMES = ("JupyterLab Light", "JupyterLab Dark")
PYTHON = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
TRAINED = """from course_lib.data.checkpoints import load_trained
def trained(name):
    return load_trained(name).model"""

Steps = Mapping[str, tuple[Any, ...]]


def write_playgrounds(path: Path, first: str, played: Steps) -> Path:
    """A notebook with a cell for each playground, not run yet: `played` has its source before the learner's steps."""
    sources = [f"{TRAINED}\n{first.strip()}", *(f"# {name}\n{source}.live()" for name, (source, *_) in played.items())]
    write_notebook(new_notebook(cells=[new_code_cell(source) for source in sources], metadata=PYTHON), path)
    return path


def play(page: NotebookPage, name: str, played: Steps) -> None:
    """Do all steps with a playground: each is the name of a method of `Played` and what it takes."""
    cells, cell = len(page.code_cells()), page.cell(f"# {name}\n")
    for method, *words in played[name][1:]:
        getattr(Played(cell), method)(*words)
    page.screenshot(f"playground-{name.replace(' ', '-')}", of=cell)
    assert len(page.code_cells()) == cells  # JupyterLab took no key for a command of its own


def as_stored(page: NotebookPage, path: Path) -> NotebookNode:
    """The notebook as it is stored after its run: outputs, but no views of widgets."""
    notebook, outputs = read_notebook(path), iter(page.code_cells())
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [from_dict(output) for output in next(outputs)["outputs"]]
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET_VIEW, None)
    return notebook


def found_by_axe(page: NotebookPage, sources: Mapping[str, str], theme: str) -> dict[str, list[str]]:
    """What axe-core finds serious in the outputs of these cells under a theme; nothing on a good page."""
    page.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    light = "true" if theme.endswith("Light") else "false"
    page.page.wait_for_selector(f"body[data-jp-theme-light={light}]", state="attached")
    page.page.evaluate(axe_script())
    wrong = {}
    for name, source in sources.items():
        area = page.cell(source).locator(".jp-OutputArea").first
        area.evaluate("(one) => { one.id = 'looked-at'; }")
        wrong[name] = page.page.evaluate(AXE, "#looked-at")
        area.evaluate("(one) => one.removeAttribute('id')")
    return {name: found for name, found in wrong.items() if found}
