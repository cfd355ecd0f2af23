"""Lesson 17 on the page: the costs of attention are Python's, and the length of the text is dragged."""

from itertools import product

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.lessons.lesson_17 import playground as play
from tests.browser.live_playground import axes, check_axe, check_it_fits, move, played
from tests.browser.played import overflowing
from tests.browser.test_playgrounds_live import centre

pytestmark = pytest.mark.needs("chromium")
FOUND = """([states, config]) => states.map((state) => {
  const its = attentionCosts(state, config), most = attentionCosts({ ...state, kind: "softmax" }, config);
  return { its, words: costWords(state, config), goals: costGoals.map((goal) => goal(state, its, most)) };
})"""


@pytest.fixture(scope="module")
def explorer():
    return play.scores()


def states():
    for kind, length, size, window in product(play.SHOWN, play.LENGTHS.values(), (8, 64, 72, 128), range(4, 257, 28)):
        yield {"kind": kind, "length": length, "size": size, "window": window}


def test_the_page_computes_and_says_what_python_does(browser, explorer):
    page, reached = browser.new_page(), np.zeros(3, bool)
    page.add_script_tag(content=bundle("costs"))
    found = page.evaluate(FOUND, [list(states()), explorer._page_config()])
    for state, here in zip(states(), found, strict=True):
        assert here["its"] == list(play.attention_costs(**state))
        assert here["words"] == explorer.alt(explorer.state(**state))
        assert here["goals"] == [goal(explorer.state(**state)) for goal in explorer.goals]
        reached |= here["goals"]
    assert reached.all()
    page.close()


def tokens(here):
    return here.page.locator(".play-point[role=slider]")


def length(here):
    return int(here.page.get_by_label("Tokens, typed").input_value())


def test_the_length_is_dragged_stays_on_its_axis_and_a_goal_waits_until_it_is_let_go(browser, explorer):
    with played(browser, explorer, kernel=True) as here:
        here.page.get_by_role("radiogroup", name="Attention").get_by_text("linear", exact=True).click()
        before, plane = axes(here), here.page.locator(".play-view svg").bounding_box()
        for by, end in ((900, 16384), (-900, 16)):
            move(here, tokens(here).locator(".play-dot"), (by, -40))
            assert length(here) == end
            x, y = centre(tokens(here).locator(".play-dot"))
            assert plane["x"] < x < plane["x"] + plane["width"] and plane["y"] < y < plane["y"] + plane["height"]
            if end == 16384:
                move(here, tokens(here).locator(".play-dot"), (-120, 0))  # back, with the button still down
                assert 256 < length(here) < 16384 and here.reached() == 0
            here.page.mouse.up()
        assert here.told() == [{"touched": True}, {"reached": [True, False, False]}] and axes(here) == before


def test_arrow_keys_change_the_length_it_is_said_and_what_is_plotted_is_chosen(browser, explorer):
    with played(browser, explorer) as here:
        tokens(here).press("ArrowRight")
        assert length(here) == 512
        expect(tokens(here)).to_have_attribute("aria-valuetext", "512 tokens, 16,809,984 multiplications")
        expect(here.page.locator(".play-said")).to_contain_text("One head, 512 tokens: softmax attention needs 1 times")
        here.page.get_by_role("radiogroup", name="Plot").get_by_text("scores held").click()
        here.page.get_by_role("radiogroup", name="Attention").get_by_text("linear", exact=True).click()
        expect(here.page.get_by_text("Linear attention holds no scores.")).to_be_visible()
        expect(tokens(here)).to_have_attribute("aria-valuetext", "512 tokens, 0 scores held")
        here.page.get_by_role("radiogroup", name="Attention").get_by_text("softmax in blocks", exact=True).click()
        expect(here.page.get_by_text("softmax in blocks: 0.125 times the scores held")).to_be_visible()
        expect(here.page.locator(".play-score b")).to_have_text(["softmax in blocks", "16,809,984", "32,768", "65,536"])


def test_it_fits_and_axe_finds_nothing(browser, explorer):
    check_it_fits(browser, explorer)
    check_axe(browser, explorer)


def test_the_largest_numbers_fit_on_a_phone(browser, explorer):
    with played(browser, explorer, width=390, height=844) as here:
        for label, number in (("Tokens", "16384"), ("Size of a head", "128"), ("Window", "256")):
            here.page.get_by_label(f"{label}, typed").fill(number)
            here.page.get_by_label(f"{label}, typed").press("Enter")
        expect(here.page.locator(".play-score")).to_contain_text("34,361,835,520")
        assert overflowing(here.page) == []
