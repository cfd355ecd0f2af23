"""Playgrounds of a lesson in a notebook of their own: live, without a kernel, and on slides."""

from collections.abc import Mapping
from pathlib import Path

from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.classroom.output import WIDGET_VIEW
from course_lib.commands.files import read_notebook, write_notebook
from course_lib.lectures.story import fold
from tests.axe import axe_script
from tests.browser.lab import NotebookPage
from tests.browser.test_slides import AXE
from tests.lectures.small_lesson import slide

THEMES = ("JupyterLab Light", "JupyterLab Dark")


def write_playgrounds(path: Path, first: str, played: Mapping[str, str]) -> Path:
    """A notebook with each playground on a slide, not run yet."""
    cells = [slide("# Playgrounds\n\nThings to play with.", paths="90"), new_code_cell(first)]
    for name, source in played.items():
        cells += [slide(f"## {name}", paths="90", show="widget"), new_code_cell(source)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    write_notebook(new_notebook(cells=fold(cells), metadata=metadata), path)
    return path


def as_stored(page: NotebookPage, path: Path) -> NotebookNode:
    """The notebook as it is stored after its run: outputs, but no views of widgets."""
    notebook, outputs = read_notebook(path), iter(page.code_cells())
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [from_dict(output) for output in next(outputs)["outputs"]]
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET_VIEW, None)
    return notebook


def found_by_axe(page: NotebookPage, played: Mapping[str, str], theme: str) -> dict[str, list[str]]:
    """What axe-core finds serious in each playground under a theme; nothing on a good page."""
    page.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    light = "true" if theme.endswith("Light") else "false"
    page.page.wait_for_selector(f"body[data-jp-theme-light={light}]", state="attached")
    page.page.evaluate(axe_script())
    wrong = {}
    for name, source in played.items():
        area = page.cell(source).locator(".jp-OutputArea").first
        area.evaluate("(one) => { one.id = 'looked-at'; }")
        wrong[name] = page.page.evaluate(AXE, "#looked-at")
        area.evaluate("(one) => one.removeAttribute('id')")
    return {name: found for name, found in wrong.items() if found}
