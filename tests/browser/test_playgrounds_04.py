"""Lesson 04 on the page: gates are dragged, and cells read a text; numbers, words and goals are Python's."""

import random

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_04.playground import (
    LETTERS,
    MARKS,
    MESSAGE,
    SENTENCES,
    SIGNALS,
    TEXTS,
    machine,
    reader,
    run,
)
from tests.axe import axe_script
from tests.browser.live_playground import axes, check_axe, check_it_fits, move, played
from tests.browser.played import overflowing, served
from tests.browser.test_slides import AXE

pytestmark = pytest.mark.needs("chromium")


def states():
    draw = random.Random(4)
    for _ in range(100):
        gates = {gate: draw.choice([0.0, 1.0, draw.randrange(101) / 100]) for gate in "fio"}
        yield {"signal": draw.choice(list(SIGNALS)), "open": draw.choice(["always", "first"]), **gates}
    always = {"signal": MARKS, "f": 1.0, "i": 1.0, "o": 0.5, "open": "always"}
    yield from (always, always | {"signal": MESSAGE, "open": "first"}, always | {"f": 0.93, "open": "first"})


def test_the_page_computes_and_says_what_python_does(browser):
    page, explorer = browser.new_page(), machine()
    page.add_script_tag(content=bundle("machine"))
    found = page.evaluate(
        """([states, config]) => states.map((state) => {
          const run = machineRun(state, config), goals = machineGoals.map((goal) => goal(state, run, config));
          return { ...run, goals, words: machineWords(state, config) };
        })""",
        [list(states()), explorer._page_config()],
    )
    reached = np.zeros(3, bool)
    for state, here in zip(states(), found, strict=True):
        its = run(state)
        np.testing.assert_allclose(here["write"], its.write)
        np.testing.assert_allclose(here["cell"], its.cell, atol=1e-12)
        np.testing.assert_allclose(here["hidden"], its.output, atol=1e-12)
        assert here["words"] == explorer.alt(state)
        assert here["goals"] == [goal(state) for goal in explorer.goals]
        reached |= here["goals"]
    assert reached.all()


def gate(here, name):
    return here.page.get_by_role("slider", name=name, exact=True)


def test_a_gate_is_dragged_and_a_goal_waits_until_it_is_let_go(browser):
    with played(browser, machine(), kernel=True) as here:
        before = axes(here)
        here.page.get_by_text("in the first step only", exact=True).click()
        move(here, gate(here, "forget f").locator(".play-grip"), (0, -300))
        assert gate(here, "forget f").get_attribute("aria-valuenow") == "1"
        expect(here.page.get_by_text("it ends at 1.00")).to_be_visible()
        assert here.reached() == 0
        here.page.mouse.up()
        assert here.reached() == 1 and axes(here) == before
        assert here.told() == [{"touched": True}, {"reached": [True, False, False]}]


def test_the_keyboard_makes_the_cell_count_and_it_is_said(browser):
    with played(browser, machine()) as here:
        here.page.get_by_text("a mark every ten steps").click()
        for _ in range(3):
            gate(here, "forget f").press("PageUp")
        assert here.reached() == 1
        gate(here, "output o").press("Home")
        said = here.page.locator(".play-said")
        expect(said).to_contain_text("f = 1.00, i = 1.00, o = 0.00. After 50 steps the cell state is 5.00")


def test_it_fits_and_axe_finds_nothing(browser):
    check_it_fits(browser, machine())
    check_axe(browser, machine())


# ------------------------------------------------------------------------------------------------ cells over a text

READ = """async ([asked, config]) => {
  const part = async (kind) => (await fetch(`/models/lstm_characters.${kind}`)).arrayBuffer();
  const { vocabulary } = JSON.parse(new TextDecoder().decode(await part("json"))).tokenizers.text;
  const model = { weights: readSafetensors(await part("safetensors")), vocabulary }, read = {};
  return asked.map(([text, cell]) => {
    const values = (read[text] ??= cellsOf(model, text)).map((all) => all[cell]);
    const goals = cellGoals.map((goal) => goal(text, values, config.texts.map(([, text]) => text)));
    return { values, words: cellWords(text, values, cell), goals };
  });
}"""


@pytest.fixture(scope="module")
def cells():
    return reader(load_trained("lstm_characters").model)


@pytest.fixture(scope="module")
def open_cells(browser, cells, tmp_path_factory):
    """open_cells(...): the reader on a page of the site, which has read its first text."""
    with served(browser, tmp_path_factory.mktemp("models")) as open_it:

        def open_one(**options):
            page = open_it(cells, **options)
            expect(page.get_by_text("largest absolute value")).to_be_visible()
            return page

        yield open_one


def test_the_page_reads_a_text_as_python_does(open_cells, cells):
    page, reached = open_cells(), np.zeros(3, bool)
    asked = [(text, cell) for text in TEXTS for cell in (0, SENTENCES, LETTERS, *range(10, 31))]
    own = "We read the whole text again. It takes a long time to finish. Nothing else has to be done."
    asked += [
        ("a", 3),
        ("No end here", SENTENCES),
        ("It is. 'x' it isn't", 3),
        *((own, cell) for cell in range(200, 250)),
    ]
    asked += [(own.replace("It takes a long time to finish", "It ends"), SENTENCES), (own[:61], SENTENCES)]
    page.add_script_tag(content=bundle("cells"))
    found = page.evaluate(READ, [asked, cells._page_config()])
    for (text, cell), here in zip(asked, found, strict=True):
        state = cells.state(text=text, cell=cell)
        values = cells.answers["read"]({"text": text}).reshape(len(text), -1)[:, cell]
        np.testing.assert_allclose(here["values"], values, atol=1e-4)
        assert here["goals"] == [goal(state) for goal in cells.goals], state
        assert here["words"] == cells.alt(state)
        reached |= here["goals"]
    assert reached.all()


def test_a_text_is_read_with_each_key_and_goals_wait(open_cells):
    page = open_cells(kernel=True)
    assert page.evaluate("told") == []
    page.get_by_label("Cell", exact=True).fill(str(SENTENCES))
    expect(page.locator(".play-goals li.reached")).to_have_count(1)
    text = page.get_by_label("Text", exact=True)
    text.fill("")
    expect(page.get_by_text("Write something for the network to read.").first).to_be_visible()
    text.type("Two words.")
    expect(page.locator(".play-said")).to_contain_text(f"Cell {SENTENCES} over 10 characters")
    text.fill("日本")
    expect(page.get_by_text("is not in the vocabulary of 77").first).to_be_visible()


@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light")])
def test_the_cells_fit_and_axe_finds_nothing_serious(open_cells, width, height, theme):
    page = open_cells(width=width, height=height, theme=theme)
    assert overflowing(page) == []
    assert width < 1000 or page.evaluate("document.documentElement.scrollHeight") <= height
    page.evaluate(axe_script())
    assert page.evaluate(AXE, ".course-play") == []
