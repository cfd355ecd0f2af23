"""Lesson 02 on the page: nearest digits of a drawing, and two maps; words and goals are Python's."""

import random

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.lessons.lesson_02 import playground
from tests.browser.explorers import explorer
from tests.browser.played import centre, computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")


# ------------------------------------------------------------------------------------------- the nearest digits


def test_the_page_says_and_judges_the_neighbours_as_python_does(blank):
    alike, any_digit = explorer("alike"), lambda: playground.any_digit().reshape(playground.PAD, playground.PAD)
    drawings = [*playground.drawings().values(), *(any_digit() for _ in range(4))]
    states = [{"pad": drawing, "turn": turn} for drawing in drawings for turn in (0, 40, -90)]
    answers = [alike.answers["read"]({"drawing": s["pad"].flatten().tolist(), "turn": s["turn"]}) for s in states]
    found = computed(
        blank, alike, [answer.tolist() for answer in answers],
        """([answers, config]) => answers.map((answer) => {
          const its = neighbourReading(answer, config);
          const sizes = [its.scene, ...its.images.flat()].map((one) => one.length);
          return { words: neighbourWords({ its }, config), goals: neighbourGoals.map((goal) => goal(its)), sizes };
        })""",
    )  # fmt: skip
    assert judged_as_in_python(alike, states, found).all()
    assert all(one["sizes"] == [playground.SIDE**2] * (1 + 3 * playground.NEAREST) for one in found)


def test_a_stroke_and_a_turn_are_read(play):
    here = play(explorer("alike"), kernel=True)
    caption = here.page.locator(".play-map-rows > div > div").nth(4)
    here.says("Nearest by SimCLR: 2, 2, 2, 2, 2.")
    here.press("Clear")
    here.shows("There is nothing on the pad")
    here.draw((0.5, 0.2), (0.5, 0.8))
    expect(caption).to_have_text("by SimCLR: 1, 1, 1, 1, 1")
    here.page.mouse.up()
    here.type("Turn (degrees)", "90")
    expect(caption).not_to_have_text("by SimCLR: 1, 1, 1, 1, 1")
    here.press("Back to the start")
    expect(caption).to_have_text("by SimCLR: 2, 2, 2, 2, 2")
    assert here.told()[0] == {"touched": True}


# ------------------------------------------------------------------------------------------- the map of digits


def places():
    draw = random.Random(2)
    for _ in range(12):
        changes = {"crop": draw.randrange(10) / 10, "turn": 5 * draw.randrange(19), "light": draw.randrange(11) / 10}
        yield {"features": draw.choice(playground.FEATURES), "point": draw.randrange(1, 201), **changes}
    start = {"features": "SimCLR", "point": 50, "crop": 0.3, "turn": 40, "light": 0.4}
    yield from (start, start | {"turn": 90, "crop": 0.9}, start | {"point": 198})


def test_the_page_says_and_judges_the_map_as_python_does(blank):
    plane, states = explorer("embedding"), list(places())
    answers = [plane.answers["land"]({name: at for name, at in s.items() if name != "features"}) for s in states]
    found = computed(
        blank, plane, [[state, answer.tolist()] for state, answer in zip(states, answers, strict=True)],
        """([asked, config]) => asked.map(([state, answer]) => {
          const now = { ...state, its: { ...state, ...landing(answer, config) } };
          return { words: embeddingWords(now, config), goals: embeddingGoals(config).map((goal) => goal(now)),
            alone: embeddingWords({ ...state, its: null }, config), images: now.its.images.map((one) => one.length) };
        })""",
    )  # fmt: skip
    assert judged_as_in_python(plane, states, found).all()
    for here in found:
        assert here["words"].startswith(here["alone"]) and "landed" not in here["alone"]
        assert here["images"] == [playground.SIDE**2] * playground.VIEWS


@pytest.mark.parametrize("kernel", [False, True])
def test_a_digit_is_chosen_by_click_drag_and_arrow(play, kernel):
    here = play(explorer("embedding"), kernel=kernel)
    digits, on_the_map = here.page.locator(".play-digit"), here.slider("Picture on the map")
    assert here.page.locator("input[type=range]").count() == (3 if kernel else 0)
    assert here.page.locator(".play-goals li").count() == (len(explorer("embedding").goals) if kernel else 1)
    here.page.mouse.click(*centre(digits.nth(149)))
    expect(on_the_map).to_have_attribute("aria-valuetext", "picture 150, a 7")
    expect(here.page.get_by_text("the nearest:")).to_contain_text("picture 150: a 7")
    if kernel:
        here.shows("nearest to a 7:")
    here.stroke(centre(digits.nth(149)), centre(digits.nth(0)))
    expect(on_the_map).to_have_attribute("aria-valuenow", "1")
    here.page.mouse.up()
    before = centre(digits.nth(0))
    on_the_map.press("ArrowUp")
    assert centre(digits.nth(int(on_the_map.get_attribute("aria-valuenow")) - 1))[1] < before[1]
    here.choose("pixels")
    assert centre(digits.nth(0)) != before


def test_a_goal_of_the_map_waits_for_the_end_of_a_drag(play):
    here = play(explorer("embedding"), kernel=True)
    here.shows("nearest to a 2: 8 of 8 by SimCLR")
    here.stroke(centre(here.page.locator(".play-digit").nth(197)))
    expect(here.slider("Picture on the map")).to_have_attribute("aria-valuenow", "198")
    here.shows("nearest to a 9:")
    assert here.reached() == 0
    here.page.mouse.up()
    here.has_reached(["SimCLR: a picture most of whose neighbours are another digit"])


# ------------------------------------------------------------------------------------------- the map of icons


def icon_states(count):
    draw = random.Random(3)
    for query in ("", "  Face ", "owl", "book", "unicorn", "kiss mark", "zzz"):
        for features in ("h", "z", "pixels"):
            yield {"features": features, "query": query, "point": draw.randrange(1, count + 1)}
    for point in range(1, count + 1, 6):
        yield {"features": draw.choice(["h", "z", "pixels"]), "query": "", "point": point}


def test_the_page_says_and_judges_the_map_of_icons_as_python_does(blank):
    icons = explorer("iconmap")
    states = list(icon_states(icons.controls[2].count))
    found = computed(
        blank, icons, states,
        """([states, sent]) => { const config = iconConfig(sent); return states.map((state) => ({
          words: iconWords(state, config), goals: iconGoals(config).map((goal) => goal(state)) })); }""",
    )  # fmt: skip
    assert judged_as_in_python(icons, states, found)[:2].all()


def test_the_map_of_icons_is_moved_zoomed_and_a_click_chooses(play):
    here = play(explorer("iconmap"), kernel=True)
    canvas, called = here.slider("Map of the drawings"), here.page.locator(".play-called")
    before, box, mouse = called.inner_text(), canvas.bounding_box(), here.page.mouse
    canvas.press("ArrowRight")
    moved = called.inner_text()
    assert moved != before
    here.stroke((box["x"] + 300, box["y"] + 200), (box["x"] + 200, box["y"] + 150))
    mouse.up()
    assert called.inner_text() == moved  # a drag chooses nothing
    canvas.press("+")
    mouse.move(box["x"] + 300, box["y"] + 200)
    mouse.wheel(0, -400)
    found = set()
    for x, y in np.random.default_rng(0).uniform(0.1, 0.9, (40, 2)):
        mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
        found.add(called.inner_text())
    assert len(found) > 5
    assert here.told()[0] == {"touched": True}


def test_a_search_lights_up_matches_and_a_wheel_scrolls_the_page_until_the_map_is_clicked(play):
    here = play(explorer("iconmap"), height=500)
    here.page.mouse.move(300, 200)
    here.page.mouse.wheel(0, 150)
    here.page.wait_for_function("scrollY > 50")
    here.write("Search", "microscope")
    here.shows("drawings in orange rings are found")
    here.write("Search", "unicorn")
    here.shows("No name has “unicorn” in it")
