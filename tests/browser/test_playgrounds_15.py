"""Lesson 15's playgrounds on a page of the site: trajectories through a maze, and old systems beside new ones."""

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_15 import learner, playground
from course_lib.lessons.lesson_15.recipes import control
from course_lib.lessons.lesson_15.walker import trajectories, walker
from tests.axe import axe_script
from tests.browser.live_playground import axes, check_axe, check_it_fits, move, played
from tests.browser.played import overflowing, served
from tests.browser.test_playgrounds_live import Played, centre
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")

WALK = """async ([config, states]) => {
  const read = async (kind) => (await fetch(`/models/mazes.${kind}`)).arrayBuffer();
  const sizes = JSON.parse(new TextDecoder().decode(await read("json"))).config;
  const model = new DecisionTransformer(readSafetensors(await read("safetensors")), sizes);
  return states.map(([asked, start, goal]) => {
    const ways = [], state = { asked, start, goal, found: { start, goal, ways } };
    ways[-asked] = agentWay(model, config, start, goal, asked);
    const walked = agentWalked(state, config);
    return { ...walked, words: agentWords(state, config), goals: agentGoals.map((goal) => goal(state, walked)) };
  });
}"""


@pytest.fixture(scope="module")
def asked():
    return walker(load_trained("mazes").model)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def open_page(browser, asked, models):
    """open_page(...): the maze with its first trajectory."""
    with served(browser, models) as open_it:

        def open_one(**options):
            page = open_it(asked, **options)
            expect(page.get_by_text("Asked for -10: 14 steps, return -14; it reaches the goal.")).to_be_visible()
            return Played(page)

        yield open_one


def test_the_page_walks_says_and_judges_what_python_does(open_page, asked):
    page, draw, model = open_page().page, np.random.default_rng(15), load_trained("mazes").model
    page.add_script_tag(content=bundle("agent"))
    held_out, targets = asked.config["pairs"], asked.config["targets"]
    states = [(asked.state(asked=want, pair=pair), held_out[pair]) for want in (-40, -22, 0) for pair in range(7)]
    ours = [[state["asked"], *pair] for state, pair in states]
    others = [[-int(draw.integers(41)), int(draw.integers(75)), int(draw.choice(targets))] for _ in range(6)]
    found = page.evaluate(WALK, [asked._page_config(), ours + others])
    reached, same = np.zeros(3, bool), 0
    for (state, _), here in zip(states, found, strict=False):
        assert here["words"] == asked.alt(state)
        assert here["goals"] == [goal(state) for goal in asked.goals]
        reached |= here["goals"]
    assert reached.all()
    for (want, start, goal), here in zip(ours + others, found, strict=True):
        cells = trajectories(model, start, goal)[-want]
        same += here["cells"] == cells[cells >= 0].tolist()
        assert here["shortest"] == int(control.maze().distances[start, goal])
    assert same >= len(found) - 1  # two actions may be as probable as each other but for the last digit


def test_a_kernel_answers_with_the_trajectory_for_each_return(asked):
    for pair in (0, 6):
        start, goal = asked.config["pairs"][pair]
        answer = asked.answers["trajectories"]({"start": start, "goal": goal}).reshape(41, 41)
        for want in (0, -17, -40):
            its = learner.walk(load_trained("mazes").model, want, pair=pair)
            count = int(its.valid.sum())
            assert answer[-want, :count].tolist() == its.cells[0, :count].tolist()
            assert (answer[-want, count] == goal) == bool(its.reached[0]) and (answer[-want, count + 1 :] < 0).all()


def goal_of(here):
    return here.page.get_by_role("slider", name="Goal;")


def test_the_trajectory_follows_the_goal_that_is_dragged_and_goals_wait_for_its_end(open_page):
    here = open_page(kernel=True)
    assert here.told() == []  # the first trajectory is no touch of the learner's
    before = axes(here)
    square = (here.page.locator(".play-wall").first.bounding_box()["width"], 0)
    move(here, goal_of(here).locator(".play-dot"), (-square[0], 0))
    expect(goal_of(here)).to_have_attribute("aria-valuetext", "row 1, column 9")
    expect(here.page.get_by_text("Asked for -10: 15 steps")).to_be_visible()
    here.page.mouse.move(*centre(here.page.locator(".play-target").first), steps=5)
    here.page.mouse.up()
    expect(goal_of(here)).to_have_attribute("aria-valuetext", "row 1, column 1")
    here.page.get_by_role("button", name="1", exact=True).click()
    expect(here.page.get_by_text("Asked for -10: 14 steps")).to_be_visible()
    before_it_ends = here.reached()
    move(here, here.page.locator(".play-point").last.locator(".play-dot"), (-600, 0))
    expect(here.page.get_by_label("Return asked for, typed")).to_have_value("-40")
    expect(here.page.get_by_text("Asked for -40: 40 steps")).to_be_visible()
    assert here.reached() == before_it_ends < 3
    here.page.mouse.up()
    assert here.reached() == before_it_ends + 1
    assert axes(here) == before and here.told()[0] == {"touched": True}


def test_arrow_keys_move_start_and_goal_and_never_onto_each_other(open_page):
    here = open_page()
    start = here.page.get_by_role("slider", name="Start;")
    expect(start).to_have_attribute("aria-valuetext", "row 5, column 6")
    for key in ("ArrowUp", "ArrowRight"):
        start.press(key)
    expect(start).to_have_attribute("aria-valuetext", "row 5, column 7")  # a wall is above
    goal_of(here).press("ArrowRight")
    expect(here.page.locator(".play-said")).to_contain_text("Asked for -10, it got -")
    move(here, start.locator(".play-dot"), [b - a for a, b in zip(centre(start), centre(goal_of(here)), strict=True)])
    here.page.mouse.up()
    assert start.get_attribute("aria-valuetext") != goal_of(here).get_attribute("aria-valuetext")


@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light")])
def test_the_maze_fits_and_axe_finds_nothing_serious(open_page, width, height, theme):
    page = open_page(width=width, height=height, theme=theme).page
    assert overflowing(page) == []
    assert width < 1000 or page.evaluate("document.documentElement.scrollHeight") <= height
    page.evaluate(axe_script())
    assert page.evaluate(AXE, ".course-play") == []


# ------------------------------------------------------------------------------------------- the takeover map


@pytest.fixture(scope="module")
def takeover():
    return playground.takeover_map()


def test_the_page_shows_says_and_judges_both_systems_as_python_does(browser, takeover):
    page, levels = browser.new_page(), (0, 0.8, 3)
    page.add_script_tag(content=bundle("takeover"))
    states = [(field, n, noise) for field in playground.FIELDS for n in range(3) for noise in levels]
    states = [takeover.state(field=field, number=n, noise=noise) for field, n, noise in states]
    found = page.evaluate(
        """([config, states]) => states.map((state) => {
          const { right } = takeoverPair(state, config);
          const goals = takeoverGoals.map((goal) => right !== null && goal(state.field, right));
          return { goals, words: takeoverWords(state, config) };
        })""",
        [takeover._page_config(), states],
    )
    reached = np.zeros(4, bool)
    for state, here in zip(states, found, strict=True):
        assert here["words"] == takeover.alt(state)
        assert here["goals"] == [goal(state) for goal in takeover.goals]
        reached |= here["goals"]
    assert reached.all()


def test_each_field_is_chosen_and_drawn_and_noise_is_for_speech_alone(browser, takeover):
    with played(browser, takeover, kernel=True) as here:
        noise = here.page.get_by_role("slider", name="Noise")
        noise.press("End")
        expect(here.page.locator(".play-answer").first).to_have_text("C E G c")
        assert here.reached() == 1  # it drowns for both
        here.page.get_by_text("control", exact=True).click()
        expect(noise).to_be_hidden()
        expect(here.page.get_by_role("img", name="Trajectory of 14 steps")).to_be_visible()
        expect(here.page.locator(".play-answer").last).to_have_text("arrives, return -14")
        expect(here.page.get_by_text("✓ correct")).to_have_count(1)
        here.page.get_by_text("translation", exact=True).click()
        expect(here.page.locator("canvas, svg").locator("visible=true")).to_have_count(0)
        assert here.told()[-1] == {"reached": [False, True, True, False]}


def test_the_map_fits_and_axe_finds_nothing(browser, takeover):
    check_it_fits(browser, takeover)
    check_axe(browser, takeover)
