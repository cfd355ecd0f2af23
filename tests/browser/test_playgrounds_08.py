"""Lesson 08's guessing game on the page: turns, words and goals are Python's, character by character."""

import random

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.lessons.lesson_08 import guess as game
from tests.axe import axe_script
from tests.browser.live_playground import played
from tests.browser.played import overflowing
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")

HIDDEN = "except that the end points are at zero. "  # the first text's


@pytest.fixture(scope="module")
def explorer():
    return game.guess()


def rounds_of(explorer):
    """Rounds in which most characters are right, others those of a model, and some are strange."""
    draw, passages = random.Random(8), explorer.config["passages"]
    yield from (
        [""],
        ["zz" + HIDDEN[2]],
        [HIDDEN],
        ["x"],
        ["<é😀"],
        ["except "],
        [HIDDEN, ""],
        ["e"] * (len(passages) + 1),
    )
    for _ in range(30):
        rounds = []
        for passage in passages[: draw.randrange(1, 5)]:
            typed = [t if draw.random() < 0.7 else draw.choice("etaoin .") for t in passage["hidden"]]
            rounds.append("".join(typed)[: draw.randrange(41)])
        yield rounds


def test_the_page_says_and_judges_what_python_does(browser, explorer):
    page, asked, goals = browser.new_page(), list(rounds_of(explorer)), np.zeros(3, bool)
    page.add_script_tag(content=bundle("guess"))
    found = page.evaluate(
        """([asked, config]) => asked.map((rounds) => {
          const typed = rounds.map((text) => [...text]), turns = guessTurns(typed, config);
          return [guessWords(typed, config), guessGoals.map((goal) => goal(turns))];
        })""",
        [asked, explorer._page_config()],
    )
    for rounds, (words, judged) in zip(asked, found, strict=True):
        state = explorer.state(typed=rounds)
        assert words == explorer.alt(state)
        assert judged == [goal(state) for goal in explorer.goals]
        goals |= judged
    assert goals.all()
    page.close()


def box(here):
    return here.page.get_by_role("textbox", name="Next character")


@pytest.mark.parametrize("kernel", [False, True])
def test_characters_are_typed_one_after_the_other_and_said(browser, explorer, kernel):
    with played(browser, explorer, kernel=kernel) as here:
        box(here).click()
        assert here.reached() == 0
        here.page.keyboard.type("except the dx")
        expect(here.page.locator(".play-guessed")).to_contain_text("window, except that")
        assert here.page.locator(".play-guessed .wrong").count() == 4
        expect(box(here)).to_have_value("")
        turns = game.Game(game.shipped()).turns(("except the dx",))
        gram = here.page.locator(".play-score tr").nth(2).locator("td")
        starts = [turn for turn in turns if turn.begins_word]
        bits = sum(turn.bits("5-gram") for turn in turns) / len(turns)
        right = sum(turn.is_right("5-gram") for turn in turns)
        at_starts = sum(turn.is_right("5-gram") for turn in starts)
        expect(gram.nth(0)).to_have_text(f"{right} of 13")
        expect(gram.nth(1)).to_have_text(f"{at_starts} of {len(starts)}")
        expect(gram.nth(3)).to_have_text(f"{bits:.1f}")
        here.page.get_by_role("button", name="Another text").click()
        expect(here.page.locator(".play-guessed")).to_contain_text("The context manager")
        expect(box(here)).to_be_focused()
        here.page.keyboard.type("i" * 45)  # more than there is to guess
        expect(here.page.locator(".play-said")).to_contain_text("This text is done: take another one.")
        if kernel:
            assert here.told()[0] == {"touched": True} and here.told()[1]["reached"][0]


@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light")])
def test_it_fits_and_axe_finds_nothing(browser, explorer, width, height, theme):
    with played(browser, explorer, width=width, height=height, theme=theme) as here:
        box(here).click()
        here.page.keyboard.type("except tt")
        expect(here.page.locator(".play-said")).to_contain_text("Right of 9")
        assert overflowing(here.page) == []
        assert width < 1000 or here.page.evaluate("document.documentElement.scrollHeight") <= height
        here.page.evaluate(axe_script())
        assert here.page.evaluate(AXE, ".course-play") == []
