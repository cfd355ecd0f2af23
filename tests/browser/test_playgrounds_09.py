"""Lesson 09 on the page: Python's numbers and words; a model is dragged over a plane, and a law is bent by hand."""

import random

import numpy as np
import pytest

from course_lib.lessons.lesson_09 import laws
from tests.browser.explorers import explorer
from tests.browser.played import computed, is_inside, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")


# ------------------------------------------------------------------------------------------- a budget


def budgets():
    draw = random.Random(9)
    for _ in range(100):
        yield {"budget": 10 ** draw.uniform(9, 13), "size": 10 ** draw.uniform(3, 6.5)}
    best, _, _ = laws.best_split(laws.law(), 1e13)
    yield {"budget": 1e13, "size": 2.1 * best}
    yield {"budget": 10**12.55, "size": 1.01e5}
    yield {"budget": 1e9, "size": 1e5}


def test_the_page_computes_and_says_what_python_does(blank):
    compute, states = explorer("compute"), list(budgets())
    found = computed(
        blank, compute, states,
        """([states, config]) => states.map((state) => {
          const spent = scalingSpent(state, config), goals = scalingGoals.map((goal) => goal(state, spent));
          return { ...spent, goals, words: scalingWords(state, config) };
        })""",
    )  # fmt: skip
    assert judged_as_in_python(compute, states, found).all()
    for state, here in zip(states, found, strict=True):
        tokens = state["budget"] / (6 * state["size"])
        best, _, lowest = laws.best_split(laws.law(), state["budget"])
        expected = [tokens, laws.at(laws.law(), state["size"], tokens), best, lowest]
        np.testing.assert_allclose([here[name] for name in ("tokens", "loss", "best", "lowest")], expected, rtol=1e-9)


def set_to(here):
    return here.number("Parameters N"), here.number("Compute C")


def test_a_model_is_never_lost_and_a_goal_waits_until_it_is_let_go(play):
    here = play(explorer("compute"), kernel=True)
    before, points = here.axes(), here.page.locator(".play-point")
    here.drag(points.first.locator(".play-dot"), (600, 900))  # far out: it stays in the corner
    assert set_to(here) == (3.2e6, 1e9)
    here.shows("(above this axis)")
    plane, valley = (here.page.locator(".play-view svg").nth(i).bounding_box() for i in range(2))
    assert is_inside(here.page.locator(".play-point[role=slider] .play-dot"), plane)
    assert is_inside(points.last.locator(".play-dot"), valley)
    here.let_go(False, False, True)
    assert here.axes() == before


def test_along_equal_compute_only_the_split_changes(play):
    here = play(explorer("compute"))
    here.choose("at equal C")
    here.drag(here.page.locator(".play-point[role=slider] .play-dot"), (-50, 200))
    here.page.mouse.up()
    assert here.number("Compute C") == 1e10 and here.number("Parameters N") < 9e3
    here.drag(here.page.locator(".play-point").last.locator(".play-dot"), (90, 0))  # in the valley
    here.page.mouse.up()
    assert here.number("Compute C") == 1e10 and here.number("Parameters N") > 1e4


def test_arrow_keys_go_along_and_across_the_line_of_equal_compute_and_it_is_said(play):
    here = play(explorer("compute"))
    model = here.page.locator(".play-point[role=slider]")
    model.press("ArrowRight")
    assert set_to(here) == (1.1e4, 1e10)
    model.press("PageUp")
    assert set_to(here) == (1.1e4, 3.2e10)
    here.says("11,000 parameters and 3.2e10 operations leave")
    here.type("Compute C", "3.6e12")
    here.type("Parameters N", "1e5")
    assert here.reached() == 1
    here.press("Back to the start")
    assert set_to(here) == (1e4, 1e10)


# ------------------------------------------------------------------------------------------- a law by hand


def laws_by_hand(fit):
    draw = random.Random(10)
    for _ in range(80):
        yield {"exponent": draw.randrange(2, 81) / 100, "floor": draw.randrange(26) / 20}
    grid = [{"exponent": b / 100, "floor": c / 20} for b in range(2, 80) for c in range(26)]
    for goal in fit.goals:
        yield next(state for state in grid if goal(fit.state(**state)))


def test_the_page_bends_the_law_as_python_does(blank):
    fit = explorer("powerlaw")
    states = list(laws_by_hand(fit))
    found = computed(
        blank, fit, states,
        """([states, config]) => states.map((state) => ({ words: powerLawWords(state, config),
          goals: powerLawGoals.map((goal) => goal(state, powerLaw(state, config))) }))""",
    )  # fmt: skip
    assert judged_as_in_python(fit, states, found).all()


def test_the_curve_is_bent_stays_on_its_axes_and_a_goal_waits_until_it_is_let_go(play):
    here = play(explorer("powerlaw"), kernel=True)
    before, plane = here.axes(), here.page.locator(".play-view svg").first.bounding_box()
    for name, far in (("Loss promised", (300, 500)), ("Floor c", (-200, -600))):
        here.drag(here.slider(name).first.locator(".play-dot"), far)
        assert all(is_inside(dot, plane) for dot in here.page.locator(".play-dot").all())
        here.page.mouse.up()
    assert (here.number("Exponent b"), here.number("Floor c")) == (0.8, 1.25)
    assert here.axes() == before and here.reached() == 0
    here.press("Back to the start")
    here.drag(here.slider("Loss promised").locator(".play-dot"), (0, -20))
    here.page.mouse.up()
    assert here.number("Exponent b") < 0.2
    here.type("Exponent b", "0.11")
    assert here.told() == [{"touched": True}, {"reached": [True, True, False]}]


def test_arrow_keys_bend_the_law_and_it_is_said(play):
    here = play(explorer("powerlaw"))
    here.keys("Loss promised", "ArrowDown")
    assert here.number("Exponent b") == 0.21 and here.reached() == 0
    here.keys("Floor c", "PageUp")
    assert here.number("Floor c") == 0.5
    here.says("With exponent 0.21 and floor 0.50 the curve misses")
