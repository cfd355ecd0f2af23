"""A live lecture: the deck is there at once, its widgets come to life and recompute, and nothing else is asked."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import TimeoutError, expect

from course_lib.commands.files import read_notebook
from course_lib.commands.lessons import find_lesson
from course_lib.lectures.live import answers, environment, prepare, server_command
from course_lib.lectures.story import slides_of
from tests.axe import axe_script
from tests.browser.lab import AXE, HOME, ROOT, SECOND
from tests.browser.test_slides import MEASURE
from tests.ports import free_port

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

LESSON, OPENING, VISION = (read_notebook(find_lesson(number)) for number in ("05", "00", "11"))
TRANSLATOR, SOFTMAX, MASK = WIDGETS = ["talk-to-it", "play-width-and-temperature", "play-paint-a-mask"]

NEXT = {SOFTMAX: MASK, MASK: "your-turn", TRANSLATOR: SOFTMAX}  # in the short lesson
DRAWING = ":is(.widget-htmlmath-content, .play-views)"
FRENCH = "[lang=fr].large"
ANSWER_TIME = 240 * SECOND  # for one answer of a kernel on a busy machine
START_TIME = 300 * SECOND  # for a kernel that loads PyTorch there
VALUE = "(one) => one.getAttribute('aria-valuenow') || one.value || one.textContent"

STILL = "!document.querySelector('section.present').getAnimations({ subtree: true }).length"

KERNEL = """
() => {  // while the page arrives in pieces, there may be half a settings element
  try { return JSON.parse(document.getElementById("jupyter-config-data").textContent).kernelId; } catch { return null; }
}
"""

# What lesson 05's widgets need of the cells above them. Voila tells a kernel how the page was asked for, so that one
# server has pages of several kinds.
FIRST = """
import os, time
from course_lib.data import checkpoints
from course_lib.lessons.lesson_05 import page

def in_vain(name):
    raise FileNotFoundError("no such data\\nand more of it")

asked = os.environ["QUERY_STRING"]
if "in-vain" in asked:
    checkpoints.load_trained = in_vain
if "slowly" in asked:
    time.sleep(600)
"""


def short_lesson():
    """Lesson 05's cells with widgets, its first slides and its last, and one cell that stands for the others."""
    shown = [cell for cell in LESSON.cells if "lecture" in cell.metadata]
    widgets = [cell for cell in shown if "page.play(" in cell.source]
    assert len(widgets) == 3
    return new_notebook(cells=[shown[0], new_code_cell(FIRST), *widgets, shown[-1]], metadata=LESSON.metadata)


@contextmanager
def served(lesson, folder, **options):
    """A server of a lesson's lecture: its process, with its address."""
    port = free_port()
    command = server_command(prepare(lesson, "lesson", folder, **options), port=port)
    process = psutil.Popen(command, env=environment(folder))
    process.address = f"http://127.0.0.1:{port}/"
    try:
        assert answers(port, running=process.is_running)
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of the short lesson."""
    with served(short_lesson(), tmp_path_factory.mktemp("lecture")) as process:
        yield process


class Lecture:
    """A page of a live lecture, with a record of what it asked for and what went wrong."""

    def __init__(self, browser, address):
        self.asked, self.problems = [], []
        self.context = browser.new_context(viewport={"width": 1280, "height": 720})
        self.context.set_default_timeout(ANSWER_TIME)
        self.context.on("page", self.watch)
        self.page = self.context.new_page()
        self.page.goto(address, wait_until="commit")
        self.page.wait_for_selector("html[data-ready]")
        self.line = self.page.locator(".live-line")

    def watch(self, page):
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda line: self.problems.append(line.text) if line.type == "error" else None)

    def outside(self):
        """What it asked for elsewhere."""
        home = ("data:", "blob:", *(f"http://{name}:" for name in HOME))
        return [url for url in self.asked if not url.startswith(home)]

    def wait_until_alive(self, widgets=WIDGETS):
        alive = f"document.querySelectorAll('section.alive').length === {len(widgets)}"
        try:
            self.page.wait_for_function(alive, timeout=START_TIME)
        except TimeoutError:
            found = self.page.evaluate("[...document.querySelectorAll('section.alive')].map((one) => one.id)")
            pytest.fail(f"alive are {found}; the line says {self.line.text_content()!r}; problems: {self.problems}")
        expect(self.line).to_have_text("")

    def go(self, name):
        place = self.page.evaluate("(name) => Reveal.getSlides().findIndex((slide) => slide.id === name)", name)
        assert place >= 0, f"no slide is called {name!r}"
        self.page.evaluate("(place) => Reveal.slide(place)", place)
        self.settle()

    def settle(self):
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def slide(self):
        return self.page.evaluate("Reveal.getCurrentSlide().id")

    def here(self, selector, **options):
        return self.page.locator(f"section.present .live {selector}", **options)

    def played(self, selector, **options):
        """What a playground that computes on the page has on this slide."""
        return self.page.locator(f"section.present .course-playground-live {selector}", **options)

    @contextmanager
    def shown_anew(self, what):
        """Fails unless what is done meanwhile changes the numbers of a playground at once, on the same slide."""
        slide, views = self.slide(), self.played(".play-views")
        before = views.inner_text()
        yield
        assert views.inner_text() != before, f"{what} shows nothing new"
        assert self.slide() == slide, f"{what} leaves the slide"

    @contextmanager
    def drawn_anew(self, what):
        """Fails unless what is done meanwhile makes a new drawing, on the same slide."""
        slide, drawing = self.slide(), self.here(DRAWING)
        before = drawing.inner_html()
        yield
        other = "([one, before]) => one.innerHTML !== before"
        try:
            self.page.wait_for_function(other, arg=[drawing.element_handle(), before])
        except TimeoutError:
            pytest.fail(f"{what} draws nothing new")
        assert self.slide() == slide, f"{what} leaves the slide"

    def preset(self, words):
        return self.here("button", has_text=words).first

    def drag(self, handle, *, by, up=0):
        box = handle.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + by, y - up, steps=3)
        self.page.mouse.up()

    def kernel(self, server):
        """The process that runs this page's lesson; its name comes with the end of the page's settings."""
        name = self.page.wait_for_function(KERNEL, timeout=START_TIME).json_value()
        return next(process for process in server.children() if any(name in word for word in process.cmdline()))


@pytest.fixture
def open_lecture(browser, server):
    """open_lecture(query): a page of its own, with a kernel of its own."""
    lectures = []

    def open_it(query=""):
        lectures.append(Lecture(browser, server.address + query))
        return lectures[-1]

    yield open_it
    for lecture in lectures:
        lecture.context.close()
        assert lecture.asked and lecture.outside() == []


@pytest.fixture(scope="module")
def shared(browser, server):
    """One page for many tests, and what its translator says at the start."""
    lecture = Lecture(browser, server.address)
    lecture.wait_until_alive()
    lecture.go(TRANSLATOR)
    expect(lecture.here(FRENCH)).to_contain_text("zone")
    yield lecture, lecture.here(FRENCH).inner_text()
    lecture.context.close()
    assert lecture.problems == [] and lecture.asked and lecture.outside() == []


@pytest.fixture
def lecture(shared):
    """A page whose widgets live, each at its start."""
    lecture, start = shared
    lecture.page.set_viewport_size({"width": 1280, "height": 720})
    lecture.page.wait_for_function("Reveal.getScale() === 1")
    for playground in (SOFTMAX, MASK):
        lecture.go(playground)
        lecture.played("button", has_text="Back to the start").click()
    lecture.go(TRANSLATOR)
    lecture.preset("Back to the start").click()
    expect(lecture.here(FRENCH)).to_have_text(start, use_inner_text=True)
    return lecture


# ---------------------------------------------------------------------------------------------- widgets that live


def test_the_slides_do_not_wait_for_the_run(open_lecture):
    lecture = open_lecture("?slowly")
    expect(lecture.line).to_contain_text("The lesson runs: ")
    lecture.page.keyboard.press("End")
    assert lecture.slide() == slides_of(LESSON)[-1].name
    lecture.go(TRANSLATOR)
    assert lecture.page.locator("section.present .course-stepper").is_visible()
    lecture.go(SOFTMAX)  # computes on the page, without the run
    assert not lecture.page.locator("section.present .course-stepper").is_visible()
    with lecture.shown_anew("a bar"):
        lecture.played("[role=slider]").first.press("End")


def test_each_control_recomputes_by_keyboard_and_keeps_the_focus(lecture):
    lecture.go(SOFTMAX)
    assert not lecture.page.locator("section.present .course-stepper").is_visible()
    bars, sliders = lecture.played("[role=slider]"), lecture.played("[type=range]")
    assert (bars.count(), sliders.count()) == (5, 2)
    keys = {"ArrowRight": [*bars.all(), *sliders.all()], "Space": [lecture.played(".play-switch")]}
    for key, controls in keys.items():
        for control in controls:
            with lecture.shown_anew(control.get_attribute("aria-label")):
                control.press(key)
            expect(control).to_be_focused()
    lecture.go(MASK)
    square, preset = lecture.played("[data-at='1 1']").first, lecture.played("button", has_text="nothing").first
    for control, key in [(square, "Space"), (preset, "Enter")]:
        with lecture.shown_anew(control.inner_text()):
            control.press(key)
        expect(control).to_be_focused()
    lecture.go(TRANSLATOR)
    box = lecture.here("input")
    with lecture.drawn_anew("an example"):
        lecture.preset("She doesn't").press("Enter")
    with lecture.drawn_anew("a sentence"):
        box.press("Control+a")
        box.press_sequentially("They see the street")  # letters that are shortcuts of the slides among them
    expect(box).to_have_value("They see the street")
    expect(lecture.here(DRAWING)).to_contain_text("I do not know the word “street”")


def test_each_widget_recomputes_by_mouse(lecture):
    lecture.go(SOFTMAX)
    with lecture.shown_anew("a bar"):
        lecture.drag(lecture.played(".play-grip").first, by=0, up=60)
    with lecture.shown_anew("a slider"):
        lecture.drag(lecture.played("[type=range]").first, by=60)
    lecture.go(MASK)
    with lecture.shown_anew("a stroke"):
        lecture.drag(lecture.played("[data-at='1 1']").first, by=160)
    with lecture.shown_anew("a preset"):
        lecture.played("button", has_text="nothing").first.click()
    expect(lecture.played(".play-said")).to_contain_text("not NaN")
    lecture.go(TRANSLATOR)
    with lecture.drawn_anew("an example"):
        lecture.preset("The rich actress").click()
    expect(lecture.here(DRAWING)).to_contain_text("actrice")


def test_a_slider_follows_the_mouse_at_the_size_of_any_screen(lecture):
    lecture.page.set_viewport_size({"width": 1728, "height": 972})
    lecture.page.wait_for_function("Reveal.getScale() === 1.35")
    lecture.go(SOFTMAX)
    zero = lecture.played(".play-zero").first.bounding_box()
    grip = lecture.played(".play-grip").first.bounding_box()
    with lecture.shown_anew("the bar"):
        lecture.drag(lecture.played(".play-grip").first, by=0, up=grip["y"] + grip["height"] / 2 - zero["y"])
    expect(lecture.played("[role=slider]").first).to_have_attribute("aria-valuetext", re.compile(r"^-?0\.[01];"))


@pytest.mark.parametrize(
    ("slide", "selector"),
    [
        (SOFTMAX, "[role=slider]"),
        (SOFTMAX, "[type=range]"),
        (SOFTMAX, "input.play-number"),
        (MASK, "[data-at='0 0']"),
        (TRANSLATOR, "input"),
    ],
)
def test_a_clicker_leaves_each_control_and_does_not_move_it(lecture, slide, selector):
    lecture.go(slide)
    control = (lecture.here if slide == TRANSLATOR else lecture.played)(selector).first
    control.focus()
    before = control.evaluate(VALUE)
    lecture.page.keyboard.press("PageDown")
    lecture.settle()
    assert lecture.slide() == NEXT[slide]
    lecture.page.keyboard.press("PageUp")
    assert lecture.slide() == slide
    assert control.evaluate(VALUE) == before


def test_after_a_click_on_a_button_the_arrows_still_change_the_slide(lecture):
    lecture.go(MASK)
    lecture.played("button", has_text="full").first.click()
    lecture.page.keyboard.press("ArrowRight")
    assert lecture.slide() == NEXT[MASK]


def test_in_the_lecture_of_lesson_00_the_hall_dictates_and_the_network_answers(browser, tmp_path):
    """The whole lesson, as long as it is offered: its network is trained while the slides stand there."""
    with served(OPENING, tmp_path) as server:
        lecture = Lecture(browser, server.address)
        lecture.page.evaluate(axe_script())
        lecture.wait_until_alive(["english-or-french", "which-letters-would-you-choose"])
        lecture.go("english-or-french")
        box, said = lecture.played("input"), lecture.played(".play-note").first
        expect(said).to_have_text("“the weather is fine today”: the network says English.")
        lecture.played("button", has_text="il fait beau").click()
        expect(said).to_contain_text("the network says French.")
        box.press("Control+a")
        box.press_sequentially("Who showed the web to us")  # letters that are shortcuts of the slides among them
        expect(said).to_have_text("“Who showed the web to us”: the network says English.")
        expect(box).to_be_focused()
        box.press("Control+a")
        box.press("Delete")
        expect(said).to_have_text("Type at least one word.")
        lecture.played("button", has_text="Back to the start").press("Enter")
        expect(said).to_contain_text("the weather is fine today")
        wrong = {}
        for theme in ("light", "dark"):
            lecture.page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
            wrong[theme] = lecture.page.evaluate(MEASURE) + lecture.page.evaluate(AXE, "section.present")
        assert wrong == {"light": [], "dark": []}
        box.focus()
        lecture.page.keyboard.press("PageDown")
        assert lecture.slide() != "english-or-french"
        lecture.context.close()
        assert lecture.problems == [] and lecture.asked and lecture.outside() == []


VISION_FIRST = """
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_11 import page
from course_lib.lessons.picture import the_picture

textured, coin = load_trained("vit"), the_picture().pixels
"""


def test_what_is_too_much_for_a_slide_becomes_smaller_and_can_still_be_drawn_upon(browser, tmp_path, capfd):
    """Lesson 11: a pad with its goals, beside many pictures."""
    cells = [cell for cell in VISION.cells if "page.play(" in cell.source]
    names = ["draw-a-digit-remove-patches", "hide-patches-and-see-the-class-change"]
    lesson = new_notebook(
        cells=[VISION.cells[0], new_code_cell(VISION_FIRST), *cells, VISION.cells[-1]], metadata=VISION.metadata
    )
    with served(lesson, tmp_path) as server:
        lecture = Lecture(browser, server.address)
        lecture.wait_until_alive(names)
        wrong = {}
        for name in names:
            lecture.go(name)
            wrong[name] = lecture.page.evaluate(MEASURE)
        assert wrong == dict.fromkeys(names, [])
        lecture.go(names[0])
        said = lecture.here(".play-said").first
        before = said.text_content()
        lecture.drag(lecture.here("canvas").first, by=80)
        expect(said).not_to_have_text(before, timeout=60_000)
        lecture.context.close()
        assert lecture.problems == []
    warned = capfd.readouterr().err
    assert "eavesdropping" not in warned and "websocket_ping" not in warned and "Warning" not in warned


# ---------------------------------------------------------------------------------------------- seen and heard


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_overflows_all_text_can_be_read_and_axe_finds_nothing_serious(lecture, theme):
    lecture.page.evaluate(axe_script())
    lecture.page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
    wrong = {}
    for slide, presets in ((TRANSLATOR, ["She"]), (SOFTMAX, []), (MASK, ["nothing", "full"])):
        lecture.go(slide)
        for preset in [None, *presets]:
            if preset and slide == MASK:
                with lecture.shown_anew(preset):
                    lecture.played("button", has_text=preset).first.click()
            elif preset:
                with lecture.drawn_anew(preset):
                    lecture.preset(preset).click()
            lecture.page.wait_for_function(STILL)
            wrong[slide, preset] = lecture.page.evaluate(MEASURE)
        wrong[slide, "axe"] = lecture.page.evaluate(AXE, "section.present")
    wrong["the page"] = lecture.page.evaluate(AXE)
    assert {place: found for place, found in wrong.items() if found} == {}


def test_the_notes_stand_in_a_window_of_their_own_that_follows(lecture):
    lecture.go(slides_of(LESSON)[0].name)
    with lecture.page.expect_popup() as opened:
        lecture.page.keyboard.press("s")
    notes = opened.value
    number = len(slides_of(short_lesson()))
    assert notes.locator("#number").inner_text() == f"Slide 1 of {number}"
    assert len(notes.locator("#notes").inner_text()) > 40
    notes.keyboard.press("PageDown")
    assert (
        notes.locator("#number").inner_text() == f"Slide 2 of {number}" and lecture.slide() != slides_of(LESSON)[0].name
    )
    lecture.go(SOFTMAX)
    with lecture.shown_anew("a bar beside the notes"):
        lecture.played("[role=slider]").first.press("ArrowRight")
    assert notes.locator("#heading").inner_text() == "Play: width and temperature"
    notes.close()


# ---------------------------------------------------------------------------------------------- when it goes wrong


def test_when_the_kernel_dies_the_frames_come_back_and_the_lecture_goes_on(open_lecture, server):
    lecture = open_lecture()
    lecture.wait_until_alive()
    lecture.go(TRANSLATOR)
    with lecture.page.expect_popup() as opened:
        lecture.page.keyboard.press("s")
    lecture.kernel(server).kill()
    expect(lecture.line).to_contain_text("The process behind them has ended: reload the page")
    expect(opened.value.locator("#live")).to_contain_text("The process behind them has ended")
    stepper = lecture.page.locator("section.present .course-stepper")
    first = stepper.locator("details[open]").inner_text()
    lecture.page.bring_to_front()
    lecture.page.keyboard.press("PageDown")
    assert lecture.slide() == TRANSLATOR and stepper.locator("details[open]").inner_text() != first
    assert lecture.line.is_visible() and not lecture.here("").is_visible()
    lecture.go(SOFTMAX)  # needs no kernel
    assert not lecture.line.is_visible()
    with lecture.shown_anew("a bar"):
        lecture.played("[role=slider]").first.press("End")
    lecture.go(slides_of(LESSON)[0].name)
    assert not lecture.line.is_visible()  # a slide without a widget does not complain


def test_a_cell_that_fails_is_named_and_stops_no_widget_but_those_that_need_it(open_lecture):
    lecture = open_lecture("?in-vain")
    failed = r"^Cell \d failed, and widgets that need it step through frames. FileNotFoundError: no such data$"
    expect(lecture.line).to_have_text(re.compile(failed), timeout=START_TIME)
    lecture.go(TRANSLATOR)
    assert lecture.line.is_visible() and lecture.page.locator("section.present .course-stepper").is_visible()
    for widget in (SOFTMAX, MASK):
        lecture.go(widget)
        expect(lecture.played(".play-views")).to_be_visible()
        assert not lecture.line.is_visible()


def test_a_page_that_is_left_during_the_run_takes_its_kernel_with_it(open_lecture, server):
    lecture = open_lecture("?slowly")
    kernel = lecture.kernel(server)
    lecture.page.reload(wait_until="commit")
    kernel.wait(timeout=ANSWER_TIME / SECOND)
    lecture.page.wait_for_selector("html[data-ready]")
    assert lecture.kernel(server).pid != kernel.pid


OWN_SLIDES = "Reveal.getSlides().map((slide) => slide.id).filter((id) => !id.startsWith('references'))"


def test_course_lecture_serves_the_whole_lesson_until_ctrl_c(browser):
    port = free_port()
    command = [sys.executable, "-m", "course_lib.cli", "lecture", "05", "--no-browser", f"--port={port}"]
    process = psutil.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout.readline() == (
            f"The lecture is at http://127.0.0.1:{port}/ for this machine alone. To stop it, press Ctrl-C here.\n"
        )
        lecture = Lecture(browser, f"http://127.0.0.1:{port}/")
        assert lecture.page.evaluate(OWN_SLIDES) == [slide.name for slide in slides_of(LESSON)]
        expect(lecture.line).to_contain_text("The lesson runs")  # so the page knows which process to watch
        started = process.children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=ANSWER_TIME / SECOND) == 0
        assert psutil.wait_procs(started, timeout=30)[1] == [] and len(started) >= 2  # Voila and a kernel
        lecture.go(MASK)
        expect(lecture.line).to_contain_text("The lecture was stopped in the terminal: start it again")
        lecture.context.close()
        assert lecture.outside() == []
    finally:
        for left in [*process.children(recursive=True), process] if process.is_running() else []:
            left.kill()


def test_a_lecture_without_widgets_says_nothing_of_them(browser, tmp_path):
    with served(LESSON, tmp_path, path=30) as server:
        lecture = Lecture(browser, server.address)
        lecture.page.wait_for_load_state("load")
        assert lecture.page.evaluate(OWN_SLIDES) == [slide.name for slide in slides_of(LESSON, 30)]
        assert lecture.line.text_content() == ""
        lecture.context.close()
        assert lecture.problems == []
