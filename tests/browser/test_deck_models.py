"""Playgrounds with a trained model compute in a deck, opened from a file without a network."""

import re

import pytest
from playwright.sync_api import expect

from course_lib.commands.files import read_notebook
from course_lib.commands.lessons import find_lesson
from course_lib.lectures import deck as decks
from course_lib.lectures.deck import WITH_MODELS, build_deck, slideshow_of, write_deck

pytestmark = pytest.mark.needs("chromium", "lecture_assets")


@pytest.fixture
def play(browser, tmp_path):
    """play(lesson, playground): this playground on its slide, in a page that can reach nothing."""
    contexts, problems = [], []

    def open_it(number, name):
        file = tmp_path / f"{number}.html"
        assert write_deck(read_notebook(find_lesson(number)), file) < WITH_MODELS
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 720}, offline=True))
        contexts[-1].set_default_timeout(120_000)
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda line: problems.append(line.text) if line.type in ("error", "warning") else None)
        page.on("request", lambda request: request.url.startswith("http") and problems.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]")
        box = f".course-playground[data-playground={name}]"
        page.evaluate(
            "(what) => Reveal.slide(Reveal.getSlides().findIndex((one) => one.querySelector(what)), 0, -1)", box
        )
        playground = page.locator(f"section.present {box}.playing .course-playground-live")
        expect(playground).to_be_visible()
        return playground

    yield open_it
    for context in contexts:
        context.close()
    assert problems == []


def fits(playground):
    place = playground.page.locator("section.present .place").bounding_box()
    return playground.bounding_box()["y"] + playground.bounding_box()["height"] <= place["y"] + 2


def test_the_translator_translates_a_new_sentence(play):
    translator = play("05", "translator")
    expect(translator).to_contain_text("économique")
    translator.get_by_role("textbox").first.fill("The minister sees the area.")
    expect(translator).not_to_contain_text("économique")
    expect(translator).to_contain_text(re.compile(r"le\s+ministre\s+voit"))
    assert fits(translator)


def test_bert_fills_another_blank(play):
    blank = play("07", "blank")
    expect(blank).to_contain_text("The model says")
    blank.get_by_role("textbox").first.fill("Le ministre [signe] la loi.")
    expect(blank).to_contain_text(
        re.compile(r"The model says “\w+” \(\d+%\), and that stood there|“signe” stood there")
    )
    assert fits(blank)


def test_a_vit_classifies_another_digit(play):
    digit = play("11", "digit")
    expect(digit).to_contain_text("It says 5")
    digit.get_by_role("button", name="a wide three").click()
    expect(digit).to_contain_text("It says 3")
    assert fits(digit)


def test_a_model_that_is_too_large_is_told_and_its_frames_stay(monkeypatch):
    monkeypatch.setattr(decks, "WITH_MODELS", 1)
    said = []
    deck = build_deck(slideshow_of(read_notebook(find_lesson("11"))), say=said.append)
    assert "courseModels = {" not in deck and len(said) == 1 and "vit and vit_digits" in said[0]
