"""Lesson 02 on the page: nearest digits of a drawing, and a map; words and goals are Python's."""

import random

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_02 import playground as play
from course_lib.lessons.lesson_02.icon_map import icon_map
from course_lib.lessons.lesson_02.tasks import TASKS
from tests.axe import axe_script
from tests.browser.live_playground import check_axe, check_it_fits, played
from tests.browser.played import overflowing
from tests.browser.test_playgrounds_live import centre
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def neighbours():
    return play.neighbours(load_trained("simclr").model)


@pytest.fixture(scope="module")
def plane():
    return play.embedding_map(load_trained("simclr").model)


def test_the_page_says_and_judges_the_neighbours_as_python_does(browser, neighbours):
    page, states = browser.new_page(), []
    for drawing in [*play.drawings().values(), *(play.any_digit().reshape(play.PAD, play.PAD) for _ in range(4))]:
        states += [neighbours.state(pad=drawing, turn=turn) for turn in (0, 40, -90)]
    page.add_script_tag(content=bundle("alike"))
    answers = [
        neighbours.answers["read"]({"drawing": state["pad"].flatten().tolist(), "turn": state["turn"]})
        for state in states
    ]
    found = page.evaluate(
        """([answers, config]) => answers.map((answer) => {
          const its = neighbourReading(answer, config);
          const sizes = [its.scene, ...its.images.flat()].map((one) => one.length);
          return { words: neighbourWords({ its }, config), goals: neighbourGoals.map((goal) => goal(its)), sizes };
        })""",
        [[answer.tolist() for answer in answers], neighbours._page_config()],
    )
    for state, here in zip(states, found, strict=True):
        assert here["words"] == neighbours.alt(state)
        assert here["goals"] == [goal(state) for goal in neighbours.goals]
        assert here["sizes"] == [play.SIDE**2] * (1 + 3 * play.NEAREST)
    assert np.any([one["goals"] for one in found], axis=0).all()
    page.close()


def places(plane):
    draw = random.Random(2)
    for _ in range(12):
        changes = {"crop": draw.randrange(10) / 10, "turn": 5 * draw.randrange(19), "light": draw.randrange(11) / 10}
        yield {"features": draw.choice(play.FEATURES), "point": draw.randrange(1, 201), **changes}
    start = {"features": "SimCLR", "point": 50, "crop": 0.3, "turn": 40, "light": 0.4}
    yield from (start, start | {"turn": 90, "crop": 0.9}, start | {"point": 198})


def test_the_page_says_and_judges_the_map_as_python_does(browser, plane):
    page, config, states = browser.new_page(), plane._page_config(), list(places(plane))
    page.add_script_tag(content=bundle("embedding"))
    answers = [plane.answers["land"]({name: at for name, at in s.items() if name != "features"}) for s in states]
    found = page.evaluate(
        """([states, answers, config]) => states.map((state, i) => {
          const now = { ...state, its: { ...state, ...landing(answers[i], config) } };
          return { words: embeddingWords(now, config), goals: embeddingGoals(config).map((goal) => goal(now)),
            alone: embeddingWords({ ...state, its: null }, config), images: now.its.images.map((one) => one.length) };
        })""",
        [states, [answer.tolist() for answer in answers], config],
    )
    for state, here in zip(states, found, strict=True):
        state = plane.state(**state)
        assert here["words"] == plane.alt(state)
        assert here["words"].startswith(here["alone"]) and "landed" not in here["alone"]
        assert here["goals"] == [goal(state) for goal in plane.goals]
        assert here["images"] == [play.SIDE**2] * play.VIEWS
    assert np.any([one["goals"] for one in found], axis=0).all()
    page.close()


def test_a_stroke_and_a_turn_are_read_and_a_goal_waits_for_the_end_of_the_stroke(browser, neighbours):
    with played(browser, neighbours, kernel=True) as here:
        said, caption = here.page.locator(".play-said"), here.page.locator(".play-map-rows > div > div").nth(4)
        expect(said).to_contain_text("Nearest by SimCLR: 2, 2, 2, 2, 2.")
        here.page.get_by_role("button", name="Clear").click()
        expect(here.page.get_by_text("There is nothing on the pad")).to_be_visible()
        box, mouse = here.page.locator("canvas").first.bounding_box(), here.page.mouse
        mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
        mouse.down()
        mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 60, steps=6)
        expect(caption).to_have_text("by SimCLR: 1, 1, 1, 1, 1")
        mouse.up()
        turn = here.page.get_by_label("Turn (degrees), typed")
        turn.fill("90")
        turn.press("Enter")
        expect(caption).not_to_have_text("by SimCLR: 1, 1, 1, 1, 1")
        here.page.get_by_role("button", name="Back to the start").click()
        expect(caption).to_have_text("by SimCLR: 2, 2, 2, 2, 2")
        assert here.told()[0] == {"touched": True}


def map_of(here):
    return here.page.get_by_role("slider", name="Picture on the map")


@pytest.mark.parametrize("kernel", [False, True])
def test_a_digit_is_chosen_by_click_drag_and_arrow(browser, plane, kernel):
    with played(browser, plane, kernel=kernel) as here:
        digits, said = here.page.locator(".play-digit"), here.page.get_by_text("the nearest:")
        assert here.page.locator("input[type=range]").count() == (3 if kernel else 0)
        here.page.mouse.click(*centre(digits.nth(149)))
        expect(map_of(here)).to_have_attribute("aria-valuetext", "picture 150, a 7")
        expect(said).to_contain_text("picture 150: a 7")
        if kernel:
            expect(here.page.get_by_text("nearest to a 7:")).to_be_visible()
        here.page.mouse.move(*centre(digits.nth(149)))
        here.page.mouse.down()
        here.page.mouse.move(*centre(digits.nth(0)), steps=4)
        expect(map_of(here)).to_have_attribute("aria-valuenow", "1")
        here.page.mouse.up()
        before = centre(digits.nth(0))
        map_of(here).press("ArrowUp")
        at = int(map_of(here).get_attribute("aria-valuenow"))
        assert centre(digits.nth(at - 1))[1] < before[1]
        here.page.get_by_text("pixels", exact=True).click()
        assert centre(digits.nth(0)) != before


def test_a_goal_of_the_map_waits_for_the_end_of_a_drag(browser, plane):
    with played(browser, plane, kernel=True) as here:
        expect(here.page.get_by_text("nearest to a 2: 8 of 8 by SimCLR")).to_be_visible()
        target = centre(here.page.locator(".play-digit").nth(197))
        here.page.mouse.move(*target)
        here.page.mouse.down()
        expect(map_of(here)).to_have_attribute("aria-valuenow", "198")
        expect(here.page.get_by_text("nearest to a 9:")).to_be_visible()
        assert here.reached() == 0
        here.page.mouse.up()
        expect(here.page.locator(".play-goals li.reached")).to_have_text(
            ["SimCLR: a picture most of whose neighbours are another digit"]
        )


def test_without_a_kernel_the_drawing_stays_static_and_the_map_lives(browser, neighbours, plane):
    with played(browser, neighbours) as here:
        expect(here.page.get_by_text("static form")).to_be_visible()
        assert here.page.locator(".course-play").count() == 0
    with played(browser, plane) as here:
        assert here.page.locator(".play-goals li").count() == 1


@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light")])
def test_they_fit_and_axe_finds_nothing(browser, neighbours, plane, width, height, theme):
    for explorer, words in ((neighbours, "Nearest by SimCLR"), (plane, "changed views land")):
        with played(browser, explorer, width=width, height=height, theme=theme, kernel=True) as here:
            expect(here.page.locator(".play-said")).to_contain_text(words)
            assert overflowing(here.page) == []
            static = here.page.get_by_text("static form").evaluate("(one) => one.getBoundingClientRect().bottom + 16")
            assert width < 1000 or here.page.evaluate("document.documentElement.scrollHeight") <= height + static
            here.page.evaluate(axe_script())
            assert here.page.evaluate(AXE, ".course-play") == []


# ------------------------------------------------------------------------------------------- the map of icons


@pytest.fixture(scope="module")
def icons():
    """The map of an untrained network: what is on the page does not depend on what it has learned."""
    torch.manual_seed(0)
    return icon_map(TASKS["simclr"].module(3, (8, 8, 8, 8), 16))


def icon_states(count):
    draw = random.Random(3)
    for query in ("", "  Face ", "owl", "book", "unicorn", "kiss mark", "zzz"):
        for features in ("h", "z", "pixels"):
            yield {"features": features, "query": query, "point": draw.randrange(1, count + 1)}
    for point in range(1, count + 1, 6):
        yield {"features": draw.choice(["h", "z", "pixels"]), "query": "", "point": point}


def test_the_page_says_and_judges_the_map_of_icons_as_python_does(browser, icons):
    page, states = browser.new_page(), list(icon_states(icons.controls[2].count))
    page.add_script_tag(content=bundle("iconmap"))
    found = page.evaluate(
        """([states, sent]) => { const config = iconConfig(sent); return states.map((state) => ({
          words: iconWords(state, config), goals: iconGoals(config).map((goal) => goal(state)) })); }""",
        [states, icons._page_config()],
    )
    for state, here in zip(states, found, strict=True):
        assert here["words"] == icons.alt(icons.state(**state))
        assert here["goals"] == [goal(icons.state(**state)) for goal in icons.goals]
    assert np.any([one["goals"] for one in found], axis=0)[:2].all()
    page.close()


def icon_canvas(here):
    return here.page.get_by_role("slider", name="Map of the drawings")


def chosen(here):
    return here.page.locator(".play-called").inner_text()


def test_the_map_is_moved_zoomed_and_a_click_chooses(browser, icons):
    with played(browser, icons, kernel=True) as here:
        before, box, mouse = chosen(here), icon_canvas(here).bounding_box(), here.page.mouse
        icon_canvas(here).press("ArrowRight")
        assert chosen(here) != before
        moved = chosen(here)
        mouse.move(box["x"] + 300, box["y"] + 200)
        mouse.down()
        mouse.move(box["x"] + 200, box["y"] + 150, steps=4)
        mouse.up()
        assert chosen(here) == moved  # a drag chooses nothing
        icon_canvas(here).press("+")
        mouse.move(box["x"] + 300, box["y"] + 200)
        mouse.wheel(0, -400)
        found = set()
        for x, y in np.random.default_rng(0).uniform(0.1, 0.9, (40, 2)):
            mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
            found.add(chosen(here))
        assert len(found) > 5
        assert here.told()[0] == {"touched": True}


def test_a_search_lights_up_matches_and_a_wheel_scrolls_the_page_until_the_map_is_clicked(browser, icons):
    with played(browser, icons, height=500) as here:
        here.page.mouse.move(300, 200)
        here.page.mouse.wheel(0, 150)
        here.page.wait_for_function("scrollY > 50")
        here.page.get_by_label("Search").fill("microscope")
        expect(here.page.get_by_text("drawings in orange rings are found")).to_be_visible()
        here.page.get_by_label("Search").fill("unicorn")
        expect(here.page.get_by_text("No name has “unicorn” in it")).to_be_visible()


def test_the_map_of_icons_fits_and_axe_finds_nothing(browser, icons):
    check_it_fits(browser, icons)
    check_axe(browser, icons)
