"""Playgrounds that compute on the page: their numbers are Python's; mouse, keyboard and screen reader can use them."""

import html
import json
import random
import statistics
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle, classic
from course_lib.lessons.lesson_05.playground import (
    WORDS,
    jacobian,
    logits_of,
    mask_painter,
    softmax_explorer,
    weights_at,
    weights_of,
)
from tests.axe import axe_script
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")

EXPLORERS = {"softmax": softmax_explorer, "mask": mask_painter}
STATES = 60
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>A playground</title><body data-theme="auto" style="margin: 12px; font-family: sans-serif">
<style>body {{ background: light-dark(#fff, #14181c); color-scheme: light dark }}</style>
<div class="course-playground" data-playground="{name}" data-config="{config}"><p>static form</p></div>
<script>{script}</script></body></html>"""
START = """(kernel) => {
  const box = document.querySelector(".course-playground");
  window.told = [];
  if (!kernel) return startPlayground(box);
  const { playground, config } = box.dataset;
  const sends = { send: (message) => told.push(message) };
  window.remove = coursePlaygrounds[playground]({ root: box, config: JSON.parse(config), kernel: sends });
}"""
LATENCY = """() => {
  window.delays = [];
  addEventListener("pointermove", () => {
    const begun = performance.now();
    requestAnimationFrame(() => { const port = new MessageChannel();
      port.port1.onmessage = () => delays.push(performance.now() - begun); port.port2.postMessage(0); });
  }, true);
}"""


@dataclass
class Played:
    """A page with one playground, and what it complained of."""

    page: object
    problems: list = field(default_factory=list)

    def told(self):
        return self.page.evaluate("told")

    def reached(self):
        return self.page.locator(".play-goals li.reached").count()


@pytest.fixture
def play(browser):
    """play(name, width=..., theme=..., kernel=...): the playground on a page of its own."""
    contexts, problems = [], []

    def open_it(name, *, width=1280, height=720, theme="light", kernel=False):
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type != "log" else None)
        config = html.escape(json.dumps(EXPLORERS[name]()._page_config()))
        page.set_content(PAGE.format(name=name, config=config, script=classic(name)))
        page.evaluate(START, kernel)
        return Played(page, problems)

    yield open_it
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture(scope="module")
def modules(browser):
    """A page on which all that the two playgrounds define is global."""
    page = browser.new_page()
    page.add_script_tag(content=bundle("softmax", "mask"))
    return page


def centre(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


# ------------------------------------------------------------------------------------------- numbers and words


def softmax_states():
    draw = random.Random(5)
    for _ in range(STATES):
        scores = [round(draw.uniform(-3, 3), 1) for _ in range(5)]
        scores = scores if draw.random() < 0.8 else [scores[0]] * 5
        yield {
            "scores": scores,
            "d_k": 2 ** draw.randrange(11),
            "scaled": draw.random() < 0.5,
            "temperature": draw.choice([1.0, 8.0, 2 ** draw.uniform(-3, 5)]),
        }
    for d_k, temperature in ((64, 8.0), (16, 1.0)):  # the second goal, and a gradient of 0.09
        yield {"scores": [1.2, 0.4, -0.3, -1.1, 0.0], "d_k": d_k, "scaled": False, "temperature": temperature}


def as_python_has_it(state):
    scores = {f"z{i}": score for i, score in enumerate(state["scores"], start=1)}
    return softmax_explorer().state(**scores, **{name: state[name] for name in ("d_k", "scaled", "temperature")})


def test_softmax_computes_and_says_what_python_does(modules):
    found = modules.evaluate(
        """(states) => states.map((state) => {
          const inputs = softmaxInputs(state), weights = softmaxWeights(inputs);
          return { inputs, weights, slopes: softmaxJacobian(weights), words: softmaxWords(state),
                   goals: softmaxGoals.map((goal) => goal(state)) };
        })""",
        list(softmax_states()),
    )
    explorer, goals = softmax_explorer(), np.zeros(3, bool)
    for state, here in zip(softmax_states(), found, strict=True):
        state = as_python_has_it(state)
        close(here["inputs"], logits_of(state))
        close(here["weights"], weights_at(state))
        close(here["slopes"], jacobian(weights_at(state)))
        assert here["words"] == explorer.alt(state)
        assert here["goals"] == [goal(state) for goal in explorer.goals]
        goals |= here["goals"]
    assert goals.all()  # each goal was reached by one of them


def mask_states():
    draw, presets = random.Random(6), mask_painter().controls[0].presets
    yield from ([list(row) for row in grid] for grid in presets.values())
    yield [[i != 2] * len(WORDS) for i in range(len(WORDS))]
    yield [*([j <= i for j in range(len(WORDS))] for i in range(len(WORDS) - 1)), [False] * len(WORDS)]
    for _ in range(STATES):
        density = draw.random()
        yield [[draw.random() < density for _ in WORDS] for _ in WORDS]


def test_mask_computes_and_says_what_python_does(modules):
    explorer, goals = mask_painter(), np.zeros(3, bool)
    found = modules.evaluate(
        """([masks, config]) => masks.map((mask) => ({ weights: maskedWeights(config.scores, mask),
          words: maskWords({ mask }, config), goals: maskGoals.map((goal) => goal({ mask })) }))""",
        [list(mask_states()), explorer._page_config()],
    )
    for mask, here in zip(mask_states(), found, strict=True):
        state = explorer.state(mask=mask)
        close(here["weights"], weights_of(state["mask"]))
        assert here["words"] == explorer.alt(state)
        assert here["goals"] == [goal(state) for goal in explorer.goals]
        goals |= here["goals"]
    assert goals.all()


# ------------------------------------------------------------------------------------------- softmax by hand


def score(played, key):
    return played.page.get_by_role("slider", name=f"key {key}", exact=True)


def value(played, key):
    return float(score(played, key).get_attribute("aria-valuenow"))


def drag(played, key, by):
    """Hold the top of a bar and move it up by so many pixels; the button stays down."""
    x, y = centre(score(played, key).locator(".play-grip"))
    played.page.mouse.move(x, y)
    played.page.mouse.down()
    played.page.mouse.move(x, y - by, steps=10)


def test_a_bar_follows_the_hand_and_a_goal_waits_until_it_lets_go(play):
    played = play("softmax", kernel=True)
    for key in (1, 2, 3, 4):
        number = played.page.get_by_label(f"key {key}, typed")
        number.fill("-1,5")
        number.press("Enter")
    assert played.reached() == 0
    drag(played, 5, -55)
    assert value(played, 5) == pytest.approx(-1.5, abs=0.15)
    assert played.reached() == 0
    played.page.mouse.up()
    while value(played, 5) != -1.5:  # the last step by keys
        score(played, 5).press("ArrowUp" if value(played, 5) < -1.5 else "ArrowDown")
    assert played.reached() == 1  # five equal weights
    assert played.told()[0] == {"touched": True} and played.told()[-1] == {"reached": [False, False, True]}


def test_what_a_drag_passes_by_reaches_no_goal(play):
    played = play("softmax")
    width = played.page.get_by_label("Width d_k", exact=True)
    width.focus()
    for _ in range(4):
        width.press("ArrowRight")
    assert played.reached() == 0
    drag(played, 1, 60)  # far above the others: a weight above 0.99 at T = 1
    weight = played.page.locator(".play-view").nth(1).locator(".play-number").first
    assert float(weight.inner_text()) > 0.99 and played.reached() == 0
    drag(played, 1, -80)
    played.page.mouse.up()
    assert float(weight.inner_text()) < 0.99 and played.reached() == 0
    drag(played, 1, 150)
    assert played.reached() == 0
    played.page.mouse.up()
    assert played.reached() == 1
    expect(played.page.get_by_role("status").first).to_have_text("1 of 3 goals reached")


def test_a_finger_drags_a_bar_and_does_not_scroll_the_page(play):
    played = play("softmax", width=390, height=600)
    touch = played.page.context.new_cdp_session(played.page)
    x, y = centre(score(played, 2).locator(".play-grip"))

    def touched(kind, *points):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": at} for at in points]})

    touched("touchStart", y)
    for step in range(1, 6):
        touched("touchMove", y - 10 * step)
    touched("touchEnd")
    assert value(played, 2) > 1.5 and played.page.evaluate("scrollY") == 0
    touched("touchStart", 590)  # beside the bars a finger scrolls, as on any page
    for step in range(1, 6):
        touched("touchMove", 590 - 40 * step)
    touched("touchEnd")
    played.page.wait_for_function("scrollY > 50")


def test_arrows_move_a_bar_and_the_result_is_said_after_a_pause(play):
    played = play("softmax")
    bar = score(played, 3)
    bar.focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowRight", "ArrowDown", "PageUp", "End", "ArrowDown", "ArrowUp", "PageDown"):
        bar.press(key)
    assert value(played, 3) == 2.0
    said = played.page.locator(".play-said")
    assert bar.get_attribute("aria-valuetext").startswith("2.0; softmax input 2.00, weight 0.5")
    assert "key 1 has the largest" in said.inner_text()  # not yet
    expect(said).to_contain_text("key 3 has the largest")


def test_an_axis_stays_as_it_is_whatever_is_set(play):
    played = play("softmax")
    axes = "[...document.querySelectorAll('.play-view svg > :is(text, line)')].map((one) => one.outerHTML).join()"
    before = played.page.evaluate(axes)
    played.page.get_by_label("Width d_k, typed").fill("900")
    played.page.get_by_label("Width d_k, typed").press("Enter")
    drag(played, 2, 300)
    played.page.mouse.up()
    assert played.page.get_by_label("Width d_k, typed").input_value() == "1024"  # a power of two
    assert value(played, 2) == 3.0 and played.page.evaluate(axes) == before
    top = (
        played.page.locator(".play-view").first.locator(".play-grid").last.bounding_box()["y"]
    )  # 3, where the outline of 96 ends
    assert played.page.locator(".play-ghost").nth(1).bounding_box()["y"] == pytest.approx(top, abs=2)


def test_the_temperature_undoes_the_width(play):
    played = play("softmax")
    weights = played.page.locator(".play-view").nth(1).locator("span.play-number")
    before = weights.all_inner_texts()
    for label, number in (("Width d_k", "64"), ("Temperature T", "8")):
        played.page.get_by_label(f"{label}, typed").fill(number)
        played.page.get_by_label(f"{label}, typed").press("Enter")
    assert weights.all_inner_texts() == before and played.reached() == 2  # on the way, a weight above 0.99
    played.page.get_by_role("switch", name="Divide by").click()
    assert weights.all_inner_texts() != before
    played.page.get_by_role("button", name="Back to the start").click()
    assert weights.all_inner_texts() == before and played.reached() == 2
    assert played.page.get_by_role("switch", name="Divide by").get_attribute("aria-checked") == "false"


# ------------------------------------------------------------------------------------------- the mask by hand


def square(played, row, column):
    return played.page.locator(f'.painted [data-at="{row} {column}"]')


def painted(played):
    on = played.page.locator(".painted td[data-at]").evaluate_all(
        "(all) => all.map((one) => one.ariaSelected === 'true')"
    )
    return np.array(on).reshape(len(WORDS), len(WORDS))


def test_a_stroke_paints_all_squares_that_it_passes_and_goals_wait_for_its_end(play):
    played = play("mask", kernel=True)
    last = len(WORDS) - 1
    played.page.mouse.move(*centre(square(played, 0, last)))
    played.page.mouse.down()
    played.page.mouse.move(*centre(square(played, last, last)), steps=2)  # fast: squares lie between two events
    assert not painted(played)[:, last].any() and played.reached() == 0
    assert played.page.locator(".play-map:not(.painted) td.off").count() == len(WORDS)
    played.page.mouse.up()
    assert played.reached() == 1 and painted(played).sum() == len(WORDS) * last
    assert played.told() == [{"touched": True}, {"reached": [False, True, False]}]
    played.page.mouse.move(*centre(square(played, 1, last)))  # hidden: this stroke shows
    played.page.mouse.down()
    played.page.mouse.move(*centre(square(played, 1, 0)), steps=3)
    played.page.mouse.up()
    assert painted(played)[1].all()


def test_the_keyboard_paints_a_mask(play):
    played = play("mask")
    square(played, 0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "Space"):
        played.page.keyboard.press(key)
    for _ in range(3):
        played.page.keyboard.press("Shift+ArrowRight")
    assert (~painted(played)).nonzero()[0].tolist() == [1] * 4 and not painted(played)[1, 1:5].any()
    expect(square(played, 1, 4)).to_be_focused()
    expect(square(played, 1, 4)).to_have_attribute("aria-label", "'ministre' may not attend to 'pas'")
    played.page.keyboard.press("Space")
    assert painted(played)[1, 4]


def test_a_row_and_a_column_light_up_in_both_maps(play):
    played = play("mask")
    square(played, 2, 3).hover()
    assert played.page.locator("th.lit").all_inner_texts() == ["signe", "ne"] * 2
    played.page.locator('.play-map:not(.painted) [data-at="0 1"]').hover()
    assert played.page.locator("th.lit").all_inner_texts() == ["ministre", "le"] * 2
    played.page.mouse.move(2, 2)
    expect(played.page.locator(".lit")).to_have_count(0)


def test_all_goals_of_the_mask_are_reached_and_said(play):
    played = play("mask")
    for i in range(len(WORDS) - 1):
        for j in range(i + 1, len(WORDS)):
            square(played, i, j).click()
    assert played.reached() == 1  # a decoder that cannot see the future
    square(played, 5, 5).click()
    played.page.get_by_role("button", name="nothing", exact=True).click()
    for i in range(1, len(WORDS)):
        square(played, i, 0).click()
    expect(played.page.get_by_role("status").first).to_have_text("All goals reached")


# ------------------------------------------------------------------------------------------- for all


@pytest.mark.parametrize("name", EXPLORERS)
@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 720)])
def test_nothing_overflows_on_a_phone_or_a_laptop(play, name, width, height):
    played = play(name, width=width, height=height)
    assert played.page.evaluate("document.documentElement.scrollWidth") <= width
    inner = """[...document.querySelectorAll('.course-play, .course-play *')].filter((one) =>
      !(one instanceof SVGElement) && one.tagName !== 'INPUT' &&
      one.scrollWidth > one.clientWidth + 1 &&
      getComputedStyle(one).display !== 'inline').map((one) => one.outerHTML)"""
    assert played.page.evaluate(inner) == []
    if width > 1000:
        assert played.page.evaluate("document.documentElement.scrollHeight") <= height


@pytest.mark.parametrize("name", EXPLORERS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(play, name, theme):
    played = play(name, theme=theme)
    played.page.evaluate(axe_script())
    assert played.page.evaluate(AXE, ".course-play") == []


@pytest.mark.parametrize("name", EXPLORERS)
def test_the_static_form_stays_in_print_and_where_the_script_fails(play, name):
    page = play(name).page
    expect(page.get_by_text("static form")).to_be_hidden()
    page.emulate_media(media="print")
    expect(page.get_by_text("static form")).to_be_visible()
    expect(page.locator(".course-play")).to_be_hidden()


def test_where_a_playground_fails_its_static_form_stands(play):
    played = play("softmax", kernel=True)
    played.page.evaluate("remove()")
    assert played.page.locator(".course-play").count() == 0
    played.page.evaluate("document.querySelector('.course-playground').dataset.config = '{}'")
    assert played.page.evaluate("startPlayground(document.querySelector('.course-playground'))") is False
    expect(played.page.get_by_text("static form")).to_be_visible()
    assert played.page.locator(".course-playground > *").count() == 1
    assert len(played.problems) == 1
    played.problems.clear()  # it was warned of


@pytest.mark.parametrize("name", EXPLORERS)
def test_how_long_it_takes_from_the_hand_to_the_picture(play, name, record_property):
    played = play(name)
    begin = {"softmax": partial(drag, played, 1, 100), "mask": partial(stroke, played)}[name]
    played.page.evaluate(LATENCY)
    begin()
    played.page.mouse.up()
    delays = played.page.evaluate("delays")
    assert len(delays) >= 5
    record_property("median_ms", statistics.median(delays))
    print(f"\n{name}: median {statistics.median(delays):.1f} ms from pointermove to frame, of {len(delays)}")


def stroke(played):
    played.page.mouse.move(*centre(square(played, 0, 0)))
    played.page.mouse.down()
    played.page.mouse.move(*centre(square(played, 5, 5)), steps=12)
