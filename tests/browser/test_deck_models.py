"""Playgrounds with a trained model compute in a deck, opened from a file without a network."""

import re

import pytest
from playwright.sync_api import expect

from course_lib.commands.files import read_notebook
from course_lib.commands.lessons import find_lesson
from course_lib.lectures import deck as decks
from course_lib.lectures.deck import WITH_MODELS, build_deck, slideshow_of, write_deck
from tests.browser.played import Played

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

SHOW = "(what) => Reveal.slide(Reveal.getSlides().findIndex((one) => one.querySelector(what)), 0, -1)"
BLANK = re.compile(r"The model says “\w+” \(\d+%\), and that stood there|“signe” stood there")
PLAYED = {  # lesson and playground: what a learner reads, does and then reads
    ("05", "translator"): (("contains", "économique"), ("write", "English sentence", "The minister sees the area."),
        ("contains", re.compile(r"le\s+ministre\s+voit"))),
    ("07", "blank"): (("contains", "The model says"), ("write", "Sentence", "Le ministre [signe] la loi."),
        ("contains", BLANK)),
    ("11", "digit"): (("contains", "It says 5"), ("press", "a wide three"), ("contains", "It says 3")),
}  # fmt: skip


@pytest.mark.parametrize(("lesson", "name"), PLAYED)
def test_a_model_computes_in_a_deck(offline, tmp_path, lesson, name):
    file, box = tmp_path / f"{lesson}.html", f".course-playground[data-playground={name}]"
    assert write_deck(read_notebook(find_lesson(lesson)), file) < WITH_MODELS
    page = offline(file.as_uri(), viewport={"width": 1280, "height": 720})
    page.wait_for_selector("html[data-ready]")
    page.evaluate(SHOW, box)
    playground = page.locator(f"section.present {box}.playing .course-playground-live")
    expect(playground).to_be_visible()
    for method, *words in PLAYED[lesson, name]:
        getattr(Played(playground), method)(*words)
    place, shown = page.locator("section.present .place").bounding_box(), playground.bounding_box()
    assert shown["y"] + shown["height"] <= place["y"] + 2


def test_a_model_that_is_too_large_is_told_and_its_frames_stay(monkeypatch):
    monkeypatch.setattr(decks, "WITH_MODELS", 1)
    said = []
    deck = build_deck(slideshow_of(read_notebook(find_lesson("11"))), say=said.append)
    assert "courseModels = {" not in deck and len(said) == 1 and "vit and vit_digits" in said[0]
