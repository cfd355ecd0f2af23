"""The widget kit in JupyterLab, in an untrusted notebook, in a deck, in a live lecture: mouse, touch and keyboard."""

import re
from contextlib import suppress

import pytest
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import expect

from course_lib.commands.files import write_notebook
from course_lib.lectures.deck import write_deck
from course_lib.lectures.handout import lesson_page
from course_lib.lectures.story import fold
from tests.axe import axe_script
from tests.browser.lab import AXE
from tests.browser.played import Played
from tests.browser.playgrounds import PYTHON, THEMES, as_stored, found_by_axe
from tests.browser.test_live import DRAWING, Lecture, served
from tests.browser.test_slides import MEASURE, Deck, measured
from tests.lectures.small_lesson import slide

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
import numpy as np
from course_lib.classroom.widgets import Explorer, Goal, Pad, Pictures, Sentence, Slider, heat_map, token_bars
from course_lib.classroom.output import present
from course_lib.data.translation import english_words, tokenize_english
from course_lib.data.translation import translate as gold
from course_lib.lessons.lesson_05.playground import mask_painter, softmax_explorer, translator
from course_lib.training.translation import Translation

def translate(text):
    words = tokenize_english(text)
    pair = gold(text)
    french = pair.french if pair else words
    links = pair.alignment if pair else [(i, i) for i in range(len(words))]
    weights = np.full((len(french), len(words)), 0.02)
    for i, j in links:
        weights[j, i] = 0.9
    unknown = tuple(word for word in words[:-1] if word not in english_words())
    return Translation(source=words, target=french, weights=weights, unknown=unknown)

bar, ring = np.zeros((2, 28, 28), np.uint8)
bar[4:24, 12:16] = 255
ring[6:22, 6:22] = 255
ring[9:19, 9:19] = 0

SENTENCES = (
    "The minister signs the law.", "She doesn't sign the law.",
    "The minister of the European Economic Area does not sign the new agreement.",
)

def ink(state):
    return f"There are {(state['pad'] > 127).sum()} pixels of ink."
"""
PLAYED = {
    "translator": "translator(translate, english_words(), SENTENCES).live()",
    "mask": "mask_painter().live()",
    "softmax": "softmax_explorer().live()",
    "pad": """
drawings = {"a bar": bar, "a ring": ring}
Explorer(
    name="pad", title="Draw", controls=[Pad(name="pad", label="Drawing", example=lambda: ring, drawings=drawings)],
    draw=lambda state: token_bars([("ink", (state["pad"] > 127).mean())], label="How much"), alt=ink, beside=True,
    goals=(Goal("an empty paper", lambda state: not state["pad"].any()),
           Goal("a dot", lambda state: 0 < (state["pad"] > 127).sum() < 25)), steps={"pad": tuple(drawings.values())},
).live()""",
    "slope": """
Explorer(
    name="slope", title="Slope", controls=[Slider(name="slope", label="Slope", low=0, high=4, step=0.5, value=1)],
    draw=lambda state: f"<p>slope {state['slope']}</p>", alt=lambda state: f"The slope is {state['slope']}.",
    goals=(Goal("a slope above 3", lambda state: state["slope"] > 3),
           Goal("a slope of 0", lambda state: state["slope"] == 0)),
).live()""",
    "pictures": """
Explorer(
    name="pictures", title="Choose",
    controls=[Pictures(name="which", label="Picture", pictures={"a bar": bar, "a ring": ring})],
    draw=lambda state: f"<p>{state['which']}</p>", alt=lambda state: f"You chose {state['which']}.",
    steps={"which": ("a bar", "a ring")},
).live()""",
    "map": """
squares = heat_map(np.array([[0.9, 0.1], [0.3, 0.7]]), ["un", "deux"], ["one", "two"], label="Numbers", marks=[(0, 0)])
present("A map and bars.", squares + token_bars([(" the", 0.75), ("\\n", 0.25)], label="Next token"))""",
}

ASKS = """
import shutil, tempfile
from pathlib import Path
from course_lib.classroom.widgets import script

folder = Path(shutil.copytree(script.FOLDER, Path(tempfile.mkdtemp()) / "browser"))
(folder / "asks.js").write_text('''export function asks({ root, kernel }) {
  Promise.all([kernel.ask("half", [1, 3]), kernel.ask("third").catch((error) => error.message)])
    .then(([half, sentence]) => { root.textContent = `${half.constructor.name} ${half.join(" ")}; ${sentence}`; });
  return () => {};
}''')
script.FOLDER = folder
Explorer(
    name="asks", title="Asks", controls=[], draw=lambda state: "", alt=lambda state: "Nothing was asked.",
    script="asks", answers={"half": lambda numbers: np.array(numbers, np.float32) / 2},
).live()
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """The kit's widgets, each on a slide; not run yet."""
    cells = [slide("# Widgets\n\nThings to play with.", paths="90"), new_code_cell(FIRST)]
    for name, source in PLAYED.items():
        show = "widget" if name != "map" else "table"
        cells += [slide(f"## {name}", paths="90", show=show)] if show == "widget" else []
        cells.append(new_code_cell(source.strip()))
    cells.append(new_code_cell(ASKS.strip()))
    path = tmp_path_factory.mktemp("kit") / "99_kit.ipynb"
    write_notebook(new_notebook(cells=fold(cells), metadata=PYTHON), path)
    return path


@pytest.fixture(scope="module")
def kit(notebook, start_lab, open_notebook):
    """The notebook in JupyterLab, after all its cells have run."""
    page = open_notebook(start_lab([notebook]), notebook.name)
    page.run_all()
    return page


@pytest.fixture(scope="module")
def stored(kit, notebook):
    return as_stored(kit, notebook)


def shows(cell, text):
    expect(cell.locator(".jp-OutputArea").first).to_contain_text(text)


def ink_of(cell):
    return int(re.search(r"There are (\d+) pixels", cell.get_by_text("pixels of ink").inner_text())[1])


# ------------------------------------------------------------------------------------------- a slider


def test_what_a_held_slider_passes_by_reaches_no_goal_and_the_drawing_follows(kit):
    cell = kit.cell('name="slope"')
    track, status = cell.locator(".slider-container").bounding_box(), cell.get_by_role("status").last
    right, y = track["x"] + track["width"], track["y"] + track["height"] / 2
    kit.page.mouse.move(track["x"] + track["width"] / 4, y)
    kit.page.mouse.down()
    kit.page.mouse.move(right - 2, y, steps=5)
    shows(cell, "slope 4.0")
    expect(status).to_have_text("Can you get there?")
    kit.page.mouse.move(track["x"] + 2, y + 200, steps=5)  # let go below the cell
    shows(cell, "slope 0.0")
    kit.page.mouse.up()
    expect(status).to_have_text("1 of 2 goals reached")
    expect(cell.locator("li").filter(has_text="a slope of 0")).to_have_text("✓ a slope of 0")
    cell.get_by_role("slider", name="Slope").press("End")
    expect(status).to_have_text("2 of 2 goals reached")


# ------------------------------------------------------------------------------------------- the pad


@pytest.fixture
def pad(kit):
    cell = kit.cell("Pad(name")
    cell.get_by_role("button", name="Clear").click()
    shows(cell, "There are 0 pixels of ink.")
    return cell


def place(pad, x, y):
    box = pad.locator("canvas").bounding_box()
    return box["x"] + x * box["width"], box["y"] + y * box["height"]


def test_what_a_stroke_passes_by_reaches_no_goal(kit, pad):
    kit.page.mouse.move(*place(pad, 0.25, 0.52))
    kit.page.mouse.down()
    shows(pad, re.compile("There are [1-9] pixels of ink."))  # a dot, but the pen is still down
    kit.page.mouse.move(*place(pad, 0.75, 0.52), steps=8)
    kit.page.mouse.up()
    shows(pad, re.compile("There are (4[5-9]|5[0-5]) pixels of ink."))
    expect(pad.get_by_role("status").last).to_have_text("1 of 2 goals reached")  # the empty paper before it
    pad.get_by_role("button", name="Clear").click()
    kit.page.mouse.click(*place(pad, 0.25, 0.52))
    expect(pad.get_by_role("status").last).to_have_text("2 of 2 goals reached")


def test_a_line_drawn_with_the_mouse_reaches_python(kit, pad):
    kit.page.mouse.move(*place(pad, 0.25, 0.52))
    kit.page.mouse.down()
    kit.page.mouse.move(*place(pad, 0.75, 0.52), steps=8)
    kit.page.mouse.up()
    shows(pad, re.compile("There are (4[5-9]|5[0-5]) pixels of ink."))  # 14 long and 3 high, with round ends
    kit.screenshot("kit-pad", of=pad)


def test_a_finger_draws_and_does_not_scroll_the_page(kit, pad):
    touch = kit.page.context.new_cdp_session(kit.page)

    def touched(kind, *points):
        at = [dict(zip("xy", place(pad, *point), strict=True)) for point in points]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})

    before = pad.bounding_box()
    touched("touchStart", (0.5, 0.25))
    for step in range(1, 6):
        touched("touchMove", (0.5, 0.25 + 0.1 * step))
    touched("touchEnd")
    shows(pad, re.compile("There are [4-6][0-9] pixels of ink."))  # 14 long and 3 or 4 wide, with round ends
    assert pad.bounding_box() == before


def test_the_keyboard_draws_and_takes_back_and_jupyterlab_does_not_hear_it(kit, pad):
    cells, canvas = len(kit.code_cells()), pad.locator("canvas")
    canvas.focus()
    canvas.press("Space")
    expect(pad.get_by_text("pixels of ink")).not_to_contain_text("There are 0")
    dot = ink_of(pad)
    for _ in range(5):
        canvas.press("Shift+ArrowRight")
    expect(pad.locator(".course-pad-said")).to_have_text("Row 15, column 20, ink")
    shows(pad, f"There are {dot + 15} pixels of ink.")  # three rows, five columns
    for key in ("a", "b", "x", "d", "d"):
        canvas.press(key)
    for _ in range(5):
        canvas.press("u")
    shows(pad, f"There are {dot} pixels of ink.")
    canvas.press("c")
    shows(pad, "There are 0 pixels of ink.")
    expect(canvas).to_be_focused()
    assert len(kit.code_cells()) == cells


def test_an_example_comes_is_shaken_and_taken_back(pad):
    pad.get_by_role("button", name="Give me an example").click()
    shows(pad, "There are 156 pixels of ink.")  # 16 * 16 - 10 * 10
    words = pad.get_by_text("pixels of ink")
    for _ in range(4):  # a shaken drawing has as many pixels as before in 3 of 100 cases
        pad.get_by_role("button", name="Shake it").click()
        with suppress(AssertionError):
            expect(words).not_to_contain_text("156 pixels", timeout=10_000)
            break
    expect(words).not_to_contain_text("156 pixels")
    assert 60 < ink_of(pad) < 300
    pad.get_by_role("button", name="Undo").click()
    shows(pad, "There are 156 pixels of ink.")
    pad.get_by_role("button", name="Back to the start").click()
    shows(pad, "There are 80 pixels of ink.")


# ------------------------------------------------------------------------------------------- pictures and goals


def test_a_picture_is_chosen_by_mouse_and_by_arrow(kit):
    cell = kit.cell("Pictures(name")
    shows(cell, "You chose a bar.")
    cell.get_by_role("img", name="a ring").click()
    shows(cell, "You chose a ring.")
    cell.get_by_role("radio", name="a ring").press("ArrowLeft")
    shows(cell, "You chose a bar.")
    expect(cell.get_by_role("radio", name="a bar")).to_be_focused()


def test_goals_are_ticked_said_and_remembered(kit):
    here = Played(kit.cell("mask_painter().live()"))
    here.root.get_by_label("'pas' may attend to '<pad>'").click()
    expect(here.status).to_have_text("Can you get there?")
    for word in ("le", "ministre", "ne", "signe", "<pad>"):
        here.root.get_by_label(f"'{word}' may attend to '<pad>'").click()
    expect(here.status).to_have_text("1 of 3 goals reached")
    here.press("nothing", exact=True)
    here.says("may attend to nothing: all weights there are zero, and so is the output, not NaN.")
    expect(here.status).to_have_text("1 of 3 goals reached")
    for row in ("le", "ministre", "ne", "signe", "pas"):
        here.root.get_by_label(f"'{row}' may not attend to 'le'").click()
    here.has_reached(2)
    expect(here.goals.last).to_have_text("exactly one row that sees nothing")
    kit.screenshot("kit-goals", of=here.root)


def test_a_playground_of_the_page_is_dragged_and_jupyterlab_does_not_hear_its_keys(kit):
    here, cells = Played(kit.cell("softmax_explorer().live()")), len(kit.code_cells())
    bar = here.slider("key 2", exact=True)
    bar.locator(".play-grip").hover()  # waits until the page has scrolled there
    here.drag(bar.locator(".play-grip"), (0, -300))
    kit.page.mouse.up()
    expect(bar).to_have_attribute("aria-valuenow", "3")
    here.keys("key 2", "ArrowDown", "a", "b", "d", "d", "Space")
    expect(bar).to_have_attribute("aria-valuenow", "2.9")
    here.says("key 2 has the largest")
    assert len(kit.code_cells()) == cells
    kit.screenshot("kit-softmax", of=here.root)


def test_a_playground_asks_its_kernel(kit):
    shows(kit.cell(ASKS.strip().splitlines()[0]), "Float32Array 0.5 1.5; This playground answers half, not 'third'.")


# ------------------------------------------------------------------------------------------- the translator


def colour(word):
    return word.evaluate("(one) => getComputedStyle(one).backgroundColor")


def test_the_translator_asks_its_kernel_and_its_words_light_up(kit):
    here, cells = Played(kit.cell("translator(translate")), len(kit.code_cells())
    french = here.root.locator("[lang=fr].large")
    expect(french).to_have_text("le ministre signe la loi.")
    here.press("She doesn't sign the law.")
    expect(french).to_have_text("elle ne signe pas la loi.")
    here.write("English sentence", "the ministre signs the law")
    here.shows("I do not know the word “ministre” yet, so I can only guess. Did you mean “minister”")
    here.type_keys("English sentence", "the european minister signs the law")
    expect(french).to_have_text("le ministre européen signe la loi.")
    here.has_reached(0)
    here.root.get_by_label("English sentence", exact=True).press("Enter")
    here.has_reached(1)
    here.shows("elle ne signe pas la loi. ← She doesn't sign the law.")
    assert len(kit.code_cells()) == cells  # JupyterLab heard no key

    words = here.root.get_by_role("group", name="English").locator("span")
    resting = colour(words.nth(0))
    french.locator("span").nth(1).hover()  # ministre: 0.02, 0.02, 0.9
    expect(words.nth(2)).not_to_have_css("background-color", resting)
    expect(here.root.locator("th.lit")).to_have_text(["ministre"])
    kit.page.mouse.move(0, 0)
    french.locator("span").nth(2).focus()  # européen, by keyboard
    expect(words.nth(2)).to_have_css("background-color", colour(words.nth(0)))
    expect(here.root.locator("th.lit")).to_have_text(["européen"])
    kit.screenshot("kit-translator", of=here.root)


# ------------------------------------------------------------------------------------------- seen by all


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious_in_either_theme(kit, theme):
    sources = {name: source.strip().splitlines()[-1] for name, source in PLAYED.items()}
    assert found_by_axe(kit, sources, theme) == {}


def test_an_untrusted_notebook_shows_each_widget_without_its_scripts_and_styles(
    stored, start_lab, open_notebook, tmp_path
):
    path = tmp_path / "untrusted.ipynb"
    write_notebook(stored, path)
    page = open_notebook(start_lab([path]), path.name)
    cell = page.cell("heat_map(np.array")
    expect(cell.get_by_title("“deux”, “two”: 0.70")).to_have_css(
        "background-color", re.compile(r"rgb\(\d+, \d+, \d+\)")
    )
    expect(cell.get_by_title("“deux”, “one”: 0.30")).to_have_text(".30")
    assert cell.locator("style").count() == 0
    for text, words in {
        "translator(translate": "elle ne signe pas la loi.",
        "Pad(name": "There are 156 pixels",
    }.items():
        cell = page.cell(text)
        cell.locator("summary").nth(1).click()
        shows(cell, words)
    shows(page.cell("mask_painter().live()"), "Can you get there? ○ a decoder that cannot cheat")


# ------------------------------------------------------------------------------------------- slides


@pytest.fixture(scope="module")
def deck_file(stored, tmp_path_factory):
    file = tmp_path_factory.mktemp("deck") / "kit.html"
    write_deck(stored, file)
    return file


def test_each_widget_of_a_deck_fits_its_slide(browser, deck_file):
    deck = Deck(browser, deck_file)
    deck.page.emulate_media(reduced_motion="reduce")  # axe would see a row of an attention map that is still arriving
    assert measured(deck) == {}
    deck.page.evaluate(axe_script())
    wrong = {}
    for number in deck.numbers():
        deck.go(number)
        wrong[deck.name()] = deck.page.evaluate(AXE, "section.present")
    assert {name: found for name, found in wrong.items() if found} == {}
    deck.page.context.close()
    assert deck.problems == []


def test_the_still_form_of_a_widget_steps_in_a_deck(browser, deck_file, tmp_path):
    """As where its model is too large for a deck. With the model, the widget computes, which another test holds."""
    still = tmp_path / "still.html"
    text = deck_file.read_text(encoding="utf-8")
    assert text.count('class="course-playground"') > 0
    still.write_text(text.replace('class="course-playground"', 'class="still"'), encoding="utf-8")
    deck = Deck(browser, still)
    deck.go(1, -1)
    french = deck.page.locator("section.present details[open] [lang=fr]")
    for key in ("Home", "ArrowRight"):
        deck.page.get_by_role("slider").first.press(key)
    expect(french).to_have_text("elle ne signe pas la loi.")
    french.locator(".row-3").hover()  # pas: "not", the third English word
    assert colour(deck.page.locator("section.present details[open] p .column-2")) == "rgba(230, 159, 0, 0.54)"
    deck.page.context.close()
    assert deck.problems == []


def test_a_map_can_be_hovered_where_no_script_runs(browser, stored, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(lesson_page(stored), encoding="utf-8")
    context = browser.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    table = page.get_by_role("table", name="Numbers")
    number = table.get_by_title("“deux”, “one”: 0.30").locator("span")
    expect(number).to_have_css("opacity", "0")
    table.get_by_role("rowheader", name="deux").hover()
    expect(number).to_have_css("opacity", "1")
    expect(table.locator("thead .column-1")).to_have_css("background-color", "rgba(230, 159, 0, 0.42)")
    context.close()


def test_in_a_lecture_the_pad_and_the_pictures_live(browser, stored, tmp_path):
    with served(stored, tmp_path) as server:
        lecture = Lecture(browser, server.address)
        lecture.wait_until_alive(["translator", "mask", "softmax", "pad", "slope", "pictures"])
        lecture.go("pad")
        canvas = lecture.here("canvas")
        with lecture.drawn_anew("a drag"):
            box = canvas.bounding_box()
            lecture.page.mouse.move(box["x"] + 20, box["y"] + 20)
            lecture.page.mouse.down()
            lecture.page.mouse.move(box["x"] + 90, box["y"] + 40, steps=4)
            lecture.page.mouse.up()
        lecture.go("pictures")
        with lecture.drawn_anew("a picture"):
            lecture.here("[alt='a ring']").click()
        more = "(one) => one.insertAdjacentHTML('beforeend', '<div>one more line</div>'.repeat(20))"
        lecture.here(DRAWING).evaluate(more)
        lecture.settle()
        assert lecture.page.evaluate(MEASURE) == []  # it got smaller, nothing is cut off
        lecture.context.close()
        assert lecture.problems == [] and lecture.outside() == []
