"""The playgrounds of lesson 08 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_08.playground import PLAYGROUNDS
from course_lib.text.tokenizer import Tokenizer

gpt = load_trained("dictionary")
tokenizer = Tokenizer.from_state_dict(gpt.extra["tokenizer"])
"""
PLAYED = {
    "lookup": "PLAYGROUNDS['lookup'](gpt.model, tokenizer).live()",
    "writer": "PLAYGROUNDS['writer'](gpt.model, tokenizer).live()",
    "guess": "PLAYGROUNDS['guess']().live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_gpt.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def test_the_kernels_model_writes_in_the_page_and_goals_are_ticked(played):
    cell = played.cell("PLAYGROUNDS['writer']")
    write = cell.get_by_role("button", name="Write", exact=True)
    expect(cell.locator(".play-next button")).to_have_count(10)  # asked as soon as it is there
    cell.get_by_role("button", name="One token").click()
    expect(cell.get_by_text("1 tokens written")).to_be_visible()
    cell.locator(".play-choice").get_by_text("1", exact=True).click()
    expect(cell.get_by_text("1 of 2048 tokens can be drawn")).to_be_visible()
    cell.get_by_label("Temperature, typed").fill("2")
    cell.get_by_label("Temperature, typed").press("Enter")
    cell.get_by_role("button", name="Clear").click()
    reached = cell.locator(".play-goals li.reached")
    for _ in range(6):
        write.click()
        expect(write).to_be_visible()  # in the meantime it is called Stop
        if reached.count():
            break
    expect(reached).to_have_text("20 tokens sampled at temperature 1.5 or more, the same as in greedy decoding")
    played.screenshot("08-writer", of=cell)
    cell.get_by_role("button", name="Back to the start").click()
    expect(cell.get_by_text("0 tokens written")).to_be_visible()
    expect(cell.locator(".play-next button")).to_have_count(10)


def test_a_word_is_defined_by_the_kernel(played):
    cell = played.cell("PLAYGROUNDS['lookup']")
    answer = cell.locator(".play-entry")
    cell.get_by_role("textbox", name="Word").fill("sixty-one")
    cell.get_by_text("adjective", exact=True).click()
    cell.get_by_role("button", name="Define").click()
    expect(answer.locator("dd").first).to_have_text("being one more than sixty")
    expect(answer.locator("dd").last).to_contain_text("being one more than sixty")
    expect(cell.locator(".play-goals li.reached")).to_have_count(1)
    cell.get_by_role("button", name="dogfish").click()
    cell.get_by_text("noun", exact=True).click()
    expect(answer.locator("dd").last).to_contain_text("any of several small sharks")
    played.screenshot("08-lookup", of=cell)


def test_characters_are_guessed_by_keyboard_and_said_beside_the_box(played):
    cell = played.cell("PLAYGROUNDS['guess']")
    cells, box = len(played.code_cells()), cell.get_by_role("textbox", name="Next character")
    box.click()
    for left, key in zip(range(39, 26, -1), "except the dd", strict=True):
        played.page.keyboard.type(key)
        expect(cell.get_by_text(f"{left} to go")).to_be_visible()
    expect(cell.get_by_text("Not “d” but").first).to_be_visible()
    expect(box).to_be_focused()
    expect(box).to_have_value("")
    cell.get_by_role("button", name="Another text").click()
    expect(cell.get_by_text("The context manager returns").first).to_be_visible()
    played.page.keyboard.type("i")
    expect(cell.get_by_text("✓ Yes, “i”").first).to_be_visible()
    played.screenshot("08-guess", of=cell)
    assert len(played.code_cells()) == cells


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
