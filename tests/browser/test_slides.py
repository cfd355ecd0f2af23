"""The slides of every lesson in a real browser, from a file and without a network."""

import json
import re

import pytest

from course_lib.lectures.deck import MAX_BYTES, write_deck
from course_lib.lectures.story import slides_of
from course_lib.tools.files import read_notebook
from course_lib.tools.lessons import lessons
from tests.axe import axe_script

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

TAUGHT = [path for path in lessons() if slides_of(read_notebook(path))]
WIDTH, HEIGHT = 1280, 720
SMALLEST = 16  # CSS pixels of any text
SMALLEST_CODE = 20
FIGURE_SCALE = 0.96  # type of 12 points, which is 16.7 px, stays at 16 px
WIDGET_SCALE = 0.82  # the one drawing that grows with its contents has type of 14 points

MEASURE = (
    """
() => {
  const slide = Reveal.getCurrentSlide(), problems = [], scale = Reveal.getScale();
  const hidden = "aside.notes, mjx-assistive-mml, .unseen, script, style";
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
    const least = element.closest(".course-stepper, .live") ? WIDGET : FIGURE;
    if (element.matches("img") && box.width / element.naturalWidth < least) problems.push("a figure is shrunk");
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (text || element.matches("mjx-container")) {
      const size = parseFloat(getComputedStyle(element).fontSize) * scale;
      if (size < (element.closest("pre") ? CODE : TEXT)) problems.push(`${size} px: ${name}`);
    }
  }
  const page = slide.querySelector(".page").getBoundingClientRect();
  const place = slide.querySelector(".place").getBoundingClientRect();
  for (const shown of slide.querySelectorAll(".body > *, .course-stepper .frame > *, .live .lm-Widget, .live img")) {
    const box = shown.getBoundingClientRect();
    if (box.height && place.height && box.bottom > place.top + 2) problems.push("covers the foot: " + shown.className);
  }
  return problems;
}
""".replace("WIDGET", str(WIDGET_SCALE))
    .replace("FIGURE", str(FIGURE_SCALE))
    .replace("CODE", str(SMALLEST_CODE))
    .replace("TEXT", str(SMALLEST))
)

AXE = """
async (part) => {
  const found = await axe.run(part || document, {resultTypes: ["violations"]});
  return found.violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => one.id + ": " + one.nodes.map((node) => node.html.slice(0, 90)).join(" | "));
}
"""


class Deck:
    """A deck in a page that can reach nothing, with a record of what it asked for and what went wrong."""

    def __init__(self, browser, file, *, javascript=True):
        self.requests, self.problems = [], []
        context = browser.new_context(
            viewport={"width": WIDTH, "height": HEIGHT}, offline=True, java_script_enabled=javascript
        )
        context.set_default_timeout(30_000)
        context.on("page", self.watch)
        self.page = context.new_page()
        self.page.goto(file.as_uri())
        if javascript:
            self.page.wait_for_selector("html[data-ready]")

    def watch(self, page):
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda line: self.problems.append(line.text) if line.type in ("error", "warning") else None)

    def go(self, number, fragments=99):
        """Go to a slide, all its fragments shown."""
        self.page.evaluate("([n, f]) => Reveal.slide(n, 0, f)", [number, fragments])
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

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
def files(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("decks"), {}

    def file_of(lesson, minutes=90):
        if (lesson, minutes) not in made:
            made[lesson, minutes] = folder / f"{lesson.stem}.{minutes}.html"
            size = write_deck(read_notebook(lesson), made[lesson, minutes], path=minutes)
            assert size == made[lesson, minutes].stat().st_size < MAX_BYTES
        return made[lesson, minutes]

    return file_of


@pytest.fixture
def open_deck(browser, files):
    decks = []

    def open_it(lesson, **options):
        deck = Deck(browser, files(lesson), **options)
        decks.append((deck, files(lesson)))
        return deck

    yield open_it
    for deck, file in decks:
        deck.page.context.close()
        assert deck.problems == []
        assert {url.partition("#")[0] for url in deck.requests if not url.startswith(("data:", "about:"))} == {
            file.as_uri()
        }


each_lesson = pytest.mark.parametrize("lesson", TAUGHT, ids=lambda path: path.stem)


@each_lesson
def test_nothing_overflows_and_all_text_can_be_read(open_deck, lesson):
    deck = open_deck(lesson)
    wrong = {}
    for number in range(deck.page.evaluate("Reveal.getTotalSlides()")):
        deck.go(number)
        if found := deck.page.evaluate(MEASURE):
            wrong[deck.name()] = found
        for place in range(deck.page.locator("section.present .course-stepper > details").count()):
            deck.page.evaluate(OPEN_FRAME, place)
            if found := deck.page.evaluate(MEASURE):
                wrong[f"{deck.name()}, frame {place + 1}"] = found
    assert wrong == {}


OPEN_FRAME = """
(place) => Reveal.getCurrentSlide().querySelectorAll(".course-stepper > details")
  .forEach((frame, i) => { frame.open = i === place; })
"""


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("p.textContent = 'so many words '.repeat(400)", "overflows"),
        ("p.style = 'font-size: 15px'; p.textContent = 'small print'", "15 px"),
        ("p.outerHTML = '<pre style=\"font-size: 19px\">code</pre>'", "19 px"),
        ("p.innerHTML = '<img width=2000 src=\"' + document.images[0].src + '\" style=\"width:20px\">'", "shrunk"),
    ],
)  # fmt: skip
def test_the_measurement_sees_a_fault(open_deck, fault, found):
    deck = open_deck(TAUGHT[0])
    deck.go(1)
    assert deck.page.evaluate(MEASURE) == []
    deck.page.evaluate(
        "() => { const p = document.createElement('p'); Reveal.getCurrentSlide().querySelector('.body').append(p); "
        f"{fault}; return Promise.all([...document.images].map((image) => image.decode())); }}"
    )
    assert any(found in problem for problem in deck.page.evaluate(MEASURE))


@each_lesson
def test_axe_finds_nothing_serious(open_deck, lesson):
    deck = open_deck(lesson)
    deck.page.evaluate(axe_script())
    wrong = {"the page": deck.page.evaluate(AXE)}
    for theme in ("light", "dark"):
        deck.page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        for number in range(deck.page.evaluate("Reveal.getTotalSlides()")):
            deck.go(number)
            wrong[f"{deck.name()}, {theme}"] = deck.page.evaluate(AXE, "section.present")
    assert {place: found for place, found in wrong.items() if found} == {}


def test_axe_sees_a_fault(open_deck):
    deck = open_deck(TAUGHT[0])
    deck.page.evaluate(axe_script())
    deck.page.evaluate(
        "() => Reveal.getCurrentSlide().querySelector('.body')"
        ".insertAdjacentHTML('beforeend', '<p style=\"color: #bbb\">pale</p><input>')"
    )
    assert {line.partition(":")[0] for line in deck.page.evaluate(AXE, "section.present")} == {
        "color-contrast",
        "label",
    }


@each_lesson
def test_every_figure_has_its_alt_text_and_every_formula_is_typeset(open_deck, lesson):
    deck = open_deck(lesson)
    alts = deck.page.locator(".slides img").evaluate_all("(images) => images.map((image) => image.alt)")
    assert alts and all(len(alt) > 20 for alt in alts)
    assert deck.page.locator("mjx-container").count() > 0
    assert deck.page.locator("mjx-merror, [data-mjx-error]").count() == 0
    left = deck.page.evaluate(
        "[...document.querySelectorAll('section')].map((s) => s.querySelector('.page').innerText)"
    )
    assert not [text for text in left if re.search(r"\$[^$\n]+\$", text)]


def test_a_widget_answers_the_keyboard_the_mouse_and_a_clicker(open_deck):
    deck = open_deck(TAUGHT[0])
    stepper = deck.find(".course-stepper")
    slide, frame = deck.name(), stepper.locator("details[open]")
    first = frame.locator("img").get_attribute("alt")
    slider = stepper.get_by_role("slider").first
    slider.focus()
    deck.page.keyboard.press("ArrowRight")
    assert frame.locator("img").get_attribute("alt") != first and deck.name() == slide
    assert slider.get_attribute("aria-valuetext") == stepper.locator("output").first.inner_text()
    stepper.get_by_role("button", name="back").first.click()
    assert frame.locator("img").get_attribute("alt") == first
    slider.focus()  # a clicker takes the slide on, whatever has the focus
    seen = [first]
    for _ in range(20):
        deck.page.keyboard.press("PageDown")
        if deck.name() != slide:
            break
        seen.append(frame.locator("img").get_attribute("alt"))
    assert len(set(seen)) == len(seen) > 2 and deck.name() != slide
    deck.page.keyboard.press("PageUp")
    assert deck.name() == slide and frame.locator("img").get_attribute("alt") == seen[-1]


def test_all_frames_of_all_widgets_can_be_reached_with_their_own_words(open_deck):
    deck = open_deck(TAUGHT[0])
    for number in range(deck.page.evaluate("Reveal.getTotalSlides()")):
        deck.go(number, -1)
        stepper = deck.page.locator("section.present .course-stepper")
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


def test_the_notes_stand_in_a_window_of_their_own_that_follows(open_deck):
    deck = open_deck(TAUGHT[0])
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


def test_the_theme_changes_by_key(open_deck):
    deck = open_deck(TAUGHT[0])
    colour = "getComputedStyle(document.body).backgroundColor"
    assert deck.page.evaluate(colour) == "rgb(255, 255, 255)"
    deck.page.keyboard.press("t")
    assert deck.page.evaluate(colour) == "rgb(20, 24, 28)"


def test_an_answer_is_folded_away_until_it_is_asked_for(open_deck):
    deck = open_deck(TAUGHT[0])
    details = deck.find(".question details, .output details:not(.course-stepper *)")
    slide = deck.name()
    assert details.get_attribute("open") is None
    deck.page.keyboard.press("PageDown")
    assert details.get_attribute("open") is not None and deck.name() == slide
    deck.page.keyboard.press("PageUp")
    assert details.get_attribute("open") is None


def test_without_javascript_all_slides_and_frames_are_there(open_deck):
    deck = open_deck(TAUGHT[0], javascript=False)
    assert deck.page.locator("section h2").last.is_visible()
    summaries = deck.page.locator(".course-stepper summary")
    assert summaries.count() > 4
    assert summaries.nth(1).is_visible()
