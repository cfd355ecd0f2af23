"""Lesson 16 on a page: an agent's trajectories through a maze, and icons that words find."""

from itertools import product

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.lessons.lesson_16 import control_learner as learner
from course_lib.lessons.lesson_16 import words_playground
from course_lib.lessons.lesson_16.control_playground import trajectories
from course_lib.lessons.lesson_16.recipes import control
from tests.browser.explorers import explorer, trained
from tests.browser.played import centre, computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")

ASK = """async ([states, config]) => {
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


def said(asked, start, goal):
    """What stands below the maze."""
    cells = trajectories(trained("mazes"), start, goal)[-asked]
    steps, end = int((cells >= 0).sum()) - 1, "reaches" if goal in cells else "does not reach"
    return f"Asked for {asked}: {steps} steps, return {-steps}; it {end} the goal."


def test_the_agent_of_the_page_acts_says_and_reaches_goals_as_python_s_does(play):
    agent, draw = explorer("agent"), np.random.default_rng(15)
    held_out, targets = agent.config["pairs"], agent.config["targets"]
    states = [{"asked": want, "pair": pair} for want, pair in product((-40, -22, 0), range(7))]
    asked = [[state["asked"], *held_out[state["pair"]]] for state in states]
    asked += [[-int(draw.integers(41)), int(draw.integers(75)), int(draw.choice(targets))] for _ in range(6)]
    found, same = computed(play(agent).page, agent, asked, ASK), 0
    assert judged_as_in_python(agent, states, found[: len(states)]).all()
    for (want, start, goal), here in zip(asked, found, strict=True):
        cells = trajectories(trained("mazes"), start, goal)[-want]
        same += here["cells"] == cells[cells >= 0].tolist()
        assert here["shortest"] == int(control.maze().distances[start, goal])
    assert same >= len(found) - 1  # two actions may be as probable as each other but for the last digit


def test_a_kernel_answers_with_the_trajectory_for_each_return():
    agent = explorer("agent")
    for pair in (0, 6):
        start, goal = agent.config["pairs"][pair]
        answer = agent.answers["trajectories"]({"start": start, "goal": goal}).reshape(41, 41)
        for want in (0, -17, -40):
            its = learner.trajectory(trained("mazes"), want, pair=pair)
            count = int(its.valid.sum())
            assert answer[-want, :count].tolist() == its.cells[0, :count].tolist()
            assert (answer[-want, count] == goal) == bool(its.reached[0]) and (answer[-want, count + 1 :] < 0).all()


def test_the_trajectory_follows_the_goal_that_is_dragged_and_goals_wait_for_its_end(play):
    agent = explorer("agent")
    here, goal, (first, *_) = play(agent, kernel=True), "Goal;", agent.config["pairs"]
    here.shows(said(-10, *first))
    assert here.told() == []  # the first trajectory is no touch of the learner's
    before = here.axes()
    here.drag(
        here.slider(goal).locator(".play-dot"), (-here.page.locator(".play-wall").first.bounding_box()["width"], 0)
    )
    expect(here.slider(goal)).to_have_attribute("aria-valuetext", "row 1, column 9")
    here.shows(said(-10, first[0], agent.config["cells"].index([0, 8])))
    here.page.mouse.move(*centre(here.page.locator(".play-target").first), steps=5)
    here.page.mouse.up()
    expect(here.slider(goal)).to_have_attribute("aria-valuetext", "row 1, column 1")
    here.press("1", exact=True)
    here.shows(said(-10, *first))
    before_it_ends = here.reached()
    here.drag(here.page.locator(".play-point").last.locator(".play-dot"), (-600, 0))
    expect(here.page.get_by_label("Return asked for, typed")).to_have_value("-40")
    here.shows(said(-40, *first))
    assert here.reached() == before_it_ends < 3
    here.page.mouse.up()
    assert here.reached() == before_it_ends + 1
    assert here.axes() == before and here.told()[0] == {"touched": True}


def test_arrow_keys_move_start_and_goal_and_never_onto_each_other(play):
    here = play(explorer("agent"))
    start, goal = here.slider("Start;"), here.slider("Goal;")
    expect(start).to_have_attribute("aria-valuetext", "row 5, column 6")
    here.keys("Start;", "ArrowUp", "ArrowRight")
    expect(start).to_have_attribute("aria-valuetext", "row 5, column 7")  # a wall is above
    goal.press("ArrowRight")
    here.says("Asked for -10, it got -")
    here.drag(start.locator(".play-dot"), [b - a for a, b in zip(centre(start), centre(goal), strict=True)])
    here.page.mouse.up()
    assert start.get_attribute("aria-valuetext") != goal.get_attribute("aria-valuetext")


# ------------------------------------------------------------------------------------------- icons by words


def test_the_page_says_and_judges_a_search_as_python_does(blank):
    search, queries = (
        explorer("iconsearch"),
        ("penguin", "red apple", "dog face", "hammer", "yellow animal", "  Violin"),
    )
    asked = product((*words_playground.EXAMPLES, *queries), words_playground.SETS.values())
    states = [{"query": query, "where": where} for query, where in asked]
    found = computed(
        blank, search, [state | {"its": {**state, **search.answers["search"](state)}} for state in states],
        """([states, config]) => states.map((state) => ({ words: iconSearchWords(state),
          goals: iconSearchGoals(config).map((goal) => goal(state)) }))""",
    )  # fmt: skip
    judged_as_in_python(search, states, found)


def test_icons_are_drawn_for_typed_words_and_a_query_that_is_too_long_is_told(play):
    here = play(explorer("iconsearch"), kernel=True)
    found = here.page.locator(".play-icons canvas:visible")
    expect(found).to_have_count(words_playground.HITS)
    expect(found.first).to_have_attribute("aria-label", "sunflower")
    pixels = "(canvas) => [...canvas.getContext('2d').getImageData(0, 0, 32, 32).data].filter((_, i) => i % 4 < 3)"
    (first, *_) = words_playground.find(trained("icon_clip"), "sunflower", "new designer")
    np.testing.assert_array_equal(found.first.evaluate(pixels), first.pixels.flatten())
    here.write("Words", "a" * 41)
    here.notes("please keep to 40")
    here.press("fish")
    here.says("for “fish”")
