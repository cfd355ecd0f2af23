"""Lesson 00's playgrounds on the page: a text and a network's guess, and letters on which it is trained anew."""

import random

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.lessons.lesson_00 import letters, playground
from course_lib.training.translation import splits
from tests.browser.live_playground import check_axe, check_it_fits, played

pytestmark = pytest.mark.needs("chromium")

LETTERS = "ehiostuw"
TRAIN = """([config, tried]) => {
  const data = { ...config, counts: bytesOf(config.counts), sizes: bytesOf(config.sizes) };
  return tried.map((chosen) => {
    const run = letterTraining(chosen, data);
    while (run.step() < config.steps);
    const its = { letters: chosen, accuracy: run.accuracy(), done: true };
    return { weights: [...run.weights], accuracy: its.accuracy, words: lettersWords({ letters: chosen, its }),
      goals: letterGoals.map((goal) => goal(chosen, 100 * its.accuracy)) };
  });
}"""


def shares(words, chosen):
    text = "".join(words)
    return [10 * text.count(letter) / len(text) for letter in chosen]


@pytest.fixture(scope="module")
def choose():
    return playground.choose(shares, LETTERS)


@pytest.fixture(scope="module")
def language():
    data = splits(4_000)
    network = letters.train(shares, LETTERS, data.train[:200], data.test[:10]).network
    return playground.language(network, shares, LETTERS)


# --------------------------------------------------------------------------------------------- which letters?


def test_the_page_trains_and_judges_as_python_does(browser, choose):
    page, data, goals = browser.new_page(), splits(4_000), np.zeros(3, bool)
    page.add_script_tag(content=bundle("letters"))
    tried = ["htwy", "fghotwy", "cer", "éq"]
    for chosen, here in zip(tried, page.evaluate(TRAIN, [choose._page_config(), tried]), strict=True):
        state = choose.state(letters=chosen)
        expected = letters.train(shares, chosen, data.train[:2000], data.test)
        np.testing.assert_allclose(here["weights"], playground._flat(expected.network), rtol=0, atol=0.02)
        assert here["accuracy"] == pytest.approx(expected.accuracy, abs=0.0011)  # two sentences of 2,000
        assert here["goals"] == [goal(state) for goal in choose.goals]
        assert here["words"] == choose.alt(state)
        goals |= here["goals"]
    assert goals.all()


def key(here, letter):
    return here.page.locator(".play-keys").get_by_role("button", name=letter, exact=True)


def test_letters_are_clicked_or_typed_and_goals_wait_for_the_end_of_the_training(browser, choose):
    with played(browser, choose, kernel=True) as here:
        expect(here.page.locator(".play-said")).to_have_text("By e, h, i, o, s, t, u, w: over 96 % right.")
        expect(here.page.locator(".play-best li")).to_have_text(["–"] * 8)  # nobody tried anything yet
        assert here.told() == []
        key(here, "q").click()
        expect(here.page.get_by_text("Choose at most 8 letters.")).to_be_visible()
        for letter in "eosiu":
            key(here, letter).click()
        key(here, "h").focus()
        here.page.keyboard.press("y")
        expect(key(here, "y")).to_have_attribute("aria-pressed", "true")
        expect(here.page.locator(".play-goals li.reached")).to_have_count(1)
        expect(here.page.locator(".play-best li").nth(3)).to_contain_text("%, htwy")
        assert here.told() == [{"touched": True}, {"reached": [True, False, False]}]
        for letter in "htw":
            key(here, letter).click()
        key(here, "y").click()
        expect(here.page.get_by_text("One letter must stay.")).to_be_visible()


# --------------------------------------------------------------------------------------------- English or French?


def test_the_page_believes_and_says_what_python_does(browser, language):
    page, draw = browser.new_page(), random.Random(0)
    page.add_script_tag(content=bundle("belief"))
    some = [p.french for p in splits(4_000).test[:20]]
    texts = [" ".join(draw.choice(some)).title() for _ in range(20)] + ["Zürich", "uuu", "  ", *playground.EXAMPLES]
    found = page.evaluate(
        """([config, texts]) => texts.map((text) => {
          const probs = beliefsOf(text, config);
          return { probs, words: beliefWords({ text, its: { text, probs } }, config) };
        })""",
        [language._page_config(), texts],
    )
    for text, here in zip(texts, found, strict=True):
        if not text.strip():
            assert here == {"probs": None, "words": playground.EMPTY}
            continue
        np.testing.assert_allclose(here["probs"], language.answers["beliefs"]({"text": text}), rtol=0, atol=1e-5)
        assert here["words"] == language.alt(language.state(text=text))


@pytest.mark.parametrize("kernel", [False, True])
def test_the_guess_follows_each_key(browser, language, kernel):
    with played(browser, language, kernel=kernel) as here:
        said = here.page.locator(".play-note").first
        expect(said).to_have_text("“the weather is fine today”: the network says English.")
        here.page.get_by_role("textbox").press("End")
        here.page.keyboard.type("!")
        expect(said).to_contain_text("“the weather is fine today!”")
        here.page.get_by_role("button", name="il fait beau").click()
        expect(said).to_contain_text("the network says French.")
        expect(here.page.locator(".play-said")).to_contain_text("the network says French.")
        here.page.get_by_role("textbox").fill("")
        expect(said).to_have_text(playground.EMPTY)


@pytest.mark.parametrize("name", ["choose", "language"])
def test_it_fits_and_axe_finds_nothing(browser, name, request):
    check_it_fits(browser, request.getfixturevalue(name))
    check_axe(browser, request.getfixturevalue(name))
