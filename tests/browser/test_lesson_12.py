"""The playgrounds of lesson 12 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

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


def test_a_drawing_is_read_as_drawn_and_prepared(played):
    cell = played.cell(PLAYED["reader"])
    said = cell.locator(".play-said")
    expect(said).to_contain_text("Prepared, it says 3")
    cell.get_by_role("button", name="Clear").click()
    expect(said).to_contain_text("It cannot say “nothing”")
    played.screenshot("12-reader", of=cell)


def test_a_position_is_clicked_and_blocks_are_added(played):
    cell = played.cell(PLAYED["reach"])
    said, position = cell.locator(".play-said"), cell.get_by_role("slider", name="Position")
    expect(said).to_contain_text("after 1 block its receptive field has 4 of 64")
    position.click(position={"x": 5, "y": 5})
    expect(said).to_contain_text("Position 1 (row 1, column 1)")
    cell.get_by_role("radiogroup", name="Blocks", exact=True).get_by_text("2").click()
    expect(said).to_contain_text("after 2 blocks its receptive field has 4 of 64")
    expect(cell.locator(".play-goals strong")).to_have_text("1 of 3 goals reached")
    played.screenshot("12-reach", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
