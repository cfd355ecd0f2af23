"""The playgrounds of lesson 04 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_04.playground import PLAYGROUNDS

lstm = load_trained("lstm_characters").model
"""
PLAYED = {
    "machine": "PLAYGROUNDS['machine']().live()",
    "reader": "PLAYGROUNDS['reader'](lstm).live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_lstm.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def says(cell, text):
    expect(cell.locator(".play-said")).to_contain_text(text)


def test_the_gates_of_a_cell_are_set_and_a_goal_is_reached(played):
    cell = played.cell(PLAYED["machine"])
    said = cell.locator(".play-said")
    expect(said).to_contain_text("f = 0.70")
    forget = cell.get_by_role("slider", name="forget f")
    for _ in range(3):
        forget.press("PageUp")
    expect(said).to_contain_text("f = 1.00")
    cell.get_by_text("in the first step only", exact=True).click()
    expect(cell.locator(".play-goals li.reached")).to_have_count(1)
    played.screenshot("04-machine", of=cell)


def test_a_text_is_read_and_a_cell_shown_over_it(played):
    cell = played.cell(PLAYED["reader"])
    says(cell, "Cell 0 over 84 characters")
    cell.get_by_role("textbox", name="Text").fill("Two words.")
    says(cell, "Cell 0 over 10 characters")
    cell.get_by_role("textbox", name="Text").fill("")
    says(cell, "Write something")
    played.screenshot("04-reader", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
