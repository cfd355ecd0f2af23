"""Lesson 05 as a learner meets it in JupyterLab: run it, predict, write attention, and see the lesson run on it."""

import re

import pytest
from playwright.sync_api import expect

from course_lib.lessons.lesson_05 import page as contents
from tests.browser.lab import ROOT, SECOND
from tests.lessons.answered import answer

pytestmark = pytest.mark.needs("chromium")

LESSON = ROOT / "notebooks" / "05_attention.ipynb"
TRAINING = 'page.keep("translator"'
ANSWER_TIME = 240 * SECOND  # for one answer of a kernel on a busy machine
CHECK = '\npage.check("attention", my_attention)'
SOLUTION = contents.tasks["attention"].solution.strip()
WITHOUT_SCALE = SOLUTION.replace(" / q.shape[-1] ** 0.5", "")


@pytest.fixture(scope="module")
def lesson(start_lab, open_notebook):
    """The lesson's page after Run > Run All Cells with nothing done before."""
    page = open_notebook(start_lab([LESSON]), LESSON.name)
    page.run_all()  # a translator learns French, on a machine that may be busy
    return page


def answers_in(cell, text):
    """Wait until the cell's output says this; a text or a pattern."""
    expect(cell.locator(".jp-OutputArea").first).to_contain_text(text, timeout=ANSWER_TIME)


def test_every_cell_runs_and_each_exercise_waits_to_be_written(lesson):
    sources = [cell["source"] for cell in lesson.code_cells()]
    assert lesson.errors() == []
    assert lesson.executed()[: len(sources)] == sources
    for name in contents.tasks:
        answers_in(lesson.cell(f'check("{name}"'), "Not written yet")
    answers_in(lesson.cell('page.load("seq2seq"'), "is not written yet, so the lesson goes on with ours")


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


def test_the_lesson_trains_the_learners_own_translator_and_translates_the_famous_sentence(lesson):
    lesson.replace_source("def my_attention(", WITHOUT_SCALE + CHECK)
    cell = lesson.run_cell("def my_attention(")
    answers_in(cell, "missing scale")
    lesson.replace_source("def my_attention(", SOLUTION + CHECK)
    cell = lesson.run_cell("def my_attention(")
    answers_in(cell, "All right: your my_attention passes its check")
    for name in ("encoder", "decoder", "seq2seq", "greedy"):
        asked = f'page.check("{name}"'
        source = next(cell["source"] for cell in lesson.code_cells() if asked in cell["source"])
        lesson.replace_source(asked, answer(source, contents.tasks))
        answers_in(lesson.run_cell(asked), "passes its check")

    answers_in(lesson.cell("# for the decoder"), "From here on the lesson runs on your my_attention")
    answers_in(lesson.run_cell('page.load("seq2seq"'), "the page runs on your model")
    answers_in(lesson.run_cell('page.resume("attention", "seq2seq"'), "Your Seq2Seq goes on here.")
    cell = lesson.run_cell(TRAINING, seconds=600)
    answers_in(cell, "le ministre ne voit pas la zone économique européenne")
    lesson.screenshot("05-your-translator", of=cell)
    cell = lesson.run_cell(TRAINING)
    answers_in(cell, "earlier")  # kept: the second time it goes on at once


def test_the_closing_card_says_what_was_done(lesson):
    cell = lesson.cell("page.close()")
    answers_in(cell, "the exercise softmax")
    expect(cell.locator(".jp-OutputArea").first).not_to_contain_text("the exercise attention")


def test_the_page_made_no_error_and_asked_no_other_machine(lesson):
    lesson.screenshot("05-page")
    assert lesson.problems == []
