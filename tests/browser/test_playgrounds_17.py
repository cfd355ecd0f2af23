"""Lesson 17 on the page: costs of attention and Gibbs steps are Python's, and both are moved by hand."""

from itertools import product

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.functional.boltzmann import clamped_chain
from course_lib.lessons.lesson_17 import learner
from course_lib.lessons.lesson_17 import playground as play
from tests.browser.live_playground import axes, check_axe, check_it_fits, move, played
from tests.browser.played import overflowing
from tests.browser.test_playgrounds_live import centre

pytestmark = pytest.mark.needs("chromium")
FOUND = """([states, config]) => states.map((state) => {
  const its = attentionCosts(state, config), most = attentionCosts({ ...state, kind: "softmax" }, config);
  return { its, words: costWords(state, config), goals: costGoals.map((goal) => goal(state, its, most)) };
})"""


@pytest.fixture(scope="module")
def explorer():
    return play.scores()


def states():
    for kind, length, size, window in product(play.SHOWN, play.LENGTHS.values(), (8, 64, 72, 128), range(4, 257, 28)):
        yield {"kind": kind, "length": length, "size": size, "window": window}


def test_the_page_computes_and_says_what_python_does(browser, explorer):
    page, reached = browser.new_page(), np.zeros(3, bool)
    page.add_script_tag(content=bundle("costs"))
    found = page.evaluate(FOUND, [list(states()), explorer._page_config()])
    for state, here in zip(states(), found, strict=True):
        assert here["its"] == list(play.attention_costs(**state))
        assert here["words"] == explorer.alt(explorer.state(**state))
        assert here["goals"] == [goal(explorer.state(**state)) for goal in explorer.goals]
        reached |= here["goals"]
    assert reached.all()
    page.close()


def tokens(here):
    return here.page.locator(".play-point[role=slider]")


def length(here):
    return int(here.page.get_by_label("Tokens, typed").input_value())


def test_the_length_is_dragged_stays_on_its_axis_and_a_goal_waits_until_it_is_let_go(browser, explorer):
    with played(browser, explorer, kernel=True) as here:
        here.page.get_by_role("radiogroup", name="Attention").get_by_text("linear", exact=True).click()
        before, plane = axes(here), here.page.locator(".play-view svg").bounding_box()
        for by, end in ((900, 16384), (-900, 16)):
            move(here, tokens(here).locator(".play-dot"), (by, -40))
            assert length(here) == end
            x, y = centre(tokens(here).locator(".play-dot"))
            assert plane["x"] < x < plane["x"] + plane["width"] and plane["y"] < y < plane["y"] + plane["height"]
            if end == 16384:
                move(here, tokens(here).locator(".play-dot"), (-120, 0))  # back, with the button still down
                assert 256 < length(here) < 16384 and here.reached() == 0
            here.page.mouse.up()
        assert here.told() == [{"touched": True}, {"reached": [True, False, False]}] and axes(here) == before


def test_arrow_keys_change_the_length_it_is_said_and_what_is_plotted_is_chosen(browser, explorer):
    with played(browser, explorer) as here:
        tokens(here).press("ArrowRight")
        assert length(here) == 512
        expect(tokens(here)).to_have_attribute("aria-valuetext", "512 tokens, 16,809,984 multiplications")
        expect(here.page.locator(".play-said")).to_contain_text("One head, 512 tokens: softmax attention needs 1 times")
        here.page.get_by_role("radiogroup", name="Plot").get_by_text("scores held").click()
        here.page.get_by_role("radiogroup", name="Attention").get_by_text("linear", exact=True).click()
        expect(here.page.get_by_text("Linear attention holds no scores.")).to_be_visible()
        expect(tokens(here)).to_have_attribute("aria-valuetext", "512 tokens, 0 scores held")
        here.page.get_by_role("radiogroup", name="Attention").get_by_text("softmax in blocks", exact=True).click()
        expect(here.page.get_by_text("softmax in blocks: 0.125 times the scores held")).to_be_visible()
        expect(here.page.locator(".play-score b")).to_have_text(["softmax in blocks", "16,809,984", "32,768", "65,536"])


def test_it_fits_and_axe_finds_nothing(browser, explorer):
    check_it_fits(browser, explorer)
    check_axe(browser, explorer)


def test_the_largest_numbers_fit_on_a_phone(browser, explorer):
    with played(browser, explorer, width=390, height=844) as here:
        for label, number in (("Tokens", "16384"), ("Size of a head", "128"), ("Window", "256")):
            here.page.get_by_label(f"{label}, typed").fill(number)
            here.page.get_by_label(f"{label}, typed").press("Enter")
        expect(here.page.locator(".play-score")).to_contain_text("34,361,835,520")
        assert overflowing(here.page) == []


# ------------------------------------------------------------------------------------------- the machine that dreams


@pytest.fixture(scope="module")
def dream():
    return play.dream(load_trained("boltzmann").model)


CHAINS = """([config, v, kept, noise, steps]) => {
  const machine = dreamMachine(config), draws = noise.values();
  let state = Float32Array.from(v), found = null;
  for (let step = 0; step < steps; step++) {
    found = gibbsStep(machine, state, kept, () => draws.next().value);
    state = found.state;
  }
  return { probs: [...found.probs], seen: dreamClasses(machine, found.probs) };
}"""


@pytest.mark.parametrize("kept", [play.PIXELS, play.PIXELS + play.CLASSES])
def test_the_page_takes_the_gibbs_steps_of_python(browser, dream, kept, monkeypatch):
    """With the same random numbers: each layer's, in the order in which Python draws them."""
    model, drawn, steps = load_trained("boltzmann").model, [], 4
    v = learner.with_labels(play.starting(5), torch.arange(play.CHAINS) % play.CLASSES).round()
    rand_like = torch.rand_like
    monkeypatch.setattr(torch, "rand_like", lambda like: drawn.append(rand_like(like)) or drawn[-1])
    probs = clamped_chain(model.features, model.visible, v, steps, clamped=torch.arange(v.shape[1]) >= kept)
    noise = torch.cat([one.flatten() for one in drawn]).tolist()
    page = browser.new_page()
    page.add_script_tag(content=bundle("dreams"))
    found = page.evaluate(CHAINS, [dream._page_config(), v.flatten().tolist(), kept, noise, steps])
    np.testing.assert_allclose(found["probs"], probs.flatten(), atol=2e-5)
    assert found["seen"] == learner.recognised(probs[:, : play.PIXELS]).tolist()
    page.close()


def test_the_page_says_and_judges_dreams_as_python_does(browser, dream):
    page, states = browser.new_page(), []
    for label, start, steps in product((play.NONE, 0, 3), (play.RANDOM, 0, 8), (1, 300)):
        state = dream.state(label=label, start=start, steps=steps)
        images = learner.dreams(load_trained("boltzmann").model, None if label < 0 else torch.full((16,), label),
                                steps=steps, start=play.starting(start), count=16, seed=0)  # fmt: skip
        states.append((state, learner.recognised(images).tolist()))
    page.add_script_tag(content=bundle("dreams"))
    found = page.evaluate(
        """([states, config]) => states.map((state) => ({ words: dreamWords(state),
          goals: dreamGoals(config).map((goal) => goal(state)) }))""",
        [[{**state, "seen": seen} for state, seen in states], dream._page_config()],
    )
    for (state, _), here in zip(states, found, strict=True):
        assert here["words"] == dream.alt(state)
        assert here["goals"] == [goal(state) for goal in dream.goals]
    assert np.any([one["goals"] for one in found], axis=0).all()
    page.close()


def test_chains_run_pause_and_go_back_and_a_goal_waits_for_the_pause(browser, dream):
    with played(browser, dream, kernel=True) as here:
        steps = here.page.get_by_label("Gibbs steps, typed")
        here.page.get_by_role("button", name="Run").click()
        expect(here.page.get_by_role("button", name="Pause")).to_be_visible()
        here.page.wait_for_function("Number(document.querySelector('input.play-number').value) > 40")
        assert here.reached() == 0
        here.page.get_by_role("button", name="Pause").click()
        assert here.reached() == 1 and here.told()[0] == {"touched": True}
        at, shown = int(steps.input_value()), here.page.locator(".play-dreams").get_attribute("aria-label")
        here.page.get_by_role("button", name="One step").click()
        assert int(steps.input_value()) == at + 1
        steps.fill(str(at))
        steps.press("Enter")
        expect(here.page.locator(".play-dreams")).to_have_attribute("aria-label", shown)  # as it was


def test_the_dreams_fit_and_axe_finds_nothing(browser, dream):
    check_it_fits(browser, dream)
    check_axe(browser, dream)
