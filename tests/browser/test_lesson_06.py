"""The playgrounds of lesson 06 as a learner meets them: live in JupyterLab, untrusted, and on slides."""

import re

import pytest
from nbformat import from_dict
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import expect

from course_lib.classroom.output import WIDGET_VIEW
from course_lib.commands.files import read_notebook, write_notebook
from course_lib.lectures.story import fold
from tests.axe import axe_script
from tests.browser.test_slides import AXE
from tests.lectures.small_lesson import slide

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_06.playground import PLAYGROUNDS
model = load_trained("translator").model
"""
PLAYED = {"explorer": 'PLAYGROUNDS["explorer"](model).live()', "bpe": 'PLAYGROUNDS["bpe"]().live()'}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    cells = [slide("# Playgrounds\n\nThings to play with.", paths="90"), new_code_cell(FIRST)]
    for name, source in PLAYED.items():
        cells += [slide(f"## {name}", paths="90", show="widget"), new_code_cell(source)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = tmp_path_factory.mktemp("playgrounds") / "06_playgrounds.ipynb"
    write_notebook(new_notebook(cells=fold(cells), metadata=metadata), path)
    return path


@pytest.fixture(scope="module")
def page(notebook, start_lab, open_notebook):
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


@pytest.fixture(scope="module")
def stored(page, notebook):
    """The notebook as it is stored after that run: outputs, but no views of widgets."""
    cells, outputs = read_notebook(notebook), iter(page.code_cells())
    for cell in cells.cells:
        if cell.cell_type == "code":
            cell.outputs = [from_dict(output) for output in next(outputs)["outputs"]]
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET_VIEW, None)
    return cells


def test_the_search_is_the_kernels(page):
    cell = page.cell("explorer")
    winner = cell.locator(".play-sentence")
    expect(winner).to_have_text("le ministre ne voit pas la zone économique européenne.")
    cell.get_by_label("English sentence").fill("judge is the young")
    cell.get_by_label("English sentence").press("Enter")
    expect(winner).to_have_text("le juge est jeune.")
    expect(cell.get_by_text("2 of 4 goals reached")).to_be_visible()
    page.screenshot("06-explorer", of=cell)
    cell.get_by_role("button", name="juge est: log p").first.press("Enter")
    expect(cell.locator(".play-said")).to_contain_text("“est” after “juge”")
    cell.get_by_label("English sentence").fill("")
    cell.get_by_label("English sentence").press("Enter")
    expect(cell.get_by_text("Type a sentence, or take one of the examples.")).to_be_visible()
    cell.get_by_role("button", name="Back to the start").click()


def test_a_text_is_merged_pair_by_pair(page):
    cell = page.cell("bpe")
    expect(cell.locator(".play-said")).to_contain_text("79 letters are 70 tokens")
    cell.get_by_label("Merges", exact=True).press("End")
    cell.get_by_label("A word to cut").fill("newer")
    cell.get_by_label("A word to cut").press("Enter")
    expect(cell.get_by_text("2 of 3 goals reached")).to_be_visible()
    page.screenshot("06-bpe", of=cell)


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_nothing_serious_in_either_theme(page, theme):
    page.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    light = "true" if theme.endswith("Light") else "false"
    page.page.wait_for_selector(f"body[data-jp-theme-light={light}]", state="attached")
    page.page.evaluate(axe_script())
    wrong = {}
    for name, source in PLAYED.items():
        page.cell(source).locator(".jp-OutputArea").first.evaluate("(one) => { one.id = 'looked-at'; }")
        wrong[name] = page.page.evaluate(AXE, "#looked-at")
        page.cell(source).locator("#looked-at").first.evaluate("(one) => one.removeAttribute('id')")
    assert {name: found for name, found in wrong.items() if found} == {}


def test_an_untrusted_notebook_has_the_tree_as_a_table(stored, start_lab, open_notebook, tmp_path):
    path = tmp_path / "untrusted.ipynb"
    write_notebook(stored, path)
    page = open_notebook(start_lab([path]), path.name)
    cell = page.cell("explorer")
    cell.locator("summary", has_text="Judge is the young.; Step: 2").click()
    box = cell.get_by_title("le juge: log p −2.38, went on").last
    expect(box).to_have_css("background-color", "rgb(0, 114, 178)")  # the winner's
    expect(cell.get_by_text(re.compile("Can you get there"))).to_be_visible()
    assert cell.locator("style").count() == 0
