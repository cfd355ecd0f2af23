"""The playgrounds of lesson 09 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.lessons.lesson_09 import laws
from course_lib.lessons.lesson_09.playground import PLAYGROUNDS

runs = laws.shipped()
"""
PLAYED = {
    "compute": "PLAYGROUNDS['compute'](runs['grid'] + runs['isoflop']).live()",
    "fit": "PLAYGROUNDS['fit'](runs['grid']).live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_scaling.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def test_a_larger_budget_is_said_and_drawn(played):
    cell = played.cell(PLAYED["compute"])
    said = cell.locator(".play-said")
    expect(said).to_contain_text("1.0e10 operations")
    cell.get_by_role("slider", name="Compute C").press("End")
    expect(said).to_contain_text("1.0e13 operations")
    played.screenshot("09-compute", of=cell)


def test_a_floor_moves_what_is_promised(played):
    cell = played.cell(PLAYED["fit"])
    said = cell.locator(".play-said")
    expect(said).to_contain_text("floor 0.00")
    cell.get_by_role("slider", name="Floor c").last.press("End")
    expect(said).to_contain_text("floor 1.25")
    played.screenshot("09-fit", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
