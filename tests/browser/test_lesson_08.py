"""The playgrounds of lesson 08 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from course_lib.commands.files import write_notebook
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_08.definitions import define
from course_lib.text.tokenizer import Tokenizer
from tests.browser.playgrounds import THEMES, as_stored, found_by_axe, write_playgrounds, wrong_on_slides

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


def test_the_pen_writes_while_one_looks_and_writes_anew_under_another_setting(played):
    cell = played.cell("PLAYGROUNDS['writer']")
    high = cell.bounding_box()["height"]
    cell.get_by_role("button", name="Clear").click()
    expect(cell.get_by_text("7 tokens of the prompt, 0 written")).to_be_visible()
    cell.get_by_role("button", name="Draw 40").click()
    expect(cell.get_by_text("7 tokens of the prompt, 40 written")).to_be_visible()
    before = cell.locator("p", has_text="florpness").inner_text()
    cell.get_by_label("Top-k").select_option("1")
    expect(cell.get_by_text("✕ cut away").first).to_be_visible()
    played.move_slider(cell.locator(".widget-slider").first, 8)
    expect(cell.get_by_role("status")).to_have_text("1 of 3 goals reached")  # greedy's text at temperature 2.5
    assert cell.locator("p", has_text="florpness").inner_text() != before
    assert cell.bounding_box()["height"] == high
    played.screenshot("08-writer", of=cell)
    cell.get_by_role("button", name="Back to the start").click()
    expect(cell.get_by_text("7 tokens of the prompt, 24 written")).to_be_visible()


def test_a_word_is_defined_while_it_is_typed(played):
    cell = played.cell("PLAYGROUNDS['lookup']")
    high = cell.bounding_box()["height"]
    cell.get_by_role("textbox", name="Word").fill("sixty-one")
    cell.get_by_label("Part of speech").select_option("adjective")
    expect(cell.locator("tr", has_text="GPT")).to_contain_text("being one more than sixty")
    expect(cell.locator("tr", has_text="WordNet")).to_contain_text("being one more than sixty")
    expect(cell.get_by_role("status")).to_have_text("1 of 3 goals reached")
    cell.get_by_role("button", name="dogfish").click()
    cell.get_by_label("Part of speech").select_option("noun")
    expect(cell.locator("tr", has_text="WordNet")).to_contain_text("any of several small sharks")
    assert cell.bounding_box()["height"] == high
    played.screenshot("08-lookup", of=cell)


def test_characters_are_guessed_by_keyboard_and_said_beside_the_box(played):
    cell = played.cell("PLAYGROUNDS['guess']")
    cells, box = len(played.code_cells()), cell.get_by_label("Next character")
    box.click()
    for left, key in zip(range(39, 26, -1), "except the dd", strict=True):
        played.page.keyboard.type(key)
        expect(cell.get_by_text(f"{left} to go")).to_be_visible()
    said = cell.get_by_role("status").first
    expect(said).to_contain_text("Not “d” but")
    expect(box).to_be_focused()
    expect(box).to_have_value("")
    cell.get_by_role("button", name="Another text").click()
    expect(cell.get_by_text("The context manager returns")).to_be_visible()
    played.page.keyboard.type("i")
    expect(said).to_contain_text("✓ Yes, “i”")
    played.screenshot("08-guess", of=cell)
    assert len(played.code_cells()) == cells


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}


def test_an_untrusted_notebook_steps_through_them(played, notebook, start_lab, open_notebook, tmp_path):
    path = tmp_path / "untrusted.ipynb"
    write_notebook(as_stored(played, notebook), path)
    page = open_notebook(start_lab([path]), path.name)
    writer = page.cell(PLAYED["writer"])
    writer.locator("summary").first.click()
    expect(writer.get_by_text("The likeliest next tokens").first).to_be_visible()
    page.screenshot("08-untrusted", of=writer)
    lookup = page.cell(PLAYED["lookup"])
    lookup.locator("summary").nth(2).click()
    gpt = load_trained("dictionary")
    tokenizer = Tokenizer.from_state_dict(gpt.extra["tokenizer"])
    (definition,) = define(gpt.model, tokenizer, ["dogfish (noun):"])
    expect(lookup.get_by_text(definition.strip()).first).to_be_visible()
    guess = page.cell(PLAYED["guess"])
    guess.locator("summary").nth(1).click()
    expect(guess.get_by_text("The score so far").first).to_be_visible()


def test_a_deck_holds_them_within_its_slides(browser, played, notebook, tmp_path):
    assert wrong_on_slides(browser, as_stored(played, notebook), tmp_path / "deck.html") == {}
