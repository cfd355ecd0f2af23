"""Playgrounds that compute with a trained model in the page, as the site serves them."""

import html
import json
import re
from urllib.parse import urlsplit

import pytest
import torch
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle, classic
from course_lib.data.checkpoints import load_trained
from course_lib.functional import sampling
from course_lib.lessons.lesson_08.definitions import define
from course_lib.lessons.lesson_08.playground import PLAYGROUNDS
from course_lib.site.models import export_model
from course_lib.text.tokenizer import Tokenizer

pytestmark = pytest.mark.needs("chromium")

SITE = "http://course.test"
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<body data-theme="auto" style="margin: 12px"><div class="course-playground" data-playground="{name}"
data-config="{config}"><p>static form</p></div><script src="/playgrounds/{name}.js"></script>
<script>startPlayground(document.querySelector(".course-playground"))</script></body></html>"""


@pytest.fixture(scope="module")
def gpt():
    trained = load_trained("dictionary")
    return trained.model, Tokenizer.from_state_dict(trained.extra["tokenizer"])


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    export_model("dictionary", folder)
    return folder


@pytest.fixture
def play(browser, gpt, models):
    """play(name): the playground of lesson 08 on a page of a site, or (site=False) in a page without an address."""
    contexts, problems = [], []

    def open_it(name, *, width=1280, site=True):
        contexts.append(browser.new_context(viewport={"width": width, "height": 720}))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        explorer = PLAYGROUNDS[name](*gpt)
        config = html.escape(json.dumps(explorer._page_config()))
        text = PAGE.format(name=explorer.script, config=config)
        if not site:
            script = f"<script>{classic(explorer.script)}</script>"
            page.set_content(re.sub(r'<script src="[^"]*"></script>', lambda _: script, text))
            return page

        def answer(route):
            _, folder, *file = urlsplit(route.request.url).path.split("/")
            if folder == "playgrounds":
                route.fulfill(body=classic(file[0].removesuffix(".js")), content_type="text/javascript")
            elif folder == "models":
                route.fulfill(body=(models / file[0]).read_bytes())
            else:
                route.fulfill(body=text, content_type="text/html")

        page.route("**/*", answer)
        page.goto(f"{SITE}/notebooks/page.html")
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert problems == []


def fits(page):
    return page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [390, 1280])
def test_any_word_is_defined_as_python_does_it(play, gpt, width):
    page = play("lookup", width=width)
    expect(page.locator(".play-entry dd")).to_have_text(define(*gpt, ["florpness (noun):"])[0].strip())
    for word, part in (("dragonologist", "noun"), ("naïvely", "adverb"), ("thirty-four", "adjective")):
        page.get_by_role("textbox", name="Word").fill(word)
        page.get_by_text(part, exact=True).click()
        page.get_by_role("button", name="Define").click()
        expect(page.locator(".play-headword")).to_have_text(f"{word} ({part})")
        expect(page.locator(".play-entry dd")).to_have_text(define(*gpt, [f"{word} ({part}):"])[0].strip())
    assert fits(page)


def test_the_writer_writes_what_greedy_decoding_writes_and_cuts_where_one_points(play, gpt):
    page = play("writer")
    most = page.get_by_role("button", name="Most probable token")
    for count in range(1, 6):
        most.click()
        expect(page.get_by_text(f"{count} tokens written")).to_be_visible()
    written = page.locator(".play-tokens button").all_inner_texts()
    assert len(written) == 6 and define(*gpt, ["florpness (noun):"])[0].startswith("".join(written[1:]))
    page.locator(".play-tokens button").nth(3).click()
    expect(page.get_by_text("2 tokens written")).to_be_visible()
    chosen = page.locator(".play-next button").nth(4)
    expect(chosen).to_be_visible()
    name = chosen.inner_text()
    chosen.click()
    expect(page.locator(".play-tokens button").nth(3)).to_have_text(name.replace("␣", " ").replace("⏎", "\n"))
    assert fits(page)


def test_the_writer_knows_its_goals_and_does_not_count_tokens_chosen_by_hand(play):
    page = play("writer")
    write, reached = page.get_by_role("button", name=re.compile("Write|Stop")), page.locator(".play-goals li.reached")
    page.get_by_label("Temperature, typed").fill("2")
    page.get_by_label("Temperature, typed").press("Enter")
    page.locator(".play-choice").get_by_text("1", exact=True).click()
    page.get_by_role("button", name="One token").click()
    expect(page.locator(".play-tokens button")).to_have_count(2)
    for _ in range(20):  # by hand, although each is the most probable one
        count = page.locator(".play-tokens button").count()
        page.locator(".play-next button").first.click()
        expect(page.locator(".play-tokens button")).to_have_count(count + 1)
    expect(reached).to_have_count(0)
    page.get_by_role("button", name="Clear").click()
    for _ in range(20):  # each time it writes to the end of an entry
        write.click()
        expect(write).to_have_text("Write")
        if reached.count():
            break
    expect(reached).to_have_text(re.compile("20 tokens sampled"))


def test_without_an_address_or_a_kernel_the_static_form_stays(play):
    page = play("writer", site=False)
    expect(page.get_by_text("static form")).to_be_visible()
    assert page.locator(".course-play").count() == 0


def test_temperature_top_k_and_top_p_are_those_of_the_library(browser):
    page = browser.new_page()
    page.add_script_tag(content=bundle("sampling"))
    logits = torch.randn(30, 40, generator=torch.Generator().manual_seed(0)) * 3
    for i, row in enumerate(logits):
        temperature, k, p = 0.3 + 0.1 * i, (0, 1, 7, 40)[i % 4], (1.0, 0.9, 0.5)[i % 3]
        kept = sampling.temperature(row.double(), temperature)
        kept = sampling.top_p(sampling.top_k(kept, k) if k else kept, p)
        found = page.evaluate(
            "([row, how]) => Array.from(chances(row, how))",
            [row.tolist(), {"temperature": temperature, "topK": k, "topP": p}],
        )
        torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), kept.softmax(-1), atol=1e-6, rtol=1e-6)
        points = (torch.arange(400) + 0.5) / 400
        drawn = torch.tensor(page.evaluate("([p, us]) => us.map((u) => drawn(p, u))", [found, points.tolist()]))
        counts = torch.bincount(drawn, minlength=40) / 400
        torch.testing.assert_close(counts.double(), kept.softmax(-1), atol=5.1e-3, rtol=0)
    page.close()
