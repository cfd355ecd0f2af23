"""Lesson 16 on a page: an agent's trajectories through a maze, and icons that words find."""

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_16 import control_learner as learner
from course_lib.lessons.lesson_16 import words_playground
from course_lib.lessons.lesson_16.control_playground import agent, trajectories
from course_lib.lessons.lesson_16.recipes import control
from tests.axe import axe_script
from tests.browser.live_playground import axes, move, played
from tests.browser.played import overflowing, served
from tests.browser.test_playgrounds_live import Played, centre
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")

ASK = """async ([config, states]) => {
  const read = async (kind) => (await fetch(`/models/mazes.${kind}`)).arrayBuffer();
  const sizes = JSON.parse(new TextDecoder().decode(await read("json"))).config;
  const model = new DecisionTransformer(readSafetensors(await read("safetensors")), sizes);
  return states.map(([asked, start, goal]) => {
    const ways = [], state = { asked, start, goal, found: { start, goal, ways } };
    ways[-asked] = agentWay(model, config, start, goal, asked);
    const taken = agentWalked(state, config);
    return { ...taken, words: agentWords(state, config), goals: agentGoals.map((goal) => goal(state, taken)) };
  });
}"""


@pytest.fixture(scope="module")
def asked():
    return agent(load_trained("mazes").model)


def said(asked, start, goal):
    """What stands below the maze."""
    cells = trajectories(load_trained("mazes").model, start, goal)[-asked]
    steps, end = int((cells >= 0).sum()) - 1, "reaches" if goal in cells else "does not reach"
    return f"Asked for {asked}: {steps} steps, return {-steps}; it {end} the goal."


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def open_page(browser, asked, models):
    """open_page(...): the maze with its first trajectory."""
    with served(browser, models) as open_it:

        def open_one(**options):
            page = open_it(asked, **options)
            expect(page.get_by_text(said(-10, *asked.config["pairs"][0]))).to_be_visible()
            return Played(page)

        yield open_one


def test_the_agent_of_the_page_acts_says_and_reaches_goals_as_python_s_does(open_page, asked):
    page, draw, model = open_page().page, np.random.default_rng(15), load_trained("mazes").model
    page.add_script_tag(content=bundle("agent"))
    held_out, targets = asked.config["pairs"], asked.config["targets"]
    states = [(asked.state(asked=want, pair=pair), held_out[pair]) for want in (-40, -22, 0) for pair in range(7)]
    ours = [[state["asked"], *pair] for state, pair in states]
    others = [[-int(draw.integers(41)), int(draw.integers(75)), int(draw.choice(targets))] for _ in range(6)]
    found = page.evaluate(ASK, [asked._page_config(), ours + others])
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
            its = learner.trajectory(load_trained("mazes").model, want, pair=pair)
            count = int(its.valid.sum())
            assert answer[-want, :count].tolist() == its.cells[0, :count].tolist()
            assert (answer[-want, count] == goal) == bool(its.reached[0]) and (answer[-want, count + 1 :] < 0).all()


def goal_of(here):
    return here.page.get_by_role("slider", name="Goal;")


def test_the_trajectory_follows_the_goal_that_is_dragged_and_goals_wait_for_its_end(open_page, asked):
    here = open_page(kernel=True)
    assert here.told() == []  # the first trajectory is no touch of the learner's
    before = axes(here)
    square = (here.page.locator(".play-wall").first.bounding_box()["width"], 0)
    move(here, goal_of(here).locator(".play-dot"), (-square[0], 0))
    expect(goal_of(here)).to_have_attribute("aria-valuetext", "row 1, column 9")
    start, cell = asked.config["pairs"][0][0], asked.config["cells"].index([0, 8])
    expect(here.page.get_by_text(said(-10, start, cell))).to_be_visible()
    here.page.mouse.move(*centre(here.page.locator(".play-target").first), steps=5)
    here.page.mouse.up()
    expect(goal_of(here)).to_have_attribute("aria-valuetext", "row 1, column 1")
    here.page.get_by_role("button", name="1", exact=True).click()
    expect(here.page.get_by_text(said(-10, *asked.config["pairs"][0]))).to_be_visible()
    before_it_ends = here.reached()
    move(here, here.page.locator(".play-point").last.locator(".play-dot"), (-600, 0))
    expect(here.page.get_by_label("Return asked for, typed")).to_have_value("-40")
    expect(here.page.get_by_text(said(-40, *asked.config["pairs"][0]))).to_be_visible()
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


# ------------------------------------------------------------------------------------------- icons by words


@pytest.fixture(scope="module")
def search():
    return words_playground.search(load_trained("icon_clip").model)


def searches():
    for query in (
        *words_playground.EXAMPLES,
        "penguin",
        "red apple",
        "dog face",
        "hammer",
        "yellow animal",
        "  Violin",
    ):
        for where in words_playground.SETS.values():
            yield {"query": query, "where": where}


def test_the_page_says_and_judges_a_search_as_python_does(browser, search):
    page, states = browser.new_page(), list(searches())
    page.add_script_tag(content=bundle("iconsearch"))
    found = page.evaluate(
        """([states, config]) => states.map((state) => ({ words: iconSearchWords(state),
          goals: iconSearchGoals(config).map((goal) => goal(state)) }))""",
        [[state | {"its": {**state, **search.answers["search"](state)}} for state in states], search._page_config()],
    )
    for state, here in zip(states, found, strict=True):
        assert here["words"] == search.alt(search.state(**state))
        assert here["goals"] == [goal(search.state(**state)) for goal in search.goals]
    page.close()


def test_icons_are_drawn_for_typed_words_and_a_query_that_is_too_long_is_told(browser, search):
    with played(browser, search, kernel=True) as here:
        found = here.page.locator(".play-icons canvas:visible")
        expect(found).to_have_count(words_playground.HITS)
        expect(found.first).to_have_attribute("aria-label", "sunflower")
        pixels = "(canvas) => [...canvas.getContext('2d').getImageData(0, 0, 32, 32).data].filter((_, i) => i % 4 < 3)"
        (first, *_) = words_playground.find(load_trained("icon_clip").model, "sunflower", "new designer")
        np.testing.assert_array_equal(found.first.evaluate(pixels), first.pixels.flatten())
        here.page.get_by_label("Words", exact=True).fill("a" * 41)
        expect(here.page.locator(".play-note").first).to_contain_text("please keep to 40")
        here.page.get_by_role("button", name="fish").click()
        expect(here.page.locator(".play-said")).to_contain_text("for “fish”")


def test_the_search_fits_and_axe_finds_nothing(browser, search):
    for width, height, theme in ((390, 844, "light"), (1280, 720, "dark")):
        with played(browser, search, width=width, height=height, theme=theme, kernel=True) as here:
            expect(here.page.locator(".play-icons canvas:visible")).to_have_count(words_playground.HITS)
            assert overflowing(here.page) == []
            here.page.evaluate(axe_script())
            assert here.page.evaluate(AXE, ".course-play") == []
