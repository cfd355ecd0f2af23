"""Lesson 15 on the page: what a Conformer heard, and CTC's collapsing, are Python's; a frame is chosen by hand."""

from itertools import product

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.lessons.lesson_15 import playground
from tests.browser.explorers import explorer, trained
from tests.browser.played import computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")


def test_the_page_collapses_says_and_judges_as_python_does(blank):
    melody = explorer("transcribe")
    settings = product(playground.MELODIES.values(), playground.noises(), playground.pauses())
    states = [dict(zip(("melody", "noise", "pause"), setting, strict=True)) for setting in settings]
    found = computed(
        blank, melody, states,
        """([states, config]) => states.map((state) => {
          const its = melodyHeard(state, config);
          return { words: melodyWords(its), goals: melodyGoals.map((goal) => goal(state, its)), probs: its.probs,
            bands: its.frames.length / its.length };
        })""",
    )  # fmt: skip
    assert judged_as_in_python(melody, states, found).all()
    for here in found:
        assert here["bands"] == playground.BANDS
        np.testing.assert_allclose(np.sum(here["probs"], axis=1), 1, atol=0.05)


def test_noise_and_a_frame_are_chosen_and_a_goal_is_reached(play):
    here = play(explorer("transcribe"), kernel=True)
    frame = here.slider("Frame of the network")
    expect(frame).to_have_attribute("aria-valuetext", "frame 1 of 21: blank 1.00, C 0.00, D 0.00")
    frame.press("ArrowRight")
    expect(frame).to_have_attribute("aria-valuenow", "2")
    box = frame.bounding_box()
    here.page.mouse.click(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    assert int(frame.get_attribute("aria-valuenow")) > 5
    here.type("Noise", "0.8")
    assert here.reached() == 1 and here.told()[0] == {"touched": True}
    here.shows("The Conformer is correct. Nearest clean tones: ")
    here.choose("C C D E E")
    here.says("Played: C C D E E.")


# ------------------------------------------------------------------------------------------- gaps that T5 fills


def test_the_page_says_and_judges_filled_gaps_as_python_does(blank):
    spans, settings = explorer("spans"), product(range(playground.TEXTS), (0.15, 0.3), (2, 5))
    states = [{"text": text, "rate": rate, "length": length, "draw": 1 + text} for text, rate, length in settings]
    found = computed(
        blank, spans, [state | {"its": spans.answers["fill"](state | {"dropped": None})} for state in states],
        """([states]) => states.map(({ its, ...state }) => {
          const now = { ...state, dropped: null, its: null };
          now.its = { ...its, error: "", asked: JSON.stringify([now.text, now.rate, now.length, now.draw]) };
          return { words: spanWords(now), goals: spanGoals().map((goal) => goal(now)) };
        })""",
    )  # fmt: skip
    judged_as_in_python(spans, states, found)


def test_words_are_removed_by_hand_and_filled(play):
    its = playground.filled(trained("gaps"), 0, rate=0.15, mean_span=3, draw=1)
    here = play(explorer("spans"), kernel=True)
    words, gone = here.page.locator(".play-gaps > button"), ".play-gaps > .gone"
    expect(words).to_have_text(its.words)
    here.counts(gone, sum(its.dropped))
    kept = its.dropped.index(False)
    words.nth(kept).click()
    expect(words.nth(kept)).to_have_attribute("aria-pressed", "true")
    here.says(f"of {sum(its.dropped) + 1} removed tokens")
    words.nth(kept).press("Space")
    here.counts(gone, sum(its.dropped))
    for word in its.dropped.index(True), len(its.words) - 1 - its.dropped[::-1].index(True):
        words.nth(word).press("Enter")  # until nothing is removed
    assert here.told()[0] == {"touched": True}
    here.press("Other random spans")
    here.counts(gone, sum(its.dropped))
    before = words.all_inner_texts()
    here.choose("text 3")
    expect(words).not_to_have_text(before)
