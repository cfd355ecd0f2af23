"""The LSTM cell of lesson 04 on the page: numbers and words are Python's, gates are dragged, and goals are honest."""

import random

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.lessons.lesson_04.playground import MARKS, MESSAGE, SIGNALS, machine, run
from tests.browser.live_playground import axes, check_axe, check_it_fits, move, played

pytestmark = pytest.mark.needs("chromium")


def states():
    draw = random.Random(4)
    for _ in range(100):
        gates = {gate: draw.choice([0.0, 1.0, draw.randrange(101) / 100]) for gate in "fio"}
        yield {"signal": draw.choice(list(SIGNALS)), "open": draw.choice(["always", "first"]), **gates}
    always = {"signal": MARKS, "f": 1.0, "i": 1.0, "o": 0.5, "open": "always"}
    yield from (always, always | {"signal": MESSAGE, "open": "first"}, always | {"f": 0.93, "open": "first"})


def test_the_page_computes_and_says_what_python_does(browser):
    page, explorer = browser.new_page(), machine()
    page.add_script_tag(content=bundle("machine"))
    found = page.evaluate(
        """([states, config]) => states.map((state) => {
          const run = machineRun(state, config), goals = machineGoals.map((goal) => goal(state, run, config));
          return { ...run, goals, words: machineWords(state, config) };
        })""",
        [list(states()), explorer._page_config()],
    )
    reached = np.zeros(3, bool)
    for state, here in zip(states(), found, strict=True):
        its = run(state)
        np.testing.assert_allclose(here["write"], its.write)
        np.testing.assert_allclose(here["cell"], its.cell, atol=1e-12)
        np.testing.assert_allclose(here["hidden"], its.output, atol=1e-12)
        assert here["words"] == explorer.alt(state)
        assert here["goals"] == [goal(state) for goal in explorer.goals]
        reached |= here["goals"]
    assert reached.all()


def gate(here, name):
    return here.page.get_by_role("slider", name=name, exact=True)


def test_a_gate_is_dragged_and_a_goal_waits_until_it_is_let_go(browser):
    with played(browser, machine(), kernel=True) as here:
        before = axes(here)
        here.page.get_by_text("in the first step only", exact=True).click()
        move(here, gate(here, "forget f").locator(".play-grip"), (0, -300))
        assert gate(here, "forget f").get_attribute("aria-valuenow") == "1"
        expect(here.page.get_by_text("it ends at 1.00")).to_be_visible()
        assert here.reached() == 0
        here.page.mouse.up()
        assert here.reached() == 1 and axes(here) == before
        assert here.told() == [{"touched": True}, {"reached": [True, False, False]}]


def test_the_keyboard_makes_the_cell_count_and_it_is_said(browser):
    with played(browser, machine()) as here:
        here.page.get_by_text("a mark every ten steps").click()
        for _ in range(3):
            gate(here, "forget f").press("PageUp")
        assert here.reached() == 1
        gate(here, "output o").press("Home")
        said = here.page.locator(".play-said")
        expect(said).to_contain_text("f = 1.00, i = 1.00, o = 0.00. After 50 steps the cell state is 5.00")


def test_it_fits_and_axe_finds_nothing(browser):
    check_it_fits(browser, machine())
    check_axe(browser, machine())
