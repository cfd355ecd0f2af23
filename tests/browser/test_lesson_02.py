"""The playgrounds of lesson 02 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_02.playground import PLAYGROUNDS
from course_lib.lessons.lesson_02.tasks import TASKS

model = load_trained("simclr").model
by_two = TASKS["simclr"].module(3, (8, 8, 8, 8), 16)
"""
PLAYED = {
    "neighbours": "PLAYGROUNDS['neighbours'](model).live()",
    "plane": "PLAYGROUNDS['plane'](model).live()",
    "icons": "PLAYGROUNDS['icons'](by_two).live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_representation.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def says(cell, text):
    expect(cell.locator(".play-said")).to_contain_text(text)


def test_a_drawing_has_neighbours_by_three_kinds_of_features(played):
    cell = played.cell(PLAYED["neighbours"])
    says(cell, "Nearest by SimCLR: 2, 2, 2, 2, 2.")
    cell.get_by_role("button", name="an eight").click()
    says(cell, "Nearest by SimCLR: 8, 8, 8, 8, 8.")
    expect(cell.get_by_role("status").first).to_have_text("1 of 2 goals reached")
    played.screenshot("02-neighbours", of=cell)


def test_a_digit_of_the_map_is_chosen_and_its_views_land(played):
    cell = played.cell(PLAYED["plane"])
    says(cell, "Picture 50 is a 2")
    cell.locator(".play-digit").nth(149).click()
    says(cell, "Picture 150 is a 7")
    says(cell, "changed views land nearest to a 7.")
    expect(cell.locator(".play-land")).to_have_count(8)
    cell.get_by_role("slider", name="Picture on the map").press("ArrowDown")
    expect(cell.locator(".play-said")).not_to_contain_text("Picture 150")
    played.screenshot("02-map", of=cell)


def test_icons_are_searched_and_one_is_chosen_by_arrow_keys(played):
    cell = played.cell(PLAYED["icons"])
    says(cell, "Chosen: thinking face by noto.")
    cell.get_by_label("Search").fill("microscope")
    says(cell, "“microscope” finds 7 of 571 drawings.")
    drawn = cell.get_by_role("slider", name="Map of the drawings")
    drawn.focus()
    expect(drawn).to_be_focused()
    played.page.keyboard.press("ArrowRight")
    expect(cell.locator(".play-said")).not_to_contain_text("Chosen: thinking face by noto.")
    played.screenshot("02-icons", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
