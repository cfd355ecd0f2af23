"""A live lecture: the deck is there at once, its widgets come to life and recompute, and nothing else is asked."""

import os
import re
import signal
import subprocess

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.data.place import CannotStart
from course_lib.lectures import live
from course_lib.lectures.live import environment, prepare, server_command
from course_lib.tools.files import read_notebook
from course_lib.tools.lessons import find_lesson
from tests.browser.lab import HOME

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

WIDGETS = ("softmax_explorer().live()", "mask_painter().live()")


def short_lesson():
    """The two widgets of lesson 05 that need no training, and what they import."""
    lesson = read_notebook(find_lesson("05"))
    cells = [cell for cell in lesson.cells if cell.source in WIDGETS]
    assert len(cells) == 2
    first = new_code_cell(
        "import time\nfrom course_lib.classroom.widgets import mask_painter, softmax_explorer\ntime.sleep(5)"
    )
    return new_notebook(cells=[first, *cells], metadata=lesson.metadata)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lecture")
    command = server_command(prepare(short_lesson(), "05", folder), port=None, browser=False)
    process = subprocess.Popen(
        [*command, "--Voila.port_retries=50"],
        env=environment(folder),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for line in process.stderr:
        if found := re.search(r"http://\S+", line):
            break
    yield found[0]
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate()


@pytest.fixture
def page(browser, address):
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.set_default_timeout(60_000)
    page, asked, problems = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    page.goto(address, wait_until="commit")
    page.wait_for_selector("html[data-ready]")
    yield page
    context.close()
    assert problems == []
    outside = [url for url in asked if not url.startswith(("data:", "blob:", *(f"http://{name}:" for name in HOME)))]
    assert asked and outside == []


def test_the_widgets_of_a_lecture_recompute_on_their_slides(page):
    assert "The lesson runs" in page.locator(".live-line").inner_text() or not page.locator("section.alive").count()
    assert page.locator("section.present .course-stepper").is_visible()  # the deck does not wait for the run
    page.wait_for_selector("section.present.alive .jupyter-widgets")
    page.wait_for_function("document.querySelector('.live-line').textContent === ''")
    assert not page.locator("section.present .course-stepper").is_visible()
    slide = page.evaluate("Reveal.getCurrentSlide().id")
    picture = page.locator("section.present .live img")
    before = picture.get_attribute("alt")
    handle = page.locator("section.present .live [role=slider]").nth(1)
    handle.press("ArrowRight")
    page.wait_for_function("(old) => document.querySelector('section.present .live img').alt !== old", arg=before)
    after = picture.get_attribute("alt")
    box = handle.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 60, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    page.wait_for_function("(old) => document.querySelector('section.present .live img').alt !== old", arg=after)
    assert page.evaluate("Reveal.getCurrentSlide().id") == slide
    page.keyboard.press("PageDown")
    assert page.evaluate("Reveal.getCurrentSlide().id") != slide
    page.locator("section.present .live button", has_text="nothing").click()
    page.wait_for_function("document.querySelector('section.present .live img').alt.includes('not NaN')")


def test_the_notes_window_works_beside_a_kernel(page):
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    assert opened.value.locator("#number").inner_text() == "Slide 1 of 2"


def test_without_voila_a_sentence_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(live, "find_spec", lambda name: None)
    with pytest.raises(CannotStart, match="Voila, which is not installed here. Install it with"):
        server_command(tmp_path, port=None, browser=False)


def test_the_server_listens_on_this_machine_alone(tmp_path):
    assert "--Voila.ip=127.0.0.1" in server_command(tmp_path, port=8899, browser=False)
