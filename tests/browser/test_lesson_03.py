"""The playgrounds of lesson 03 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.lessons.lesson_03.playground import PLAYGROUNDS
"""
PLAYED = {
    "reader": "PLAYGROUNDS['reader']().live()",
    "eigenvalues": "PLAYGROUNDS['eigenvalues']().live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_recurrent.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def says(cell, text):
    expect(cell.locator(".play-said")).to_contain_text(text)


def test_a_name_is_read_letter_by_letter(played):
    cell = played.cell(PLAYED["reader"])
    says(cell, "“brazília”: Hungarian")
    cell.get_by_role("button", name="kamboçya").click()
    says(cell, "“kamboçya”: Turkish")
    cell.get_by_role("textbox", name="Name").fill("")
    says(cell, "Write a name")
    played.screenshot("03-reader", of=cell)


def test_eigenvalues_are_moved_and_a_goal_is_reached(played):
    cell = played.cell(PLAYED["eigenvalues"])
    said = cell.locator(".play-said")
    expect(said).to_contain_text("Eigenvalues of absolute value 0.90")
    handle = cell.locator(".play-point[role=slider]")
    handle.focus()
    for _ in range(5):
        handle.press("PageUp")
    expect(said).to_contain_text("Eigenvalues of absolute value 1.40")
    expect(cell.locator(".play-goals li.reached")).to_have_count(1)
    played.screenshot("03-eigenvalues", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
