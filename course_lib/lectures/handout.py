"""What a lecture leaves behind: its slides with the notes as PDF, and the whole lesson for reading as HTML and PDF."""

import html
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from course_lib.lectures.assets import MATHJAX, asset
from course_lib.lectures.browser import find_browser, print_pdf
from course_lib.lectures.deck import write_deck, write_file
from course_lib.lectures.fonts import font_css
from course_lib.lectures.mine import Mine
from course_lib.lectures.rendering import code_html, fill, inline_script, markdown_html, outputs_html, template_text


def write_handout(
    lesson: NotebookNode,
    folder: Path,
    name: str,
    *,
    path: int | None = None,
    mine: Mine | None = None,
    student: bool = False,
) -> list[Path]:
    """Write slides with notes (PDF) and the lesson for reading (HTML and PDF) into a folder; returns the files.

    `mine` and `student` are as in `deck.slideshow_of`: without notes two slides stand on a page.
    Raises CannotStart without a browser to print with, or if the lesson has no slides.
    """
    browser = find_browser()
    reading = folder / f"{name}.lesson.html"
    with tempfile.TemporaryDirectory() as temporary:
        deck = Path(temporary) / "deck.html"
        write_deck(lesson, deck, path=path, mine=mine, student=student)
        slides = print_pdf(deck, folder / f"{name}.slides.pdf", browser=browser, query="?handout")
    write_file(reading, lesson_page(lesson).encode())
    return [slides, reading, print_pdf(reading, reading.with_suffix(".pdf"), browser=browser)]


def lesson_page(lesson: NotebookNode) -> str:
    """The whole lesson as one page for reading, with everything inside it: no request, no kernel."""
    heading = next((found[1] for cell in lesson.cells if (found := re.search(r"^# (.+)$", cell.source, re.M))), "")
    return fill(
        "lesson.html.j2",
        title=html.escape(heading),
        cells=list(_cells(lesson)),
        fonts=font_css(),
        css=template_text("lesson.css"),
        mathjax=inline_script(asset(MATHJAX, "es5/tex-svg-full.js").decode()),
    )


def _cells(lesson: NotebookNode) -> Iterator[str]:
    for cell in lesson.cells:
        if cell.cell_type == "markdown":
            yield f'<div class="words">{markdown_html(cell.source)}</div>'
        elif cell.cell_type == "code":
            yield f'<div class="code">{code_html(cell.source)}{outputs_html(cell)}</div>'
