"""Lesson 12 on the page: a digit is drawn, a receptive field dragged; numbers, words and goals are Python's."""

import re
from itertools import product

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.lessons.lesson_12 import playground
from tests.browser.explorers import explorer
from tests.browser.played import computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")


def test_the_page_computes_says_and_judges_what_python_does(blank):
    receptive, states, asked = explorer("receptive"), [], []
    for side, blocks, shift in product((8, 4), (1, 2, 3, 4), (True, False)):
        for row, column in product(range(side), repeat=2):
            states.append({"patch": 1 + row * side + column, "blocks": blocks, "shift": shift, "stage": side})
            asked.append({"row": row, "column": column, "blocks": blocks, "shifted": shift, "side": side})
    found = computed(
        blank, receptive, asked,
        """([states, config]) => states.map((state) => ({ field: receptiveFields(state, config)[0],
          goals: receptiveGoals(config).map((goal) => goal(state)), words: receptiveWords(state, config) }))""",
    )  # fmt: skip
    assert judged_as_in_python(receptive, states, found).all()
    for state, here in zip(states, found, strict=True):
        side, inside = state["stage"], np.zeros((state["stage"], state["stage"]), bool)
        (top, bottom), (left, right) = here["field"]
        inside[top : bottom + 1, left : right + 1] = True
        expected = playground.reach(state["patch"] - 1, state["blocks"], side=side, shifted=state["shift"])
        np.testing.assert_array_equal(inside, expected)


def test_a_position_is_dragged_and_a_goal_waits_until_it_is_let_go(play):
    here = play(explorer("receptive"), kernel=True)
    before, position = here.axes(), here.slider("Position")
    here.choose("2", "Blocks")
    box = position.bounding_box()
    here.stroke(
        *((box["x"] + (at + 0.5) / 8 * box["width"], box["y"] + (at + 0.5) / 8 * box["height"]) for at in (3, 0))
    )
    assert position.get_attribute("aria-valuetext") == "1 (row 1, column 1)"
    here.shows("4 of 64 positions are in the receptive field")
    here.let_go(False, True, False)
    assert here.axes() == before


def test_the_keyboard_moves_the_position_and_it_is_said(play):
    here = play(explorer("receptive"))
    here.choose("4", "Blocks")
    assert here.reached() == 1
    here.keys("Position", *["ArrowUp"] * 4, "ArrowRight")
    here.choose("do not")
    here.says(
        "Position 5 (row 1, column 5) of stage 1, windows never shifted: after 4 blocks its receptive field has 4"
    )


def test_the_page_says_and_judges_a_drawing_as_python_does(blank):
    reader, random, on_the_pad = explorer("hierarchy"), np.random.default_rng(12), playground.on_the_pad
    pads = [np.roll(on_the_pad(n), random.integers(-8, 20, 2), (0, 1)) for n in range(16)]
    above = np.arange(playground.PAD)[:, None] < 22  # of one digit, and below the rest of another
    pads += [np.where(above, on_the_pad(a), on_the_pad(b)) for a, b in ((0, 9), (4, 6), (8, 1), (2, 3))]
    pads.append(0 * pads[0])
    sources = [pad.flatten().tolist() for pad in pads]
    found = computed(
        blank, reader, [[source, reader.answers["read"](source).tolist()] for source in sources],
        """([asked, config]) => asked.map(([source, answer]) => {
          const its = hierarchyReading(answer, config);
          return { maps: its.stages.map((map) => map.length), pixels: its.pixels,
            words: hierarchyWords({ source, its }, config), goals: hierarchyGoals.map((goal) => goal(its)) };
        })""",
    )  # fmt: skip
    found[-1]["goals"] = [False] * 2  # the stage asks no goal of empty paper, which a test below holds
    assert judged_as_in_python(reader, [{"pad": pad} for pad in pads], found).all()
    for pad, here in zip(pads, found, strict=True):
        np.testing.assert_allclose(here["pixels"], playground.prepared(pad).flatten(), atol=1e-6)
        assert here["maps"] == [64, 16]


def test_a_digit_is_drawn_and_empty_paper_reaches_no_goal(play):
    here = play(explorer("hierarchy"), kernel=True)
    note = here.page.locator(".play-note", has_text="It says")
    expect(note).to_contain_text("It says 3")
    assert here.told() == []  # the first reading is no touch of the learner's
    here.press("Clear")
    here.says("It cannot say “nothing”")
    here.draw((0.12, 0.1), (0.12, 0.42))
    expect(note).to_contain_text(re.compile("It says 1; as drawn, not prepared: [02-9]"))
    assert here.reached() == 0
    here.page.mouse.up()
    here.has_reached([re.compile("without its preparation")])
