"""Lesson 12 on the page: a digit is drawn, a receptive field dragged; numbers, words and goals are Python's."""

import re
from itertools import product

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_12 import playground as play
from tests.axe import axe_script
from tests.browser.live_playground import axes, check_axe, check_it_fits, played
from tests.browser.played import overflowing
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")


def states(explorer):
    for side, blocks, shift in product((8, 4), (1, 2, 3, 4), (True, False)):
        for patch in range(1, side * side + 1):
            yield explorer.state(patch=patch, blocks=blocks, shift=shift, stage=side)


def test_the_page_computes_says_and_judges_what_python_does(browser):
    explorer, page = play.reached_by(), browser.new_page()
    page.add_script_tag(content=bundle("receptive"))
    asked = []
    for one in states(explorer):
        row, column = divmod(one["patch"] - 1, one["stage"])
        asked.append(
            {"row": row, "column": column, "blocks": one["blocks"], "shifted": one["shift"], "side": one["stage"]}
        )
    found = page.evaluate(
        """([states, config]) => states.map((state) => ({ field: receptiveFields(state, config)[0],
          goals: receptiveGoals(config).map((goal) => goal(state)), words: receptiveWords(state, config) }))""",
        [asked, explorer._page_config()],
    )
    reached = np.zeros(3, bool)
    for state, here in zip(states(explorer), found, strict=True):
        side, inside = state["stage"], np.zeros((state["stage"], state["stage"]), bool)
        (top, bottom), (left, right) = here["field"]
        inside[top : bottom + 1, left : right + 1] = True
        expected = play.reach(state["patch"] - 1, state["blocks"], side=side, shifted=state["shift"])
        np.testing.assert_array_equal(inside, expected)
        assert here["words"] == explorer.alt(state)
        assert here["goals"] == [goal(state) for goal in explorer.goals]
        reached |= here["goals"]
    assert reached.all()


def at(here, row, column):
    """The middle of a patch of stage 1 on the screen."""
    box = here.page.get_by_role("slider", name="Position").bounding_box()
    return box["x"] + (column + 0.5) / 8 * box["width"], box["y"] + (row + 0.5) / 8 * box["height"]


def blocks(here, count):
    here.page.get_by_role("radiogroup", name="Blocks", exact=True).get_by_text(count).click()


def test_a_position_is_dragged_and_a_goal_waits_until_it_is_let_go(browser):
    with played(browser, play.reached_by(), kernel=True) as here:
        before, position = axes(here), here.page.get_by_role("slider", name="Position")
        blocks(here, "2")
        here.page.mouse.move(*at(here, 3, 3))
        here.page.mouse.down()
        here.page.mouse.move(*at(here, 0, 0), steps=5)
        assert position.get_attribute("aria-valuetext") == "1 (row 1, column 1)"
        expect(here.page.get_by_text("4 of 64 positions are in the receptive field")).to_be_visible()
        assert here.reached() == 0
        here.page.mouse.up()
        assert here.reached() == 1 and axes(here) == before
        assert here.told() == [{"touched": True}, {"reached": [False, True, False]}]


def test_the_keyboard_moves_the_position_and_it_is_said(browser):
    with played(browser, play.reached_by()) as here:
        blocks(here, "4")
        assert here.reached() == 1
        position = here.page.get_by_role("slider", name="Position")
        for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight"):
            position.press(key)
        here.page.get_by_text("do not", exact=True).click()
        expect(here.page.locator(".play-said")).to_contain_text(
            "Position 5 (row 1, column 5) of stage 1, windows never shifted: after 4 blocks its receptive field has 4"
        )


def test_it_fits_and_axe_finds_nothing(browser):
    check_it_fits(browser, play.reached_by())
    check_axe(browser, play.reached_by())


@pytest.fixture(scope="module")
def reader():
    return play.reader(load_trained("swin").model)


def test_the_page_says_and_judges_a_drawing_as_python_does(browser, reader):
    page, random, config = browser.new_page(), np.random.default_rng(12), reader._page_config()
    page.add_script_tag(content=bundle("hierarchy"))
    states = [reader.state(pad=np.roll(play.on_the_pad(n), random.integers(-8, 20, 2), (0, 1))) for n in range(16)]
    above = np.arange(play.PAD)[:, None] < 22  # of one digit, and below the rest of another
    halves = ((0, 9), (4, 6), (8, 1), (2, 3))
    states += [reader.state(pad=np.where(above, play.on_the_pad(a), play.on_the_pad(b))) for a, b in halves]
    states.append(reader.state(pad=0 * states[0]["pad"]))
    answers = [reader.answers["read"](state["pad"].flatten().tolist()).tolist() for state in states]
    found = page.evaluate(
        """([asked, config]) => asked.map(([source, answer]) => {
          const its = hierarchyReading(answer, config);
          return { maps: its.stages.map((map) => map.length), pixels: its.pixels,
            words: hierarchyWords({ source, its }, config), goals: hierarchyGoals.map((goal) => goal(its)) };
        })""",
        [[[s["pad"].flatten().tolist(), a] for s, a in zip(states, answers, strict=True)], config],
    )
    for state, here in zip(states, found, strict=True):
        pixels = play.prepared(state["pad"]).flatten()
        np.testing.assert_allclose(here["pixels"], pixels, atol=1e-6)
        assert here["maps"] == [64, 16] and here["words"] == reader.alt(state)
        assert not state["pad"].any() or here["goals"] == [bool(goal(state)) for goal in reader.goals]
    assert np.any([one["goals"] for one in found[:-1]], axis=0).all()


def test_a_digit_is_drawn_and_empty_paper_reaches_no_goal(browser, reader):
    with played(browser, reader, kernel=True) as here:
        note = here.page.locator(".play-note", has_text="It says")
        expect(note).to_contain_text("It says 3")
        assert here.told() == []  # the first reading is no touch of the learner's
        here.page.get_by_role("button", name="Clear").click()
        expect(here.page.locator(".play-said")).to_contain_text("It cannot say “nothing”")
        assert here.reached() == 0
        box, mouse = here.page.locator("canvas").first.bounding_box(), here.page.mouse
        mouse.move(box["x"] + 0.12 * box["width"], box["y"] + 0.1 * box["height"])
        mouse.down()
        mouse.move(box["x"] + 0.12 * box["width"], box["y"] + 0.42 * box["height"], steps=6)
        expect(note).to_contain_text(re.compile("It says 1; as drawn, not prepared: [02-9]"))
        assert here.reached() == 0
        mouse.up()
        expect(here.page.locator(".play-goals li.reached")).to_have_text([re.compile("without its preparation")])


def test_without_a_kernel_the_static_form_stays(browser, reader):
    with played(browser, reader) as here:
        expect(here.page.get_by_text("static form")).to_be_visible()
        assert here.page.locator(".course-play").count() == 0


@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light")])
def test_the_drawing_fits_and_axe_finds_nothing(browser, reader, width, height, theme):
    with played(browser, reader, width=width, height=height, theme=theme, kernel=True) as here:
        expect(here.page.get_by_text("It says 3")).to_be_visible()
        assert overflowing(here.page) == []
        assert width < 1000 or here.page.evaluate("document.documentElement.scrollHeight") <= height
        here.page.evaluate(axe_script())
        assert here.page.evaluate(AXE, ".course-play") == []
