"""Lesson 01 on the page: what two networks say of a drawing, by depth; words and goals are Python's."""

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_01 import playground as play
from tests.axe import axe_script
from tests.browser.live_playground import played
from tests.browser.played import overflowing
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def six():
    return play.six(load_trained("transfer").model)


@pytest.fixture(scope="module")
def stages():
    return play.stages(load_trained("resnet").model)


def drawings():
    """Digits, random lines, and empty paper."""
    random = np.random.default_rng(1)
    yield from play.examples().values()
    for _ in range(12):
        lines = np.zeros((play.PAD, play.PAD), np.uint8)
        for _ in range(3):
            (top, left), long = random.integers(6, 40, size=2), random.integers(6, 36)
            area = (slice(top, top + 5), slice(left, left + long))
            lines[area if random.random() < 0.5 else area[::-1]] = 255
        yield lines
    yield np.zeros((play.PAD, play.PAD), np.uint8)


def asked(explorer):
    """A state, and the kernel's answer to it, for each drawing."""
    for drawing in drawings():
        yield explorer.state(pad=drawing), explorer.answers["read"](drawing.flatten().tolist())


def test_the_page_says_what_a_network_of_six_digits_says(browser, six):
    page, every = browser.new_page(), list(asked(six))
    page.add_script_tag(content=bundle("six"))
    probs = [answer[:6].tolist() for _, answer in every]
    words = page.evaluate("(all) => all.map((probs) => sixWords({ its: { probs } }))", probs)
    assert words == [six.alt(state) for state, _ in every]
    for state, answer in every:
        np.testing.assert_allclose(answer[6:], play.as_scene(state["pad"]).flatten())


def test_the_page_says_and_judges_the_depths_as_python_does(browser, stages):
    page, every = browser.new_page(), list(asked(stages))
    page.add_script_tag(content=bundle("stages"))
    found = page.evaluate(
        """([answers, config]) => answers.map((answer) => {
          const its = stagesReading(answer, config);
          return { words: stagesWords({ its }, config), goals: stagesGoals.map((goal) => goal(its)),
            sizes: its.maps.map((row) => row.map((map) => map.length)) };
        })""",
        [[answer.tolist() for _, answer in every], stages._page_config()],
    )
    for (state, _), here in zip(every, found, strict=True):
        assert here["words"] == stages.alt(state)
        assert not state["pad"].any() or here["goals"] == [goal(state) for goal in stages.goals]
        assert here["sizes"] == [[side * side] * play.SHOWN for side in (32, 32, 16, 8)]
    assert np.any([one["goals"] for one in found], axis=0).all()


def stroke(here, *points):
    """Draw through points of the pad, from 0 to 1; the button stays down."""
    box, mouse = here.page.locator("canvas").first.bounding_box(), here.page.mouse
    for i, (x, y) in enumerate(points):
        mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=6)
        if i == 0:
            mouse.down()


def test_a_drawing_is_read_and_an_example_comes_from_the_kernel(browser, six):
    with played(browser, six, kernel=True) as here:
        said = here.page.locator(".play-said")
        expect(said).to_contain_text("It knows 0 to 5, and says 2")
        assert here.told() == []
        here.page.get_by_role("button", name="Clear").click()
        stroke(here, (0.5, 0.2), (0.5, 0.8))
        expect(here.page.get_by_text("and says 1").first).to_be_visible()
        here.page.mouse.up()
        before = said.inner_text()
        here.page.get_by_role("button", name="any digit").click()
        expect(said).not_to_have_text(before)
        assert here.told() == [{"touched": True}]


def test_the_depths_read_a_stroke_and_a_goal_waits_for_its_end(browser, stages):
    with played(browser, stages, kernel=True) as here:
        said = here.page.locator(".play-said")
        expect(said).to_contain_text("stage 3 2")
        here.page.get_by_role("button", name="Clear").click()
        expect(said).to_contain_text("A probe at each depth reads")
        assert here.reached() == 0  # neither by the start nor by empty paper
        stroke(here, (0.5, 0.2), (0.5, 0.8))
        expect(here.page.get_by_text("stage 3: its probe reads 1")).to_be_visible()
        assert here.reached() == 0
        here.page.mouse.up()
        expect(here.page.locator(".play-goals li.reached")).not_to_have_count(0)


def test_without_a_kernel_the_static_form_stays(browser, six, stages):
    for explorer in (six, stages):
        with played(browser, explorer) as here:
            expect(here.page.get_by_text("static form")).to_be_visible()
            assert here.page.locator(".course-play").count() == 0


@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light")])
def test_they_fit_and_axe_finds_nothing(browser, six, stages, width, height, theme):
    for explorer, words in ((six, "It knows 0 to 5"), (stages, "A probe at each depth")):
        with played(browser, explorer, width=width, height=height, theme=theme, kernel=True) as here:
            expect(here.page.locator(".play-said")).to_contain_text(words)
            assert overflowing(here.page) == []
            static = here.page.get_by_text("static form").evaluate("(one) => one.getBoundingClientRect().bottom + 16")
            assert width < 1000 or here.page.evaluate("document.documentElement.scrollHeight") <= height + static
            here.page.evaluate(axe_script())
            assert here.page.evaluate(AXE, ".course-play") == []
