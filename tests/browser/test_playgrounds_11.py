"""Lesson 11's playgrounds on a page of the site: what a ViT says of an image, some patches hidden, and attends to."""

import base64
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from course_lib.lessons.lesson_11 import playground
from tests.browser.explorers import explorer
from tests.browser.played import centre, computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")

LOADED = """
  const read = async (kind) => (await fetch(`/models/MODEL.${kind}`)).arrayBuffer();
  const sizes = JSON.parse(new TextDecoder().decode(await read("json"))).config;
  const vit = new ViT(readSafetensors(await read("safetensors")), sizes);
  const covered = (off) => Array.from({ length: config.grid ** 2 }, (_, i) => off.includes(i + 1));"""
READ = """async ([states, config]) => { LOADED
  return states.map(([bytes, off]) => {
    const source = bytesOf(bytes), hidden = covered(off), images = digitImages(source);
    const found = digitReading(vit, images, hidden), { raw, whole, now, rollout, heads } = found;
    const state = { source, hidden, its: { source, hidden, images, ...found } };
    return { raw: [...images.raw], whole: [...images.whole],
      answer: [raw, whole, now, rollout, ...heads].flatMap((part) => [...part]),
      goals: digitGoals(config).map((goal) => goal(state)), words: digitWords(state, config) };
  });
}""".replace("LOADED", LOADED.replace("MODEL", "vit_digits"))
HIDE = """async ([states, config]) => { LOADED
  return states.map(([name, off]) => {
    const source = config.sources[name], pixels = Float32Array.from(bytesOf(source), (level) => level / 255);
    const hidden = covered(off), whole = patchReading(vit, pixels, hidden.map(() => false));
    const found = patchReading(vit, pixels, hidden);
    const state = { source, hidden, its: { source, hidden, whole, ...found } };
    return { pixels: [...pixels], answer: [found.now, found.rollout, ...found.heads].flatMap((part) => [...part]),
      goals: hideGoals(config).map((goal) => goal(state)), words: hideWords(state) };
  });
}""".replace("LOADED", LOADED.replace("MODEL", "vit"))


@pytest.fixture
def draw(play):
    """draw(...): the playground after the first drawing was read."""

    def open_it(**options):
        here = play(explorer("digit"), **options)
        here.shows("It says 5; as drawn, not prepared: 5")
        return here

    return open_it


def patch(here, number):
    return here.page.get_by_role("gridcell", name=f"patch {number},")


def random_states(draw):
    """Drawings of any size and place with some patches hidden; empty paper, and a picture that is hidden whole."""
    random = np.random.default_rng(11)
    yield draw.state(pad=np.zeros((playground.PAD, playground.PAD), np.uint8))
    yield draw.state(pad=playground.placed(7, 24, 4, 27), hidden=frozenset(range(1, 17)))
    for number in range(40):
        side = int(random.integers(20, 54))
        pad = playground.placed(number, side, *random.integers(0, playground.PAD - side, size=2).tolist())
        hidden = random.permutation(16)[: random.choice([0, 0, 2, 8, 12, 15])] + 1
        yield draw.state(pad=pad, hidden=frozenset(hidden.tolist()))


def test_the_page_computes_says_and_judges_what_python_does(play):
    digit = explorer("digit")
    states = list(random_states(digit))
    asked = [[base64.b64encode(one["pad"].tobytes()).decode(), sorted(one["hidden"])] for one in states]
    found = computed(play(digit).page, digit, asked, READ)
    assert judged_as_in_python(digit, states, found, same=0.9).any()
    assert not np.any([one["goals"] for one in found[:2]])
    for state, here in zip(states, found, strict=True):
        pixels = torch.from_numpy(state["pad"].copy())
        np.testing.assert_allclose(here["whole"], playground.as_digit(pixels).flatten(), rtol=0, atol=1 / 255)
        asked = {"raw": here["raw"], "whole": here["whole"], "hidden": sorted(state["hidden"])}
        np.testing.assert_allclose(here["answer"], digit.answers["look"](asked), rtol=0, atol=1e-3)


def hidden_patches(hide):
    """States with patches hidden at random, all of them or nearly, and the brightest."""
    random, (_, brightest) = np.random.default_rng(11), hide.steps["hidden"]
    for picture in hide.steps["picture"]:
        for count in (0, 1, 2, 4, 12, 15, 16):
            yield hide.state(picture=picture, hidden=frozenset((random.permutation(16)[:count] + 1).tolist()))
    yield from (hide.state(hidden=hidden) for hidden in (brightest, {6}, set(range(1, 17)) - {2, 3, 7, 11}))


def test_the_page_reads_says_and_judges_a_picture_as_python_does(play):
    hide = explorer("hide")
    states = list(hidden_patches(hide))
    asked = [[one["picture"], sorted(one["hidden"])] for one in states]
    found = computed(play(hide).page, hide, asked, HIDE)
    reached = judged_as_in_python(hide, states, found, same=0.9)
    assert reached[0] and reached[2]
    for state, here in zip(states, found, strict=True):
        answer = hide.answers["look"]({"pixels": here["pixels"], "hidden": sorted(state["hidden"])})
        np.testing.assert_allclose(here["answer"], answer, rtol=0, atol=1e-3)


@pytest.mark.parametrize("kernel", [False, True])
def test_a_stroke_over_a_picture_hides_its_patches_and_goals_wait_for_its_end(play, kernel):
    here = play(explorer("hide"), kernel=kernel)
    here.shows("It says 3 (100%); dashed")
    assert here.told() == []
    here.stroke(centre(patch(here, 6)))
    here.shows(re.compile("It says [^3]"))
    assert here.reached() == 0
    here.page.mouse.up()
    here.has_reached([re.compile("another digit")])
    here.choose("each head")
    expect(here.page.locator(".play-maps").last.locator("canvas")).to_have_count(16)
    here.choose("a dark eight")
    here.says("1 of 16 patches are hidden: 6.")
    patch(here, 5).click()
    patch(here, 5).press("Shift+ArrowUp")
    here.says("3 of 16 patches are hidden: 1, 5, 6.")


def test_probabilities_follow_the_stroke_and_goals_wait_for_its_end(draw):
    here = draw(kernel=True)
    assert here.told() == []  # the first reading is no touch of the learner's
    here.press("Clear")
    here.shows("It cannot say “nothing”")
    here.draw((0.06, 0.1), (0.13, 0.06), (0.2, 0.1), (0.2, 0.16), (0.06, 0.32), (0.22, 0.32))  # a small two
    here.shows(re.compile("It says 2; as drawn, not prepared: [013-9]"))
    here.let_go(True, False, False)
    here.has_reached([re.compile("without its preparation")])


def test_patches_are_hidden_by_drag_and_by_keys_and_the_maps_follow(draw):
    here = draw()
    patch(here, 6).focus()
    for key in ("Space", "Shift+ArrowRight"):
        here.page.keyboard.press(key)
    here.says("2 of 16 patches are hidden: 6, 7.")
    here.choose("each head")
    here.counts(".play-maps canvas", 16)
    here.press("Show all")
    here.stroke(centre(patch(here, 1)), centre(patch(here, 4)), steps=2)
    here.page.mouse.up()
    here.says("4 of 16 patches are hidden: 1, 2, 3, 4.")


def test_a_fully_hidden_picture_reaches_nothing(draw):
    here = draw()
    here.press("Swap visible and hidden")
    here.says("All patches are hidden")
    here.press("a small two, off the middle")
    here.says("As drawn it would say")
    assert here.reached() == 0
    here.press("Show all")
    here.has_reached(1)
