"""Lesson 17 on the page: costs of attention and Gibbs steps are Python's, and both are moved by hand."""

from itertools import product

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from course_lib.functional.boltzmann import clamped_chain
from course_lib.lessons.lesson_17 import learner, playground
from tests.browser.explorers import explorer, trained
from tests.browser.played import computed, is_inside, judged_as_in_python, overflowing

pytestmark = pytest.mark.needs("chromium")


def test_the_page_computes_and_says_what_python_does(blank):
    costs, names = explorer("costs"), ("kind", "length", "size", "window")
    settings = product(playground.SHOWN, playground.LENGTHS.values(), (8, 64, 72, 128), range(4, 257, 28))
    states = [dict(zip(names, setting, strict=True)) for setting in settings]
    found = computed(
        blank, costs, states,
        """([states, config]) => states.map((state) => {
          const its = attentionCosts(state, config), most = attentionCosts({ ...state, kind: "softmax" }, config);
          return { its, words: costWords(state, config), goals: costGoals.map((goal) => goal(state, its, most)) };
        })""",
    )  # fmt: skip
    assert judged_as_in_python(costs, states, found).all()
    for state, here in zip(states, found, strict=True):
        assert here["its"] == list(playground.attention_costs(**state))


def test_the_length_is_dragged_stays_on_its_axis_and_a_goal_waits_until_it_is_let_go(play):
    here = play(explorer("costs"), kernel=True)
    point = here.page.locator(".play-point[role=slider] .play-dot")
    here.choose("linear", "Attention")
    before, plane = here.axes(), here.page.locator(".play-view svg").bounding_box()
    here.drag(point, (900, -40))
    assert here.number("Tokens") == 16384 and is_inside(point, plane)
    here.drag(point, (-120, 0))  # back, with the button still down
    assert 256 < here.number("Tokens") < 16384 and here.reached() == 0
    here.page.mouse.up()
    here.drag(point, (-900, -40))
    assert here.number("Tokens") == 16 and is_inside(point, plane)
    here.page.mouse.up()
    assert here.told() == [{"touched": True}, {"reached": [True, False, False]}] and here.axes() == before


def test_arrow_keys_change_the_length_it_is_said_and_what_is_plotted_is_chosen(play):
    here = play(explorer("costs"))
    tokens = here.page.locator(".play-point[role=slider]")
    tokens.press("ArrowRight")
    assert here.number("Tokens") == 512
    expect(tokens).to_have_attribute("aria-valuetext", "512 tokens, 16,809,984 multiplications")
    here.says("One head, 512 tokens: softmax attention needs 1 times")
    here.choose("scores held", "Plot")
    here.choose("linear", "Attention")
    here.shows("Linear attention holds no scores.")
    expect(tokens).to_have_attribute("aria-valuetext", "512 tokens, 0 scores held")
    here.choose("softmax in blocks", "Attention")
    here.shows("softmax in blocks: 0.125 times the scores held")
    expect(here.page.locator(".play-score b")).to_have_text(["softmax in blocks", "16,809,984", "32,768", "65,536"])
    here.page.get_by_label("Size of a head", exact=True).press("ArrowLeft")
    expect(here.page.locator(".play-score tbody tr").first).not_to_contain_text("16,809,984")


def test_the_largest_numbers_fit_on_a_phone(play):
    here = play(explorer("costs"), width=390, height=844)
    for label, number in (("Tokens", "16384"), ("Size of a head", "128"), ("Window", "256")):
        here.type(label, number)
    expect(here.page.locator(".play-score")).to_contain_text("34,361,835,520")
    assert overflowing(here.page) == []


# ------------------------------------------------------------------------------------------- the machine that dreams


CHAINS = """([[v, kept, noise, steps], config]) => {
  const machine = dreamMachine(config), draws = noise.values();
  let state = Float32Array.from(v), found = null;
  for (let step = 0; step < steps; step++) {
    found = gibbsStep(machine, state, kept, () => draws.next().value);
    state = found.state;
  }
  return { probs: [...found.probs], seen: dreamClasses(machine, found.probs) };
}"""


@pytest.mark.parametrize("kept", [playground.PIXELS, playground.PIXELS + playground.CLASSES])
def test_the_page_takes_the_gibbs_steps_of_python(blank, kept, monkeypatch):
    """With the same random numbers: each layer's, in the order in which Python draws them."""
    model, drawn, steps = trained("boltzmann"), [], 4
    dream, labels = explorer("dreams"), torch.arange(playground.CHAINS) % playground.CLASSES
    v = learner.with_labels(playground.starting(5), labels).round()
    rand_like = torch.rand_like
    monkeypatch.setattr(torch, "rand_like", lambda like: drawn.append(rand_like(like)) or drawn[-1])
    probs = clamped_chain(model.features, model.visible, v, steps, clamped=torch.arange(v.shape[1]) >= kept)
    noise = torch.cat([one.flatten() for one in drawn]).tolist()
    found = computed(blank, dream, [v.flatten().tolist(), kept, noise, steps], CHAINS)
    np.testing.assert_allclose(found["probs"], probs.flatten(), atol=2e-5)
    assert found["seen"] == learner.recognised(probs[:, : playground.PIXELS]).tolist()


def test_the_page_says_and_judges_dreams_as_python_does(blank):
    dream, states, seen = explorer("dreams"), [], []
    for label, start, steps in product((playground.NONE, 0, 3), (playground.RANDOM, 0, 8), (1, 300)):
        states.append(dream.state(label=label, start=start, steps=steps))
        images = learner.dreams(trained("boltzmann"), None if label < 0 else torch.full((16,), label),
                                steps=steps, start=playground.starting(start), count=16, seed=0)  # fmt: skip
        seen.append(learner.recognised(images).tolist())
    found = computed(
        blank, dream, [{**state, "seen": classes} for state, classes in zip(states, seen, strict=True)],
        """([states, config]) => states.map((state) => ({ words: dreamWords(state),
          goals: dreamGoals(config).map((goal) => goal(state)) }))""",
    )  # fmt: skip
    assert judged_as_in_python(dream, states, found).all()


def test_chains_run_pause_and_go_back_and_a_goal_waits_for_the_pause(play):
    here = play(explorer("dreams"), kernel=True)
    images = here.page.locator(".play-dreams")
    here.press("Run")
    expect(here.page.get_by_role("button", name="Pause")).to_be_visible()
    here.page.wait_for_function("Number(document.querySelector('input.play-number').value) > 40")
    assert here.reached() == 0
    here.press("Pause")
    assert here.reached() == 1 and here.told()[0] == {"touched": True}
    at, shown = int(here.number("Gibbs steps")), images.get_attribute("aria-label")
    here.press("One step")
    assert here.number("Gibbs steps") == at + 1
    here.type("Gibbs steps", str(at))
    expect(images).to_have_attribute("aria-label", shown)  # as it was
    here.choose("8", "Begin at")
    here.type("Gibbs steps", "1")
    here.says("After 1 Gibbs step ")
    shown = images.get_attribute("aria-label")
    here.press("Other random numbers")
    expect(images).not_to_have_attribute("aria-label", shown)
