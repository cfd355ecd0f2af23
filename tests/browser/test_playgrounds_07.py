"""Lesson 07's playgrounds on a page: BERT fills blanks, and a search by meaning beside one by words."""

import random
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.data.translation import english_words, french_words
from course_lib.lessons.lesson_07.blank import fill, words_of
from course_lib.lessons.lesson_07.recipes.pretraining import PretrainingSettings, texts, vocabulary
from course_lib.lessons.lesson_07.search import QUESTIONS
from course_lib.lessons.lesson_07.sentences import passages
from tests.browser.explorers import explorer, trained
from tests.browser.played import computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")

READ = """async ([asked, config]) => {
  const read = async (kind) => (await fetch(`/models/bert.${kind}`)).arrayBuffer();
  const { config: sizes } = JSON.parse(new TextDecoder().decode(await read("json")));
  const bert = new BERT(readSafetensors(await read("safetensors")), sizes), known = blankVocabulary(config);
  const pairs = (words) => words.map(({ text, hidden }) => [text, hidden]);
  return asked.map((text) => {
    const words = blankWords(text, known), answer = blankReading(bert, words, known);
    const state = { text, its: blankResult(text, words, answer, known) };
    return { read: pairs(words), again: pairs(blankWords(blankWritten(words), known)), answer: [...answer],
      words: blankWordsSaid(state, config, known), goals: blankGoals(config, known).map((goal) => goal(state)),
      vocabulary: known.words };
  });
}"""
ODD = [
    "L’accord n'est pas [MASK] !", "she doesn't see ___", "[l'] accord [L'accord", "the [zebra] signs the <law>",
    "ÉTÉ [Économique], won't", "[MASK]", "la loi est [nouvelle]", "the ministers of the country [are] old",
]  # fmt: skip


def sentences():
    """Odd ones, and sentences of both languages with up to three words that are hidden, or exchanged for another."""
    draw, words = random.Random(7), [*english_words(), *french_words()]
    lines = [
        vocabulary().decode(one.ids, strip_specials=True).split()[:-1]
        for one in texts(PretrainingSettings(sentences=100), "validation")
    ]
    yield from ODD
    for line in draw.sample([line for line in lines if len(line) <= 15], 12):
        line[draw.randrange(len(line))] = draw.choice(words)
        for at in draw.sample(range(len(line)), draw.choice([0, 1, 1, 2, 3])):
            line[at] = f"[{line[at]}]"
        yield " ".join(line)


def test_the_page_reads_computes_says_and_judges_what_python_does(play):
    fills, asked = explorer("blank"), list(sentences())
    found = computed(play(fills).page, fills, asked, READ)
    assert found[0]["vocabulary"] == list(vocabulary().vocabulary)
    assert judged_as_in_python(fills, [{"text": text} for text in asked], found, same=0.9).all()
    for text, here in zip(asked, found, strict=True):
        assert here["read"] == [list(word) for word in words_of(text)] == here["again"]
        np.testing.assert_allclose(here["answer"], fills.answers["fill"](text), rtol=0, atol=1e-4)
        assert re.sub(r"\d+%", "", here["words"]) == re.sub(r"\d+%", "", fills.alt(fills.state(text=text)))


@pytest.mark.parametrize("kernel", [False, True])
def test_a_press_hides_a_word_and_shows_it_again(play, kernel):
    here = play(explorer("blank"), kernel=kernel)
    here.press("La [loi] est nouvelle.")
    here.shows("“loi” stood there")
    high = here.page.locator(".course-play").bounding_box()["height"]
    here.page.get_by_role("button", name="Show “loi”").press("Space")
    here.shows("No word is hidden: press one")
    expect(here.page.get_by_role("button", name="Hide “loi”")).to_be_focused()
    assert here.page.locator(".course-play").bounding_box()["height"] == high
    assert here.reached() == 0
    here.press("Hide “nouvelle”")
    expect(here.page.get_by_role("textbox", name="Sentence")).to_have_value("la loi est [nouvelle].")
    expect(here.page.get_by_role("button", name="Show “nouvelle”")).to_have_text("nouvelle ✓")
    best = fill(trained("bert"), "la loi est [nouvelle]").best(0)
    expect(here.page.locator(".play-next").first.locator("code")).to_have_text([word for word, _ in best])
    expect(here.status).to_have_text("1 of 3 goals reached")
    if kernel:
        assert here.told() == [{"touched": True}, {"reached": [True, False, False]}]


def test_what_is_typed_is_read_at_once_and_judged_at_enter(play):
    here = play(explorer("blank"), kernel=True)
    here.write("Sentence", "the ministers of the country [are] old")
    here.shows("“are” stood there")
    assert here.reached() == 0
    here.enter("Sentence", "the ministers of the country [are] old")
    here.has_reached(1)
    here.write("Sentence", "the ministr [signs today] it")
    here.shows("One word to a blank, please: “signs today” is 2 of them.")
    here.write("Sentence", "[the] [minister] [signs] [the] law")
    here.press("Show “minister”")  # the way out of too many blanks
    here.counts(".play-next:visible", 3)
    here.write("Sentence", "the ministr [signs] it")
    unknown = here.page.get_by_text("I do not know the word “ministr” yet")
    expect(unknown).to_contain_text("Did you mean “minister”")
    here.write("Sentence", "the " * 31)
    here.shows("please keep to 30.")


def test_words_light_up_as_a_head_attends_to_them(play):
    here = play(explorer("blank"))
    row = here.page.get_by_role("listitem", name="head 2.2: most to “the”")
    shares = """() => [...document.querySelectorAll('.play-words > *')].map(
      (one) => parseInt(one.style.getPropertyValue('--share')))"""
    row.focus()
    expected = fill(trained("bert"), "The minister [signs] the law.").heads[5]
    np.testing.assert_allclose(here.page.evaluate(shares), 100 * expected, rtol=0, atol=0.51)
    row.blur()
    assert max(here.page.evaluate(shares)) == 0
    here.page.get_by_role("listitem", name="head 3.2").hover()
    assert max(here.page.evaluate(shares)) > 0


# ------------------------------------------------------------------------------------------- the search


def test_the_page_says_and_judges_what_python_finds(blank):
    finds = explorer("search")
    questions = [*QUESTIONS, "padding", "xyzzy", "the minister signs the law", "A causal mask hides the future"]
    questions += [" ".join(part.text.split()[:8]) for part in passages(["05"])[:10]]
    states = [{"question": question, "where": where} for question in questions for where in ("05", "06")]
    found = computed(
        blank, finds, [state | {"its": {**state, "error": "", **finds.answers["search"](state)}} for state in states],
        """([asked, config]) => asked.map((state) => (
          { words: searchWords(state), goals: searchGoals(config).map((goal) => goal(state)) }))""",
    )  # fmt: skip
    assert judged_as_in_python(finds, states, found)[1]


def test_what_is_typed_is_searched_at_once_and_judged_at_enter(play):
    finds = explorer("search")
    here = play(finds, kernel=True)
    meaning, words = here.page.locator(".play-found").all()
    here.write("Question", "padding")
    expect(words.locator("b").first).to_have_text(re.compile("padding", re.IGNORECASE))
    expect(meaning.locator("li")).to_have_count(4)
    here.choose("06")
    expect(meaning.locator("small")).to_have_text([re.compile("^lesson 06,")] * 4)
    here.write("Question", "xyzzy")
    here.shows("No sentence has a word of yours.")
    here.write("Question", "?!")
    here.shows("Type a question or a few words.")
    here.choose("all")
    before = here.reached()
    hits = finds.answers["search"]({"question": "mask", "where": ""})["words"]
    found = ["".join(text for text, _ in hit["pieces"]) for hit in hits]
    question = next(text for text in found if finds.goals[1].reached(finds.state(question=text)))
    here.write("Question", question)
    here.shows("1.00")
    assert here.reached() == before
    here.enter("Question", question)
    expect(here.page.locator(".play-goals li").nth(1)).to_have_class("reached")
