"""The playgrounds of lesson 10 in JupyterLab, in an untrusted notebook and on slides."""

import pytest
from playwright.sync_api import expect

from tests.browser.playgrounds import THEMES, found_by_axe, write_playgrounds

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_10 import learner
from course_lib.lessons.lesson_10.playground import PLAYGROUNDS
from course_lib.lessons.lesson_10.tasks import TASKS

tuned, reward = load_trained("demonstrated").model, load_trained("kindness").model
parts = learner.Parts(*(TASKS[name].reference for name in ("token_rewards", "gae")))
weights = load_trained("aligned").model.state_dict()
course = {"weights": weights, "critic": reward.state_dict(), "points": [learner.measure(tuned, tuned, reward)]}
"""
PLAYED = {
    "labeller": "PLAYGROUNDS['labeller'](learner.before().model).live()",
    "paid": "PLAYGROUNDS['rewards'](tuned, reward, course, course, parts).live()",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return write_playgrounds(tmp_path_factory.mktemp("playgrounds") / "98_alignment.ipynb", FIRST, PLAYED)


@pytest.fixture(scope="module")
def played(notebook, start_lab, open_notebook):
    """The playgrounds after all cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


def test_each_vote_asks_about_another_pair_and_teaches_a_word(played):
    cell = played.cell(PLAYED["labeller"])
    expect(cell.get_by_text("nothing yet")).to_be_visible()
    for number in (2, 3):
        cell.locator(".play-vote").first.click()
        expect(cell.get_by_text(f"Pair {number} of 80")).to_be_visible()
    cell.get_by_role("button", name="One back").click()
    expect(cell.get_by_text("1 votes, KL")).to_be_visible()
    cell.get_by_role("button", name="20 votes of somebody who dislikes “not”").click()
    expect(cell.get_by_text("20 votes, KL")).to_be_visible()
    played.screenshot("10-labeller", of=cell)


def test_a_penalty_of_nothing_leaves_the_score_alone(played):
    cell = played.cell(PLAYED["paid"])
    note = cell.locator(".play-note").first
    expect(note).to_contain_text("sum of the rewards")
    cell.get_by_role("slider", name="β").press("Home")
    score = note.inner_text().split(";")[0].split()[-1]
    expect(note).to_contain_text(f"with penalty {score}")
    played.screenshot("10-paid", of=cell)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(played, theme):
    assert found_by_axe(played, PLAYED, theme) == {}
