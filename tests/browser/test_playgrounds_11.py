"""Lesson 11's playgrounds on a page of the site: what a ViT says of an image, some patches hidden, and attends to."""

import base64
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_11 import playground as play
from course_lib.lessons.picture import the_picture
from tests.axe import axe_script
from tests.browser.played import overflowing, served
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")

READ = """async ([config, states]) => {
  const read = async (kind) => (await fetch(`/models/vit_digits.${kind}`)).arrayBuffer();
  const sizes = JSON.parse(new TextDecoder().decode(await read("json"))).config;
  const vit = new ViT(readSafetensors(await read("safetensors")), sizes);
  return states.map(([bytes, off]) => {
    const source = bytesOf(bytes), hidden = Array.from({ length: config.grid ** 2 }, (_, i) => off.includes(i + 1));
    const images = digitImages(source), found = digitReading(vit, images, hidden);
    const state = { source, hidden, its: { source, hidden, images, ...found } };
    const { raw, whole, now, rollout, heads } = found;
    return { raw: [...images.raw], whole: [...images.whole],
      answer: [raw, whole, now, rollout, ...heads].flatMap((part) => [...part]),
      goals: digitGoals(config).map((goal) => goal(state)), words: digitWords(state, config) };
  });
}"""
HIDE = """async ([config, states]) => {
  const read = async (kind) => (await fetch(`/models/vit.${kind}`)).arrayBuffer();
  const sizes = JSON.parse(new TextDecoder().decode(await read("json"))).config;
  const vit = new ViT(readSafetensors(await read("safetensors")), sizes);
  return states.map(([name, off]) => {
    const source = config.sources[name], pixels = Float32Array.from(bytesOf(source), (level) => level / 255);
    const hidden = Array.from({ length: config.grid ** 2 }, (_, i) => off.includes(i + 1));
    const whole = patchReading(vit, pixels, hidden.map(() => false)), found = patchReading(vit, pixels, hidden);
    const state = { source, hidden, its: { source, hidden, whole, ...found } };
    return { pixels: [...pixels], answer: [found.now, found.rollout, ...found.heads].flatMap((part) => [...part]),
      goals: hideGoals(config).map((goal) => goal(state)), words: hideWords(state) };
  });
}"""


@pytest.fixture(scope="module")
def draw():
    return play.draw(load_trained("vit_digits").model)


@pytest.fixture(scope="module")
def hide():
    return play.hide(load_trained("vit").model, the_picture().pixels)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def open_page(browser, draw, models):
    """open_page(...): the playground after the first drawing was read."""
    with served(browser, models) as open_it:

        def open_one(**options):
            page = open_it(draw, **options)
            expect(page.get_by_text("It says 5; as drawn, not prepared: 5")).to_be_visible()
            return page

        yield open_one


@pytest.fixture
def open_hide(browser, hide, models):
    """open_hide(...): the playground of pictures after the first was read."""
    with served(browser, models) as open_it:

        def open_one(**options):
            page = open_it(hide, **options)
            expect(page.get_by_text("It says 3 (100%); dashed")).to_be_visible()
            return page

        yield open_one


def random_states(draw):
    """Drawings of any size and place with some patches hidden; empty paper, and a picture that is hidden whole."""
    random = np.random.default_rng(11)
    paper = np.zeros((play.PAD, play.PAD), np.uint8)
    yield draw.state(pad=paper)
    yield draw.state(pad=play.placed(7, 24, 4, 27), hidden=frozenset(range(1, 17)))
    for number in range(40):
        side = int(random.integers(20, 54))
        pad = play.placed(number, side, *random.integers(0, play.PAD - side, size=2).tolist())
        hidden = random.permutation(16)[: random.choice([0, 0, 2, 8, 12, 15])] + 1
        yield draw.state(pad=pad, hidden=frozenset(hidden.tolist()))


def test_the_page_computes_says_and_judges_what_python_does(open_page, draw):
    page, states = open_page(), list(random_states(draw))
    page.add_script_tag(content=bundle("digit"))
    asked = [[base64.b64encode(one["pad"].tobytes()).decode(), sorted(one["hidden"])] for one in states]
    found = page.evaluate(READ, [draw._page_config(), asked])
    reached, same = np.zeros(3, bool), 0
    for state, here in zip(states, found, strict=True):
        hidden, pixels = sorted(state["hidden"]), torch.from_numpy(state["pad"].copy())
        np.testing.assert_allclose(here["whole"], play.as_digit(pixels).flatten(), rtol=0, atol=1 / 255)
        answer = draw.answers["look"]({"raw": here["raw"], "whole": here["whole"], "hidden": hidden})
        np.testing.assert_allclose(here["answer"], answer, rtol=0, atol=1e-3)
        assert here["goals"] == [goal(state) for goal in draw.goals]
        same += here["words"] == draw.alt(state)
        reached |= here["goals"]
    assert same >= 0.9 * len(states)  # elsewhere a percentage was rounded to its neighbour
    assert reached.any() and not np.any([one["goals"] for one in found[:2]])


def hidden_patches(hide):
    """States with patches hidden at random, all of them or nearly, and the brightest."""
    random, (_, brightest) = np.random.default_rng(11), hide.steps["hidden"]
    for picture in hide.steps["picture"]:
        for count in (0, 1, 2, 4, 12, 15, 16):
            yield hide.state(picture=picture, hidden=frozenset((random.permutation(16)[:count] + 1).tolist()))
    yield from (hide.state(hidden=hidden) for hidden in (brightest, {6}, set(range(1, 17)) - {2, 3, 7, 11}))


def test_the_page_reads_says_and_judges_a_picture_as_python_does(open_hide, hide):
    page, states = open_hide(), list(hidden_patches(hide))
    page.add_script_tag(content=bundle("hide"))
    found = page.evaluate(HIDE, [hide._page_config(), [[one["picture"], sorted(one["hidden"])] for one in states]])
    reached, same = np.zeros(3, bool), 0
    for state, here in zip(states, found, strict=True):
        answer = hide.answers["look"]({"pixels": here["pixels"], "hidden": sorted(state["hidden"])})
        np.testing.assert_allclose(here["answer"], answer, rtol=0, atol=1e-3)
        assert here["goals"] == [bool(goal(state)) for goal in hide.goals]
        same += here["words"] == hide.alt(state)
        reached |= here["goals"]
    assert same >= 0.9 * len(states)  # elsewhere a percentage was rounded to its neighbour
    assert reached[0] and reached[2]


@pytest.mark.parametrize("kernel", [False, True])
def test_a_stroke_over_a_picture_hides_its_patches_and_goals_wait_for_its_end(open_hide, kernel):
    page = open_hide(kernel=kernel)
    assert page.evaluate("told") == []
    first, last = (page.get_by_role("gridcell", name=f"patch {number},").bounding_box() for number in (6, 5))
    page.mouse.move(first["x"] + 9, first["y"] + 9)
    page.mouse.down()
    expect(page.get_by_text(re.compile("It says [^3]"))).to_be_visible()
    assert reached(page) == 0
    page.mouse.up()
    expect(page.locator(".play-goals li.reached")).to_have_text([re.compile("another digit")])
    page.get_by_text("each head", exact=True).click()
    expect(page.locator(".play-maps").last.locator("canvas")).to_have_count(16)
    page.get_by_text("a dark eight", exact=True).click()
    expect(page.locator(".play-said")).to_contain_text("1 of 16 patches are hidden: 6.")
    page.mouse.move(last["x"] + 9, last["y"] + 9)
    page.mouse.down()
    page.mouse.up()
    page.get_by_role("gridcell", name="patch 5, hidden").press("Shift+ArrowUp")
    expect(page.locator(".play-said")).to_contain_text("3 of 16 patches are hidden: 1, 5, 6.")


def reached(page):
    return page.locator(".play-goals li.reached").count()


def drawn(page, *points, up=True):
    """Draw through points of the pad, from 0 to 1."""
    box = page.locator("canvas").first.bounding_box()
    for i, (x, y) in enumerate(points):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=6)
        if i == 0:
            page.mouse.down()
    if up:
        page.mouse.up()


def test_probabilities_follow_the_stroke_and_goals_wait_for_its_end(open_page):
    page = open_page(kernel=True)
    assert page.evaluate("told") == []  # the first reading is no touch of the learner's
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("It cannot say “nothing”").first).to_be_visible()
    assert reached(page) == 0
    corner = [(0.06, 0.1), (0.13, 0.06), (0.2, 0.1), (0.2, 0.16), (0.06, 0.32), (0.22, 0.32)]  # a small two
    drawn(page, *corner, up=False)
    expect(page.get_by_text(re.compile("It says 2; as drawn, not prepared: [013-9]"))).to_be_visible()
    assert reached(page) == 0
    page.mouse.up()
    expect(page.locator(".play-goals li.reached")).to_have_text([re.compile("without its preparation")])
    assert page.evaluate("told") == [{"touched": True}, {"reached": [True, False, False]}]


def test_patches_are_hidden_by_drag_and_by_keys_and_the_maps_follow(open_page):
    page = open_page()
    page.get_by_role("gridcell", name="patch 6,").focus()
    for key in ("Space", "Shift+ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator(".play-said")).to_contain_text("2 of 16 patches are hidden: 6, 7.")
    page.get_by_text("each head", exact=True).click()
    expect(page.locator(".play-maps canvas")).to_have_count(16)
    page.get_by_role("button", name="Show all").click()
    first, last = (page.get_by_role("gridcell", name=f"patch {number},").bounding_box() for number in (1, 4))
    page.mouse.move(first["x"] + 9, first["y"] + 9)
    page.mouse.down()
    page.mouse.move(last["x"] + 9, last["y"] + 9, steps=2)
    page.mouse.up()
    expect(page.locator(".play-said")).to_contain_text("4 of 16 patches are hidden: 1, 2, 3, 4.")


def test_a_fully_hidden_picture_reaches_nothing(open_page):
    page = open_page()
    page.get_by_role("button", name="Swap visible and hidden").click()
    expect(page.locator(".play-said")).to_contain_text("All patches are hidden")
    page.get_by_role("button", name="a small two, off the middle").click()
    expect(page.locator(".play-said")).to_contain_text("As drawn it would say")
    assert reached(page) == 0
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".play-goals li.reached")).to_have_count(1)


@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light")])
@pytest.mark.parametrize("opened", ["open_page", "open_hide"])
def test_it_fits_and_axe_finds_nothing_serious(request, opened, width, height, theme):
    page = request.getfixturevalue(opened)(width=width, height=height, theme=theme)
    assert overflowing(page) == []
    assert width < 1000 or page.evaluate("document.documentElement.scrollHeight") <= height
    page.evaluate(axe_script())
    assert page.evaluate(AXE, ".course-play") == []
