"""Lesson 05's translator on the page: what it says and judges is Python's; words light up with the map."""

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.data.translation import detokenize_french
from course_lib.lessons.lesson_05.playground import EXAMPLES, talk
from course_lib.training.translation import splits, translate
from tests.axe import axe_script
from tests.browser.played import overflowing, served
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")

OWN = "The old minister does not sign the European law."  # none of the examples
SHARES = """(words) => [...words.children].map((one) => parseInt(one.style.getPropertyValue("--share")) || 0)"""


@pytest.fixture(scope="module")
def model():
    return load_trained("attention").model


@pytest.fixture(scope="module")
def translator(model):
    return talk(model)


@pytest.fixture(scope="module")
def open_it(browser, translator, tmp_path_factory):
    """open_it(...): the translator on a page of the site, which has translated its first sentence."""
    with served(browser, tmp_path_factory.mktemp("models")) as open_page:

        def open_one(**options):
            page = open_page(translator, **options)
            expect(page.locator("[lang=fr]").first).to_contain_text("zone")
            return page

        yield open_one


def box(page):
    return page.get_by_role("textbox", name="English sentence")


def said(page):
    """The translation and its note."""
    return page.locator(".play-view").first


def reached(page):
    return page.locator(".play-goals li.reached").count()


def asked():
    yield from (" ".join(pair.english) for pair in splits().test[:80] if len(pair.english) < 12)
    yield from (OWN, "She doesn't see it.", "the glorp sees zz", "the cat is rich", "he", "the the the law")


def test_the_page_says_and_judges_what_python_does(browser, translator):
    page, goals = browser.new_page(), np.zeros(3, bool)
    page.add_script_tag(content=bundle("translator"))
    answers = [{"text": text, **translator.answers["translate"](text)} for text in asked()]
    found = page.evaluate(
        "(all) => all.map((its) => [translatorWords({ its }), translatorGoals.map((goal) => goal(its))])", answers
    )
    for text, (words, judged) in zip(asked(), found, strict=True):
        state = translator.state(text=text)
        assert translator.alt(state) == words
        assert judged == [goal(state) for goal in translator.goals], text
        goals |= judged
    assert goals.all()
    page.close()


def test_on_the_site_the_page_translates_what_is_typed(open_it, model):
    page = open_it()
    assert page.locator(".play-goals li").count() == 2  # a wrong translation is known to the grammar alone
    for text in [*asked()][::3]:
        box(page).fill(text)
        expected = translate(model, text)
        expect(page.locator("[lang=fr].large")).to_have_text(detokenize_french(expected.target).strip())
        rows = page.locator(".play-alignment tbody tr")
        expect(rows).to_have_count(len(expected.target))
        shares = page.locator(".play-alignment td[data-at]").evaluate_all(
            "(all) => all.map((one) => parseFloat(one.style.getPropertyValue('--share')) / 100)"
        )
        np.testing.assert_allclose(np.reshape(shares, expected.weights.shape), expected.weights, rtol=0, atol=1e-3)
    assert reached(page) == 0  # nothing was final


def test_a_goal_waits_for_enter_and_no_example_reaches_one(open_it):
    page = open_it(kernel=True)
    page.get_by_role("button", name=EXAMPLES[1]).click()
    expect(said(page)).to_contain_text("✓ The grammar says the same.")
    box(page).fill(OWN)
    expect(page.locator("[lang=fr].large")).to_contain_text("européenne")
    assert reached(page) == 0
    box(page).press("Enter")
    expect(page.get_by_role("status").first).to_have_text("1 of 3 goals reached")
    assert page.evaluate("told") == [{"touched": True}, {"reached": [True, False, False]}]
    kept = page.get_by_role("list", name="Sentences before")
    expect(kept.locator("li")).to_have_text([f"elle ne les voit pas. ← {EXAMPLES[1]}"])
    page.get_by_role("button", name="Back to the start").click()
    expect(page.locator("[lang=fr].large")).to_contain_text("zone")
    expect(kept.locator("li")).to_have_count(2)


def test_what_is_no_sentence_and_unknown_words_are_said(open_it):
    page = open_it(kernel=True)
    box(page).fill("the ministre signs the law")
    expect(page.get_by_text("I do not know the word “ministre” yet")).to_contain_text("Did you mean “minister”")
    expect(page.get_by_text("ministre (?)")).to_be_visible()
    box(page).fill(" ")
    expect(said(page)).to_contain_text("Type a sentence, or take one of the examples.")
    expect(page.get_by_role("table")).not_to_be_visible()
    box(page).fill("the " * 41)
    expect(said(page)).to_contain_text("This sentence has 41 words; please keep to 40.")
    page.get_by_text("words it knows").click()
    expect(page.get_by_text("actresses, adopt, adopted")).to_be_visible()


def test_words_of_both_languages_and_the_map_light_up_together(open_it, model):
    page, weights = open_it(), translate(model, EXAMPLES[0]).weights.numpy()
    french, english = page.locator("[lang=fr].large"), page.get_by_role("group", name="English")
    lit = page.locator(".play-alignment th.lit")
    french.locator("span").nth(2).hover()  # ne
    np.testing.assert_allclose(english.evaluate(SHARES), 100 * weights[2], rtol=0, atol=0.51)
    assert french.evaluate(SHARES) == [100 * (i == 2) for i in range(len(weights))]
    expect(lit).to_have_text(["ne"])
    english.locator("span").nth(3).focus()  # not, by keyboard
    np.testing.assert_allclose(french.evaluate(SHARES), 100 * weights[:, 3], rtol=0, atol=0.51)
    expect(lit).to_have_text(["not"])
    page.locator('.play-alignment [data-at="6 8"]').hover()
    assert english.evaluate(SHARES)[8] == round(100 * weights[6, 8])
    expect(lit).to_have_text(["area", "zone"])


def test_without_an_address_or_a_kernel_the_static_form_stays(browser, translator):
    page = browser.new_page()
    page.add_script_tag(content=bundle("translator"))
    assert page.evaluate(
        "() => { try { translator({ kernel: null, config: {} }); } catch (error) { return error.expected; } }"
    )
    page.close()


@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light")])
def test_it_fits_and_axe_finds_nothing_serious(open_it, width, height, theme):
    page = open_it(width=width, height=height, theme=theme, kernel=True)
    page.wait_for_function("!document.getAnimations().length")
    assert overflowing(page) == []
    assert width < 1000 or page.evaluate("document.documentElement.scrollHeight") <= height
    page.locator("[lang=fr].large span").first.hover()
    page.evaluate(axe_script())
    assert page.evaluate(AXE, ".course-play") == []
    box(page).fill("the minister " * 20)  # 40 words
    expect(page.locator(".play-alignment thead th")).to_have_count(41)
    assert overflowing(page) == []
