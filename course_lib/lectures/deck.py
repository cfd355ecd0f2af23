"""The slides of a lesson as one HTML file that opens from a stick: nothing is fetched, nothing else is needed.

`build_deck` turns the slideshow notebook of `course_lib.lectures.story.compose` into a page with reveal.js, MathJax and
fonts inside it. Playgrounds with a script live on their slides, with the trained models that they compute with in the
page; where these are too large, and for other widgets, the lesson's stored frames are there (`Explorer.stepper`).
"""

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from course_lib.classroom.widgets.exported import models_script
from course_lib.classroom.widgets.script import classic
from course_lib.data.place import CannotStart
from course_lib.lectures.assets import MATHJAX, REVEAL, asset, fetch
from course_lib.lectures.fonts import font_css
from course_lib.lectures.mine import Mine, arrange
from course_lib.lectures.printed import printed_html
from course_lib.lectures.references import with_references
from course_lib.lectures.rendering import fill, inline_script, markdown_html, outputs_html, template_text
from course_lib.lectures.story import compose, for_students, slides_of

THEMES = ("light", "dark")
MAX_BYTES = 15_000_000
WITH_MODELS = 12_000_000  # bytes that a deck with its models has at most
ROOMY = (11, 66)  # lines of code and output together, and characters in a line, up to which they are set larger
NORMAL = (17, 80)  # above which they are set smaller

PLAYGROUND = re.compile(r'data-playground="(\w+)"')
SCRIPTS = "<!-- scripts -->"
CONFIG = re.compile(r'data-playground="\w+" data-config="([^"]*)"')
ITEM = re.compile(r'<div class="fragment markdown"><([uo]l)[^>]*>\s*<li>(.*?)</\1>\s*</div>', re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Page:
    """One slide as it stands in the deck; all texts are HTML."""

    name: str
    heading: str
    kind: str
    minutes: float
    section: str
    papers: str  # of its figure
    head: str
    body: str
    notes: str


def build_deck(
    notebook: NotebookNode, *, theme: str = "light", models: bool = True, say: Callable[[str], None] = print
) -> str:
    """The deck of a slideshow notebook, as HTML.

    Without `models`, or where they are too large, which `say` is told, playgrounds that need one show their frames.
    Raises ValueError for a theme that does not exist, or a notebook without slides; CannotStart if reveal.js, MathJax
    or the fonts cannot be had.
    """
    if theme not in THEMES:
        raise ValueError(f"a deck is {' or '.join(THEMES)}, not {theme!r}")
    pages = list(_pages(notebook))
    if not pages:
        raise ValueError("this notebook has no slides")
    playgrounds = sorted({name for page in pages for name in PLAYGROUND.findall(page.body)})
    about = notebook.metadata.get("lecture", {})
    made = fill(
        "deck.html.j2",
        title=pages[0].heading,
        theme=theme,
        slides=pages,
        fonts=font_css(),
        reveal_css=asset(REVEAL, "dist/reveal.css").decode(),
        css=template_text("deck.css"),
        own_css=about.get("css", ""),
        logo=about.get("logo", ""),
        student=about.get("student", False),
        mathjax=inline_script(asset(MATHJAX, "es5/tex-svg-full.js").decode()),
        reveal=inline_script(asset(REVEAL, "dist/reveal.js").decode()),
        playgrounds=inline_script(classic(*playgrounds)) if playgrounds else "",
        js=template_text("deck.js"),
    )
    return _with_models(made, pages, say) if models else made


def _with_models(deck: str, pages: Sequence[Page], say: Callable[[str], None]) -> str:
    """The deck with the trained models of its playgrounds, the smallest first, as far as there is room for them."""
    room, left = WITH_MODELS - len(deck.encode()), []
    wanted = {
        tuple(json.loads(html.unescape(config)).get("models", ()))
        for page in pages
        for config in CONFIG.findall(page.body)
    }
    names: set[str] = set()
    for some in sorted(filter(None, wanted), key=lambda some: len(models_script(some))):
        if len(models_script(names | set(some))) <= room:
            names |= set(some)
        else:
            left += some
    if left:
        say(
            f"A deck with the model {' and '.join(sorted(set(left)))} would have more than {WITH_MODELS / 1e6:.0f} MB, "
            "so its playground steps through frames here. It computes on the course's site and in course lecture."
        )
    return deck.replace(SCRIPTS, f"<script>{models_script(names)}</script>\n{SCRIPTS}", 1) if names else deck


def slideshow_of(
    lesson: NotebookNode,
    *,
    path: int | None = None,
    mine: Mine | None = None,
    student: bool = False,
    say: Callable[[str], None] = print,
) -> NotebookNode:
    """What a deck is built from: one of a lesson's paths, the longest if none is named, and the papers that it cites.

    `mine` changes the slides, and `say` is told what of it this lesson does not have. With `student` there are neither
    notes nor answers. Raises CannotStart if the lesson has no slides.
    """
    slideshow = compose(lesson, path=path)
    if not slideshow.cells:
        raise CannotStart(f"There are no slides{f' of {path} minutes' if path else ''} in this lesson yet.")
    slideshow = with_references(slideshow, lesson)
    if mine:
        slideshow, told = arrange(slideshow, mine, known=[slide.heading for slide in slides_of(lesson)])
        for sentence in told:
            say(sentence)
    return for_students(slideshow) if student else slideshow


def write_deck(
    lesson: NotebookNode,
    to: Path,
    *,
    path: int | None = None,
    theme: str = "light",
    mine: Mine | None = None,
    student: bool = False,
) -> int:
    """Write the deck of a lesson, as `slideshow_of` has it; returns its size in bytes.

    Raises CannotStart if the lesson has no slides, the deck is too large or the file cannot be written.
    """
    return write_slideshow(slideshow_of(lesson, path=path, mine=mine, student=student), to, theme=theme)


def write_slideshow(slideshow: NotebookNode, to: Path, *, theme: str = "light") -> int:
    """Write the deck of a slideshow; returns its size in bytes. Raises CannotStart, as above."""
    fetch()
    data = build_deck(slideshow, theme=theme).encode()
    if len(data) > MAX_BYTES:
        raise CannotStart(f"The deck has {len(data) / 1e6:.1f} MB; {MAX_BYTES / 1e6:.0f} MB is the most.")
    write_file(to, data)
    return len(data)


def write_file(to: Path, data: bytes) -> None:
    """Write a file as a whole. Raises CannotStart where that is not possible."""
    part = to.with_name(f".{to.name}.part")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(to)
    except OSError as error:
        raise CannotStart(f"{to} cannot be written: {error.strerror}. Name another place with --to.") from error


def _pages(notebook: NotebookNode) -> Iterator[Page]:
    cells: list[NotebookNode] = []
    for cell in notebook.cells:
        kind = _slide_type(cell)
        if kind == "skip":
            continue
        if kind == "slide" and cells:
            yield _page(cells)
            cells = []
        cells.append(cell)
    if cells:
        yield _page(cells)


def _slide_type(cell: NotebookNode) -> str:
    return cell.metadata.get("slideshow", {}).get("slide_type", "-")


def _page(cells: Sequence[NotebookNode]) -> Page:
    first, kind = cells[0], _kind(cells)
    about = first.metadata.get("lecture", {})
    head, _, rest = first.source.partition("\n")
    body, notes = [markdown_html(rest)], []
    for cell in cells[1:]:
        if _slide_type(cell) == "notes":
            notes.append(markdown_html(cell.source))
            continue
        shown = _outputs(cell) if cell.cell_type == "code" else markdown_html(cell.source)
        if _slide_type(cell) == "fragment":
            shown = f'<div class="fragment {cell.cell_type}">{shown}</div>'
        body.append(shown)
    return Page(
        name=html.escape(about.get("name", first.get("id", ""))),
        heading=html.escape(_plain(head)),
        kind=kind,
        minutes=about.get("minutes", 0),
        section=html.escape(about.get("section", "")),
        papers="; ".join(about.get("papers", ())),
        head=markdown_html(head),
        body=_joined_items("\n".join(body)),
        notes="\n".join(notes),
    )


def _outputs(cell: NotebookNode) -> str:
    """The outputs of a cell; what it printed is set as sentences and tables, not as a console."""
    if any(output["output_type"] != "stream" for output in cell.outputs):
        return outputs_html(cell)
    return f'<div class="output">{printed_html("".join(output["text"] for output in cell.outputs))}</div>'


def _plain(heading: str) -> str:
    """A heading as a window's title can show it: 'Why divide by √d_k?'."""
    text = re.sub(r"\\sqrt\{(.*?)\}", r"√\1", heading.lstrip("# "))
    return re.sub(r"[$*`{}]|\\(?:mathrm|text|[,;!])?", "", text)


def _kind(cells: Sequence[NotebookNode]) -> str:
    """The CSS classes of a slide: what it mainly shows, and whether it is dense."""
    shown = [kind for cell in cells for kind in cell.metadata.get("lecture", {}).get("show", ())]
    source = cells[0].source
    if source.startswith("# "):
        return "title"
    for kind in ("widget", "figure", "question", "references"):
        if kind in shown:
            return kind
    code = re.findall(r"^```\w*\n(.*?)^```", source, re.DOTALL | re.MULTILINE)
    texts = [output.get("text", "") for cell in cells for output in cell.get("outputs", ())]
    lines = [line for text in code + texts for line in text.strip("\n").split("\n")]
    size = (len(lines), max(map(len, lines), default=0))
    if any(texts) and not code:
        return "printout"
    if not code and not texts:
        return "table" if re.search(r"^\|", source, re.MULTILINE) else "words"
    if all(here <= most for here, most in zip(size, ROOMY, strict=True)):
        return "code roomy"
    return "code" if all(here <= most for here, most in zip(size, NORMAL, strict=True)) else "code dense"


def _joined_items(text: str) -> str:
    """Points that appear one by one are one list: the fragments go from the lists to their items."""
    text = ITEM.sub(r'<\1><li class="fragment">\2</\1>', text)
    return re.sub(r"</([uo]l)>\s*<\1>", "", text)
