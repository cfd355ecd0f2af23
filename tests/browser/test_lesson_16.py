"""The playgrounds of lesson 16 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_16.control_playground import trajectories
from course_lib.lessons.lesson_16.recipes import control
from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_16 import control_playground, words_playground

mazes, clip = load_trained("mazes").model, load_trained("icon_clip").model
"""
PLAYED = {
    "agent": "control_playground.agent(mazes).live()",
    "search": "words_playground.search(clip).live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_acting.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def test_the_agent_is_asked_for_another_return(played):
    cell = played.cell(PLAYED["agent"])
    pair = control.pairs()["test"][0].tolist()
    steps = (trajectories(load_trained("mazes").model, *pair) >= 0).sum(axis=1) - 1
    expect(cell.get_by_text(f"Asked for -10: {steps[10]} steps")).to_be_visible()
    cell.get_by_role("slider", name="Return asked for").press("Home")
    expect(cell.get_by_text(f"Asked for -40: {steps[40]} steps")).to_be_visible()
    played.screenshot("16-agent", of=cell)


def test_words_are_typed_and_the_icons_with_the_highest_cosine_come(played):
    cell = played.cell(PLAYED["search"])
    found = cell.locator(".play-icons canvas:visible")
    expect(found).to_have_count(6)
    expect(found.first).to_have_attribute("aria-label", "sunflower")
    box = cell.get_by_label("Words", exact=True)
    box.fill("green book")
    expect(cell.get_by_text("The icons with the highest cosine for “green book”")).to_be_visible()
    expect(found.first).not_to_have_attribute("aria-label", "sunflower")
    box.fill("fish")
    cell.get_by_text("unseen things", exact=True).click()
    expect(cell.get_by_text("The icons with the highest cosine for “fish”")).to_be_visible()
    expect(found).to_have_count(6)
    played.screenshot("16-search", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
