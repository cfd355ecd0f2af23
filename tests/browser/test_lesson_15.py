"""The playgrounds of lesson 15 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from course_lib.commands.files import write_notebook
from tests.browser.playgrounds import THEMES, as_stored, found_by_axe, write_playgrounds, wrong_on_slides

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_15 import page

mazes = load_trained("mazes").model
"""
PLAYED = {"map": "page.play('map')", "walker": "page.play('walker', mazes)"}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_everywhere.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def test_each_field_of_the_map_sets_its_old_system_beside_its_successor(played):
    cell = played.cell(PLAYED["map"])
    successors = {"pictures": "ViT", "speech": "Conformer", "control": "Decision Transformer", "translation": "GRUs"}
    for field, name in successors.items():
        cell.locator(".play-choice").get_by_text(field, exact=True).click()
        expect(cell.locator(".play-views")).to_contain_text(name)
    played.screenshot("15-map", of=cell)


def test_the_walker_is_asked_for_another_return(played):
    cell = played.cell(PLAYED["walker"])
    expect(cell.get_by_text("Asked for -10: 14 steps")).to_be_visible()
    cell.get_by_role("slider", name="Return asked for").press("Home")
    expect(cell.get_by_text("Asked for -40: 40 steps")).to_be_visible()
    played.screenshot("15-walker", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}


def test_an_untrusted_notebook_steps_through_them(played, notebook, start_lab, open_notebook, tmp_path):
    path = tmp_path / "untrusted.ipynb"
    write_notebook(as_stored(played, notebook), path)
    page = open_notebook(start_lab([path]), path.name)
    walker = page.cell(PLAYED["walker"])
    walker.locator("summary").nth(2).click()
    expect(walker.get_by_text("Asked for -34").first).to_be_visible()


def test_a_deck_holds_them_within_its_slides(browser, played, notebook, tmp_path):
    assert wrong_on_slides(browser, as_stored(played, notebook), tmp_path / "deck.html") == {}
