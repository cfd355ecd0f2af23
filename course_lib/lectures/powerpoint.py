"""The slides as a PowerPoint file: each is a picture of the deck's, with its title and its notes as text to edit."""

import html
import io
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from course_lib.data.place import CannotStart
from course_lib.lectures.browser import find_browser, slide_pictures
from course_lib.lectures.deck import write_file, write_slideshow
from course_lib.lectures.story import ANSWER

PIXEL = 9525  # EMU, the unit of PowerPoint: 914,400 an inch, 96 pixels an inch
WIDE, HIGH = 1280, 720


def write_powerpoint(slideshow: NotebookNode, to: Path, *, theme: str = "light") -> int:
    """Write a slideshow as PowerPoint; returns its size in bytes.

    Answers stand in the notes. Raises CannotStart without python-pptx or a browser, or if the file cannot be written.
    """
    try:
        from pptx import Presentation
    except ImportError as error:
        raise CannotStart(
            "PowerPoint files are written with python-pptx, which is not installed here. Let the course install it: "
            "python3 course.py slides 05 --pptx   (or, into another environment: pip install 'python-pptx>=1,<2')"
        ) from error
    browser, made = find_browser(), Presentation()
    made.slide_width, made.slide_height = WIDE * PIXEL, HIGH * PIXEL
    with tempfile.TemporaryDirectory() as temporary:
        deck = Path(temporary) / "deck.html"
        write_slideshow(slideshow, deck, theme=theme)
        for picture, notes in zip(slide_pictures(deck, browser=browser), _notes(slideshow), strict=True):
            _add(made, picture, notes)
    contents = io.BytesIO()
    made.save(contents)
    write_file(to, contents.getvalue())
    return len(contents.getvalue())


def _add(made, picture: dict, notes: str) -> None:
    from pptx.dml.color import RGBColor
    from pptx.util import Pt

    slide = made.slides.add_slide(made.slide_layouts[5])  # "Title Only"
    title = slide.shapes.title
    title.left, title.top, title.width, title.height = (round(number * PIXEL) for number in picture["box"])
    title.text_frame.text = picture["title"]
    title.text_frame.word_wrap = True
    for side in ("left", "right", "top", "bottom"):
        setattr(title.text_frame, f"margin_{side}", 0)
    paragraph = title.text_frame.paragraphs[0]
    paragraph.alignment = 1  # left
    paragraph.font.size = Pt(picture["size"] * 0.75)
    paragraph.font.bold, paragraph.font.name = True, "Source Sans Pro"
    paragraph.font.color.rgb = RGBColor(*picture["colour"])
    image = slide.shapes.add_picture(io.BytesIO(picture["png"]), 0, 0, made.slide_width, made.slide_height)
    image._element.nvPicPr.cNvPr.set("descr", picture["alt"])
    slide.shapes._spTree.remove(image._element)
    slide.shapes._spTree.insert(2, image._element)  # behind the title
    slide.notes_slide.notes_text_frame.text = notes


def _notes(slideshow: NotebookNode) -> Iterator[str]:
    """Of each slide its notes, then the answer that it folds away, as plain text."""
    parts: list[str] | None = None
    for cell in slideshow.cells:
        kind = cell.metadata.slideshow.slide_type
        if kind == "slide":
            if parts is not None:
                yield "\n\n".join(parts)
            parts = []
        elif kind == "notes":
            parts.insert(0, re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", cell.source).replace("**", ""))
        for output in cell.get("outputs", []):
            for found in ANSWER.finditer("".join(output.get("data", {}).get("text/html", ""))):
                parts.append("Answer:\n" + _plain(found[0].partition("</summary>")[2]))
    if parts is not None:
        yield "\n\n".join(parts)


def _plain(text: str) -> str:
    text = re.sub(r"</(?:li|p)>", "\n", text)
    return html.unescape(re.sub(r"<[^>]*>", "", text)).strip()
