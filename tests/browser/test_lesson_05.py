"""Lesson 05 in JupyterLab, with a learner's answers in it: it runs on them, she predicts, and writes one anew."""

import re

import pytest
from playwright.sync_api import expect

from course_lib.commands.files import read_notebook, write_notebook
from course_lib.lessons.lesson_05 import page as contents
from tests.browser.lab import ROOT, SECOND
from tests.lessons.answered import answer

pytestmark = pytest.mark.needs("chromium")

LESSON = ROOT / "notebooks" / "05_attention.ipynb"
TRAINING = 'page.keep("translator"'
ANSWER_TIME = 240 * SECOND  # for one answer of a kernel on a busy machine
CHECK = '\npage.check("attention", my_attention)'
SOLUTION = contents.tasks["attention"].solution.strip()
SHORTER = (  # her trainings, where they are not looked at; her translator starts with the trained one's weights
    ("steps=1000", "steps=3"),
    ("model = make(**sizes)", "model = make(**sizes)\n    model.load_state_dict(translator.state_dict())"),
    ("range(80)", "range(2)"),
    ("seed in range(3)", "seed in range(1)"),
)
WITHOUT_SCALE = SOLUTION.replace(" / q.shape[-1] ** 0.5", "")


@pytest.fixture(scope="module")
def lesson(start_lab, open_notebook, tmp_path_factory):
    """The page of a learner who has written all exercises, after Run > Run All Cells."""
    notebook = read_notebook(LESSON)
    for cell in notebook.cells:
        if cell.cell_type == "code" and "page.check(" in cell.source:
            cell.source = answer(cell.source, contents.tasks)
        for old, new in SHORTER:
            cell.source = cell.source.replace(old, new)
    path = tmp_path_factory.mktemp("answered") / LESSON.name
    write_notebook(notebook, path)
    page = open_notebook(start_lab([path]), path.name)
    page.run_all()
    return page


def answers_in(cell, text):
    """Wait until the cell's output says this; a text or a pattern."""
    expect(cell.locator(".jp-OutputArea").first).to_contain_text(text, timeout=ANSWER_TIME)


def test_every_cell_runs_and_the_lesson_goes_on_with_the_learners_own_translator(lesson):
    sources = [cell["source"] for cell in lesson.code_cells()]
    assert lesson.errors() == []
    assert lesson.executed()[: len(sources)] == sources
    for name in contents.tasks:
        answers_in(lesson.cell(f'check("{name}"'), "passes its check")
    answers_in(lesson.cell("# for the decoder"), "From here on the lesson runs on your my_attention")
    answers_in(lesson.cell('page.load("seq2seq"'), "the page runs on your model")
    answers_in(lesson.cell('page.resume("attention", "seq2seq"'), "Your Seq2Seq goes on here.")
    cell = lesson.cell(TRAINING)
    answers_in(cell, "le ministre ne voit pas la zone économique européenne")
    lesson.screenshot("05-your-translator", of=cell)


def test_every_picture_says_what_it_shows(lesson):
    for cell in lesson.code_cells():
        if any("<img" in str(output.get("data", {}).get("text/html", "")) for output in cell["outputs"]):
            for image in lesson.cell(cell["source"]).locator(".jp-OutputArea img").all():
                assert len(image.get_attribute("alt") or "") > 30, cell["source"]


@pytest.mark.parametrize("name", ["bottleneck", "heads"])
def test_a_result_stays_closed_until_the_bet_and_then_stands_beside_it(lesson, name):
    result = lesson.cell(f'page.result("{name}"')
    answers_in(result, "Make your prediction first")
    expect(result.locator(".jp-OutputArea img")).to_have_count(0)
    prediction = lesson.cell(f'page.predict("{name}")')
    lesson.move_slider(prediction.locator(".widget-slider"), -3)
    prediction.get_by_role("button", name="This is my prediction").click()
    answers_in(prediction, re.compile(r"● You predicted [\d.]+ (BLEU|%)"))
    result = lesson.cell(f'page.result("{name}"')
    answers_in(result, re.compile(r"You predicted [\d.]+ (BLEU|%); it was [\d.]+ (BLEU|%)"))
    expect(result.locator(".jp-OutputArea img")).to_have_count(1)
    lesson.screenshot(f"05-result-{name}", of=result)


def test_a_wrong_answer_is_told_its_mistake_and_the_right_one_passes(lesson):
    lesson.replace_source("def my_attention(", WITHOUT_SCALE + CHECK)
    answers_in(lesson.run_cell("def my_attention("), "missing scale")
    lesson.replace_source("def my_attention(", SOLUTION + CHECK)
    answers_in(lesson.run_cell("def my_attention("), "All right: your my_attention passes its check")


def test_the_closing_card_says_what_was_done(lesson):
    cell = lesson.cell("page.close()")
    answers_in(cell, "the prediction bottleneck: you predicted")
    expect(cell.locator(".jp-OutputArea").first).not_to_contain_text("the exercise attention")


def test_the_page_made_no_error_and_asked_no_other_machine(lesson):
    lesson.screenshot("05-page")
    assert lesson.problems == []
