"""The playgrounds of lesson 07 in JupyterLab, in an untrusted notebook and on slides."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_07.playground import PLAYGROUNDS
from course_lib.lessons.lesson_07.sentences import passages

bert = load_trained("bert")
"""
PLAYED = {
    "blank": "PLAYGROUNDS['blank'](bert.model).live()",
    "search": "PLAYGROUNDS['search'](None, passages(['05'])).live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "97_bert.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def test_a_press_hides_a_word_and_the_kernels_model_answers(played):
    cell = played.cell("PLAYGROUNDS['blank']")
    box = cell.get_by_role("textbox", name="Sentence")
    cell.get_by_role("button", name="La [loi] est nouvelle.").click()
    expect(cell.get_by_text("“loi” stood there").first).to_be_visible()
    high = cell.bounding_box()["height"]
    cell.get_by_role("button", name="Show “loi”").press("Space")
    expect(cell.get_by_text("No word is hidden: press one")).to_be_visible()
    expect(cell.get_by_role("button", name="Hide “loi”")).to_be_focused()
    assert cell.bounding_box()["height"] == high
    cell.get_by_role("button", name="Hide “nouvelle”").click()
    expect(box).to_have_value("la loi est [nouvelle].")
    expect(cell.get_by_role("status").first).to_have_text("1 of 3 goals reached")
    cell.get_by_role("listitem", name="head 3.2").hover()
    expect(cell.locator(".play-words > *").nth(2)).not_to_have_attribute("style", re.compile("--share: 0%"))
    played.screenshot("07-blank", of=cell)
    box.fill("the ministers of the country [are] old")
    box.press("Enter")
    expect(cell.get_by_role("status").first).to_have_text("2 of 3 goals reached")
    box.fill("the ministr [signs today] it")
    expect(cell.get_by_text("One word to a blank, please: “signs today” is 2 of them.").first).to_be_visible()


def test_a_question_finds_sentences_of_the_pages_by_meaning_and_by_words(played):
    cell = played.cell("PLAYGROUNDS['search']")
    box = cell.get_by_role("textbox", name="Question")
    box.fill("padding")
    expect(cell.locator("b", has_text="padding").first).to_be_visible()
    expect(cell.locator(".play-found li").first).to_contain_text("lesson 05")
    box.fill("xyzzy")
    expect(cell.get_by_text("No sentence has a word of yours.")).to_be_visible()
    played.screenshot("07-search", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
