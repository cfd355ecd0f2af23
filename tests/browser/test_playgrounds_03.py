"""Lesson 03 on the page: eigenvalues are dragged and names are read; numbers and words are Python's, goals honest."""

import random

import numpy as np
import pytest
import torch

from course_lib.lessons.lesson_03.learner import beliefs
from course_lib.lessons.lesson_03.playground import LONGEST, NAMES, of
from course_lib.lessons.lesson_03.recipes import names
from tests.browser.explorers import explorer, trained
from tests.browser.played import computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")


def eigenvalue_states():
    draw = random.Random(3)
    for _ in range(80):
        between = draw.choice(["nothing", "tanh"])
        yield {"radius": draw.randrange(141) / 100, "angle": draw.randrange(181), "between": between}
    for radius, angle, between in ((1.4, 3, "nothing"), (1.0, 45, "nothing"), (1.0, 135, "nothing"), (1.3, 0, "tanh")):
        yield {"radius": radius, "angle": angle, "between": between}
    yield {"radius": 1.0, "angle": 90, "between": "nothing"}  # back sooner
    yield {"radius": 0, "angle": 0, "between": "tanh"}


def test_the_page_computes_and_says_what_python_does(blank):
    eigenvalues, states = explorer("eigenvalues"), list(eigenvalue_states())
    found = computed(
        blank, eigenvalues, states,
        """([states, config]) => states.map((state) => {
          const fate = eigenvalueFate(state, config);
          const goals = eigenvalueGoals.map((goal) => goal(state, fate));
          return { ...fate, goals, words: eigenvalueWords(state, config) };
        })""",
    )  # fmt: skip
    assert judged_as_in_python(eigenvalues, states, found).all()
    for state, here in zip(states, found, strict=True):
        its = of(state)
        np.testing.assert_allclose(here["states"], its.states, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(here["gradient"], its.gradient, rtol=1e-9, atol=1e-12)


def test_an_eigenvalue_follows_the_hand_and_a_goal_waits_until_it_lets_go(play):
    here = play(explorer("eigenvalues"), kernel=True)
    before, handle = here.axes(), here.page.locator(".play-point[role=slider]")
    here.drag(handle.locator(".play-dot"), (300, -300))  # far out of the plane
    assert handle.get_attribute("aria-valuetext").startswith("absolute value 1.40, angle 4")
    here.shows("It leaves the plane at step")
    here.let_go(True, False, False)
    assert here.axes() == before
    here.drag(here.page.locator(".play-point").first.locator(".play-dot"), (-60, -40))  # its twin
    here.page.mouse.up()
    assert float(handle.get_attribute("aria-valuenow")) < 1.3


def test_the_keyboard_brings_a_state_back_and_it_is_said(play):
    here = play(explorer("eigenvalues"))
    here.keys("Eigenvalue", "PageUp", *["ArrowLeft"] * 15)
    assert here.slider("Eigenvalue").get_attribute("aria-valuetext") == "absolute value 1.00, angle 45 degrees"
    assert here.reached() == 1
    here.choose("then a tanh")
    here.type("|λ|", "1,3")
    assert here.reached() == 1
    here.type("Angle (°)", "0")
    assert here.reached() == 2
    here.says("absolute value 1.30 and angle ±0°, and a tanh in each step")


# ------------------------------------------------------------------------------------------------ a reader of names


def names_to_read():
    draw = random.Random(3)
    yield from (*NAMES, "lykisch", "märvä", "šumava", "criollo", "reunión", "  Nouvelle  Zélande ", "漢字漢", "ab", "")
    yield "  "
    for _ in range(30):
        yield "".join(draw.choices("abcdeimnorstuvzäéøłş ", k=draw.randint(1, 28)))


def test_the_page_reads_a_name_as_python_does(blank):
    reader, texts = explorer("origin"), list(names_to_read())
    found = computed(
        blank, reader, texts,
        """([texts, config]) => {
          const reading = nameReader(config);
          return texts.map((text) => {
            const its = readName(reading, text), goals = nameGoals.map((goal) => goal(its));
            return { goals, words: nameWords(its, config.languages), probs: its.probs.map((row) => [...row]),
              states: its.states.map((row) => [...row]) };
          });
        }""",
    )  # fmt: skip
    model, tokenizer, reached = trained("names").eval(), names.tokenizer(), np.zeros(3, bool)
    for text, here in zip(texts, found, strict=True):
        state, read = reader.state(text=text), " ".join(text.lower().split())[:LONGEST]
        assert here["goals"] == [goal(state) for goal in reader.goals], text
        assert here["words"] in reader.frame(state).alt  # of which a remark about unknown letters is the beginning
        reached |= here["goals"]
        if read:
            states = model.features(torch.tensor([tokenizer.encode(read)]))[0].detach()
            np.testing.assert_allclose(here["states"], states, atol=1e-5)
            np.testing.assert_allclose(here["probs"], beliefs(model, tokenizer, read).detach(), atol=1e-5)
    assert reached.all()


def test_a_name_is_read_with_each_key_and_goals_wait_for_enter(play):
    here = play(explorer("origin"), kernel=True)
    here.write("Name", "")
    here.shows("Write a name for the network to read.")
    here.type_keys("Name", "lykisch")
    here.shows("“lykisch”: German")
    assert here.told() == [{"touched": True}] and here.reached() == 0
    here.enter("Name", "lykisch")
    assert here.reached() > 0
    here.press("kamboçya")
    here.says("“kamboçya”: Turkish")
