"""A live lecture: the deck is there at once, its widgets come to life and recompute, and nothing else is asked."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import expect

from course_lib.lectures.live import environment, free_port, prepare, server_command
from course_lib.lectures.story import slides_of
from course_lib.tools.files import read_notebook
from course_lib.tools.lessons import find_lesson
from tests.axe import axe_script
from tests.browser.lab import HOME, ROOT, SECOND
from tests.browser.test_slides import AXE, MEASURE

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

LESSON = read_notebook(find_lesson("05"))
TRANSLATOR, SOFTMAX, MASK = WIDGETS = ["talk-to-it", "play-width-and-temperature", "play-paint-a-mask"]

# What lesson 05's widgets need of the cells above them; a translator that is trained already takes no minutes.
# Voila tells a kernel how the page was asked for, so that one server has pages of several kinds.
FIRST = """
import os, time
from types import SimpleNamespace
from course_lib.data.checkpoints import load_trained
from course_lib.training.recipes import transformer

translator = load_trained("translator").model
task = SimpleNamespace(
    vocabularies=transformer.vocabularies,
    translate=lambda model, text: transformer.translate(model, text, place=transformer.Place(1, 2)),
)
asked = os.environ["QUERY_STRING"]
if "slowly" in asked:
    time.sleep(600)
if "in-vain" in asked:
    raise FileNotFoundError("no such data")
"""


def short_lesson():
    """Lesson 05's cells with widgets, its first slides and its last, and one cell that stands for the others."""
    shown = [cell for cell in LESSON.cells if "lecture" in cell.metadata]
    widgets = [cell for cell in shown if ".live()" in cell.source]
    assert len(widgets) == 3
    return new_notebook(cells=[shown[0], new_code_cell(FIRST), *widgets, shown[-1]], metadata=LESSON.metadata)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a server of the short lesson, and its process."""
    folder = tmp_path_factory.mktemp("lecture")
    command = server_command(prepare(short_lesson(), "05", folder), port=(port := free_port()))
    process = psutil.Popen(command, env=environment(folder), stderr=subprocess.PIPE, text=True)
    yield f"http://127.0.0.1:{port}/", process
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30)[1] is not None


class Lecture:
    """A page of a live lecture, with a record of what it asked for and what went wrong."""

    def __init__(self, browser, address):
        self.asked, self.problems = [], []
        self.context = browser.new_context(viewport={"width": 1280, "height": 720})
        self.context.set_default_timeout(60 * SECOND)
        self.context.on("page", self.watch)
        self.page = self.context.new_page()
        for _ in range(100):
            try:
                self.page.goto(address, wait_until="commit")
                break
            except Exception:
                time.sleep(0.2)
        self.page.wait_for_selector("html[data-ready]")

    def watch(self, page):
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda line: self.problems.append(line.text) if line.type == "error" else None)

    def wait_until_it_lives(self):
        self.page.wait_for_function(f"document.querySelectorAll('section.alive').length === {len(WIDGETS)}")

    def go(self, name):
        self.page.evaluate("(name) => Reveal.slide(Reveal.getSlides().findIndex((slide) => slide.id === name))", name)
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def slide(self):
        return self.page.evaluate("Reveal.getCurrentSlide().id")

    def here(self, selector):
        return self.page.locator(f"section.present .live {selector}")

    def drawn(self):
        """What the present widget's drawing says."""
        return self.here(".widget-htmlmath-content").inner_text()

    @contextmanager
    def new_drawing(self):
        """Fails unless what is done meanwhile makes a new drawing, on the same slide."""
        slide, before = self.slide(), self.drawn()
        yield
        expect(self.here(".widget-htmlmath-content")).not_to_have_text(before, use_inner_text=True)
        self.page.wait_for_timeout(150)  # whatever still comes of it comes now
        assert self.slide() == slide


@pytest.fixture
def open_lecture(browser, server):
    lectures = []

    def open_it(query=""):
        lectures.append(Lecture(browser, server[0] + query))
        return lectures[-1]

    yield open_it
    for lecture in lectures:
        lecture.context.close()
        outside = [
            url for url in lecture.asked if not url.startswith(("data:", "blob:", *(f"http://{name}:" for name in HOME)))
        ]
        assert lecture.asked and outside == []
