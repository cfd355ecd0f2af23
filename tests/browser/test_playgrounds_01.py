"""Lesson 01 on the page: what two networks say of a drawing, by depth; words and goals are Python's."""

import numpy as np
import pytest

from course_lib.lessons.lesson_01 import playground
from tests.browser.explorers import explorer
from tests.browser.played import computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")


def drawings():
    """Digits, random lines, and empty paper."""
    random = np.random.default_rng(1)
    yield from playground.examples().values()
    for _ in range(12):
        lines = np.zeros((playground.PAD, playground.PAD), np.uint8)
        for _ in range(3):
            (top, left), long = random.integers(6, 40, size=2), random.integers(6, 36)
            area = (slice(top, top + 5), slice(left, left + long))
            lines[area if random.random() < 0.5 else area[::-1]] = 255
        yield lines
    yield np.zeros((playground.PAD, playground.PAD), np.uint8)


def asked(explorer):
    """The drawings, and the kernel's answer to each."""
    every = list(drawings())
    return every, [explorer.answers["read"](drawing.flatten().tolist()) for drawing in every]


def test_the_page_says_what_a_network_of_six_digits_says(blank):
    six = explorer("six")
    every, answers = asked(six)
    function = "([all]) => all.map((probs) => ({ words: sixWords({ its: { probs } }), goals: [] }))"
    found = computed(blank, six, [answer[:6].tolist() for answer in answers], function)
    judged_as_in_python(six, [{"pad": drawing} for drawing in every], found)
    for drawing, answer in zip(every, answers, strict=True):
        np.testing.assert_allclose(answer[6:], playground.as_scene(drawing).flatten())


def test_the_page_says_and_judges_the_depths_as_python_does(blank):
    stages = explorer("stages")
    every, answers = asked(stages)
    found = computed(
        blank, stages, [answer.tolist() for answer in answers],
        """([answers, config]) => answers.map((answer) => {
          const its = stagesReading(answer, config);
          return { words: stagesWords({ its }, config), goals: stagesGoals.map((goal) => goal(its)),
            sizes: its.maps.map((row) => row.map((map) => map.length)) };
        })""",
    )  # fmt: skip
    found[-1]["goals"] = [False] * 3  # the stage asks no goal of empty paper, which another test holds
    assert judged_as_in_python(stages, [{"pad": drawing} for drawing in every], found).all()
    assert all(one["sizes"] == [[side**2] * playground.SHOWN for side in (32, 32, 16, 8)] for one in found)


def test_a_drawing_is_read_and_an_example_comes_from_the_kernel(play):
    here = play(explorer("six"), kernel=True)
    here.says("It knows 0 to 5, and says 2")
    assert here.told() == []
    here.press("Clear")
    here.draw((0.5, 0.2), (0.5, 0.8))
    here.shows("and says 1")
    here.page.mouse.up()
    before = here.said.inner_text()
    here.press("any digit")
    here.says_no_more(before)
    assert here.told() == [{"touched": True}]


def test_the_depths_read_a_stroke_and_a_goal_waits_for_its_end(play):
    here = play(explorer("stages"), kernel=True)
    here.says("stage 3 2")
    here.press("Clear")
    here.says("A probe at each depth reads")
    assert here.reached() == 0  # neither by the start nor by empty paper
    here.draw((0.5, 0.2), (0.5, 0.8))
    here.shows("stage 3: its probe reads 1")
    assert here.reached() == 0
    here.page.mouse.up()
    here.page.wait_for_function("told.length === 2")
    assert here.reached() > 0
