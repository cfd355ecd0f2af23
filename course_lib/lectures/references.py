"""The papers that a lesson cites: at the foot of the slides that show their figures, and on slides of their own."""

import html
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode

NAME = r"(?<!\w)(?:[Vv]an de[nr] )?(?:DeepSeek-\w+|(?:Mc|Le)?[A-Z][a-zà-ÿ'’]+(?:-[A-Z][a-z]+)?)"
CITED = re.compile(rf"(?P<who>{NAME}(?:(?:, {NAME})* & {NAME}| et al\.)),? \(?(?P<year>(?:19|20)\d\d)\b")
LISTED = re.compile(rf"(?P<who>{NAME}(?: Team)?(?:(?:, {NAME})* & {NAME}| et al\.)?) (?P<year>(?:19|20)\d\d)\b")
ENTRY = re.compile(rf"^- (?={LISTED.pattern}).*(?:\n +\S.*)*", re.MULTILINE)  # an item of a list of papers
TITLE = re.compile(r"\*([^*]+)\*")
ARXIV = re.compile(r"\]\(https://arxiv\.org/abs/(\d{4}\.\d{4,5})\)")
AT_FOOT = 3  # papers at the foot of one slide
ON_SLIDE = 16  # papers on one slide of references


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper as a lesson cites it; `arxiv` is its number there, and both may be empty."""

    who: str  # "Dosovitskiy et al."
    year: str
    title: str = ""
    arxiv: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The first author's name, and the year."""
        return re.split(r",| &| et al", self.who)[0], self.year

    @property
    def short(self) -> str:
        """As it stands in a sentence: two authors by name, more as "et al."."""
        who = self.who if self.who.count(",") == 0 else f"{self.key[0]} et al."
        return f"{who} {self.year}"

    def html(self, *, full: bool = False) -> str:
        """Its short name, which is a link where it has a number on arXiv; in full with the title and this number."""
        words = html.escape(self.short)
        if full:
            words += f", <em>{html.escape(self.title)}</em>" * bool(self.title)
            words += f", arXiv {self.arxiv}" * bool(self.arxiv)
        if not self.arxiv:
            return words
        return f'<a href="https://arxiv.org/abs/{self.arxiv}" target="_blank" rel="noopener">{words}</a>'


def papers_of(lesson: NotebookNode) -> list[Paper]:
    """The papers that the Markdown of a lesson cites, each once, by author and year.

    A paper is cited in a list of papers ("- Elman 1990, *Finding structure in time*"), or in a sentence as "Name et al.
    2021", "Name & Name (2020)" and the like.
    """
    text = "\n\n".join(cell.source for cell in lesson.cells if cell.cell_type == "markdown")
    found = {(paper.arxiv or paper.title or paper.key): paper for paper in _listed(text)}
    known = {paper.key for paper in found.values()}
    for paper in _cited(ENTRY.sub("", text)):
        if paper.key not in known:
            found[paper.key] = paper
            known.add(paper.key)
    return sorted(found.values(), key=lambda paper: (paper.key, paper.title))


def _listed(text: str) -> Iterator[Paper]:
    for item in ENTRY.finditer(text):
        line = " ".join(item[0].split())
        found = list(LISTED.finditer(line))
        for one, end in zip(found, [*(other.start() for other in found[1:]), len(line)], strict=True):
            title, number = (pattern.search(line, one.end(), end) for pattern in (TITLE, ARXIV))
            yield Paper(
                who=one["who"], year=one["year"], title=title[1] if title else "", arxiv=number[1] if number else ""
            )


def _cited(text: str) -> Iterator[Paper]:
    text = " ".join(text.split())
    for found in CITED.finditer(text):
        number = ARXIV.match(text, found.end())
        yield Paper(who=found["who"], year=found["year"], arxiv=number[1] if number else "")


def with_references(slideshow: NotebookNode, lesson: NotebookNode) -> NotebookNode:
    """The slideshow of a lesson, with its papers: at the foot of each slide with a figure, and on slides at the end.

    A figure's papers are those that its own text cites, or the Markdown cell above it in the lesson.
    """
    slideshow, papers = nbformat.from_dict(slideshow), papers_of(lesson)
    by_key: dict[tuple[str, str], Paper] = {}
    for paper in papers:
        by_key.setdefault(paper.key, paper)
    above = _text_above(lesson)
    for first, shown in _figures(slideshow):
        text = " ".join([above.get(shown.get("id"), ""), *_words(shown)])
        keys = dict.fromkeys(paper.key for paper in _cited(text) if paper.key in by_key)
        if keys:
            first.metadata["lecture"]["papers"] = [by_key[key].html() for key in keys][:AT_FOOT]
    count = math.ceil(len(papers) / ON_SLIDE)
    for number in range(count):
        first, last = (round(len(papers) * part / count) for part in (number, number + 1))
        slideshow.cells += _slide(papers[first:last], number + 1)
    return slideshow


def _figures(slideshow: NotebookNode) -> Iterator[tuple[NotebookNode, NotebookNode]]:
    """The first cell of each slide with a figure, and the cell that has the figure."""
    first = None
    for cell in slideshow.cells:
        if cell.metadata.slideshow.slide_type == "slide":
            first = cell
        if "figure" in cell.metadata.get("lecture", {}).get("show", ()):
            yield first, cell


def _text_above(lesson: NotebookNode) -> dict[str, str]:
    """For each code cell, by its id, the Markdown that stands just above it, with no other figure between them."""
    above, text = {}, ""
    for cell in lesson.cells:
        if cell.cell_type == "markdown":
            text = cell.source
            continue
        above[cell.get("id")] = text
        if any("<img" in html_ for html_ in _html(cell)):
            text = ""
    return above


def _html(cell: NotebookNode) -> list[str]:
    found = [output.get("data", {}).get("text/html", "") for output in cell.get("outputs", [])]
    return ["".join(text) for text in found]


def _words(cell: NotebookNode) -> list[str]:
    return [html.unescape(re.sub(r"<[^>]*>", " ", text)) for text in _html(cell)]


def _slide(papers: list[Paper], number: int) -> list[NotebookNode]:
    name, heading = ("references", "References") if number == 1 else (f"references-{number}", f"References ({number})")
    items = "\n".join(f"<li>{paper.html(full=True)}</li>" for paper in papers)
    notes = (
        "**Say.** Nothing: these slides are for reading after the lecture. They name the papers that the lesson cites."
    )
    about = {"name": name, "paths": [], "minutes": 0, "section": "", "show": ["references"]}
    return [
        nbformat.v4.new_markdown_cell(
            f"## {heading}\n\n<ul>\n{items}\n</ul>",
            id=name, metadata={"slideshow": {"slide_type": "slide"}, "lecture": about},
        ),
        nbformat.v4.new_markdown_cell(
            notes, id=f"{name}-notes", metadata={"slideshow": {"slide_type": "notes"}, "lecture": {"minutes": 0}}
        ),
    ]  # fmt: skip
