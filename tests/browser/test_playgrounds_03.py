"""Lesson 03 on the page: eigenvalues are dragged and names are read; numbers and words are Python's, goals honest."""

import random

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_03.learner import beliefs
from course_lib.lessons.lesson_03.playground import LONGEST, NAMES, eigenvalues, of, reader
from course_lib.lessons.lesson_03.recipes import names
from tests.browser.live_playground import axes, check_axe, check_it_fits, move, played

pytestmark = pytest.mark.needs("chromium")


def states():
    draw = random.Random(3)
    for _ in range(80):
        between = draw.choice(["nothing", "tanh"])
        yield {"radius": draw.randrange(141) / 100, "angle": draw.randrange(181), "between": between}
    for radius, angle, between in ((1.4, 3, "nothing"), (1.0, 45, "nothing"), (1.0, 135, "nothing"), (1.3, 0, "tanh")):
        yield {"radius": radius, "angle": angle, "between": between}
    yield {"radius": 1.0, "angle": 90, "between": "nothing"}  # back sooner
    yield {"radius": 0, "angle": 0, "between": "tanh"}


def test_the_page_computes_and_says_what_python_does(browser):
    page, explorer = browser.new_page(), eigenvalues()
    page.add_script_tag(content=bundle("eigenvalues"))
    found = page.evaluate(
        """([states, config]) => states.map((state) => {
          const fate = eigenvalueFate(state, config);
          const goals = eigenvalueGoals.map((goal) => goal(state, fate));
          return { ...fate, goals, words: eigenvalueWords(state, config) };
        })""",
        [list(states()), explorer._page_config()],
    )
    reached = np.zeros(3, bool)
    for state, here in zip(states(), found, strict=True):
        its = of(state)
        np.testing.assert_allclose(here["states"], its.states, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(here["gradient"], its.gradient, rtol=1e-9, atol=1e-12)
        assert here["words"] == explorer.alt(state)
        assert here["goals"] == [goal(state) for goal in explorer.goals]
        reached |= here["goals"]
    assert reached.all()


def test_an_eigenvalue_follows_the_hand_and_a_goal_waits_until_it_lets_go(browser):
    with played(browser, eigenvalues(), kernel=True) as here:
        before, handle = axes(here), here.page.locator(".play-point[role=slider]")
        move(here, handle.locator(".play-dot"), (300, -300))  # far out of the plane
        assert handle.get_attribute("aria-valuetext").startswith("absolute value 1.40, angle 4")
        expect(here.page.get_by_text("It leaves the plane at step")).to_be_visible()
        assert here.reached() == 0
        here.page.mouse.up()
        assert here.reached() == 1 and axes(here) == before
        assert here.told() == [{"touched": True}, {"reached": [True, False, False]}]
        move(here, here.page.locator(".play-point").first.locator(".play-dot"), (-60, -40))  # its twin
        here.page.mouse.up()
        assert float(handle.get_attribute("aria-valuenow")) < 1.3


def test_the_keyboard_brings_a_state_back_and_it_is_said(browser):
    with played(browser, eigenvalues()) as here:
        handle = here.page.locator(".play-point[role=slider]")
        handle.focus()
        handle.press("PageUp")
        for _ in range(15):
            handle.press("ArrowLeft")
        assert handle.get_attribute("aria-valuetext") == "absolute value 1.00, angle 45 degrees"
        assert here.reached() == 1
        here.page.get_by_text("then a tanh").click()
        here.page.get_by_label("|λ|, typed").fill("1,3")
        here.page.get_by_label("|λ|, typed").press("Enter")
        assert here.reached() == 1
        here.page.get_by_label("Angle (°), typed").fill("0")
        here.page.get_by_label("Angle (°), typed").press("Enter")
        assert here.reached() == 2
        said = here.page.locator(".play-said")
        expect(said).to_contain_text("absolute value 1.30 and angle ±0°, and a tanh in each step")


def test_it_fits_and_axe_finds_nothing(browser):
    check_it_fits(browser, eigenvalues())
    check_axe(browser, eigenvalues())


# ------------------------------------------------------------------------------------------------ a reader of names


def names_to_read():
    draw = random.Random(3)
    yield from (
        *NAMES,
        "lykisch",
        "märvä",
        "šumava",
        "criollo",
        "reunión",
        "  Nouvelle  Zélande ",
        "漢字漢",
        "ab",
        "",
        "  ",
    )
    for _ in range(30):
        yield "".join(draw.choices("abcdeimnorstuvzäéøłş ", k=draw.randint(1, 28)))


def test_the_page_reads_a_name_as_python_does(browser):
    page, explorer = browser.new_page(), reader()
    page.add_script_tag(content=bundle("origin"))
    found = page.evaluate(
        """([texts, config]) => {
          const reading = nameReader(config);
          return texts.map((text) => {
            const its = readName(reading, text), goals = nameGoals.map((goal) => goal(its));
            return { goals, words: nameWords(its, config.languages), probs: its.probs.map((row) => [...row]),
              states: its.states.map((row) => [...row]) };
          });
        }""",
        [list(names_to_read()), explorer._page_config()],
    )
    model, tokenizer, reached = load_trained("names").model.eval(), names.tokenizer(), np.zeros(3, bool)
    for text, here in zip(names_to_read(), found, strict=True):
        state, read = explorer.state(text=text), " ".join(text.lower().split())[:LONGEST]
        assert here["goals"] == [goal(state) for goal in explorer.goals], text
        assert here["words"] in explorer.frame(state).alt
        reached |= here["goals"]
        if read:
            states = model.features(torch.tensor([tokenizer.encode(read)]))[0].detach()
            np.testing.assert_allclose(here["states"], states, atol=1e-5)
            np.testing.assert_allclose(here["probs"], beliefs(model, tokenizer, read).detach(), atol=1e-5)
    assert reached.all()


def test_a_name_is_read_with_each_key_and_goals_wait_for_enter(browser):
    with played(browser, reader(), kernel=True) as here:
        name = here.page.get_by_label("Name", exact=True)
        name.fill("")
        expect(here.page.get_by_text("Write a name for the network to read.").first).to_be_visible()
        name.type("lykisch")
        expect(here.page.get_by_text("“lykisch”: German").first).to_be_visible()
        assert here.told() == [{"touched": True}]
        assert here.reached() == 0
        name.press("Enter")
        assert here.reached() > 0
        here.page.get_by_role("button", name="kamboçya").click()
        expect(here.page.locator(".play-said")).to_contain_text("“kamboçya”: Turkish")


def test_the_reader_fits_and_axe_finds_nothing(browser):
    check_it_fits(browser, reader())
    check_axe(browser, reader())
