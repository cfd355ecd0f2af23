"""The playgrounds of lesson 15 in JupyterLab, in an untrusted notebook and on slides."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_15.playground import PLAYGROUNDS

gaps, tones = load_trained("gaps").model, load_trained("tones").model
"""
PLAYED = {
    "spans": "PLAYGROUNDS['spans'](gaps).live()",
    "transcribe": "PLAYGROUNDS['transcribe'](tones).live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_text_and_sound.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def test_more_of_another_text_is_removed_and_filled(played):
    cell = played.cell(PLAYED["spans"])
    gone, text = cell.locator(".play-gaps > .gone"), cell.get_by_role("group", name="The text;")
    expect(gone).to_have_count(5)  # 15 % of 32
    rate = cell.get_by_label("Corruption rate, typed")
    rate.fill("0.3")
    rate.press("Enter")
    expect(gone).to_have_count(10)
    before = text.inner_text()
    cell.get_by_text("text 3", exact=True).last.click()
    expect(text).not_to_have_text(before)
    played.screenshot("15-spans", of=cell)


def test_noise_is_turned_up_until_the_melody_is_misheard_and_a_goal_is_reached(played):
    cell = played.cell(PLAYED["transcribe"])
    words, status, noise = (
        cell.locator(".play-said"),
        cell.get_by_role("status").first,
        cell.get_by_label("Noise, typed"),
    )
    expect(words).to_contain_text("Collapsed: C E G c, correct. Nearest clean tone in each frame: C E G c, correct.")
    expect(status).to_have_text("Can you get there?")
    noise.fill("0.8")  # where the nearest clean tone is wrong
    noise.press("Enter")
    expect(words).to_contain_text(re.compile("Collapsed: C E G c, correct. Nearest .*, wrong."))
    expect(status).to_have_text("1 of 3 goals reached")
    cell.get_by_text("C C D E E", exact=True).click()
    expect(words).to_contain_text("Played: C C D E E.")
    played.screenshot("15-transcribe", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
