"""A playground that computes with trained models, as the site serves it to a page."""

import html
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from playwright.sync_api import Browser, Page, Route

from course_lib.classroom.widgets import Explorer
from course_lib.classroom.widgets.script import classic
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
  coursePlaygrounds[playground]({ root: box, config: JSON.parse(config), kernel: {
    send: (message) => told.push(message), on() {},
    async ask(name, payload) {
      const { numbers, value } = await kernelAnswers(name, payload);
      return numbers ? Float32Array.from(numbers) : value;
    } } });
}"""


def reply(answer: Any) -> dict[str, Any]:
    """A kernel's answer: an array, which becomes a Float32Array on the page, or JSON."""
    return {"numbers": answer.tolist()} if isinstance(answer, np.ndarray) else {"value": answer}


@contextmanager
def served(browser: Browser, models: Path) -> Iterator[Callable[..., Page]]:
    """open(explorer, width=..., theme=..., kernel=...): its live form; models are written to a folder when asked for.

    With `kernel` the page asks `explorer.answers`, and `told` holds its messages. No page may have an error at the end.
    """
    contexts, problems = [], []

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

    def open_it(explorer: Explorer, *, width=1280, height=720, theme="light", kernel=False) -> Page:
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        text = PAGE.format(name=explorer.script, config=html.escape(json.dumps(explorer._page_config())))
        page.route("**/*", lambda route: answer(route, text))
        page.expose_function("kernelAnswers", lambda name, payload: reply(explorer.answers[name](payload)))
        page.goto(f"{SITE}/notebooks/page.html")
        page.evaluate(START, kernel)
        return page

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
