"""Playgrounds that compute on the page: their numbers are Python's; mouse, keyboard and screen reader can use them."""

import random
import statistics

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.lessons.lesson_05.playground import WORDS, jacobian, logits_of, weights_at, weights_of
from tests.browser.explorers import explorer
from tests.browser.played import centre, computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")

STATES = 60
LATENCY = """() => {
  window.delays = [];
  addEventListener("pointermove", () => {
    const begun = performance.now();
    requestAnimationFrame(() => { const port = new MessageChannel();
      port.port1.onmessage = () => delays.push(performance.now() - begun); port.port2.postMessage(0); });
  }, true);
}"""


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


def test_softmax_computes_and_says_what_python_does(blank):
    softmax, asked = explorer("softmax"), list(softmax_states())
    states = []
    for state in asked:
        scores = {f"z{i}": score for i, score in enumerate(state["scores"], start=1)}
        states.append(softmax.state(**scores, **{name: state[name] for name in ("d_k", "scaled", "temperature")}))
    found = computed(
        blank, softmax, asked,
        """([states]) => states.map((state) => {
          const inputs = softmaxInputs(state), weights = softmaxWeights(inputs);
          return { inputs, weights, slopes: softmaxJacobian(weights), words: softmaxWords(state),
                   goals: softmaxGoals.map((goal) => goal(state)) };
        })""",
    )  # fmt: skip
    assert judged_as_in_python(softmax, states, found).all()
    for state, here in zip(states, found, strict=True):
        close(here["inputs"], logits_of(state))
        close(here["weights"], weights_at(state))
        close(here["slopes"], jacobian(weights_at(state)))


def masks():
    draw, presets = random.Random(6), explorer("mask").controls[0].presets
    yield from ([list(row) for row in grid] for grid in presets.values())
    yield [[i != 2] * len(WORDS) for i in range(len(WORDS))]
    yield [*([j <= i for j in range(len(WORDS))] for i in range(len(WORDS) - 1)), [False] * len(WORDS)]
    for _ in range(STATES):
        density = draw.random()
        yield [[draw.random() < density for _ in WORDS] for _ in WORDS]


def test_mask_computes_and_says_what_python_does(blank):
    mask, asked = explorer("mask"), list(masks())
    found = computed(
        blank, mask, asked,
        """([masks, config]) => masks.map((mask) => ({ weights: maskedWeights(config.scores, mask),
          words: maskWords({ mask }, config), goals: maskGoals.map((goal) => goal({ mask })) }))""",
    )  # fmt: skip
    states = [mask.state(mask=one) for one in asked]
    assert judged_as_in_python(mask, states, found).all()
    for state, here in zip(states, found, strict=True):
        close(here["weights"], weights_of(state["mask"]))


# ------------------------------------------------------------------------------------------- softmax by hand


def score(here, key):
    return here.slider(f"key {key}", exact=True)


def grip(here, key):
    return score(here, key).locator(".play-grip")


def value(here, key):
    return float(score(here, key).get_attribute("aria-valuenow"))


def test_a_bar_follows_the_hand_and_a_goal_waits_until_it_lets_go(play):
    here = play(explorer("softmax"), kernel=True)
    for key in (1, 2, 3, 4):
        here.type(f"key {key}", "-1,5")
    assert here.reached() == 0
    here.drag(grip(here, 5), (0, 55))
    assert value(here, 5) == pytest.approx(-1.5, abs=0.15)
    assert here.reached() == 0
    here.page.mouse.up()
    while value(here, 5) != -1.5:  # the last step by keys
        score(here, 5).press("ArrowUp" if value(here, 5) < -1.5 else "ArrowDown")
    assert here.reached() == 1  # five equal weights
    assert here.told()[0] == {"touched": True} and here.told()[-1] == {"reached": [False, False, True]}


def test_what_a_drag_passes_by_reaches_no_goal(play):
    here = play(explorer("softmax"))
    width = here.page.get_by_label("Width d_k", exact=True)
    for _ in range(4):
        width.press("ArrowRight")
    assert here.reached() == 0
    here.drag(grip(here, 1), (0, -60))  # far above the others: a weight above 0.99 at T = 1
    weight = here.page.locator(".play-view").nth(1).locator(".play-number").first
    assert float(weight.inner_text()) > 0.99 and here.reached() == 0
    here.drag(grip(here, 1), (0, 80))
    here.page.mouse.up()
    assert float(weight.inner_text()) < 0.99 and here.reached() == 0
    here.drag(grip(here, 1), (0, -150))
    assert here.reached() == 0
    here.page.mouse.up()
    assert here.reached() == 1
    expect(here.status).to_have_text("1 of 3 goals reached")


def test_a_finger_drags_a_bar_and_does_not_scroll_the_page(play):
    here = play(explorer("softmax"), width=390, height=600)
    touch = here.page.context.new_cdp_session(here.page)
    x, y = centre(grip(here, 2))

    def touched(kind, *points):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": at} for at in points]})

    touched("touchStart", y)
    for step in range(1, 6):
        touched("touchMove", y - 10 * step)
    touched("touchEnd")
    assert value(here, 2) > 1.5 and here.page.evaluate("scrollY") == 0
    touched("touchStart", 590)  # beside the bars a finger scrolls, as on any page
    for step in range(1, 6):
        touched("touchMove", 590 - 40 * step)
    touched("touchEnd")
    here.page.wait_for_function("scrollY > 50")


def test_arrows_move_a_bar_and_the_result_is_said_after_a_pause(play):
    here = play(explorer("softmax"))
    keys = ("ArrowUp", "ArrowUp", "ArrowRight", "ArrowDown", "PageUp", "End", "ArrowDown", "ArrowUp", "PageDown")
    here.keys("key 3", *keys)
    assert value(here, 3) == 2.0
    assert score(here, 3).get_attribute("aria-valuetext").startswith("2.0; softmax input 2.00, weight 0.5")
    assert "key 1 has the largest" in here.said.inner_text()  # not yet
    here.says("key 3 has the largest")


def test_an_axis_stays_as_it_is_whatever_is_set(play):
    here = play(explorer("softmax"))
    before = here.axes()
    here.type("Width d_k", "900")
    here.drag(grip(here, 2), (0, -300))
    here.page.mouse.up()
    assert here.number("Width d_k") == 1024  # a power of two
    assert value(here, 2) == 3.0 and here.axes() == before
    top = here.page.locator(".play-view").first.locator(".play-grid").last.bounding_box()["y"]  # 3
    assert here.page.locator(".play-ghost").nth(1).bounding_box()["y"] == pytest.approx(top, abs=2)  # 96, cut off


def test_the_temperature_undoes_the_width(play):
    here = play(explorer("softmax"))
    weights = here.page.locator(".play-view").nth(1).locator("span.play-number")
    before, switch = weights.all_inner_texts(), here.page.get_by_role("switch", name="Divide by")
    here.type("Width d_k", "64")
    temperature = here.slider("Temperature T")
    expect(temperature).to_have_attribute("aria-valuetext", "1.00")  # not the exponent, which the slider would say
    temperature.press("ArrowRight")
    expect(temperature).to_have_attribute("aria-valuetext", "1.09")
    here.type("Temperature T", "8")
    assert weights.all_inner_texts() == before and here.reached() == 2  # on the way, a weight above 0.99
    switch.click()
    assert weights.all_inner_texts() != before
    here.press("Back to the start")
    assert weights.all_inner_texts() == before and here.reached() == 2
    assert switch.get_attribute("aria-checked") == "false"


# ------------------------------------------------------------------------------------------- the mask by hand


def square(here, row, column):
    return here.page.locator(f'.painted [data-at="{row} {column}"]')


def stroke(here, *places, steps):
    here.stroke(*(centre(square(here, *place)) for place in places), steps=steps)


def painted(here):
    every = "(all) => all.map((one) => one.ariaSelected === 'true')"
    return np.array(here.page.locator(".painted td[data-at]").evaluate_all(every)).reshape(len(WORDS), len(WORDS))


def test_a_stroke_paints_all_squares_that_it_passes_and_goals_wait_for_its_end(play):
    here, last = play(explorer("mask"), kernel=True), len(WORDS) - 1
    stroke(here, (0, last), (last, last), steps=2)  # fast: squares lie between two events
    assert not painted(here)[:, last].any()
    here.counts(".play-map:not(.painted) td.off", len(WORDS))
    here.let_go(False, True, False)
    assert painted(here).sum() == len(WORDS) * last
    stroke(here, (1, last), (1, 0), steps=3)  # hidden: this stroke shows
    here.page.mouse.up()
    assert painted(here)[1].all()


def test_the_keyboard_paints_a_mask(play):
    here = play(explorer("mask"))
    square(here, 0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "Space", *["Shift+ArrowRight"] * 3):
        here.page.keyboard.press(key)
    assert (~painted(here)).nonzero()[0].tolist() == [1] * 4 and not painted(here)[1, 1:5].any()
    expect(square(here, 1, 4)).to_be_focused()
    expect(square(here, 1, 4)).to_have_attribute("aria-label", "'ministre' may not attend to 'pas'")
    here.page.keyboard.press("Space")
    assert painted(here)[1, 4]


def test_a_row_and_a_column_light_up_in_both_maps(play):
    here = play(explorer("mask"))
    expect(square(here, 0, 1)).to_have_accessible_name("'le' may attend to 'ministre'")
    square(here, 2, 3).hover()
    assert here.page.locator("th.lit").all_inner_texts() == ["signe", "ne"] * 2
    here.page.locator('.play-map:not(.painted) [data-at="0 1"]').hover()
    assert here.page.locator("th.lit").all_inner_texts() == ["ministre", "le"] * 2
    here.page.mouse.move(2, 2)
    here.counts(".lit", 0)


def test_all_goals_of_the_mask_are_reached_and_said(play):
    here = play(explorer("mask"))
    for i in range(len(WORDS) - 1):
        for j in range(i + 1, len(WORDS)):
            square(here, i, j).click()
    assert here.reached() == 1  # a decoder that cannot see the future
    square(here, 5, 5).click()
    here.press("nothing", exact=True)
    for i in range(1, len(WORDS)):
        square(here, i, 0).click()
    expect(here.status).to_have_text("All goals reached")


# ------------------------------------------------------------------------------------------- for all


def test_the_static_form_stays_in_print(play):
    page = play(explorer("softmax")).page
    expect(page.get_by_text("static form")).to_be_hidden()
    page.emulate_media(media="print")
    expect(page.get_by_text("static form")).to_be_visible()
    expect(page.locator(".course-play")).to_be_hidden()


def test_where_a_playground_fails_its_static_form_stands(play):
    here = play(explorer("softmax"), kernel=True)
    here.page.evaluate("remove()")
    here.counts(".course-play", 0)
    here.page.evaluate("document.querySelector('.course-playground').innerHTML = '<p>static form</p>'")
    here.page.evaluate("document.querySelector('.course-playground').dataset.config = '{}'")
    assert here.page.evaluate("startPlayground(document.querySelector('.course-playground'))") is False
    expect(here.page.get_by_text("static form")).to_be_visible()
    here.counts(".course-playground > *", 1)
    assert len(here.problems) == 1
    here.problems.clear()  # it was warned of


@pytest.mark.parametrize("name", ["softmax", "mask"])
def test_how_long_it_takes_from_the_hand_to_the_picture(play, name, record_property):
    here = play(explorer(name))
    here.page.evaluate(LATENCY)
    if name == "softmax":
        here.drag(grip(here, 1), (0, -100))
    else:
        stroke(here, (0, 0), (5, 5), steps=12)
    here.page.mouse.up()
    delays = here.page.evaluate("delays")
    assert len(delays) >= 5
    record_property("median_ms", statistics.median(delays))
    print(f"\n{name}: median {statistics.median(delays):.1f} ms from pointermove to frame, of {len(delays)}")
