"""What the slides of every lesson keep: their number, their timing, notes, code that a hall can read."""

import re
from collections import Counter
from collections.abc import Iterator

from nbformat import NotebookNode

from course_lib.lectures.story import Slide, compose, paths_of, slides_of

SLIDES = (35, 45)  # in 90 minutes of the full path, which is the longest that a lesson offers; both included
TIMING = 0.10  # by how much the minutes of a path may differ from its name, as a part of them
CODE_LINES, CODE_WIDTH = 12, 60
OUTPUT_LINES, OUTPUT_WIDTH = 24, 90  # of printed text: what fits at 20 px beside a heading
NOTE_WORDS = 15
FORMULAS = 0.2  # of all slides of the course show a formula

FENCE = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"<img\b[^>]*>")
LINK = re.compile(r"\]\(#/?([^)]*)\)")  # to another slide
ALT = re.compile(r'\balt="[^"]*\w[^"]*"')


def with_formula(lesson: NotebookNode) -> tuple[int, int]:
    """How many slides of a lesson's longest path show a formula that is set off from the text, and how many it has."""
    shown: list[bool] = []
    for cell in compose(lesson).cells:
        kind = cell.metadata.slideshow.slide_type
        if kind == "slide":
            shown.append(False)
        if cell.cell_type == "markdown" and kind != "notes" and "$$" in cell.source:
            shown[-1] = True
    return sum(shown), len(shown)


def lecture_problems(lesson: NotebookNode) -> list[str]:
    """What is wrong with the slides of a lesson, a sentence each; nothing for a lesson without slides."""
    try:
        slides, paths = slides_of(lesson), paths_of(lesson)
        composed = {path: compose(lesson, path=path) for path in paths}
    except ValueError as error:
        return [str(error)]
    if not slides:
        return []
    return [
        *_of_paths(slides, paths),
        *(problem for slide in slides for problem in _of_slide(slide, lesson, full=paths[-1])),
        *_of_cells(composed[paths[-1]]),
        *(problem for path in paths for problem in _of_links(path, composed[path])),
    ]


def _of_paths(slides: list[Slide], paths: tuple[int, ...]) -> Iterator[str]:
    full = paths[-1]
    number = sum(full in slide.paths for slide in slides)
    fewest, most = (round(slides_in_90 * full / 90) for slides_in_90 in SLIDES)
    if not fewest <= number <= most:
        yield f"the lecture of {full} minutes has {number} slides; {fewest} to {most} are asked for"
    for path in paths:
        minutes = sum(slide.minutes for slide in slides if path in slide.paths)
        if abs(minutes - path) > TIMING * path:
            yield f"the slides of the lecture of {path} minutes take {minutes:g} minutes"
    for name, number in Counter(slide.name for slide in slides).items():
        if number > 1:
            yield f"{number} slides have the name {name!r}; give each a heading of its own"
    if not slides[0].text.startswith("# ") or set(slides[0].paths) != set(paths):
        yield f"a lecture opens with a title slide ('# ...') in every path, not with {slides[0].heading!r}"


def _of_slide(slide: Slide, lesson: NotebookNode, *, full: int) -> Iterator[str]:
    named = f"the slide {slide.heading!r}"
    if len(slide.notes.split()) < NOTE_WORDS:
        yield f"{named} has notes of {len(slide.notes.split())} words; they say what to say and what to ask"
    if full not in slide.paths:
        yield f"{named} is not in the full lecture, from which the shorter ones are taken"
    if "widget" in slide.show:
        others = [kind for kind in slide.show if kind != "widget"]
        if others or len(slide.text.strip().splitlines()) > 1:
            yield f"{named} holds a widget; nothing but its heading stands beside it"
        moving = ("course-stepper", "data-playground")  # stored steps, or a script that computes in the browser
        if not any(kind in html for html in _html_of(lesson.cells[slide.cell]) for kind in moving):
            yield f"{named} holds a widget that states no steps: nothing moves without a kernel"


def _of_cells(slideshow: NotebookNode) -> Iterator[str]:
    heading = ""
    for cell in slideshow.cells:
        if cell.cell_type == "markdown" and cell.metadata.slideshow.slide_type == "slide":
            heading = cell.source.partition("\n")[0].lstrip("# ")
            for code in FENCE.findall(cell.source):
                yield from _of_lines(heading, "code", code, CODE_LINES, CODE_WIDTH)
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream":
                yield from _of_lines(heading, "output", output["text"], OUTPUT_LINES, OUTPUT_WIDTH)
            if output["output_type"] == "error":
                yield f"the slide {heading!r} shows an error"
        for html in _html_of(cell):
            if any(not ALT.search(picture) for picture in PICTURE.findall(html)):
                yield f"the slide {heading!r} has a figure without alt text"


def _of_links(path: int, slideshow: NotebookNode) -> Iterator[str]:
    markdown = [cell for cell in slideshow.cells if cell.cell_type == "markdown"]
    names = {cell.metadata.get("lecture", {}).get("name") for cell in markdown}
    for name in sorted({name for cell in markdown for name in LINK.findall(cell.source)} - names):
        yield f"a slide of the lecture of {path} minutes links to {name!r}, which is not in it"


def _of_lines(heading: str, what: str, text: str, most: int, widest: int) -> Iterator[str]:
    lines = text.rstrip("\n").split("\n")
    if len(lines) > most:
        yield f"the slide {heading!r} shows {len(lines)} lines of {what}; {most} are the most"
    if (width := max(map(len, lines))) > widest:
        yield f"the slide {heading!r} shows a line of {what} of {width} characters; {widest} are the most"


def _html_of(cell: NotebookNode) -> list[str]:
    return [output["data"]["text/html"] for output in cell.get("outputs", []) if "text/html" in output.get("data", {})]
