"""Lesson 06 on the page: byte-pair encoding and beam search are Python's; they follow the hand and the keys."""

import random

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_06.merging import Merging
from course_lib.lessons.lesson_06.playground import DRAMA, EVERY, EXAMPLES, TEXTS, bpe, explorer
from tests.axe import axe_script
from tests.browser.live_playground import axes, check_axe, check_it_fits, move, played
from tests.browser.played import overflowing
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")


def states():
    draw = random.Random(6)
    for _ in range(24):
        if draw.random() < 0.5:
            text = " ".join("".join(draw.choices("abé.'", k=draw.randint(1, 9))) for _ in range(draw.randint(1, 20)))
        else:
            text = draw.choice(TEXTS)
        yield {"text": text, "merges": draw.randint(0, 30), "word": "".join(draw.choices("abéwest ", k=6))}
    for word in ("newer", "low low", "newest", "zest?", ""):
        yield {"text": TEXTS[0], "merges": 30, "word": word}
    yield {"text": "aa aa", "merges": 3, "word": "aaaaa"}
    yield {"text": "𝒳ﬀ 𝒳ﬀ ﬀ𝒳 ﬀ𝒳", "merges": 2, "word": "𝒳"}  # two code units, and a letter between them


def test_the_page_merges_says_and_judges_what_python_does(browser):
    page, explorer = browser.new_page(), bpe()
    page.add_script_tag(content=bundle("bpe"))
    found = page.evaluate(
        """(states) => states.map((state) => {
          const { merging } = mergingOf(state);
          const sizes = merging.merges.map((_, n) => [merging.at(n).tokens, merging.at(n).size]);
          return { merges: merging.merges, sizes,
            goals: bpeGoals.map((goal) => goal(state)), words: bpeWords(state) };
        })""",
        list(states()),
    )
    reached = np.zeros(3, bool)
    for state, here in zip(states(), found, strict=True):
        merging = Merging(state["text"])
        assert here["merges"] == list(map(list, merging.merges))
        assert here["sizes"] == list(map(list, merging.sizes()[:-1]))
        assert here["goals"] == [goal(state) for goal in explorer.goals], state
        assert here["words"] == explorer.alt(state)
        reached |= here["goals"]
    assert reached.all()
    assert [one["goals"][2] for one in found[24:29]] == [True, False, False, False, False]


def test_the_text_follows_each_key_and_goals_wait_for_the_end(browser):
    with played(browser, bpe(), kernel=True) as here:
        page, before = here.page, axes(here)
        page.get_by_label("A word to cut").fill("")
        page.get_by_label("A word to cut").type("newer")
        expect(page.locator(".play-chips").last).to_have_text("newer")
        assert here.told() == [{"touched": True}]
        move(here, page.locator(".play-point .play-dot"), (300, 60))
        expect(page.locator(".play-chips").last.locator("span > span")).to_have_count(2)
        assert axes(here) == before and here.reached() == 0
        page.mouse.up()
        assert here.reached() == 2  # est is no ending any more: newest is one token
        page.get_by_label("Learn from").fill("")
        expect(page.get_by_text("Type a few words").first).to_be_visible()


def test_merges_are_made_by_the_keyboard_and_said(browser):
    with played(browser, bpe()) as here:
        slider = here.page.get_by_label("Merges", exact=True)
        slider.focus()
        slider.press("ArrowRight")
        expect(here.page.locator(".play-said")).to_contain_text(
            "Merge 2: es + t· → est·, a pair that occurred 9 times."
        )
        assert here.page.locator(".play-merges li").count() == 2 and here.reached() == 1
        here.page.get_by_role("button", name="how much").click()
        expect(here.page.locator(".play-said")).to_contain_text("“lowest” is cut into: l, o, w, ?, ?, ?.")


def test_bpe_fits_and_axe_finds_nothing(browser):
    check_it_fits(browser, bpe())
    check_axe(browser, bpe())


# ------------------------------------------------------------------------------------------------ beam search


@pytest.fixture(scope="module")
def search():
    return explorer(load_trained("translator").model)


def test_the_page_shows_says_and_judges_the_search_as_python_does(browser, search):
    draw, asked = random.Random(6), []
    looks = list(search.controls[-1].options.values())
    for text in ("the xylophone visits", DRAMA):
        for penalty in (0.0, 1.0) if text == DRAMA else (1.0,):
            state = search.state(text=text, beams=draw.randint(2, 4), penalty=penalty, look=draw.choice(looks))
            answer = search.answers["search"]({key: state[key] for key in ("text", "beams", "penalty")})
            box = draw.choice([box for box in answer["boxes"] if box["kind"] != "wins"])
            asked.append((state | {"at": (draw.randint(1, 12), "")}, answer))
            asked.append((state | {"at": (box["step"], " ".join(box["words"])), "look": EVERY}, answer))
    follows = search.state(look=(1, 2))
    asked.append((follows, search.answers["search"]({"text": EXAMPLES[0], "beams": 3, "penalty": 1.0})))
    page = browser.new_page()
    page.add_script_tag(content=bundle("beams"))
    found = page.evaluate(
        """(states) => states.map((state) => (
          { goals: beamGoals.map((goal) => goal(state)), words: beamWords(state) }))""",
        [
            {key: state[key] for key in ("text", "beams", "penalty")}
            | {"at": dict(zip(("step", "words"), state["at"], strict=True)), "look": looks.index(state["look"]) - 1}
            | {"its": answer | {key: state[key] for key in ("text", "beams", "penalty")}}
            for state, answer in asked
        ],
    )
    assert looks[0] == EVERY
    reached = np.zeros(4, bool)
    for (state, _), here in zip(asked, found, strict=True):
        assert here["goals"] == [goal(state) for goal in search.goals], state
        assert here["words"] == f"{search.controls[0].remark(state['text'])} {search.alt(state)}".strip()
        reached |= here["goals"]
    assert reached.all()


def test_a_box_is_pressed_and_the_penalty_turns_the_winner(browser, search):
    with played(browser, search, kernel=True) as here:
        page = here.page
        winner = page.locator(".play-sentence")
        expect(winner).to_have_text("le ministre ne voit pas la zone économique européenne.")
        assert here.told() == [] and page.locator(".play-beam.wins").count() == 11
        page.get_by_label("English sentence").fill(DRAMA)
        page.get_by_label("English sentence").press("Enter")
        expect(winner).to_have_text("le juge est jeune.")
        assert here.reached() == 2
        page.get_by_role("button", name="juge: log p −2.17").click()
        expect(page.locator(".play-said")).to_contain_text("Step 1, “juge” at the start")
        box = page.get_by_role("button", name="juge est jeune: log p −2.39")
        box.press("Enter")
        expect(box).to_have_attribute("aria-pressed", "true")
        expect(box).to_be_focused()
        penalty = page.get_by_label("Length penalty", exact=True)
        penalty.focus()
        penalty.press("Home")
        expect(winner).to_have_text("juge est jeune.")
        assert here.reached() == 3
        page.get_by_role("button", name="Back to the start").click()
        page.locator(".play-choice").get_by_text("2.3").click()
        expect(page.locator(".play-goals li.reached")).to_have_count(4)
        page.get_by_label("English sentence").fill("")
        page.get_by_label("English sentence").press("Enter")
        expect(page.get_by_text("Type a sentence, or take one of the examples.")).to_be_visible()


def test_without_a_kernel_the_static_form_of_the_search_stays(browser, search):
    with played(browser, search) as here:
        expect(here.page.get_by_text("static form")).to_be_visible()
        assert here.page.locator(".course-play").count() == 0


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1280, "light")])
def test_the_search_fits_and_axe_finds_nothing(browser, search, width, theme):
    with played(browser, search, width=width, theme=theme, kernel=True) as here:
        expect(here.page.locator(".play-beam.wins").last).to_be_visible()
        assert overflowing(here.page) == []
        here.page.evaluate(axe_script())
        assert here.page.evaluate(AXE, ".course-play") == []
