"""Lesson 06 on the page: byte-pair encoding and beam search are Python's; they follow the hand and the keys."""

import random

import pytest
from playwright.sync_api import expect

from course_lib.lessons.lesson_06.merging import Merging
from course_lib.lessons.lesson_06.playground import DRAMA, EVERY, EXAMPLES, TEXTS
from tests.browser.explorers import explorer
from tests.browser.played import computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")


def texts_to_merge():
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


def test_the_page_merges_says_and_judges_what_python_does(blank):
    bpe, states = explorer("bpe"), list(texts_to_merge())
    found = computed(
        blank, bpe, states,
        """([states]) => states.map((state) => {
          const { merging } = mergingOf(state);
          const sizes = merging.merges.map((_, n) => [merging.at(n).tokens, merging.at(n).size]);
          return { merges: merging.merges, sizes,
            goals: bpeGoals.map((goal) => goal(state)), words: bpeWords(state) };
        })""",
    )  # fmt: skip
    assert judged_as_in_python(bpe, states, found).all()
    for state, here in zip(states, found, strict=True):
        merging = Merging(state["text"])
        assert here["merges"] == list(map(list, merging.merges))
        assert here["sizes"] == list(map(list, merging.sizes()[:-1]))
    assert [one["goals"][2] for one in found[24:29]] == [True, False, False, False, False]


def test_the_text_follows_each_key_and_goals_wait_for_the_end(play):
    here = play(explorer("bpe"), kernel=True)
    before, word = here.axes(), here.page.locator(".play-chips").last
    here.type_keys("A word to cut", "newer")
    expect(word).to_have_text("newer")
    assert here.told() == [{"touched": True}]
    here.drag(here.page.locator(".play-point .play-dot"), (300, 60))
    expect(word.locator("span > span")).to_have_count(2)
    assert here.axes() == before and here.reached() == 0
    here.page.mouse.up()
    assert here.reached() == 2  # est is no ending any more: newest is one token
    here.write("Learn from", "")
    here.shows("Type a few words")


def test_merges_are_made_by_the_keyboard_and_said(play):
    here = play(explorer("bpe"))
    here.page.get_by_label("Merges", exact=True).press("ArrowRight")
    here.says("Merge 2: es + t· → est·, a pair that occurred 9 times.")
    assert here.page.locator(".play-merges li").count() == 2 and here.reached() == 1
    here.press("how much")
    here.says("“lowest” is cut into: l, o, w, ?, ?, ?.")


# ------------------------------------------------------------------------------------------------ beam search


def test_the_page_shows_says_and_judges_the_search_as_python_does(blank):
    search, draw, asked, states = explorer("beams"), random.Random(6), [], []
    looks = list(search.controls[-1].options.values())
    assert looks[0] == EVERY

    def ask(state, at, answer):
        states.append(state | {"at": at})
        given = {key: state[key] for key in ("text", "beams", "penalty")}
        at = dict(zip(("step", "words"), at, strict=True))
        asked.append(given | {"at": at, "look": looks.index(state["look"]) - 1, "its": answer | given})

    for text in ("the xylophone visits", DRAMA):
        for penalty in (0.0, 1.0) if text == DRAMA else (1.0,):
            state = search.state(text=text, beams=draw.randint(2, 4), penalty=penalty, look=draw.choice(looks))
            answer = search.answers["search"]({key: state[key] for key in ("text", "beams", "penalty")})
            box = draw.choice([box for box in answer["boxes"] if box["kind"] != "wins"])
            ask(state, (draw.randint(1, 12), ""), answer)
            ask(state | {"look": EVERY}, (box["step"], " ".join(box["words"])), answer)
    follows = search.state(look=(1, 2))
    ask(follows, follows["at"], search.answers["search"]({"text": EXAMPLES[0], "beams": 3, "penalty": 1.0}))
    found = computed(
        blank, search, asked,
        """([states]) => states.map((state) => (
          { goals: beamGoals.map((goal) => goal(state)), words: beamWords(state) }))""",
    )  # fmt: skip
    for state, here in zip(states, found, strict=True):  # the page says a control's remark, too
        remark = search.controls[0].remark(state["text"]) or ""
        assert here["words"].startswith(remark)
        here["words"] = here["words"].removeprefix(remark).strip()
    assert judged_as_in_python(search, states, found).all()


def test_a_box_is_pressed_and_the_penalty_turns_the_winner(play):
    here = play(explorer("beams"), kernel=True)
    winner = here.page.locator(".play-sentence")
    expect(winner).to_have_text("le ministre ne voit pas la zone économique européenne.")
    assert here.told() == [] and here.page.locator(".play-beam.wins").count() == 11
    here.enter("English sentence", DRAMA)
    expect(winner).to_have_text("le juge est jeune.")
    assert here.reached() == 2
    here.press("juge: log p −2.17")
    here.says("Step 1, “juge” at the start")
    box = here.page.get_by_role("button", name="juge est jeune: log p −2.39")
    box.press("Enter")
    expect(box).to_have_attribute("aria-pressed", "true")
    expect(box).to_be_focused()
    here.page.get_by_label("Length penalty", exact=True).press("Home")
    expect(winner).to_have_text("juge est jeune.")
    assert here.reached() == 3
    here.press("Back to the start")
    here.page.locator(".play-choice").get_by_text("2.3").click()
    here.has_reached(4)
    here.enter("English sentence", "")
    here.shows("Type a sentence, or take one of the examples.")
