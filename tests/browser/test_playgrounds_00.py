"""Lesson 00's playgrounds on the page: a text and a network's guess, and letters on which it is trained anew."""

import random

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.lessons.lesson_00 import letters, playground
from course_lib.training.translation import splits
from tests.browser.explorers import explorer, shares
from tests.browser.played import computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")

TRAIN = """([tried, config]) => {
  const data = { ...config, counts: bytesOf(config.counts), sizes: bytesOf(config.sizes) };
  return tried.map((chosen) => {
    const run = letterTraining(chosen, data);
    while (run.step() < config.steps);
    const its = { letters: chosen, accuracy: run.accuracy(), done: true };
    return { weights: [...run.weights], accuracy: its.accuracy, words: lettersWords({ letters: chosen, its }),
      goals: letterGoals.map((goal) => goal(chosen, 100 * its.accuracy)) };
  });
}"""


def test_the_page_trains_and_judges_as_python_does(blank):
    choose, data, tried = explorer("letters"), splits(4_000), ["htwy", "fghotwy", "cer", "éq"]
    found = computed(blank, choose, tried, TRAIN)
    assert judged_as_in_python(choose, [{"letters": chosen} for chosen in tried], found).all()
    for chosen, here in zip(tried, found, strict=True):
        expected = letters.train(shares, chosen, data.train[:2000], data.test)
        np.testing.assert_allclose(here["weights"], playground._flat(expected.network), rtol=0, atol=0.02)
        assert here["accuracy"] == pytest.approx(expected.accuracy, abs=0.0011)  # two sentences of 2,000


def test_letters_are_clicked_or_typed_and_goals_wait_for_the_end_of_the_training(play):
    here = play(explorer("letters"), kernel=True)

    def key(letter):
        return here.page.locator(".play-keys").get_by_role("button", name=letter, exact=True)

    expect(here.said).to_have_text("By e, h, i, o, s, t, u, w: over 96 % right.")
    expect(here.page.locator(".play-best li")).to_have_text(["–"] * 8)  # nobody tried anything yet
    assert here.told() == []
    key("q").click()
    here.shows("Choose at most 8 letters.")
    for letter in "eosiu":
        key(letter).click()
    key("h").focus()
    here.page.keyboard.press("y")
    expect(key("y")).to_have_attribute("aria-pressed", "true")
    here.has_reached(1)
    expect(here.page.locator(".play-best li").nth(3)).to_contain_text("%, htwy")
    assert here.told() == [{"touched": True}, {"reached": [True, False, False]}]
    for letter in "htwy":
        key(letter).click()
    here.shows("One letter must stay.")


def test_the_page_believes_and_says_what_python_does(blank):
    language, draw, some = explorer("belief"), random.Random(0), [p.french for p in splits(4_000).test[:20]]
    texts = [" ".join(draw.choice(some)).title() for _ in range(20)] + ["Zürich", "uuu", "  ", *playground.EXAMPLES]
    found = computed(
        blank, language, texts,
        """([texts, config]) => texts.map((text) => {
          const probs = beliefsOf(text, config);
          return { probs, words: beliefWords({ text, its: { text, probs } }, config) };
        })""",
    )  # fmt: skip
    for text, here in zip(texts, found, strict=True):
        if not text.strip():
            assert here == {"probs": None, "words": playground.EMPTY}
            continue
        np.testing.assert_allclose(here["probs"], language.answers["beliefs"]({"text": text}), rtol=0, atol=1e-5)
        assert here["words"] == language.alt(language.state(text=text))


@pytest.mark.parametrize("kernel", [False, True])
def test_the_guess_follows_each_key(play, kernel):
    here = play(explorer("belief"), kernel=kernel)
    expect(here.note).to_have_text("“the weather is fine today”: the network says English.")
    here.page.get_by_role("textbox").press("End")
    here.page.keyboard.type("!")
    here.notes("“the weather is fine today!”")
    here.press("il fait beau")
    here.notes("the network says French.")
    here.says("the network says French.")
    here.page.get_by_role("textbox").fill("")
    expect(here.note).to_have_text(playground.EMPTY)
