"""A playground under a learner's hands: on a page as the site serves it, or in a cell of a notebook."""

import html
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from playwright.sync_api import Browser, Locator, Page, Route, expect

from course_lib.classroom.widgets import Explorer
from course_lib.classroom.widgets.script import bundle, classic
from course_lib.site.models import export_model

SITE = "http://course.test"
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>A playground</title><body data-theme="auto" style="margin: 12px; font-family: sans-serif">
<style>body {{ background: light-dark(#fff, #14181c); color-scheme: light dark }}</style>
<div class="course-playground" data-playground="{name}" data-config="{config}"><p>static form</p></div>
<script src="/playgrounds/{name}.js"></script></body></html>"""
START = """(kernel) => {
  const box = document.querySelector(".course-playground"), { playground, config } = box.dataset;
  window.told = [];
  if (!kernel) return startPlayground(box);
  box.replaceChildren();
  window.remove = coursePlaygrounds[playground]({ root: box, config: JSON.parse(config), kernel: {
    send: (message) => told.push(message), on() {},
    async ask(name, payload) {
      const { numbers, value } = await kernelAnswers(name, payload);
      return numbers ? Float32Array.from(numbers) : value;
    } } });
}"""


class Played:
    """The live form of a playground; `root` is its page, or the part of a page that it is in."""

    def __init__(self, root: Page | Locator):
        self.root, self.page = root, root.page if isinstance(root, Locator) else root
        self.said, self.goals = root.locator(".play-said"), root.locator(".play-goals li.reached")
        self.note, self.status = root.locator(".play-note").first, root.get_by_role("status").first

    # ------------------------------------------------------------------------------- what is there

    def says(self, words) -> None:
        """Wait until these words stand where the result is said."""
        expect(self.said).to_contain_text(words)

    def says_no_more(self, words) -> None:
        expect(self.said).not_to_contain_text(words)

    def notes(self, words) -> None:
        """Wait until these words stand below the first view."""
        expect(self.note).to_contain_text(words)

    def contains(self, words) -> None:
        """Wait until these words stand there, in one element or over several."""
        expect(self.root).to_contain_text(words)

    def shows(self, words) -> None:
        """Wait until these words can be seen anywhere."""
        expect(self.root.get_by_text(words).locator("visible=true").first).to_be_visible()

    def counts(self, selector: str, number: int) -> None:
        expect(self.root.locator(selector)).to_have_count(number)

    def has_reached(self, goals) -> None:
        """Wait until so many goals are reached, or those with these texts."""
        expect(self.goals).to_have_count(goals) if isinstance(goals, int) else expect(self.goals).to_have_text(goals)

    def reached(self) -> int:
        return self.goals.count()

    def told(self) -> list[dict]:
        """What a kernel was told."""
        return self.page.evaluate("told")

    def slider(self, name: str, *, exact: bool = False) -> Locator:
        return self.root.get_by_role("slider", name=name, exact=exact)

    def number(self, label: str) -> float:
        return float(self.root.get_by_label(f"{label}, typed").input_value())

    def axes(self) -> str:
        """All that no drag may change: what stands in the plots beside lines, points and bars."""
        axes = "[...document.querySelectorAll('.play-view svg > :is(text, line)')].map((one) => one.outerHTML).join()"
        return self.page.evaluate(axes)

    # ------------------------------------------------------------------------------- what a learner does

    def press(self, button, *, exact: bool = False) -> None:
        self.root.get_by_role("button", name=button, exact=exact).first.click()

    def choose(self, words: str, among: str | None = None) -> None:
        """One of a few options, or the words beside a box."""
        root = self.root.get_by_role("radiogroup", name=among, exact=True) if among else self.root
        root.get_by_text(words, exact=True).last.click()

    def write(self, label: str, text: str) -> None:
        self.root.get_by_label(label, exact=True).fill(text)

    def enter(self, label: str, text: str) -> None:
        self.write(label, text)
        self.root.get_by_label(label, exact=True).press("Enter")

    def type(self, label: str, number: str) -> None:
        """A number beside a slider."""
        self.enter(f"{label}, typed", number)

    def click(self, role: str, name) -> None:
        self.root.get_by_role(role, name=name).click()

    def click_on(self, selector: str, number: int = 0) -> None:
        self.root.locator(selector).nth(number).click()

    def hover(self, selector: str) -> None:
        self.root.locator(selector).first.hover()

    def type_keys(self, label: str, text: str) -> None:
        """Key by key, as JupyterLab and a deck might hear them."""
        self.write(label, "")
        self.root.get_by_label(label, exact=True).press_sequentially(text)

    def keys(self, slider: str, *keys: str) -> None:
        """Press keys while a slider has the focus."""
        for key in keys:
            self.slider(slider).first.press(key)

    def drag(self, handle: Locator, by: Sequence[float]) -> None:
        """Hold this element and move it by so many pixels, right and down; the button stays down."""
        x, y = centre(handle)
        self.stroke((x, y), (x + by[0], y + by[1]), steps=8)

    def draw(self, *points: tuple[float, float]) -> None:
        """Draw through points of the pad, from 0 to 1; the button stays down."""
        box = self.root.locator("canvas").first.bounding_box()
        self.stroke(*((box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points))

    def stroke(self, *points: tuple[float, float], steps: int = 6) -> None:
        """Press the button at the first of these places and move to the others; it stays down."""
        self.page.mouse.move(*points[0])
        self.page.mouse.down()
        for point in points[1:]:
            self.page.mouse.move(*point, steps=steps)

    def let_go(self, *goals: bool) -> None:
        """Release the button: only then the goals are reached, and a kernel is told of them."""
        before = self.told()
        assert self.reached() == 0 and before == [{"touched": True}]
        self.page.mouse.up()
        self.has_reached(sum(goals))
        assert self.told() == [*before, {"reached": list(goals)}]


def centre(locator: Locator) -> tuple[float, float]:
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def is_inside(point: Locator, plane: dict[str, float]) -> bool:
    x, y = centre(point)
    return plane["x"] < x < plane["x"] + plane["width"] and plane["y"] < y < plane["y"] + plane["height"]


# ------------------------------------------------------------------------------------------- a page of the site


def reply(answer: Any) -> dict[str, Any]:
    """A kernel's answer: an array, which becomes a Float32Array on the page, or JSON."""
    return {"numbers": answer.tolist()} if isinstance(answer, np.ndarray) else {"value": answer}


@contextmanager
def served(browser: Browser, models: Path) -> Iterator[Callable[..., Played]]:
    """open(explorer, width=..., theme=..., kernel=...): its live form; models are written to a folder when asked for.

    With `kernel` the page asks `explorer.answers`, and `told` holds its messages. No page may complain of anything.
    """
    contexts, problems = [], []

    def complained(message) -> None:
        if message.type != "log" and "willReadFrequently" not in message.text:  # a test reads a canvas again and again
            problems.append(message.text)

    def answer(route: Route, text: str) -> None:
        _, folder, *file = urlsplit(route.request.url).path.split("/")
        if folder == "playgrounds":
            route.fulfill(body=classic(file[0].removesuffix(".js")), content_type="text/javascript")
        elif folder == "models":
            if not (models / file[0]).exists():
                export_model(Path(file[0]).stem, models)
            route.fulfill(body=(models / file[0]).read_bytes())
        else:
            route.fulfill(body=text, content_type="text/html")

    def open_it(explorer: Explorer, *, width=1280, height=720, theme="light", kernel=False) -> Played:
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", complained)
        text = PAGE.format(name=explorer.script, config=html.escape(json.dumps(explorer._page_config())))
        page.route("**/*", lambda route: answer(route, text))
        page.expose_function("kernelAnswers", lambda name, payload: reply(explorer.answers[name](payload)))
        page.goto(f"{SITE}/notebooks/page.html")
        page.evaluate(START, kernel)
        here = Played(page)
        here.problems = problems
        return here

    yield open_it
    for context in contexts:
        context.close()
    assert problems == []


def overflowing(page: Page) -> list[str]:
    """What is wider than its box, on a page that may not be wider than its window."""
    return page.evaluate(
        """() => [...document.querySelectorAll('html, .course-play, .course-play *')].filter((one) =>
          !(one instanceof SVGElement) && one.tagName !== 'INPUT' && one.scrollWidth > one.clientWidth + 1 &&
          getComputedStyle(one).display !== 'inline').map((one) => one.outerHTML.slice(0, 200))"""
    )


# ------------------------------------------------------------------------------------------- compared with Python


def computed(page: Page, explorer: Explorer, states: Sequence, function: str) -> list:
    """What `function([states, config])` returns, or writes as JSON, where all of the playground's modules is global."""
    page.add_script_tag(content=bundle(explorer.script))
    found = page.evaluate(function, [states, explorer._page_config()])
    return json.loads(found) if isinstance(found, str) else found


def judged_as_in_python(explorer: Explorer, states: Sequence[dict], found: Sequence[dict], *, same=1.0) -> np.ndarray:
    """Compare words and goals of the page with Python's; which goals are reached by some of the states comes back.

    At least so many of the words are the `same`, elsewhere a number may be rounded to its neighbour.
    """
    reached, equal = np.zeros(len(explorer.goals), bool), []
    for state, here in zip(states, found, strict=True):
        state = explorer.state(**state)
        assert here["goals"] == [bool(goal(state)) for goal in explorer.goals], state
        words = explorer.alt(state)
        assert same < 1 or here["words"] == words
        equal.append(here["words"] == words)
        reached |= np.array(here["goals"], bool)
    assert np.mean(equal) >= same
    return reached
