"""The playgrounds of lesson 13 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_13.playground import PLAYGROUNDS

from course_lib.lessons.picture import the_picture

mae, scenes = load_trained("mae").model, load_trained("mae_scenes").model
"""
PLAYED = {
    "mask": "PLAYGROUNDS['mask'](mae).live()",
    "ruin": "PLAYGROUNDS['ruin'](scenes, the_picture().pixels).live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_mae.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def says(cell, text):
    expect(cell.locator(".play-said")).to_contain_text(text)


def test_patches_of_a_drawing_are_hidden_and_the_kernel_reconstructs_them(played):
    cell = played.cell(PLAYED["mask"])
    says(cell, "No patch is hidden")
    cell.get_by_role("gridcell", name="patch 25, visible").click()
    says(cell, "48 of 49 patches are visible")
    cell.get_by_role("button", name="Swap visible and hidden").click()
    says(cell, "1 of 49 patches are visible. Error (MSE)")
    cell.get_by_role("button", name="Show all").click()
    says(cell, "No patch is hidden")
    played.screenshot("13-mask", of=cell)


def test_another_image_keeps_its_hidden_patches(played):
    cell = played.cell(PLAYED["ruin"])
    says(cell, "16 of 64 patches are visible. Error (MSE)")
    cell.get_by_role("button", name="Show all").click()
    cell.get_by_role("gridcell", name="patch 28, visible").click()
    says(cell, "63 of 64 patches are visible")
    cell.get_by_text("a dahlia", exact=True).click()
    expect(cell.get_by_role("gridcell", name="patch 28, hidden")).to_be_visible()
    played.screenshot("13-ruin", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
