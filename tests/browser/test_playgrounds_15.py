"""Lesson 15 on the page: what a Conformer heard, and CTC's collapsing, are Python's; a frame is chosen by hand."""

from itertools import product

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_15 import playground as play
from tests.axe import axe_script
from tests.browser.live_playground import check_axe, check_it_fits, played
from tests.browser.played import overflowing
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def melody():
    return play.transcribe(load_trained("tones").model)


def test_the_page_collapses_says_and_judges_as_python_does(browser, melody):
    page = browser.new_page()
    states = [
        {"melody": tones, "noise": noise, "pause": pause}
        for tones, noise, pause in product(play.MELODIES.values(), play.noises(), play.pauses())
    ]
    page.add_script_tag(content=bundle("transcribe"))
    found = page.evaluate(
        """([states, config]) => states.map((state) => {
          const its = melodyHeard(state, config);
          return { words: melodyWords(its), goals: melodyGoals.map((goal) => goal(state, its)), probs: its.probs,
            bands: its.frames.length / its.length };
        })""",
        [states, melody._page_config()],
    )
    for state, here in zip(states, found, strict=True):
        assert here["words"] == melody.alt(melody.state(**state))
        assert here["goals"] == [goal(melody.state(**state)) for goal in melody.goals]
        assert here["bands"] == play.BANDS
        np.testing.assert_allclose(np.sum(here["probs"], axis=1), 1, atol=0.05)
    assert np.any([one["goals"] for one in found], axis=0).all()
    page.close()


def test_noise_and_a_frame_are_chosen_and_a_goal_is_reached(browser, melody):
    with played(browser, melody, kernel=True) as here:
        frame = here.page.get_by_role("slider", name="Frame of the network")
        expect(frame).to_have_attribute("aria-valuetext", "frame 1 of 21: blank 1.00, C 0.00, D 0.00")
        frame.press("ArrowRight")
        expect(frame).to_have_attribute("aria-valuenow", "2")
        box = frame.bounding_box()
        here.page.mouse.click(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
        assert int(frame.get_attribute("aria-valuenow")) > 5
        noise = here.page.get_by_label("Noise, typed")
        noise.fill("0.8")
        noise.press("Enter")
        assert here.reached() == 1 and here.told()[0] == {"touched": True}
        expect(here.page.get_by_text("The Conformer is correct. Nearest clean tones: ")).to_be_visible()
        here.page.get_by_text("C C D E E", exact=True).click()
        expect(here.page.locator(".play-said")).to_contain_text("Played: C C D E E.")


def test_the_melody_fits_and_axe_finds_nothing(browser, melody):
    check_it_fits(browser, melody)
    check_axe(browser, melody)


# ------------------------------------------------------------------------------------------- gaps that T5 fills


@pytest.fixture(scope="module")
def spans():
    return play.spans(load_trained("gaps").model)


def test_the_page_says_and_judges_filled_gaps_as_python_does(browser, spans):
    page, states = browser.new_page(), []
    for text, rate, length in product(range(play.TEXTS), (0.15, 0.3), (2, 5)):
        states.append({"text": text, "rate": rate, "length": length, "draw": 1 + text})
    page.add_script_tag(content=bundle("spans"))
    found = page.evaluate(
        """(states) => states.map(({ its, ...state }) => {
          const now = { ...state, dropped: null, its: null };
          now.its = { ...its, error: "", asked: JSON.stringify([now.text, now.rate, now.length, now.draw]) };
          return { words: spanWords(now), goals: spanGoals().map((goal) => goal(now)) };
        })""",
        [state | {"its": spans.answers["fill"](state | {"dropped": None})} for state in states],
    )
    for state, here in zip(states, found, strict=True):
        assert here["words"] == spans.alt(spans.state(**state))
        assert here["goals"] == [goal(spans.state(**state)) for goal in spans.goals]
    page.close()


def test_words_are_removed_by_hand_and_filled(browser, spans):
    its = play.filled(load_trained("gaps").model, 0, rate=0.15, mean_span=3, draw=1)
    with played(browser, spans, kernel=True) as here:
        words = here.page.locator(".play-gaps > button")
        expect(words).to_have_text(its.words)
        gone = here.page.locator(".play-gaps > .gone")
        expect(gone).to_have_count(sum(its.dropped))
        kept = its.dropped.index(False)
        words.nth(kept).click()
        expect(words.nth(kept)).to_have_attribute("aria-pressed", "true")
        expect(here.page.locator(".play-said")).to_contain_text(f"of {sum(its.dropped) + 1} removed tokens")
        words.nth(kept).press("Space")
        expect(gone).to_have_count(sum(its.dropped))
        for word in its.dropped.index(True), len(its.words) - 1 - its.dropped[::-1].index(True):
            words.nth(word).press("Enter")  # until nothing is removed
        assert here.told()[0] == {"touched": True}
        here.page.get_by_role("button", name="Other random spans").click()
        expect(gone).to_have_count(sum(its.dropped))


def test_the_gaps_fit_and_axe_finds_nothing(browser, spans):
    for width, height, theme in ((390, 844, "light"), (1280, 720, "dark")):
        with played(browser, spans, width=width, height=height, theme=theme, kernel=True) as here:
            expect(here.page.locator(".play-gaps b").first).to_be_visible()
            assert overflowing(here.page) == []
            here.page.evaluate(axe_script())
            assert here.page.evaluate(AXE, ".course-play") == []
