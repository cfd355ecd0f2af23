"""Lesson 13's playgrounds on a page of the site: patches under a brush, and what an MAE makes of them."""

import base64
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_13 import playground as play
from course_lib.lessons.picture import the_picture
from tests.axe import axe_script
from tests.browser.played import overflowing, served
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")

NAMES = ("mask", "ruin")
LOADED = """async ([names]) => {
  window.models = await Promise.all(names.map(async (name) => {
    const read = async (kind) => (await fetch(`/models/${name}.${kind}`)).arrayBuffer();
    const { config } = JSON.parse(new TextDecoder().decode(await read("json")));
    return { weights: readSafetensors(await read("safetensors")), config };
  }));
}"""
READ = """([config, states]) => {
  const [mae, reader] = [new MAE(models[0].weights, models[0].config), new ViT(models[1].weights, models[1].config)];
  return states.map(([bytes, off]) => {
    const source = bytesOf(bytes), hidden = Array.from({ length: config.grid ** 2 }, (_, i) => off.includes(i + 1));
    const pixels = config.pad ? maskingDigit(source) : Float32Array.from(source, (value) => value / 255);
    const read = maskingReading({ mae, reader }, pixels, hidden);
    const error = off.length ? maskingError(pixels, read.painted, hidden) : null;
    const state = { source, hidden, its: { source, hidden, pixels, error, ...read } };
    return { pixels: [...pixels], painted: [...read.painted], probs: [...read.probs], first: [...read.first], error,
      goals: maskingGoals(config).map((goal) => goal(state)), words: maskingWords(state) };
  });
}"""


INK = """() => {
  const { data } = document.querySelector("canvas").getContext("2d").getImageData(0, 0, 56, 56);
  return [...data].filter((_, i) => i % 4 === 0);
}"""


@pytest.fixture(scope="module")
def explorers():
    scenes = load_trained("mae_scenes").model
    return {"mask": play.mask(load_trained("mae").model), "ruin": play.ruin(scenes, the_picture().pixels)}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def open_page(browser, explorers, models):
    """open_page(name, ...): one of the two, after its first reconstruction."""
    with served(browser, models) as open_it:

        def open_one(name, **options):
            page = open_it(explorers[name], **options)
            expect(page.locator(".play-note").filter(has_text="the ViT classifies it as")).to_be_visible()
            return page

        yield open_one


def random_states(explorer):
    """A few states with few and many hidden patches, as Python has them and as the page has them."""
    draw, control = np.random.default_rng(13), explorer.controls[0]
    sources = list((control.drawings if "pad" in explorer.state() else control.pictures).items())
    count = explorer.config["grid"] ** 2
    for share in (0.0, 0.1, 0.5, 0.84, 0.9, 0.97):
        for name, pixels in sources:
            hidden = (draw.permutation(count)[: int(share * count)] + 1).tolist()
            state = explorer.state(**{control.name: pixels if "pad" in explorer.state() else name, "hidden": hidden})
            yield state, [base64.b64encode(pixels.tobytes()).decode(), hidden]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_computes_says_and_judges_what_python_does(open_page, explorers, name):
    explorer, page = explorers[name], open_page(name)
    page.add_script_tag(content=bundle("masking"))
    page.evaluate(LOADED, [explorer.config["models"]])
    states, asked = zip(*random_states(explorer), strict=True)
    found = page.evaluate(READ, [explorer._page_config(), list(asked)])
    goals, same = np.zeros(3, bool), 0
    for state, here in zip(states, found, strict=True):
        answer = explorer.answers["reconstruct"]({"pixels": here["pixels"], "hidden": list(state["hidden"])})
        np.testing.assert_allclose([*here["painted"], *here["probs"], *here["first"]], answer, rtol=0, atol=1e-3)
        if name == "mask":
            digit = play.as_trained(state["pad"].tobytes())
            np.testing.assert_allclose(here["pixels"], digit.flatten(), rtol=0, atol=1 / 255)
        assert here["goals"] == [goal(state) for goal in explorer.goals]
        assert re.sub(r"\d+%", "", here["words"]) == re.sub(r"\d+%", "", explorer.alt(state))
        same += here["words"] == explorer.alt(state)
        goals |= here["goals"]
    assert same >= 0.9 * len(states)  # elsewhere a percentage was rounded to its neighbour
    assert goals.any()


def patch(page, number):
    return page.get_by_role("gridcell", name=re.compile(f"^patch {number},"))


def centre(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def hidden(page):
    return page.get_by_role("gridcell", name=", hidden").count()


def test_a_stroke_hides_all_patches_that_it_passes_and_goals_wait_for_its_end(open_page):
    page, reached = open_page("mask", kernel=True), "document.querySelectorAll('.play-goals li.reached').length"
    assert page.evaluate("told") == []  # the first reconstruction is no touch of the learner's
    page.get_by_role("button", name="a two").click()
    page.mouse.move(*centre(patch(page, 1)))
    page.mouse.down()
    page.mouse.move(*centre(patch(page, 7)), steps=2)  # fast: patches lie between two events
    for corner in (49, 43, 1):
        page.mouse.move(*centre(patch(page, corner)), steps=3)
    expect(page.locator(".play-note").last).to_contain_text("error: ")
    assert hidden(page) == 24 and page.evaluate(reached) == 0
    page.mouse.up()
    page.wait_for_function(f"{reached} === 1", timeout=5000)
    assert page.evaluate("told") == [{"touched": True}, {"reached": [False, False, True]}]
    page.mouse.move(*centre(patch(page, 4)))  # hidden: this stroke shows
    page.mouse.down()
    page.mouse.move(*centre(patch(page, 7)), steps=2)
    page.mouse.up()
    assert hidden(page) == 20


def test_arrow_keys_and_space_hide_patches_and_the_result_is_said(open_page):
    page = open_page("ruin")
    page.get_by_role("button", name="Show all").click()
    patch(page, 1).focus()
    for key in ("ArrowDown", "ArrowRight", "Space", "Shift+ArrowRight"):
        page.keyboard.press(key)
    expect(patch(page, 11)).to_be_focused()
    expect(page.get_by_role("gridcell", name=", hidden")).to_have_text(["", ""])
    expect(page.locator(".play-said")).to_contain_text("62 of 64 patches are visible. Error (MSE)")


@pytest.mark.parametrize("name", NAMES)
def test_a_fully_hidden_or_empty_image_reaches_no_goal(open_page, name):
    page = open_page(name, kernel=True)
    page.get_by_role("button", name="Show all").click()
    page.get_by_role("button", name="Swap visible and hidden").click()
    expect(page.locator(".play-note").filter(has_text="leave the encoder one at least")).to_be_visible()
    if name == "mask":
        page.get_by_role("button", name="Clear").click()
        patch(page, 25).click()
        expect(page.locator(".play-note").last).to_contain_text("error: ")
    assert page.locator(".play-goals li.reached").count() == 0


def test_a_drawn_line_has_the_pixels_of_the_formula_and_can_be_undone(open_page):
    page = open_page("mask")
    start = page.evaluate(INK)
    page.get_by_role("button", name="Clear").click()
    box = page.locator("canvas").first.bounding_box()
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in ((0.3, 0.2), (0.5, 0.8))]
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move(*at[1])
    page.mouse.up()
    drawn = np.array(page.evaluate(INK)).reshape(56, 56)
    a, b = (np.array(one) * 56 for one in ((0.3, 0.2), (0.5, 0.8)))
    points = np.stack(np.meshgrid(np.arange(56) + 0.5, np.arange(56) + 0.5), axis=-1)
    along = np.clip((points - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
    full = 3 - np.linalg.norm(points - a - along[..., None] * (b - a), axis=-1)
    np.testing.assert_allclose(drawn, 255 * np.clip(full, 0, 1), rtol=0, atol=3)  # the mouse is at whole CSS pixels
    expect(page.locator(".play-note").last).to_contain_text("the ViT classifies it as 1")
    for _ in range(2):
        page.get_by_role("button", name="Undo").click()
    assert page.evaluate(INK) == start
    page.locator("canvas").first.focus()
    page.keyboard.press("Shift+ArrowRight")
    assert page.evaluate(INK) != start


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light")])
def test_it_fits_and_axe_finds_nothing_serious(open_page, name, width, height, theme):
    page = open_page(name, width=width, height=height, theme=theme)
    assert overflowing(page) == []
    assert width < 1000 or page.evaluate("document.documentElement.scrollHeight") <= height
    page.evaluate(axe_script())
    assert page.evaluate(AXE, ".course-play") == []
