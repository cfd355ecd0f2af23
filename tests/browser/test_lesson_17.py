"""The playgrounds of lesson 17 in JupyterLab, in an untrusted notebook and on slides."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_17.playground import PLAYGROUNDS

machine = load_trained("boltzmann").model
"""
PLAYED = {
    "scores": "PLAYGROUNDS['scores']().live()",
    "dream": "PLAYGROUNDS['dream'](machine).live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_long.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def test_the_costs_are_those_of_the_kind_and_the_length_and_goals_are_reached(played):
    cell = played.cell(PLAYED["scores"])
    rows, status = cell.locator(".play-score tbody tr"), cell.get_by_role("status").first
    expect(cell.locator(".play-said")).to_contain_text("softmax attention needs 1 times the multiplications")
    expect(status).to_have_text("Can you get there?")
    cell.get_by_text("linear", exact=True).last.click()
    number = cell.get_by_label("Tokens, typed")
    number.fill("16")
    number.press("Enter")
    expect(cell.locator(".play-said")).to_contain_text("One head, 16 tokens: linear attention needs 7.65 times")
    expect(rows).to_have_text([re.compile(kind) for kind in ("softmax", "blocks", "local", "linear133,1200")])
    expect(status).to_have_text("1 of 3 goals reached")
    cell.get_by_label("Size of a head", exact=True).press("ArrowLeft")
    expect(rows.first).not_to_contain_text("17,408")
    played.screenshot("17-scores", of=cell)


def test_another_label_is_clamped_and_the_chains_begin_at_a_digit(played):
    cell = played.cell(PLAYED["dream"])
    said, images = cell.locator(".play-said"), cell.locator(".play-dreams")
    expect(images.locator("canvas")).to_have_count(16)
    expect(said).to_contain_text("The label 3 is clamped. After 30 Gibbs steps")
    cell.get_by_role("radiogroup", name="Clamped label").get_by_text("0", exact=True).click()
    expect(said).to_contain_text("The label 0 is clamped. After 30 Gibbs steps")
    cell.get_by_role("radiogroup", name="Begin at").get_by_text("8", exact=True).click()
    steps = cell.get_by_label("Gibbs steps, typed")
    steps.fill("1")
    steps.press("Enter")
    expect(said).to_contain_text("After 1 Gibbs step ")
    before = images.get_attribute("aria-label")
    cell.get_by_role("button", name="Other random numbers").click()
    expect(images).not_to_have_attribute("aria-label", before)
    played.screenshot("17-dream", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
