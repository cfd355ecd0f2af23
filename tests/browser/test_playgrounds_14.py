"""Lesson 14's playgrounds on a page of the site: a scene to drag, a drawing, and what U-Nets say of their pixels."""

import base64
import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_14 import playground as play
from tests.axe import axe_script
from tests.browser.played import overflowing, served
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")

LOADED = """async (names) => {
  const load = async (name) => {
    const read = async (kind) => (await fetch(`/models/${name}.${kind}`)).arrayBuffer();
    const facts = JSON.parse(new TextDecoder().decode(await read("json")));
    return new UNet(readSafetensors(await read("safetensors")), facts.config);
  };
  window.unets = await Promise.all(names.map(load));
}"""
SCENES = """([config, states]) => {
  const { side } = config, draw = sceneOf(config);
  return JSON.stringify(states.map((state, i) => {
    const { pixels, truth } = draw(state), image = { height: side, width: side, data: standardise(pixels) };
    const logits = unets.map((unet) => unet.logits(image).data);
    const its = { ...state, truth, reads: logits.map((each) => readLabels(each, side, state.threshold)) };
    return { pixels: [...pixels], truth: [...truth], logits: i < 2 ? logits.flatMap((each) => [...each]) : null,
      classes: its.reads.map(({ classes }) => [...classes]), entropy: its.reads.map(({ entropy }) => [...entropy]),
      boxes: its.reads.map(({ objects }) => objects.map(({ box }) => box)),
      goals: sceneGoals().map((goal) => goal({ ...state, its })), words: sceneWords({ its }) };
  }));
}"""
DRAWINGS = """([config, states]) => JSON.stringify(states.map(([bytes, ground], i) => {
  const { side } = config, source = bytesOf(bytes), pixels = drawingPixels(config, { source, ground });
  const { data } = unets[0].logits({ height: side, width: side, data: standardise(pixels) });
  const state = { source, ground, its: { source, ground, pixels, ...readLabels(data, side) } };
  return { pixels: [...pixels], logits: i < 4 ? [...data] : null, classes: [...state.its.classes],
    goals: drawingGoals().map((goal) => goal(state)), words: drawingWords(state, config) };
}))"""


@pytest.fixture(scope="module")
def unets():
    return [load_trained(name).model for name in ("unet", "unet_no_skips")]


@pytest.fixture(scope="module")
def explorers(unets):
    return {"scene": play.scene(*unets), "drawing": play.drawing(unets[0])}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def open_page(browser, explorers, models):
    """open_page(name, ...): one of the two, after its first reading."""
    with served(browser, models) as open_it:

        def open_one(name, **options):
            page = open_it(explorers[name], **options)
            expect(page.locator(".play-boxes div").first).to_be_visible()
            return page

        yield open_one


def random_scenes(scene):
    """States in Python's form, but for the network, and in the page's; the last ones reach the goals."""
    draw = np.random.default_rng(14)
    for _ in range(6):
        x, y, other_x, other_y = draw.integers(8, 57, size=4).tolist()
        first, second = int(draw.integers(10)), int(draw.integers(-1, 10))
        settings = {"ground": str(draw.choice(list(play.TEXTURES))), "threshold": float(draw.choice([0.1, 0.5, 0.95]))}
        yield settings | {"first": first, "across": x, "down": y, "side": int(draw.integers(6, 45))} | {
            "second": second, "apart": other_x - x, "below": other_y - y
        }  # fmt: skip
    yield {"apart": 10}
    yield {"apart": 0, "below": 11}
    yield {"apart": 3, "below": 3}
    yield {"first": 7, "second": -1, "across": 32, "side": 44}
    yield {"first": 7, "second": -1, "across": 32, "side": 6}


def check_logits(here, explorer):
    """The logits of the page, which are many and so of some states alone, are a kernel's."""
    if here["logits"]:
        logits = explorer.answers["logits"]({"pixels": here["pixels"]})
        np.testing.assert_allclose(here["logits"], logits, rtol=0, atol=1e-4 * np.abs(logits).max())


def as_the_page_has_it(state):
    x, y = state["across"], state["down"]
    second = {"digit": state["second"], "x": x + state["apart"], "y": y + state["below"]}
    digits = [{"digit": state["first"], "x": x, "y": y}, second]
    return {"ground": state["ground"], "digits": digits, "size": state["side"], "threshold": state["threshold"]}


def test_the_page_draws_reads_says_and_judges_a_scene_as_python_does(open_page, explorers, unets):
    scene, page = explorers["scene"], open_page("scene")
    page.add_script_tag(content=bundle("scene"))
    page.evaluate(LOADED, scene.config["models"])
    states = [scene.state(**changes) for changes in random_scenes(scene)]
    found = json.loads(page.evaluate(SCENES, [scene._page_config(), [as_the_page_has_it(one) for one in states]]))
    reached, same = np.zeros(3, bool), 0
    for state, here in zip(states, found, strict=True):
        arranged = play.arranged(state)
        np.testing.assert_allclose(here["pixels"], arranged.pixels.flatten(), rtol=0, atol=1e-5)
        assert np.mean(here["truth"] == arranged.digit.flatten().numpy()) > 0.999
        check_logits(here, scene)
        goals = []
        for k, skips in enumerate((True, False)):
            marked = play.mark(unets[k], arranged.pixels, threshold=state["threshold"])
            assert np.mean(here["classes"][k] == marked.classes.flatten().numpy()) > 0.999
            np.testing.assert_allclose(here["entropy"][k], marked.uncertainty.flatten(), rtol=0, atol=1e-3)
            assert here["boxes"][k] == [thing.box for thing in marked.things]
            goals.append([bool(goal(state | {"skips": skips})) for goal in scene.goals])
        assert here["goals"] == np.any(goals, axis=0).tolist()
        with_skips, without = (scene.alt(state | {"skips": skips}) for skips in (True, False))
        words = f"With skips: {with_skips} Without skips: {without}"
        assert re.sub(r"[\d.]+", "", here["words"]) == re.sub(r"[\d.]+", "", words)
        same += here["words"] == words
        reached |= here["goals"]
    assert same >= 0.9 * len(states)  # elsewhere a number was rounded to its neighbour
    assert reached.all() and found[6]["goals"][0] and found[7]["goals"][0] and not found[8]["goals"][0]


def random_drawings(drawing):
    """Empty paper, a few dots, many dots, two digits side by side, and random strokes on each kind of background."""
    draw, paper = np.random.default_rng(14), np.zeros((play.PAD, play.PAD), np.uint8)
    few, many, two = paper.copy(), paper.copy(), paper.copy()
    for row, column in np.ndindex(2, 2):
        few[2 + row :: 25, 2 + column :: 25] = many[2 + row :: 10, 2 + column :: 10] = 255
    two[:, :32], two[:, 28:] = play.on_the_pad(1)[:, 20:52], play.on_the_pad(7)[:, 20:48]
    for ground in play.GROUNDS.values():
        for pad in (paper, few, many, two, play.on_the_pad(13)):
            yield drawing.state(pad=pad, ground=ground)
        for _ in range(3):
            pad = paper.copy()
            for x, y, high, wide in draw.integers(2, 40, size=(3, 4)):
                pad[y : y + high, x : x + 4] = pad[y : y + 4, x : x + wide] = 255
            yield drawing.state(pad=pad, ground=ground)


def test_the_page_prepares_reads_says_and_judges_a_drawing_as_python_does(open_page, explorers, unets):
    drawing, page = explorers["drawing"], open_page("drawing")
    page.add_script_tag(content=bundle("drawing"))
    page.evaluate(LOADED, drawing.config["models"])
    states = list(random_drawings(drawing))
    asked = [[base64.b64encode(one["pad"].tobytes()).decode(), one["ground"]] for one in states]
    found = json.loads(page.evaluate(DRAWINGS, [drawing._page_config(), asked]))
    goals, same = np.zeros(2, bool), 0
    for state, here in zip(states, found, strict=True):
        pixels = play.on_ground(state["pad"], state["ground"])
        np.testing.assert_allclose(here["pixels"], pixels.flatten(), rtol=0, atol=1 / 255)
        check_logits(here, drawing)
        classes = play.mark(unets[0], pixels).classes
        assert np.mean(here["classes"] == classes.flatten().numpy()) > 0.99  # the pixels differ by 1 / 255
        assert here["goals"] == [bool(goal(state)) for goal in drawing.goals]
        same += here["words"] == drawing.alt(state)
        goals |= here["goals"]
    assert same >= 0.8 * len(states)  # elsewhere a number was rounded to its neighbour
    assert goals.all() and not any(any(one["goals"]) for one in (found[0], found[16], found[17]))


def test_the_segmentation_follows_the_stroke_and_goals_wait_for_its_end(open_page):
    page = open_page("drawing", kernel=True)
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".play-said")).to_contain_text("Draw a digit, or anything. No digit is found.")
    assert reached(page) == 0
    page.get_by_text("as drawn, unprepared", exact=True).click()
    box = page.locator("canvas").first.bounding_box()
    for row in range(13):  # to and fro, until all is ink
        for column in (0, 1) if row % 2 else (1, 0):
            page.mouse.move(box["x"] + (0.01 + 0.98 * column) * box["width"], box["y"] + row / 12.5 * box["height"])
            if row == 0 and column == 1:
                page.mouse.down()
    expect(page.locator(".play-said")).to_contain_text(re.compile("^No digit is found."))
    assert reached(page) == 0
    page.mouse.up()
    expect(page.locator(".play-goals li.reached")).to_have_text([re.compile("no digit is found")])
    assert page.evaluate("told") == [{"touched": True}, {"reached": [False, True]}]


def reached(page):
    return page.locator(".play-goals li.reached").count()


def test_a_digit_is_dragged_the_maps_follow_and_goals_wait_for_the_end(open_page):
    page = open_page("scene", kernel=True)
    assert page.evaluate("told") == []  # the first reading is no touch of the learner's
    seven, canvas = page.get_by_role("slider", name="Position of the 7"), page.locator("canvas").first.bounding_box()
    box, pixel = seven.bounding_box(), canvas["width"] / 64
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 17 * pixel, middle[1] + 2 * pixel, steps=5)
    assert seven.get_attribute("aria-valuetext") == "31 pixels from the left, 34 from the top"
    expect(page.locator(".play-boxes").first.locator("div")).to_have_count(1)
    assert reached(page) == 0
    page.mouse.up()
    page.wait_for_function("told.length === 2")
    assert page.evaluate("told") == [{"touched": True}, {"reached": [True, False, False]}]


def test_arrow_keys_move_a_digit_and_the_result_is_said(open_page):
    page = open_page("scene")
    three = page.get_by_role("slider", name="Position of the 3")
    three.focus()
    for key in ("ArrowLeft", "PageUp", "ArrowUp", "Home", "Home"):
        page.keyboard.press(key)
    assert three.get_attribute("aria-valuetext") == "8 pixels from the left, 23 from the top"
    page.get_by_role("radiogroup", name="Second digit").get_by_text("none").click()
    expect(page.get_by_role("slider", name="Position of the 7")).to_be_hidden()
    expect(page.locator(".play-said")).to_contain_text(
        re.compile(r"With skips: 1 object: a 3 .* Without skips: 2 objects")
    )
    page.get_by_text("uncertainty", exact=True).click()
    assert reached(page) == 0


@pytest.mark.parametrize("name", ["scene", "drawing"])
@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light")])
def test_it_fits_and_axe_finds_nothing_serious(open_page, name, width, height, theme):
    page = open_page(name, width=width, height=height, theme=theme)
    assert overflowing(page) == []
    assert width < 1000 or page.evaluate("document.documentElement.scrollHeight") <= height
    page.evaluate(axe_script())
    assert page.evaluate(AXE, ".course-play") == []
