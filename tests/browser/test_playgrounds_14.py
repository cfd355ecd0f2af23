"""Lesson 14's playgrounds on a page of the site: a scene to drag, a drawing, and what U-Nets say of their pixels."""

import base64
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.lessons.lesson_14 import playground as lesson_14
from tests.browser.explorers import explorer, trained
from tests.browser.played import computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")

LOADED = """
  const unets = await Promise.all([config.models].flat().map(async (name) => {
    const read = async (kind) => (await fetch(`/models/${name}.${kind}`)).arrayBuffer();
    const facts = JSON.parse(new TextDecoder().decode(await read("json")));
    return new UNet(readSafetensors(await read("safetensors")), facts.config);
  }));"""
SCENES = """async ([states, config]) => { LOADED
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
}""".replace("LOADED", LOADED)
DRAWINGS = """async ([states, config]) => { LOADED
  return JSON.stringify(states.map(([bytes, ground], i) => {
    const { side } = config, source = bytesOf(bytes), pixels = drawingPixels(config, { source, ground });
    const { data } = unets[0].logits({ height: side, width: side, data: standardise(pixels) });
    const state = { source, ground, its: { source, ground, pixels, ...readLabels(data, side) } };
    return { pixels: [...pixels], logits: i < 4 ? [...data] : null, classes: [...state.its.classes],
      goals: drawingGoals().map((goal) => goal(state)), words: drawingWords(state, config) };
  }));
}""".replace("LOADED", LOADED)


@pytest.fixture
def marked(play):
    """marked(name, ...): one of the two, after its first reading."""

    def open_it(name, **options):
        here = play(explorer(name), **options)
        expect(here.page.locator(".play-boxes div").first).to_be_visible()
        return here

    return open_it


def random_scenes(scene):
    """States in Python's form, but for the network, and in the page's; the last ones reach the goals."""
    draw = np.random.default_rng(14)
    for _ in range(6):
        x, y, other_x, other_y = draw.integers(8, 57, size=4).tolist()
        first, second = int(draw.integers(10)), int(draw.integers(-1, 10))
        settings = {
            "ground": str(draw.choice(list(lesson_14.TEXTURES))),
            "threshold": float(draw.choice([0.1, 0.5, 0.95])),
        }
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


def test_the_page_draws_reads_says_and_judges_a_scene_as_python_does(play):
    scene, unets = explorer("scene"), [trained(name) for name in ("unet", "unet_no_skips")]
    states = [scene.state(**changes) for changes in random_scenes(scene)]
    found = computed(play(scene).page, scene, [as_the_page_has_it(one) for one in states], SCENES)
    reached, same = np.zeros(3, bool), 0
    for state, here in zip(states, found, strict=True):
        arranged = lesson_14.arranged(state)
        np.testing.assert_allclose(here["pixels"], arranged.pixels.flatten(), rtol=0, atol=1e-5)
        assert np.mean(here["truth"] == arranged.digit.flatten().numpy()) > 0.999
        check_logits(here, scene)
        goals = []
        for k, skips in enumerate((True, False)):
            marked = lesson_14.mark(unets[k], arranged.pixels, threshold=state["threshold"])
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
    draw, paper = np.random.default_rng(14), np.zeros((lesson_14.PAD, lesson_14.PAD), np.uint8)
    few, many, two = paper.copy(), paper.copy(), paper.copy()
    for row, column in np.ndindex(2, 2):
        few[2 + row :: 25, 2 + column :: 25] = many[2 + row :: 10, 2 + column :: 10] = 255
    two[:, :32], two[:, 28:] = lesson_14.on_the_pad(1)[:, 20:52], lesson_14.on_the_pad(7)[:, 20:48]
    for ground in lesson_14.GROUNDS.values():
        for pad in (paper, few, many, two, lesson_14.on_the_pad(13)):
            yield drawing.state(pad=pad, ground=ground)
        for _ in range(3):
            pad = paper.copy()
            for x, y, high, wide in draw.integers(2, 40, size=(3, 4)):
                pad[y : y + high, x : x + 4] = pad[y : y + 4, x : x + wide] = 255
            yield drawing.state(pad=pad, ground=ground)


def test_the_page_prepares_reads_says_and_judges_a_drawing_as_python_does(play):
    drawing = explorer("drawing")
    states = list(random_drawings(drawing))
    asked = [[base64.b64encode(one["pad"].tobytes()).decode(), one["ground"]] for one in states]
    found = computed(play(drawing).page, drawing, asked, DRAWINGS)
    assert judged_as_in_python(drawing, states, found, same=0.8).all()
    assert not any(any(one["goals"]) for one in (found[0], found[16], found[17]))
    for state, here in zip(states, found, strict=True):
        pixels = lesson_14.on_ground(state["pad"], state["ground"])
        np.testing.assert_allclose(here["pixels"], pixels.flatten(), rtol=0, atol=1 / 255)
        check_logits(here, drawing)
        classes = lesson_14.mark(trained("unet"), pixels).classes
        assert np.mean(here["classes"] == classes.flatten().numpy()) > 0.99  # the pixels differ by 1 / 255


def test_the_segmentation_follows_the_stroke_and_goals_wait_for_its_end(marked):
    here = marked("drawing", kernel=True)
    here.press("Clear")
    here.says("Draw a digit, or anything. No digit is found.")
    assert here.reached() == 0
    here.choose("as drawn, unprepared")
    rows = [((0.99, 0.01) if row % 2 == 0 else (0.01, 0.99), row / 12.5) for row in range(13)]
    here.draw(*((across, down) for places, down in rows for across in places))  # to and fro, until all is ink
    here.says(re.compile("^No digit is found."))
    here.let_go(False, True)
    here.has_reached([re.compile("no digit is found")])


def test_a_digit_is_dragged_the_maps_follow_and_goals_wait_for_the_end(marked):
    here = marked("scene", kernel=True)
    assert here.told() == []  # the first reading is no touch of the learner's
    seven, pixel = here.slider("Position of the 7"), here.page.locator("canvas").first.bounding_box()["width"] / 64
    here.drag(seven, (-17 * pixel, 2 * pixel))
    assert seven.get_attribute("aria-valuetext") == "31 pixels from the left, 34 from the top"
    expect(here.page.locator(".play-boxes").first.locator("div")).to_have_count(1)
    here.let_go(True, False, False)


def test_arrow_keys_move_a_digit_and_the_result_is_said(marked):
    here = marked("scene")
    here.keys("Position of the 3", "ArrowLeft", "PageUp", "ArrowUp", "Home", "Home")
    three = here.slider("Position of the 3")
    assert three.get_attribute("aria-valuetext") == "8 pixels from the left, 23 from the top"
    here.choose("none", "Second digit")
    expect(here.slider("Position of the 7")).to_be_hidden()
    here.says(re.compile(r"With skips: 1 object: a 3 .* Without skips: 2 objects"))
    here.choose("uncertainty")
    assert here.reached() == 0
