"""Lesson 13's playgrounds on a page of the site: patches under a brush, and what an MAE makes of them."""

import base64
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.lessons.lesson_13 import playground
from tests.browser.explorers import explorer
from tests.browser.played import centre, computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")

NAMES = {"mask": "masking", "ruin": "ruin"}
READ = """async ([states, config]) => {
  const models = await Promise.all(config.models.map(async (name) => {
    const read = async (kind) => (await fetch(`/models/${name}.${kind}`)).arrayBuffer();
    const { config } = JSON.parse(new TextDecoder().decode(await read("json")));
    return { weights: readSafetensors(await read("safetensors")), config };
  }));
  const [mae, reader] = [new MAE(models[0].weights, models[0].config), new ViT(models[1].weights, models[1].config)];
  return states.map(([bytes, off]) => {
    const source = bytesOf(bytes), hidden = Array.from({ length: config.grid ** 2 }, (_, i) => off.includes(i + 1));
    const pixels = config.pad ? maskingDigit(source) : Float32Array.from(source, (value) => value / 255);
    const read = maskingReading({ mae, reader }, pixels, hidden);
    const error = off.length ? maskingError(pixels, read.painted, hidden) : null;
    const state = { source, hidden, its: { source, hidden, pixels, error, ...read } };
    return { pixels: [...pixels], answer: [...read.painted, ...read.probs, ...read.first],
      goals: maskingGoals(config).map((goal) => goal(state)), words: maskingWords(state) };
  });
}"""
INK = """() => {
  const { data } = document.querySelector("canvas").getContext("2d").getImageData(0, 0, 56, 56);
  return [...data].filter((_, i) => i % 4 === 0);
}"""


@pytest.fixture
def masked(play):
    """masked(name, ...): one of the two, after its first reconstruction."""

    def open_it(name, **options):
        here = play(explorer(NAMES[name]), **options)
        here.shows("the ViT classifies it as")
        return here

    return open_it


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
def test_the_page_computes_says_and_judges_what_python_does(masked, name):
    masking = explorer(NAMES[name])
    states, asked = zip(*random_states(masking), strict=True)
    found = computed(masked(name).page, masking, asked, READ)
    assert judged_as_in_python(masking, states, found, same=0.9).any()
    for state, here in zip(states, found, strict=True):
        answer = masking.answers["reconstruct"]({"pixels": here["pixels"], "hidden": list(state["hidden"])})
        np.testing.assert_allclose(here["answer"], answer, rtol=0, atol=1e-3)
        if name == "mask":
            digit = playground.as_trained(state["pad"].tobytes())
            np.testing.assert_allclose(here["pixels"], digit.flatten(), rtol=0, atol=1 / 255)
        assert re.sub(r"\d+%", "", here["words"]) == re.sub(r"\d+%", "", masking.alt(state))


def patch(here, number):
    return here.page.get_by_role("gridcell", name=re.compile(f"^patch {number},"))


def hidden(here):
    return here.page.get_by_role("gridcell", name=", hidden").count()


def test_a_stroke_hides_all_patches_that_it_passes_and_goals_wait_for_its_end(masked):
    here = masked("mask", kernel=True)
    assert here.told() == []  # the first reconstruction is no touch of the learner's
    here.press("a two")
    # Fast: patches lie between two events.
    here.stroke(*(centre(patch(here, corner)) for corner in (1, 7, 49, 43, 1)), steps=2)
    expect(here.page.locator(".play-note").last).to_contain_text("error: ")
    assert hidden(here) == 24
    here.let_go(False, False, True)
    here.stroke(centre(patch(here, 4)), centre(patch(here, 7)), steps=2)  # hidden: this stroke shows
    here.page.mouse.up()
    assert hidden(here) == 20


def test_arrow_keys_and_space_hide_patches_and_the_result_is_said(masked):
    here = masked("ruin")
    here.press("Show all")
    patch(here, 1).focus()
    for key in ("ArrowDown", "ArrowRight", "Space", "Shift+ArrowRight"):
        here.page.keyboard.press(key)
    expect(patch(here, 11)).to_be_focused()
    expect(here.page.get_by_role("gridcell", name=", hidden")).to_have_count(2)
    here.says("62 of 64 patches are visible. Error (MSE)")


@pytest.mark.parametrize("name", NAMES)
def test_a_fully_hidden_or_empty_image_reaches_no_goal(masked, name):
    here = masked(name, kernel=True)
    here.press("Show all")
    here.press("Swap visible and hidden")
    here.shows("leave the encoder one at least")
    if name == "mask":
        here.press("Clear")
        patch(here, 25).click()
        expect(here.page.locator(".play-note").last).to_contain_text("error: ")
    assert here.reached() == 0


def test_a_drawn_line_has_the_pixels_of_the_formula_and_can_be_undone(masked):
    here = masked("mask")
    start = here.page.evaluate(INK)
    here.press("Clear")
    here.draw((0.3, 0.2), (0.5, 0.8))
    here.page.mouse.up()
    drawn = np.array(here.page.evaluate(INK)).reshape(56, 56)
    a, b = (np.array(one) * 56 for one in ((0.3, 0.2), (0.5, 0.8)))
    points = np.stack(np.meshgrid(np.arange(56) + 0.5, np.arange(56) + 0.5), axis=-1)
    along = np.clip((points - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
    full = 3 - np.linalg.norm(points - a - along[..., None] * (b - a), axis=-1)
    np.testing.assert_allclose(drawn, 255 * np.clip(full, 0, 1), rtol=0, atol=3)  # the mouse is at whole CSS pixels
    expect(here.page.locator(".play-note").last).to_contain_text("the ViT classifies it as 1")
    for _ in range(2):
        here.press("Undo")
    assert here.page.evaluate(INK) == start
    here.page.locator("canvas").first.press("Shift+ArrowRight")
    assert here.page.evaluate(INK) != start
