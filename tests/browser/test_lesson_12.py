"""The playgrounds of lesson 12 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from course_lib.commands.files import write_notebook
from tests.browser.playgrounds import THEMES, as_stored, found_by_axe, write_playgrounds, wrong_on_slides

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_12.playground import PLAYGROUNDS

swin = load_trained("swin").model
"""
PLAYED = {"reader": "PLAYGROUNDS['reader'](swin).live()", "reach": "PLAYGROUNDS['reach']().live()"}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_swin.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def says(cell, text):
    expect(cell.locator(".widget-htmlmath")).to_contain_text(text)


def test_a_drawing_is_read_as_drawn_and_prepared(played):
    cell = played.cell(PLAYED["reader"])
    says(cell, "Prepared, it says 3")
    cell.get_by_role("button", name="Clear").click()
    says(cell, "It cannot say “nothing”")
    played.screenshot("12-reader", of=cell)


def test_a_place_is_clicked_and_blocks_are_added(played):
    cell = played.cell(PLAYED["reach"])
    says(cell, "after 1 block 4 of 64 places")
    cell.get_by_role("button", name="place 1, cannot reach it", exact=True).click()
    says(cell, "Place 1 (row 1, column 1)")
    blocks = cell.get_by_role("slider").nth(1)
    blocks.focus()
    blocks.press("ArrowRight")
    says(cell, "after 2 blocks 4 of 64 places")
    expect(cell.get_by_role("status")).to_have_text("1 of 3 goals reached")
    played.screenshot("12-reach", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}


def test_an_untrusted_notebook_steps_through_them(played, notebook, start_lab, open_notebook, tmp_path):
    path = tmp_path / "untrusted.ipynb"
    write_notebook(as_stored(played, notebook), path)
    page = open_notebook(start_lab([path]), path.name)
    reach = page.cell(PLAYED["reach"])
    reach.locator("summary").nth(2).click()
    expect(reach.get_by_text("after 2 blocks").first).to_be_visible()
    page.screenshot("12-untrusted", of=reach)


def test_a_deck_holds_them_within_its_slides(browser, played, notebook, tmp_path):
    assert wrong_on_slides(browser, as_stored(played, notebook), tmp_path / "deck.html") == {}
