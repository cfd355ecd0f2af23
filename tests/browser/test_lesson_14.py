"""The playgrounds of lesson 14 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_14.playground import PLAYGROUNDS

unet, without = load_trained("unet").model, load_trained("unet_no_skips").model
"""
PLAYED = {
    "drawing": "PLAYGROUNDS['drawing'](unet).live()",
    "scene": "PLAYGROUNDS['scene'](unet, without).live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_unet.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def says(cell, text):
    expect(cell.locator(".play-said")).to_contain_text(text)


def test_a_drawing_is_marked_and_its_ground_can_be_changed(played):
    cell = played.cell(PLAYED["drawing"])
    says(cell, "1 object: a 5")
    cell.get_by_text("coins", exact=True).click()
    says(cell, "1 object: a 5")
    cell.get_by_role("button", name="Clear").click()
    says(cell, "Draw a digit, or anything.")
    played.screenshot("14-drawing", of=cell)


def test_digits_that_meet_are_one_thing_and_a_goal(played):
    cell = played.cell(PLAYED["scene"])
    says(cell, "With skips: 2 objects: a 3")
    seven = cell.get_by_role("slider", name="Position of the 7")
    seven.focus()
    for _ in range(18):
        seven.press("ArrowLeft")
    says(cell, "With skips: 1 object")
    expect(cell.get_by_role("status").first).to_have_text("1 of 3 goals reached")
    played.screenshot("14-scene", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
