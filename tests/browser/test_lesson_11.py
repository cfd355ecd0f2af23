"""The playgrounds of lesson 11 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_11.playground import PLAYGROUNDS
from course_lib.lessons.picture import the_picture

vit, digits = load_trained("vit").model, load_trained("vit_digits").model
coin = the_picture().pixels
"""
PLAYED = {"draw": "PLAYGROUNDS['draw'](digits).live()", "hide": "PLAYGROUNDS['hide'](vit, coin).live()"}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_vit.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def test_a_digit_is_drawn_and_its_patches_are_hidden_by_mouse_and_keyboard(played):
    cell = played.cell(PLAYED["draw"])
    said = cell.locator(".play-said")
    expect(said).to_contain_text("It says 5")
    cell.get_by_role("button", name="Clear").click()
    expect(said).to_contain_text("It cannot say “nothing”")
    box, mouse = cell.locator("canvas").first.bounding_box(), played.page.mouse
    mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.1 * box["height"])
    mouse.down()
    mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.7 * box["height"], steps=6)
    mouse.up()
    expect(said).to_contain_text("It says 1")
    cell.get_by_role("gridcell", name="patch 6,").click()
    expect(said).to_contain_text("1 of 16 patches are hidden: 6.")
    patch = cell.get_by_role("gridcell", name="patch 7,")
    patch.focus()
    patch.press("Space")
    expect(said).to_contain_text("2 of 16 patches are hidden: 6, 7.")
    expect(cell.get_by_role("gridcell", name="patch 7, hidden")).to_be_focused()
    played.screenshot("11-draw", of=cell)


def test_a_patch_of_the_coin_is_enough_for_a_goal(played):
    cell = played.cell(PLAYED["hide"])
    said = cell.locator(".play-said")
    expect(said).to_contain_text("It says 3")
    cell.get_by_role("gridcell", name="patch 6,").click()
    expect(cell.get_by_role("status").first).to_have_text("1 of 3 goals reached")
    cell.get_by_text("a dark eight", exact=True).click()
    expect(said).to_contain_text("1 of 16 patches are hidden: 6.")
    cell.get_by_role("button", name="Swap visible and hidden").click()
    expect(said).to_contain_text("15 of 16 patches are hidden")
    cell.get_by_role("button", name="Show all").click()
    expect(said).to_contain_text("It says 8")
    played.screenshot("11-hide", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
