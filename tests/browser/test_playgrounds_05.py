"""Lesson 05's translator on the page: what it says and judges is Python's; words light up with the map."""

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.translation import detokenize_french
from course_lib.lessons.lesson_05.playground import EXAMPLES
from course_lib.training.translation import splits, translate
from tests.browser.explorers import explorer, trained
from tests.browser.played import computed, judged_as_in_python, overflowing

pytestmark = pytest.mark.needs("chromium")

OWN = "The old minister does not sign the European law."  # none of the examples
SHARES = """(words) => [...words.children].map((one) => parseInt(one.style.getPropertyValue("--share")) || 0)"""


@pytest.fixture
def talk(play):
    """talk(...): the translator, which has translated its first sentence."""

    def open_it(**options):
        here = play(explorer("translator"), **options)
        here.french = here.page.locator("[lang=fr].large")
        here.view = here.page.locator(".play-view").first  # the translation and its note
        expect(here.french).to_contain_text("zone")
        return here

    return open_it


def asked():
    yield from (" ".join(pair.english) for pair in splits().test[:80] if len(pair.english) < 12)
    yield from (OWN, "She doesn't see it.", "the glorp sees zz", "the cat is rich", "he", "the the the law")


def test_the_page_says_and_judges_what_python_does(blank):
    translator, texts = explorer("translator"), list(asked())
    found = computed(
        blank, translator, [{"text": text, **translator.answers["translate"](text)} for text in texts],
        """([all]) => all.map((its) => (
          { words: translatorWords({ its }), goals: translatorGoals.map((goal) => goal(its)) }))""",
    )  # fmt: skip
    assert judged_as_in_python(translator, [{"text": text} for text in texts], found).all()


def test_on_the_site_the_page_translates_what_is_typed(talk):
    here = talk()
    assert here.page.locator(".play-goals li").count() == 2  # a wrong translation is known to the grammar alone
    for text in [*asked()][::3]:
        here.write("English sentence", text)
        expected = translate(trained("attention"), text)
        expect(here.french).to_have_text(detokenize_french(expected.target).strip())
        here.counts(".play-alignment tbody tr", len(expected.target))
        shares = here.page.locator(".play-alignment td[data-at]").evaluate_all(
            "(all) => all.map((one) => parseFloat(one.style.getPropertyValue('--share')) / 100)"
        )
        np.testing.assert_allclose(np.reshape(shares, expected.weights.shape), expected.weights, rtol=0, atol=1e-3)
    assert here.reached() == 0  # nothing was final


def test_a_goal_waits_for_enter_and_no_example_reaches_one(talk):
    here = talk(kernel=True)
    here.press(EXAMPLES[1])
    expect(here.view).to_contain_text("✓ The grammar says the same.")
    here.write("English sentence", OWN)
    expect(here.french).to_contain_text("européenne")
    assert here.reached() == 0
    here.enter("English sentence", OWN)
    expect(here.status).to_have_text("1 of 3 goals reached")
    assert here.told() == [{"touched": True}, {"reached": [True, False, False]}]
    kept = here.page.get_by_role("list", name="Sentences before").locator("li")
    expect(kept).to_have_text([f"elle ne les voit pas. ← {EXAMPLES[1]}"])
    here.press("Back to the start")
    expect(here.french).to_contain_text("zone")
    expect(kept).to_have_count(2)


def test_what_is_no_sentence_and_unknown_words_are_said(talk):
    here = talk(kernel=True)
    here.write("English sentence", "the ministre signs the law")
    unknown = here.page.get_by_text("I do not know the word “ministre” yet")
    expect(unknown).to_contain_text("Did you mean “minister”")
    here.shows("ministre (?)")
    here.write("English sentence", " ")
    expect(here.view).to_contain_text("Type a sentence, or take one of the examples.")
    expect(here.page.get_by_role("table")).not_to_be_visible()
    here.write("English sentence", "the " * 41)
    expect(here.view).to_contain_text("This sentence has 41 words; please keep to 40.")
    here.page.get_by_text("words it knows").click()
    here.shows("actresses, adopt, adopted")


def test_words_of_both_languages_and_the_map_light_up_together(talk):
    here, weights = talk(), translate(trained("attention"), EXAMPLES[0]).weights.numpy()
    english, lit = here.page.get_by_role("group", name="English"), here.page.locator(".play-alignment th.lit")
    here.french.locator("span").nth(2).hover()  # ne
    np.testing.assert_allclose(english.evaluate(SHARES), 100 * weights[2], rtol=0, atol=0.51)
    assert here.french.evaluate(SHARES) == [100 * (i == 2) for i in range(len(weights))]
    expect(lit).to_have_text(["ne"])
    english.locator("span").nth(3).focus()  # not, by keyboard
    np.testing.assert_allclose(here.french.evaluate(SHARES), 100 * weights[:, 3], rtol=0, atol=0.51)
    expect(lit).to_have_text(["not"])
    here.page.locator('.play-alignment [data-at="6 8"]').hover()
    assert english.evaluate(SHARES)[8] == round(100 * weights[6, 8])
    expect(lit).to_have_text(["area", "zone"])


def test_without_an_address_or_a_kernel_the_static_form_stays(blank):
    blank.add_script_tag(content=bundle("translator"))
    assert blank.evaluate(
        "() => { try { translator({ kernel: null, config: {} }); } catch (error) { return error.expected; } }"
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_the_map_of_forty_words_fits(talk, width):
    here = talk(width=width, kernel=True)
    here.write("English sentence", "the minister " * 20)
    here.counts(".play-alignment thead th", 41)
    assert overflowing(here.page) == []
