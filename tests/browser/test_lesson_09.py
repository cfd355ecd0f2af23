"""The playgrounds of lesson 09 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from course_lib.commands.files import write_notebook
from tests.browser.playgrounds import THEMES, as_stored, found_by_axe, write_playgrounds, wrong_on_slides

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


def test_an_untrusted_notebook_steps_through_them(played, notebook, start_lab, open_notebook, tmp_path):
    path = tmp_path / "untrusted.ipynb"
    write_notebook(as_stored(played, notebook), path)
    page = open_notebook(start_lab([path]), path.name)
    fit = page.cell(PLAYED["fit"])
    fit.locator("summary").nth(8).click()
    expect(fit.get_by_text("exponent 0.40 and floor 1.00").first).to_be_visible()


def test_a_deck_holds_them_within_its_slides(browser, played, notebook, tmp_path):
    assert wrong_on_slides(browser, as_stored(played, notebook), tmp_path / "deck.html") == {}
