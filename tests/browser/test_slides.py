"""The slides and hand-outs of every lesson in a real browser, from a file and without a network."""

import json
import re
from contextlib import contextmanager

import pytest

from course_lib.authoring.lesson_pages import counts, read_lesson
from course_lib.commands.files import read_notebook, write_notebook
from course_lib.commands.lessons import find_lesson, lessons
from course_lib.lectures.deck import MAX_BYTES, write_deck
from course_lib.lectures.handout import lesson_page
from course_lib.lectures.story import PATHS, compose, paths_of, slides_of
from course_lib.viz.style import SLIDE
from tests.axe import axe_script
from tests.browser.lab import AXE
from tests.lectures.small_lesson import small_lesson

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

LECTURES = [(lesson, minutes) for lesson in lessons() for minutes in paths_of(read_notebook(lesson))]
TAUGHT = [lesson for lesson in lessons() if lesson in dict(LECTURES)]
SHORTER = [(lesson, minutes) for lesson, minutes in LECTURES if minutes != dict(LECTURES)[lesson]]
ATTENTION = find_lesson("05")  # has something of everything
THEMES = ("light", "dark")
SCREEN = {"width": 1280, "height": 720}
PAPER = {"width": 680, "height": 1009}  # CSS pixels of A4 without its margins
READING = {"width": round(178 / 25.4 * 96), "height": 1000}  # as wide as the lines of a lesson on paper
SMALLEST = 24  # CSS pixels of any text of a slide
SMALLEST_PLAYED = 16  # of numbers inside a playground or its frames, or of a map of many heads
WIDGET_SCALE = 0.82  # the one drawing that grows with its contents has type of 14 points

MEASURE = (
    """
() => {
  const slide = Reveal.getCurrentSlide(), problems = [], scale = Reveal.getScale();
  const hidden = "aside.notes, mjx-assistive-mml, .unseen, .reveal .play-said, script, style";
  for (const element of slide.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (element.closest(hidden) || !box.width || !box.height || element.matches(".page")) continue;
    const name = element.tagName.toLowerCase() + " " + (element.textContent || "").trim().slice(0, 30);
    if (box.bottom > 720 || box.right > 1280 || box.left < 0 || box.top < 0) problems.push("overflows: " + name);
    if (element.scrollWidth > element.clientWidth + 1 && element.matches("pre, .output, .body")) {
      problems.push("is cut off: " + name);
    }
    if (element.scrollHeight > element.clientHeight + 1 && element.matches(".widget-htmlmath-content > *")) {
      problems.push("is cut off: " + name);
    }
    const [width, height] = ["width", "height"].map((side) => Number(element.getAttribute(side)));
    const shown = box.width / width;
    if (element.matches(".course-stepper img, .live img")) {
      if (shown < WIDGET) problems.push("a figure is shrunk");
    } else if (element.matches(".course-drawing, .course-image") && !element.closest(".course-play")) {
      const type = (1200 / 72) * shown * Math.min(1.5, Math.max(1, width / WIDE, height / HIGH));  // see viz.figure
      if (type < TEXT) problems.push(`type of ${type} px in a figure`);
    }
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (text || element.matches("mjx-container")) {
      const size = parseFloat(getComputedStyle(element).fontSize) * scale;
      const least = element.closest(".course-play, .course-stepper, .course-map, .live") ? PLAYED : TEXT;
      if (size < least - 0.01) problems.push(`${size} px: ${name}`);
    }
  }
  const page = slide.querySelector(".page").getBoundingClientRect();
  const place = slide.querySelector(".place").getBoundingClientRect();
  const top = slide.querySelector(".top"), head = top.getBoundingClientRect(), words = document.createRange();
  words.selectNodeContents(top.querySelector("h1, h2, h3") || top);
  const heading = words.getBoundingClientRect();  // a button may stand to the right of the words
  for (const shown of slide.querySelectorAll(".body > *, .course-stepper .frame > *, .live .lm-Widget, .live img")) {
    const box = shown.getBoundingClientRect();
    if (box.height && place.height && box.bottom > place.top + 2) problems.push("covers the foot: " + shown.className);
    if (box.height && box.top < head.bottom - 1 && box.left < heading.right + 16) {
      problems.push("covers the heading: " + shown.className);
    }
  }
  return problems;
}
""".replace("WIDGET", str(WIDGET_SCALE))
    .replace("WIDE", str(100 * SLIDE[0]))
    .replace("HIGH", str(100 * SLIDE[1]))
    .replace("PLAYED", str(SMALLEST_PLAYED))
    .replace("TEXT", str(SMALLEST))
)

REST = """
async () => {  // a playground takes its size when it is drawn, and its model computes a while
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const rest = () => new Promise((done) => requestIdleCallback((free) => done(free.timeRemaining())));
  for (let tries = 0; tries < 100 && (await rest()) < 40; tries += 1);
}
"""

GO = f"""
async ([number, fragments]) => {{
  Reveal.slide(number, 0, fragments);
  if (Reveal.getCurrentSlide().querySelector(".course-playground")) await ({REST.strip()})();
}}
"""

MEASURE_ALL = f"""
async ([themes, stepped]) => {{
  const go = {GO.strip()}, measure = {MEASURE.strip()}, wrong = {{}};
  const look = (place) => {{
    const found = measure();
    if (found.length) wrong[Reveal.getCurrentSlide().id + ", " + place] = found;
  }};
  for (const theme of themes) {{
    document.documentElement.dataset.theme = theme;
    for (let number = 0; number < Reveal.getTotalSlides(); number += 1) {{
      await go([number, 99]);
      look(theme);
      const frames = [...Reveal.getCurrentSlide().querySelectorAll(stepped + " > details")];
      frames.forEach((shown, place) => {{
        frames.forEach((frame) => {{ frame.open = frame === shown; }});
        look(`frame ${{place + 1}}, ${{theme}}`);
      }});
    }}
  }}
  return wrong;
}}
"""

COLOURS = '"color-contrast", "link-in-text-block", "scrollable-region-focusable"'  # all that a theme changes for axe
AXE_COLOURS = AXE.replace("{resultTypes", f"{{runOnly: [{COLOURS}], resultTypes")

ALL_SLIDES = """
html, body, .reveal { overflow: visible !important; height: auto !important; position: static !important; }
.reveal .slides, .reveal .slides > section { display: block !important; position: static !important;
  opacity: 1 !important; visibility: visible !important; transform: none !important; overflow: visible !important; }
.reveal .slides > section { height: 720px !important; }
.reveal .fragment { opacity: 1 !important; visibility: visible !important; }
"""


class Deck:
    """A deck in a page that can reach nothing, with a record of what it asked for and what went wrong."""

    def __init__(self, browser, file=None, *, javascript=True):
        self.requests, self.problems, self.address, self.javascript = [], [], "", javascript
        context = browser.new_context(viewport=SCREEN, offline=True, java_script_enabled=javascript)
        context.set_default_timeout(240_000)
        context.on("page", self.watch)
        self.page = context.new_page()
        if file:
            self.load(file.as_uri())

    def load(self, address):
        self.address = address
        self.requests.clear()
        self.problems.clear()
        self.page.goto(address)
        if self.javascript:
            self.page.wait_for_selector("html[data-ready]")

    def asked_for(self):
        return {re.split("[?#]", url)[0] for url in self.requests if not url.startswith(("data:", "about:"))}

    def watch(self, page):
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda line: self.problems.append(line.text) if line.type in ("error", "warning") else None)

    def go(self, number, fragments=99):
        """Go to a slide, all its fragments shown."""
        self.page.evaluate(GO, [number, fragments])

    def theme(self, name):
        self.page.evaluate("(name) => { document.documentElement.dataset.theme = name; }", name)

    def numbers(self):
        return range(self.page.evaluate("Reveal.getTotalSlides()"))

    def name(self):
        return self.page.evaluate("Reveal.getCurrentSlide().id")

    def find(self, selector):
        """Go to the first slide that holds such an element, nothing of it shown yet."""
        number = self.page.evaluate(
            "(what) => Reveal.getSlides().findIndex((slide) => slide.querySelector(what))", selector
        )
        self.go(number, -1)
        return self.page.locator(f"section.present {selector}").first


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("decks")


@pytest.fixture(scope="module")
def files(folder):
    made = {}

    def file_of(lesson, minutes=None):
        if (lesson, minutes) not in made:
            made[lesson, minutes] = folder / f"{lesson.stem}.{minutes}.html"
            size = write_deck(read_notebook(lesson), made[lesson, minutes], path=minutes)
            assert size == made[lesson, minutes].stat().st_size < MAX_BYTES
        return made[lesson, minutes]

    return file_of


@pytest.fixture(scope="module")
def window(browser):
    """One page for all tests: there a deck is loaded in half of the time that it takes in a new one."""
    window = Deck(browser)
    yield window
    window.page.context.close()


@pytest.fixture
def open_page(window, request):
    """open_page(file): shows it, and loads it only if the test before this one was elsewhere."""

    def open_it(file, query="", *, viewport=SCREEN, media="screen", anew=False):
        address = file.as_uri() + query
        if anew or window.address != address or request.session.testsfailed:  # a failure may leave anything behind
            window.page.emulate_media(media="screen", reduced_motion="no-preference")
            window.page.set_viewport_size(viewport)
            window.load(address)
            window.page.emulate_media(media=media)
        return window

    yield open_it
    assert window.problems == []
    assert window.asked_for() == {window.address.partition("?")[0]}


@pytest.fixture
def open_deck(open_page, files):
    """open_deck(lesson): its deck at its beginning; with `anew` as if no test had touched it."""

    def open_it(lesson, minutes=None, *, anew=False):
        deck = open_page(files(lesson, minutes), anew=anew)
        deck.theme("light")
        deck.go(0, -1)
        return deck

    return open_it


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    file = tmp_path_factory.mktemp("lesson") / "99_waves.ipynb"
    write_notebook(small_lesson(), file)
    return file


def of_each(lectures):
    ids = [f"{lesson.stem}-{minutes}" for lesson, minutes in lectures]
    return pytest.mark.parametrize(("lesson", "minutes"), lectures, ids=ids)


def widgets(lesson):
    return sum("widget" in slide.show for slide in full_path(lesson))


def full_path(lesson):
    """The slides of the longest lecture; a shorter one is made of the same, which a test below holds."""
    return slides_of(read_notebook(lesson), dict(LECTURES)[lesson])


STEPPED = ".course-stepper:not(.playing *)"  # a widget that does not compute in the deck
MOVING = f"{STEPPED}:has(> details ~ details)"  # one with more than one frame
WIDGET = ".course-stepper, .course-playground:not(:has(.course-stepper))"  # the second has no frames, and computes
# All tests of a lesson, then all of the next: most find its deck loaded.
each_lesson = pytest.mark.parametrize("lesson", TAUGHT, ids=lambda path: path.stem, scope="module")


@each_lesson
def test_a_widget_answers_the_keyboard_the_mouse_and_a_clicker(open_deck, lesson):
    deck = open_deck(lesson, anew=True)
    if deck.page.locator(MOVING).count() == 0:  # tests of its lesson play with each of them
        still = deck.page.locator(STEPPED).count()
        assert deck.page.locator(".course-playground.playing").count() + still == widgets(lesson) > 0
        return
    stepper = deck.find(MOVING)
    slide, frame = deck.name(), stepper.locator("details[open]")
    first, controls = frame.inner_text(), json.loads(stepper.get_attribute("data-controls"))
    slider = stepper.get_by_role("slider").first
    slider.focus()
    deck.page.keyboard.press("ArrowRight")
    assert frame.inner_text() != first and deck.name() == slide
    assert slider.get_attribute("aria-valuetext") == stepper.locator("output").first.inner_text()
    stepper.get_by_role("button", name="back").first.click()
    assert frame.inner_text() == first
    stepper.get_by_role("button", name=re.compile(r"\bon\b")).first.focus()
    deck.page.keyboard.press("Space")
    assert slider.input_value() == "1" and deck.page.locator("section.present .fragment.visible").count() == 0
    slider.press("Home")
    assert frame.inner_text() == first
    slider.focus()  # a clicker takes the slide on, whatever has the focus
    seen = [first]
    for _ in range(20):
        deck.page.keyboard.press("PageDown")
        if deck.name() != slide:
            break
        seen.append(frame.inner_text())
    assert len(set(seen)) == len(seen) == 1 + sum(len(words) - 1 for _, words in controls) > 2
    assert deck.name() != slide
    deck.page.keyboard.press("PageUp")
    assert deck.name() == slide and frame.inner_text() == seen[-1]
    deck.find(MOVING)  # takes all steps back at once
    assert frame.inner_text() == first


@each_lesson
def test_all_frames_of_all_widgets_can_be_reached_with_their_own_words(open_deck, lesson):
    deck = open_deck(lesson)
    assert deck.page.locator(WIDGET).count() == widgets(lesson)
    holding = "(what) => Reveal.getSlides().flatMap((slide, number) => slide.querySelector(what) ? [number] : [])"
    for number in deck.page.evaluate(holding, STEPPED):
        deck.go(number, -1)
        stepper = deck.page.locator(f"section.present {STEPPED}")
        if stepper.count() == 0:
            continue
        controls = json.loads(stepper.get_attribute("data-controls"))
        for i, (label, words) in enumerate(controls):
            slider = stepper.get_by_role("slider").nth(i)
            assert stepper.locator("label").nth(i).inner_text() == label
            slider.focus()
            deck.page.keyboard.press("Home")
            for value in words:
                assert slider.get_attribute("aria-valuetext") == value
                assert f"{label}: {value}" in stepper.locator("details[open] summary").text_content()
                deck.page.keyboard.press("ArrowRight")


@each_lesson
def test_nothing_overflows_and_all_text_can_be_read(open_deck, lesson):
    assert measured(open_deck(lesson)) == {}


def measured(deck):
    return deck.page.evaluate(MEASURE_ALL, [THEMES, STEPPED])


@pytest.mark.parametrize("minutes", PATHS)
def test_a_lesson_needs_nothing_but_its_metadata(open_deck, small, minutes):
    deck = open_deck(small, minutes)
    slides = slides_of(read_notebook(small), minutes)
    assert len(deck.numbers()) == len(slides) > 2
    assert measured(deck) == {}
    for number, slide in zip(deck.numbers(), slides, strict=True):
        deck.go(number)
        shown = deck.page.locator("section.present .page")
        for kind in slide.show:
            assert shown.locator(SHOWN[kind]).first.is_visible()


SHOWN = {
    "code": ".highlight", "text": ".output :is(pre, .printed)", "figure": ".output img", "question": "ol",
    "answer": "details", "widget": ".course-stepper img >> visible=true", "math": "mjx-container[display=true]",
    "table": "table",
}  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("p.textContent = 'so many words '.repeat(400)", "overflows"),
        ("p.style = 'font-size: 23px'; p.textContent = 'small print'", "23 px"),
        ("p.outerHTML = '<pre style=\"font-size: 23px\">code</pre>'", "23 px"),
        ("p.append(document.querySelector('.course-drawing').cloneNode()); p.firstChild.style.width = '9em'", "type"),
        ("p.outerHTML = '<pre>' + 'x'.repeat(200) + '</pre>'", "cut off"),
        ("p.style = 'position: absolute; top: 40px'; p.textContent = 'too high'", "covers the heading"),
        ("p.style = 'position: absolute; top: 650px'; p.textContent = 'too low'", "covers the foot"),
    ],
)  # fmt: skip
def test_the_measurement_sees_a_fault(open_deck, fault, found):
    deck = open_deck(ATTENTION)
    deck.go(2)
    assert deck.page.evaluate(MEASURE) == []
    deck.page.evaluate(
        "() => { const p = document.createElement('p'); Reveal.getCurrentSlide().querySelector('.body').append(p); "
        f"{fault}; return Promise.all([...document.querySelectorAll('.present img')].map((one) => one.decode())); }}"
    )
    assert any(found in problem for problem in deck.page.evaluate(MEASURE))
    deck.page.evaluate("Reveal.getCurrentSlide().querySelector('.body').lastChild.remove()")


@each_lesson
def test_axe_finds_nothing_serious(open_deck, lesson):
    """In one run for each theme: axe reads the whole page each time, so a run for each slide would take minutes."""
    deck = open_deck(lesson)
    deck.page.emulate_media(reduced_motion="reduce")  # axe would see what is still arriving
    deck.page.evaluate(axe_script())
    with all_slides_shown(deck):
        wrong = {"light": deck.page.evaluate(AXE)}
        deck.theme("dark")
        wrong["dark"] = deck.page.evaluate(AXE_COLOURS, ".slides")
    assert {place: found for place, found in wrong.items() if found} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious_around_a_slide(open_deck, theme):
    """Its number, the arrows and the progress are the same in all decks."""
    deck = open_deck(ATTENTION)
    deck.theme(theme)
    deck.page.evaluate(axe_script())
    assert deck.page.evaluate(AXE) == []


@of_each(SHORTER)
def test_a_shorter_path_is_made_of_slides_of_the_full_one(open_deck, files, lesson, minutes):
    """So that what all other tests find out about those of the full path holds for it, too."""
    full, shorter = sections(files(lesson)), sections(files(lesson, minutes))
    own = [section for section in shorter if 'class="references"' not in section]
    assert len(own) == len(slides_of(read_notebook(lesson), minutes)) < len(full)
    assert [section for section in full if section in set(shorter)] == shorter
    assert around(files(lesson)) == around(files(lesson, minutes))
    open_deck(lesson, minutes).page.evaluate(REST)  # no script of it fails


SECTION = r"<section .*?</section>\s*"


def sections(file):
    return [section.strip() for section in re.findall(SECTION, file.read_text(encoding="utf-8"), re.DOTALL)]


def around(file):
    """A deck without its slides and scripts."""
    return re.sub(SECTION, "", file.read_text(encoding="utf-8").partition("<script>")[0], flags=re.DOTALL)


@contextmanager
def all_slides_shown(deck):
    """One below the other, as axe can see them."""
    style = deck.page.add_style_tag(content=ALL_SLIDES)
    deck.page.evaluate(
        "() => Reveal.getSlides().forEach((slide) => { slide.hidden = false; slide.removeAttribute('aria-hidden'); })"
    )
    yield
    style.evaluate("(style) => style.remove()")
    deck.go(0)  # hides the others


def test_axe_sees_a_fault_on_a_slide_that_is_not_the_present_one(open_deck):
    deck = open_deck(ATTENTION)
    deck.page.evaluate(axe_script())
    deck.page.evaluate(
        "() => Reveal.getSlides().at(-1).querySelector('.body')"
        ".insertAdjacentHTML('beforeend', '<div><p style=\"color: #bbb\">pale</p><input></div>')"
    )
    with all_slides_shown(deck):
        assert {line.partition(":")[0] for line in deck.page.evaluate(AXE)} == {"color-contrast", "label"}
        assert {line.partition(":")[0] for line in deck.page.evaluate(AXE_COLOURS)} == {"color-contrast"}
    deck.page.evaluate("Reveal.getSlides().at(-1).querySelector('.body').lastChild.remove()")


@each_lesson
def test_every_figure_has_its_alt_text_and_every_formula_is_typeset(open_deck, lesson):
    deck = open_deck(lesson)
    alt_of = "(images) => images.map((image) => image.alt)"
    alts = deck.page.locator(".slides img:not(.course-stepper img)").evaluate_all(alt_of)
    assert alts and all(len(alt) > 20 for alt in alts)
    assert all(deck.page.locator(".course-stepper img").evaluate_all(alt_of))  # a patch has its name
    slideshow = compose(read_notebook(lesson), path=dict(LECTURES)[lesson])
    texts = [cell.source for cell in slideshow.cells if cell.cell_type == "markdown"]
    outputs = [output for cell in slideshow.cells for output in cell.get("outputs", [])]
    texts += ["".join(output.get("data", {}).get("text/html", "")) for output in outputs]
    assert (deck.page.locator("mjx-container").count() > 0) == any("$" in text for text in texts)
    assert deck.page.locator("mjx-merror, [data-mjx-error]").count() == 0
    left = deck.page.evaluate(
        "[...document.querySelectorAll('section')].map((s) => s.querySelector('.page').innerText)"
    )
    assert not [text for text in left if re.search(r"\$[^$\n]+\$", text)]


def test_what_a_formula_says_to_those_who_hear_it_takes_no_room(open_deck):
    """Else a slide would be too wide or not by the system's font for mathematics, which nobody sees."""
    deck = open_deck(ATTENTION)
    deck.find(".page p mjx-container")
    sizes = "(all) => all.map((one) => one.offsetWidth + ' x ' + one.offsetHeight)"
    found = deck.page.locator("section.present mjx-assistive-mml").evaluate_all(sizes)
    assert found and set(found) <= {"1 x 1", "0 x 1"}


def test_the_notes_stand_in_a_window_of_their_own_that_follows(open_deck):
    deck = open_deck(ATTENTION, anew=True)
    with deck.page.expect_popup() as opened:
        deck.page.keyboard.press("s")
    notes = opened.value
    assert re.fullmatch(r"Slide 1 of \d+", notes.locator("#number").inner_text())
    assert len(notes.locator("#notes").inner_text()) > 40
    assert re.fullmatch(r"\d\d:\d\d", notes.locator("#time").inner_text())
    notes.keyboard.press("PageDown")
    assert notes.locator("#number").inner_text().startswith("Slide 2 of")
    assert notes.locator("#heading").inner_text() == deck.page.locator("section.present").get_attribute("aria-label")
    deck.page.bring_to_front()
    deck.page.keyboard.press("ArrowRight")
    assert notes.locator("#number").inner_text().startswith("Slide 3 of")
    assert re.search(r"0:\d\d gone; after this slide: \d+:00", notes.locator("#spent").inner_text())
    notes.evaluate(axe_script())
    assert notes.evaluate(AXE) == []
    notes.close()


NOTES = """
() => opener.Reveal.getSlides().map((_, number) => {
  opener.Reveal.slide(number, 0, 99);
  const text = (id) => document.getElementById(id).innerText;
  const all = (selector) => [...document.querySelectorAll("#notes " + selector)];
  return {
    notes: text("notes"), heading: text("heading"), spent: text("spent"),
    slide: opener.document.querySelector("section.present").getAttribute("aria-label"),
    formulas: all("mjx-container").length, drawn: all("mjx-container > svg").length,
    clips: all("mjx-assistive-mml").map((one) => getComputedStyle(one).clip),
  };
})
"""


@each_lesson
def test_the_notes_of_each_slide_can_be_read(open_deck, lesson):
    deck = open_deck(lesson)
    with deck.page.expect_popup() as opened:
        deck.page.keyboard.press("s")
    notes, planned = opened.value, 0
    notes.locator("#notes").wait_for()
    for shown, slide in zip(notes.evaluate(NOTES), full_path(lesson), strict=False):  # behind them are the references
        planned += slide.minutes
        assert len(shown["notes"]) > 40
        assert shown["heading"] == shown["slide"]
        assert f"after this slide: {int(planned)}:{60 * planned % 60:02.0f}" in shown["spent"]
        assert shown["formulas"] == shown["drawn"] == len(shown["clips"])
        assert set(shown["clips"]) <= {"rect(1px, 1px, 1px, 1px)"}  # unseen, or each formula stands there twice
    notes.close()


@each_lesson
def test_in_the_hand_out_each_slide_and_its_notes_fit_a_page_and_no_answer_stands_below_its_question(
    open_page, files, lesson
):
    deck = open_page(files(lesson), "?handout", viewport=PAPER, media="print")
    heights = deck.page.locator(".sheet").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().height)")
    references = deck.page.locator("section.references").count()
    assert len(heights) == len(full_path(lesson)) + references and max(heights) <= PAPER["height"]
    assert deck.page.locator(".sheet .question details").count() == 0
    asked = deck.page.locator(".sheet .elsewhere").count()
    assert deck.page.locator(".answers > div").count() == asked
    assert deck.page.locator(".sheet aside.notes h2").first.is_visible()


def test_the_theme_changes_by_key(open_deck):
    deck = open_deck(ATTENTION)
    colour = "getComputedStyle(document.body).backgroundColor"
    assert deck.page.evaluate(colour) == "rgb(255, 255, 255)"
    deck.page.keyboard.press("t")
    assert deck.page.evaluate(colour) == "rgb(20, 24, 28)"


@pytest.mark.parametrize("kind", [".question", ".figure"])
def test_an_answer_and_the_result_of_a_bet_are_folded_away_until_they_are_asked_for(open_deck, kind):
    deck = open_deck(ATTENTION)
    deck.find(f"{kind} .output details")
    details = deck.page.locator(f"section.present{kind} .output details").first
    slide = deck.name()
    assert details.get_attribute("open") is None
    deck.page.keyboard.press("PageDown")
    assert details.get_attribute("open") is not None and deck.name() == slide
    deck.page.keyboard.press("PageUp")
    assert details.get_attribute("open") is None


def test_without_javascript_all_slides_and_frames_are_there(browser, files):
    deck = Deck(browser, files(ATTENTION), javascript=False)
    assert deck.page.locator("section h2").last.is_visible()
    summaries = deck.page.locator(".course-stepper summary")
    assert summaries.count() > 4
    assert summaries.nth(1).is_visible()
    deck.page.context.close()
    assert deck.problems == [] and deck.asked_for() == {deck.address}


@pytest.fixture
def printed(open_page, folder, lesson):
    """A lesson for reading, laid out as on paper: as wide as its lines there."""
    file = folder / f"{lesson.stem}.html"
    if not file.exists():
        file.write_text(lesson_page(read_notebook(lesson)), encoding="utf-8")
    return open_page(file, viewport=READING, media="print").page


@each_lesson
def test_on_paper_no_line_of_code_is_broken_or_cut_off(printed, lesson):
    wrong = """(blocks) => blocks.filter((block) => block.checkVisibility())
      .filter((block) => block.scrollWidth > block.clientWidth || getComputedStyle(block).whiteSpace !== "pre")
      .map((block) => block.textContent.slice(0, 60))"""
    code = printed.locator(".highlight pre, .output pre:has(> code)")
    longest = max(len(line) for text in code.all_text_contents() for line in text.split("\n"))
    least = 100 if lesson.name.startswith("04") else 50  # it lists library code
    assert longest > least and code.evaluate_all(wrong) == []
    sizes = code.evaluate_all("(blocks) => blocks.map((block) => parseFloat(getComputedStyle(block).fontSize))")
    assert min(sizes) * 72 / 96 > 6.5  # points


@each_lesson
@pytest.mark.parametrize("selector", [".highlight", ".output", ".output img", "table", "h2", "h3"])
def test_no_page_break_runs_through_figures_code_or_tables(printed, selector):
    breaks = printed.locator(selector).evaluate_all("(all) => all.map((one) => getComputedStyle(one).breakInside)")
    assert set(breaks) <= {"avoid"} and (breaks or selector == "h3")


@each_lesson
def test_on_paper_figures_have_room_for_what_belongs_to_them(printed, lesson):
    most = 100 / 25.4 * 96  # px
    boxes = printed.locator(".output img").evaluate_all(
        """(all) => all.filter((one) => one.checkVisibility() || one.closest("details:not([open])"))
          .map((one) => (one.checkVisibility() ? one.getBoundingClientRect() : new DOMRect()).toJSON())"""
    )
    assert len(boxes) >= counts(read_lesson(lesson))["figures"]
    assert all(box["height"] < most and box["right"] <= READING["width"] for box in boxes)


@each_lesson
def test_on_paper_hints_are_open_answers_stand_at_the_end_and_solutions_nowhere(printed):
    for _ in range(2):  # twice printed is printed alike
        printed.evaluate("dispatchEvent(new Event('beforeprint'))")
    folds = printed.locator("details:not(.course-stepper *)").evaluate_all(
        "(all) => all.map((fold) => [fold.querySelector('summary').textContent, fold.open])"
    )
    assert {"Show the answer (on paper: Answer 1, at the end)", "Hint 1 of 3", "Show the solution"} <= dict(
        folds
    ).keys()
    assert [words for words, is_open in folds if is_open == ("solution" in words or "answer" in words)] == []
    asked = sum("answer" in words for words, _ in folds)
    end = printed.locator("main > :last-child.answers")
    assert end.locator("h3").all_inner_texts() == [f"Answer {number}" for number in range(1, asked + 1)]
    assert end.locator("li, p").first.is_visible()
    frames = printed.locator(".course-stepper > details")
    shown = printed.locator(".course-stepper > details >> visible=true")
    assert frames.count() > shown.count() == printed.locator(".course-stepper").count()
