"""Lesson 09 on the page: Python's numbers and words; a model is dragged over a plane, and a law is bent by hand."""

import random

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.lessons.lesson_09 import laws
from course_lib.lessons.lesson_09.playground import by_hand, compute
from tests.browser.live_playground import axes, check_axe, check_it_fits, move, played
from tests.browser.test_playgrounds_live import centre

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def explorer():
    runs = laws.shipped()
    return compute(runs["grid"] + runs["isoflop"])


def states():
    draw = random.Random(9)
    for _ in range(100):
        yield {"budget": 10 ** draw.uniform(9, 13), "size": 10 ** draw.uniform(3, 6.5)}
    best, _, _ = laws.best_split(laws.law(), 1e13)
    yield {"budget": 1e13, "size": 2.1 * best}
    yield {"budget": 10**12.55, "size": 1.01e5}
    yield {"budget": 1e9, "size": 1e5}


def test_the_page_computes_and_says_what_python_does(browser, explorer):
    page = browser.new_page()
    page.add_script_tag(content=bundle("compute"))
    found = page.evaluate(
        """([states, config]) => states.map((state) => {
          const spent = scalingSpent(state, config), goals = scalingGoals.map((goal) => goal(state, spent));
          return { ...spent, goals, words: scalingWords(state, config) };
        })""",
        [list(states()), explorer._page_config()],
    )
    reached = np.zeros(3, bool)
    for state, here in zip(states(), found, strict=True):
        tokens = state["budget"] / (6 * state["size"])
        best, _, lowest = laws.best_split(laws.law(), state["budget"])
        expected = [tokens, laws.at(laws.law(), state["size"], tokens), best, lowest]
        np.testing.assert_allclose([here[name] for name in ("tokens", "loss", "best", "lowest")], expected, rtol=1e-9)
        assert here["words"] == explorer.alt(state)
        assert here["goals"] == [goal(state) for goal in explorer.goals]
        reached |= here["goals"]
    assert reached.all()


def model(here):
    return here.page.locator(".play-point[role=slider]")


def typed(here, label):
    return float(here.page.get_by_label(f"{label}, typed").input_value())


def test_a_model_is_never_lost_and_a_goal_waits_until_it_is_let_go(browser, explorer):
    with played(browser, explorer, kernel=True) as here:
        before = axes(here)
        move(here, model(here).locator(".play-dot"), (600, 900))  # far out: it stays in the corner
        assert (typed(here, "Parameters N"), typed(here, "Compute C")) == (3.2e6, 1e9)
        expect(here.page.get_by_text("(above this axis)")).to_be_visible()
        plane, valley = (here.page.locator(".play-view svg").nth(i).bounding_box() for i in range(2))
        for box, point in ((plane, model(here)), (valley, here.page.locator(".play-point").last)):
            x, y = centre(point.locator(".play-dot"))
            assert box["x"] < x < box["x"] + box["width"] and box["y"] < y < box["y"] + box["height"]
        assert here.reached() == 0
        here.page.mouse.up()
        assert here.reached() == 1 and axes(here) == before
        assert here.told() == [{"touched": True}, {"reached": [False, False, True]}]


def test_along_equal_compute_only_the_split_changes(browser, explorer):
    with played(browser, explorer) as here:
        here.page.get_by_text("at equal C", exact=True).click()
        move(here, model(here).locator(".play-dot"), (-50, 200))
        here.page.mouse.up()
        assert typed(here, "Compute C") == 1e10 and typed(here, "Parameters N") < 9e3
        move(here, here.page.locator(".play-point").last.locator(".play-dot"), (90, 0))  # in the valley
        here.page.mouse.up()
        assert typed(here, "Compute C") == 1e10 and typed(here, "Parameters N") > 1e4


def test_arrow_keys_go_along_and_across_the_line_of_equal_compute_and_it_is_said(browser, explorer):
    with played(browser, explorer) as here:
        model(here).press("ArrowRight")
        assert (typed(here, "Parameters N"), typed(here, "Compute C")) == (1.1e4, 1e10)
        model(here).press("PageUp")
        assert (typed(here, "Parameters N"), typed(here, "Compute C")) == (1.1e4, 3.2e10)
        expect(here.page.locator(".play-said")).to_contain_text("11,000 parameters and 3.2e10 operations leave")
        for label, number in (("Compute C", "3.6e12"), ("Parameters N", "1e5")):
            here.page.get_by_label(f"{label}, typed").fill(number)
            here.page.get_by_label(f"{label}, typed").press("Enter")
        assert here.reached() == 1
        here.page.get_by_role("button", name="Back to the start").click()
        assert (typed(here, "Parameters N"), typed(here, "Compute C")) == (1e4, 1e10)


def test_it_fits_and_axe_finds_nothing(browser, explorer):
    check_it_fits(browser, explorer)
    check_axe(browser, explorer)


# ------------------------------------------------------------------------------------------- a law by hand


@pytest.fixture(scope="module")
def fit():
    return by_hand(laws.shipped()["grid"])


def laws_by_hand(fit):
    draw = random.Random(10)
    for _ in range(80):
        yield {"exponent": draw.randrange(2, 81) / 100, "floor": draw.randrange(26) / 20}
    grid = [{"exponent": b / 100, "floor": c / 20} for b in range(2, 80) for c in range(26)]
    for goal in fit.goals:
        yield next(state for state in grid if goal(fit.state(**state)))


def test_the_page_bends_the_law_as_python_does(browser, fit):
    page, states, reached = browser.new_page(), list(laws_by_hand(fit)), np.zeros(3, bool)
    page.add_script_tag(content=bundle("powerlaw"))
    found = page.evaluate(
        """([states, config]) => states.map((state) => ({ words: powerLawWords(state, config),
          goals: powerLawGoals.map((goal) => goal(state, powerLaw(state, config))) }))""",
        [states, fit._page_config()],
    )
    for state, here in zip(states, found, strict=True):
        assert here["words"] == fit.alt(fit.state(**state))
        assert here["goals"] == [goal(fit.state(**state)) for goal in fit.goals]
        reached |= here["goals"]
    assert reached.all()
    page.close()


def end_of_curve(here):
    return here.page.get_by_role("slider", name="Loss promised")


def test_the_curve_is_bent_stays_on_its_axes_and_a_goal_waits_until_it_is_let_go(browser, fit):
    with played(browser, fit, kernel=True) as here:
        before, plane = axes(here), here.page.locator(".play-view svg").first.bounding_box()
        for handle, far in (
            (end_of_curve(here), (300, 500)),
            (here.page.get_by_role("slider", name="Floor c").first, (-200, -600)),
        ):
            move(here, handle.locator(".play-dot"), far)
            for dot in here.page.locator(".play-dot").all():
                x, y = centre(dot)
                assert plane["x"] < x < plane["x"] + plane["width"] and plane["y"] < y < plane["y"] + plane["height"]
            here.page.mouse.up()
        assert (typed(here, "Exponent b"), typed(here, "Floor c")) == (0.8, 1.25)
        assert axes(here) == before and here.reached() == 0
        here.page.get_by_role("button", name="Back to the start").click()
        move(here, end_of_curve(here).locator(".play-dot"), (0, -20))
        here.page.mouse.up()
        assert typed(here, "Exponent b") < 0.2
        here.page.get_by_label("Exponent b, typed").fill("0.11")
        here.page.get_by_label("Exponent b, typed").press("Enter")
        assert here.told() == [{"touched": True}, {"reached": [True, True, False]}]


def test_arrow_keys_bend_the_law_and_it_is_said(browser, fit):
    with played(browser, fit) as here:
        end_of_curve(here).press("ArrowDown")
        assert typed(here, "Exponent b") == 0.21 and here.reached() == 0
        here.page.get_by_role("slider", name="Floor c").first.press("PageUp")
        assert typed(here, "Floor c") == 0.5
        expect(here.page.locator(".play-said")).to_contain_text("With exponent 0.21 and floor 0.50 the curve misses")


def test_the_law_fits_and_axe_finds_nothing(browser, fit):
    check_it_fits(browser, fit)
    check_axe(browser, fit)
