"""The playgrounds of lesson 01 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_01.playground import PLAYGROUNDS

six, ten = load_trained("transfer").model, load_trained("resnet").model
"""
PLAYED = {
    "six": "PLAYGROUNDS['six'](six).live()",
    "stages": "PLAYGROUNDS['stages'](ten).live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_transfer.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def says(cell, text):
    expect(cell.locator(".play-said")).to_contain_text(text)


def test_a_drawing_is_read_by_a_network_of_six_digits(played):
    cell = played.cell(PLAYED["six"])
    says(cell, "It knows 0 to 5, and says 2")
    cell.get_by_role("button", name="any digit").click()
    cell.get_by_role("button", name="a zero").click()
    says(cell, "It knows 0 to 5, and says 0")
    played.screenshot("01-six", of=cell)


def test_each_depth_reads_the_drawing(played):
    cell = played.cell(PLAYED["stages"])
    says(cell, "A probe at each depth reads")
    cell.get_by_role("button", name="a zero").click()
    says(cell, "stage 3 0")
    played.screenshot("01-stages", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
