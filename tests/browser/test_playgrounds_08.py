"""Lesson 08 on the page: a game of guessing, definitions, and a GPT that writes; all of it as Python does it."""

import html
import json
import random
import re

import pytest
import torch
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle, classic
from course_lib.functional import sampling
from course_lib.lessons.lesson_08 import guess as game
from course_lib.lessons.lesson_08.definitions import define
from tests.browser.explorers import explorer, gpt
from tests.browser.played import PAGE, computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")

HIDDEN = "except that the end points are at zero. "  # the first text's


# ------------------------------------------------------------------------------------------- a game of guessing


def rounds_of(passages):
    """Rounds in which most characters are right, others those of a model, and some are strange."""
    draw = random.Random(8)
    yield from ([""], ["zz" + HIDDEN[2]], [HIDDEN], ["x"], ["<é😀"], ["except "], [HIDDEN, ""])
    yield ["e"] * (len(passages) + 1)
    for _ in range(30):
        rounds = []
        for passage in passages[: draw.randrange(1, 5)]:
            typed = [t if draw.random() < 0.7 else draw.choice("etaoin .") for t in passage["hidden"]]
            rounds.append("".join(typed)[: draw.randrange(41)])
        yield rounds


def test_the_page_says_and_judges_what_python_does(blank):
    guess = explorer("guess")
    asked = list(rounds_of(guess.config["passages"]))
    found = computed(
        blank, guess, asked,
        """([asked, config]) => asked.map((rounds) => {
          const typed = rounds.map((text) => [...text]), turns = guessTurns(typed, config);
          return { words: guessWords(typed, config), goals: guessGoals.map((goal) => goal(turns)) };
        })""",
    )  # fmt: skip
    assert judged_as_in_python(guess, [{"typed": rounds} for rounds in asked], found).all()


@pytest.mark.parametrize("kernel", [False, True])
def test_characters_are_typed_one_after_the_other_and_said(play, kernel):
    here = play(explorer("guess"), kernel=kernel)
    box, text = here.page.get_by_role("textbox", name="Next character"), here.page.locator(".play-guessed")
    box.click()
    assert here.reached() == 0
    here.page.keyboard.type("except the dx")
    expect(text).to_contain_text("window, except that")
    assert here.page.locator(".play-guessed .wrong").count() == 4
    expect(box).to_have_value("")
    turns = game.Game(game.shipped()).turns(("except the dx",))
    gram, starts = (
        here.page.locator(".play-score tr").nth(2).locator("td"),
        [turn for turn in turns if turn.begins_word],
    )
    bits = sum(turn.bits("5-gram") for turn in turns) / len(turns)
    expect(gram.nth(0)).to_have_text(f"{sum(turn.is_right('5-gram') for turn in turns)} of 13")
    expect(gram.nth(1)).to_have_text(f"{sum(turn.is_right('5-gram') for turn in starts)} of {len(starts)}")
    expect(gram.nth(3)).to_have_text(f"{bits:.1f}")
    here.press("Another text")
    expect(text).to_contain_text("The context manager")
    expect(box).to_be_focused()
    here.page.keyboard.type("i" * 45)  # more than there is to guess
    here.says("This text is done: take another one.")
    if kernel:
        assert here.told()[0] == {"touched": True} and here.told()[1]["reached"][0]


# ------------------------------------------------------------------------------------------- a GPT


def test_any_word_is_defined_as_python_does_it(play):
    here = play(explorer("dictionary"))
    entry = here.page.locator(".play-entry dd")
    expect(entry).to_have_text(define(*gpt(), ["florpness (noun):"])[0].strip())
    for word, part in (("dragonologist", "noun"), ("naïvely", "adverb"), ("thirty-four", "adjective")):
        here.write("Word", word)
        here.choose(part)
        here.press("Define")
        expect(here.page.locator(".play-headword")).to_have_text(f"{word} ({part})")
        expect(entry).to_have_text(define(*gpt(), [f"{word} ({part}):"])[0].strip())


def test_the_writer_writes_what_greedy_decoding_writes_and_cuts_where_one_points(play):
    here = play(explorer("writer"))
    tokens = here.page.locator(".play-tokens button")
    for count in range(1, 6):
        here.press("Most probable token")
        here.shows(f"{count} tokens written")
    written = tokens.all_inner_texts()
    assert len(written) == 6 and define(*gpt(), ["florpness (noun):"])[0].startswith("".join(written[1:]))
    tokens.nth(3).click()
    here.shows("2 tokens written")
    chosen = here.page.locator(".play-next button").nth(4)
    expect(chosen).to_be_visible()
    name = chosen.inner_text()
    chosen.click()
    expect(tokens.nth(3)).to_have_text(name.replace("␣", " ").replace("⏎", "\n"))


def test_the_writer_knows_its_goals_and_does_not_count_tokens_chosen_by_hand(play):
    here = play(explorer("writer"))
    write, tokens = here.page.get_by_role("button", name=re.compile("Write|Stop")), ".play-tokens button"
    here.type("Temperature", "2")
    here.choose("1", "Top-k")
    here.press("One token")
    here.counts(tokens, 2)
    for count in range(3, 23):  # by hand, although each is the most probable one
        here.click_on(".play-next button")
        here.counts(tokens, count)
    here.has_reached(0)
    here.press("Clear")
    for _ in range(20):  # each time it writes to the end of an entry
        write.click()
        expect(write).to_have_text("Write")
        if here.reached():
            break
    here.has_reached([re.compile("20 tokens sampled")])


def test_without_an_address_or_a_kernel_the_static_form_stays(blank):
    config, warned = html.escape(json.dumps(explorer("writer")._page_config())), []
    blank.on("console", lambda message: warned.append(message.text))
    page = PAGE.format(name="writer", config=config)
    blank.set_content(page.replace('<script src="/playgrounds/writer.js">', f"<script>{classic('writer')}"))
    assert blank.evaluate("startPlayground(document.querySelector('.course-playground'))") is False
    expect(blank.get_by_text("static form")).to_be_visible()
    assert blank.locator(".course-play").count() == 0 and warned == []


def test_temperature_top_k_and_top_p_are_those_of_the_library(blank):
    blank.add_script_tag(content=bundle("sampling"))
    logits = torch.randn(30, 40, generator=torch.Generator().manual_seed(0)) * 3
    points = (torch.arange(400) + 0.5) / 400
    for i, row in enumerate(logits):
        temperature, k, p = 0.3 + 0.1 * i, (0, 1, 7, 40)[i % 4], (1.0, 0.9, 0.5)[i % 3]
        kept = sampling.temperature(row.double(), temperature)
        kept = sampling.top_p(sampling.top_k(kept, k) if k else kept, p)
        found, drawn = blank.evaluate(
            "([row, how, us]) => { const p = chances(row, how); return [Array.from(p), us.map((u) => drawn(p, u))]; }",
            [row.tolist(), {"temperature": temperature, "topK": k, "topP": p}, points.tolist()],
        )
        torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), kept.softmax(-1), atol=1e-6, rtol=1e-6)
        counts = torch.bincount(torch.tensor(drawn), minlength=40) / 400
        torch.testing.assert_close(counts.double(), kept.softmax(-1), atol=5.1e-3, rtol=0)
