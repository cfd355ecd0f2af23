"""Lesson 05 as a learner meets it in JupyterLab: run, play, answer, predict, write; one page for all tests."""

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.commands.files import WIDGET_VIEW
from course_lib.lessons.lesson_05.questions import EXERCISES, PREDICTIONS, QUIZZES
from tests.browser.lab import ROOT, SECOND

pytestmark = pytest.mark.needs("chromium")

LESSON = ROOT / "notebooks" / "05_attention.ipynb"
ANSWER_TIME = 60 * SECOND  # for one answer of a kernel on a busy machine

WITHOUT_SCALE = """\
def my_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1)
    if mask is None:
        return scores.softmax(dim=-1) @ v
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights.masked_fill(~mask, 0.0) @ v"""


@pytest.fixture(scope="module")
def lesson(start_lab, open_notebook):
    """The lesson's page after Run > Run All Cells with nothing done before."""
    page = open_notebook(start_lab([LESSON]), LESSON.name)
    page.run_all(seconds=1200)  # six translators learn French, on a machine that may be busy
    return page


def answers_in(cell, text):
    """Wait until the cell's output says this; a text or a pattern."""
    expect(cell.locator(".jp-OutputArea").first).to_contain_text(text, timeout=ANSWER_TIME)


# ------------------------------------------------------------------------------------------- the run


def test_every_cell_runs_and_each_exercise_waits_to_be_written(lesson):
    # The kernel's own word: JupyterLab may fill in a cell's number some time later.
    sources = [cell["source"] for cell in lesson.code_cells()]
    assert lesson.errors() == [] and len(sources) > 70
    assert lesson.executed()[: len(sources)] == sources
    for name in EXERCISES:
        answers_in(lesson.cell(f'check("{name}"'), "Not written yet")


def pictures_shown(data):
    """A widget shows one of the pictures that its page for readers without a kernel holds."""
    count = str(data.get("text/html", "")).count("<img")
    return min(count, 1) if WIDGET_VIEW in data else count


def test_every_picture_is_there_and_says_what_it_shows(lesson):
    seen = 0
    for cell in lesson.code_cells():
        pictures = sum(pictures_shown(output.get("data", {})) for output in cell["outputs"])
        if not pictures:
            continue
        images = lesson.cell(cell["source"]).locator(".jp-OutputArea img")
        expect(images).to_have_count(pictures)
        for image in images.all():
            assert len(image.get_attribute("alt") or "") > 30, cell["source"]
            lesson.page.wait_for_function("image => image.naturalWidth > 0", arg=image.element_handle())
        seen += pictures
    assert seen >= 12
    assert lesson.page.locator("img:not([alt]), img[alt='']").count() == 0


# ------------------------------------------------------------------------------------------- the widgets


def weights_of(scores):
    """The softmax of five scores as the explorer says it."""
    powers = np.exp(np.array(scores) - max(scores))
    return "keys 1 to 5 are " + ", ".join(f"{p:.2f}" for p in powers / powers.sum())


def test_the_softmax_follows_its_scores_its_width_and_its_temperature(lesson):
    cell = lesson.cell("softmax_explorer().live()")
    temperature, first = (cell.locator(".widget-slider").nth(i) for i in range(2))
    scores = np.array([1.2, 0.4, -0.3, -1.1, 0.0])
    at_the_start = cell.get_by_text("The weights of keys").inner_text()
    cell.get_by_label("Width d_k").select_option("64")
    answers_in(cell, weights_of(8 * scores))
    answers_in(cell, "The softmax is saturated")
    lesson.screenshot("05-softmax-saturated", of=cell)

    lesson.move_slider(first, -9)  # 0.1 each: from 1.2 to 0.3
    scores[0] = 0.3
    answers_in(cell, weights_of(8 * scores))
    answers_in(cell, "key 2 has the largest")
    lesson.move_slider(temperature, 18)  # to 10^0.9 = 7.94, nearly the root of 64
    answers_in(cell, weights_of(8 * scores / 10**0.9))
    answers_in(cell, "A change of the scores moves the weights")
    lesson.screenshot("05-softmax-rescued", of=cell)

    cell.get_by_role("button", name="Back to the start").click()
    answers_in(cell, at_the_start)
    scores[0] = 1.2
    cell.get_by_label("Width d_k").select_option("4")
    answers_in(cell, weights_of(2 * scores))
    cell.get_by_label("Divide by √d_k").select_option("yes, as in the paper")
    answers_in(cell, weights_of(scores))


def test_a_painted_mask_changes_who_looks_at_whom(lesson):
    cell = lesson.cell("mask_painter().live()")
    answers_in(cell, "'cat' looks most at 'the' (0.57)")  # causal: exp(1.0) against exp(0.7)
    lesson.screenshot("05-mask-causal", of=cell)
    cell.get_by_title("'cat' may not look at 'sees'").click()
    answers_in(cell, "'cat' looks most at 'sees' (0.51)")  # exp(1.6) comes in
    cell.get_by_title("'cat' may look at 'sees'").click()
    answers_in(cell, "'cat' looks most at 'the' (0.57)")

    cell.get_by_role("button", name="nothing", exact=True).click()
    answers_in(cell, "may look at nothing: all weights there are zero")
    cell.get_by_title("'dog' may not look at 'a'").click()
    answers_in(cell, "'dog' looks most at 'a' (1.00)")
    lesson.screenshot("05-mask-painted", of=cell)
    cell.get_by_role("button", name="full", exact=True).click()
    answers_in(cell, "Each row sums to one over what is visible")


def test_the_translator_answers_what_is_typed(lesson):
    cell = lesson.cell("translator_to_talk_to(")
    answers_in(cell, "la zone économique européenne")
    picture = cell.locator(".jp-OutputArea img")
    before = picture.get_attribute("src")
    lesson.screenshot("05-translator-start", of=cell)

    box = cell.get_by_label("English sentence")
    box.fill("")
    answers_in(cell, "Type a sentence, or take one of the examples.")
    box.press_sequentially("The minister signs the law.")
    answers_in(cell, "Translation: “le ministre signe la loi .”")
    answers_in(cell, "“ministre” at “minister”")
    assert picture.get_attribute("src") != before  # the map is drawn anew, too
    lesson.screenshot("05-translator-typed", of=cell)

    cell.get_by_role("button", name="She doesn't see them").click()
    expect(box).to_have_value(re.compile("^She doesn't see them"))
    answers_in(cell, "Translation: “elle ne les voit pas .”")


def test_the_translator_names_a_word_it_does_not_know_and_a_near_one(lesson):
    cell = lesson.cell("translator_to_talk_to(")
    cell.get_by_label("English sentence").fill("the ministre signs the law")
    answers_in(cell, "I do not know the word “ministre” yet, so I can only guess. Did you mean “minister”")
    answers_in(cell, "“loi” at “law”")
    lesson.screenshot("05-translator-unknown", of=cell)


# ------------------------------------------------------------------------------------------- questions and predictions


@pytest.mark.parametrize("name", ["mask-order", "values"])
def test_a_wrong_answer_is_explained_and_the_right_one_praised(lesson, name):
    cell, quiz = lesson.cell(f'quiz("{name}")'), QUIZZES[name]
    right, wrong = quiz["answer"], 0 if quiz["answer"] else 1
    cell.get_by_role("button", name="ABC"[wrong], exact=True).click()
    expect(cell.get_by_role("alert")).to_contain_text(f"{'ABC'[wrong]} is not right", timeout=ANSWER_TIME)
    expect(cell.get_by_role("alert")).to_contain_text(quiz["why"][wrong])
    lesson.screenshot(f"05-quiz-{name}-wrong", of=cell)
    cell.get_by_role("button", name="ABC"[right], exact=True).click()
    expect(cell.get_by_role("alert")).to_contain_text(f"{'ABC'[right]} is right", timeout=ANSWER_TIME)
    expect(cell.get_by_role("alert")).to_contain_text(quiz["why"][right])
    cell.get_by_text("Why not the others?").click()
    expect(cell.get_by_role("alert")).to_contain_text(quiz["why"][wrong])
    lesson.screenshot(f"05-quiz-{name}-right", of=cell)


@pytest.mark.parametrize(("name", "comes_true"), [("shuffle", False), ("heads", True)])
def test_a_prediction_stands_beside_what_happened(lesson, name, comes_true):
    options = PREDICTIONS[name]["options"]
    source = next(c["source"] for c in lesson.code_cells() if re.search(rf'reveal\(\s*"{name}"', c["source"]))
    output = lesson.cell(source).locator(".jp-OutputArea").first
    expect(output).to_contain_text(re.compile("[A-C] came true: "))
    expect(output).not_to_contain_text("You predicted")
    true = "ABC".index(re.search("([A-C]) came true: ", output.inner_text())[1])
    chosen = true if comes_true else (true + 1) % len(options)

    cell = lesson.cell(f'predict("{name}")')
    cell.get_by_role("button", name="ABC"[chosen], exact=True).click()
    answers_in(cell, f"You predict {'ABC'[chosen]}. Run on and see.")
    lesson.screenshot(f"05-prediction-{name}", of=cell)
    cell = lesson.cell(source)
    answers_in(cell, f"You predicted {'ABC'[chosen]}: {options[chosen]}")
    answers_in(cell, "✓ and that came true." if comes_true else f"✗ but {'ABC'[true]} came true: {options[true]}")
    lesson.screenshot(f"05-reveal-{name}", of=cell)


# ------------------------------------------------------------------------------------------- an exercise


def test_hints_open_one_after_another_and_the_solution_last(lesson):
    cell, hints = lesson.cell('exercise("scaled-dot-product")'), EXERCISES["scaled-dot-product"]["hints"]
    output, button = cell.locator(".jp-OutputArea").first, cell.locator("button.widget-button")
    for number in range(1, len(hints) + 1):
        expect(button).to_have_text(f"Open hint {number} of {len(hints)}")
        expect(output).not_to_contain_text(f"Hint {number} of {len(hints)}.")
        expect(output).not_to_contain_text("def my_attention")
        button.click()
        answers_in(cell, f"Hint {number} of {len(hints)}. {hints[number - 1].split('`')[0].strip()}")
        lesson.screenshot(f"05-exercise-hint-{number}", of=cell)
    expect(button).to_have_text("Show the solution")
    button.click()
    answers_in(cell, "def my_attention(q, k, v, mask=None):")
    expect(button).to_have_text("All help is open")
    expect(button).to_be_disabled()
    lesson.screenshot("05-exercise-solution", of=cell)


def test_a_wrong_solution_is_told_its_mistake_and_the_right_one_passes(lesson):
    lesson.replace_source("def my_attention(", WITHOUT_SCALE)
    lesson.run_cell("def my_attention(")
    cell = lesson.run_cell('check("scaled-dot-product"')
    answers_in(cell, "Not yet")
    answers_in(cell, "missing scale: The dot products go into the softmax as they are.")
    lesson.screenshot("05-exercise-wrong", of=cell)

    lesson.replace_source("def my_attention(", EXERCISES["scaled-dot-product"]["solution"].strip())
    lesson.run_cell("def my_attention(")
    cell = lesson.run_cell('check("scaled-dot-product"')
    answers_in(cell, "All right: your code passes")
    expect(cell.locator(".jp-OutputArea").first).not_to_contain_text("Not yet")
    lesson.screenshot("05-exercise-right", of=cell)


# ------------------------------------------------------------------------------------------- what remains


def test_the_table_of_progress_counts_what_was_done(lesson):
    cell = lesson.run_cell('progress("05")')
    done = json.loads((lesson.lab.home / "progress.json").read_text())["lessons"]["05"]
    right = sum(bool(entry.get("right")) for entry in done["quizzes"].values())
    guessed = sum("choice" in entry for entry in done["predictions"].values())
    passed = sum(bool(entry.get("passed")) for entry in done["exercises"].values())
    assert (len(done["quizzes"]), len(done["predictions"]), len(done["exercises"])) == (12, 5, 5)
    answers_in(cell, f"{right} of {len(QUIZZES)}")
    answers_in(cell, f"{guessed} of {len(PREDICTIONS)}")
    answers_in(cell, f"{passed} of {len(EXERCISES)}")
    lesson.screenshot("05-progress", of=cell)


def test_the_page_made_no_error_and_asked_no_other_machine(lesson):
    lesson.screenshot("05-page")
    assert lesson.problems == []
