"""The slides of a lecture: which of a lesson's cells a hall sees, in which order, with which notes.

A lesson's own cells carry its slides in their metadata, so that a reader of the lesson meets none of them:

    cell.metadata["lecture"] = {"slides": [{"text": "## Heading\\n\\n- a point", "notes": "Ask: ...", "paths": [60, 90],
                                            "minutes": 2, "show": ["figure"]}, ...]}

`fold` and `unfold` go between these and the form in which an author writes them: Markdown cells above the lesson's
cell. `compose` makes the notebook that a deck is built from, with the `slideshow` metadata that Jupyter defines.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode

PATHS = (30, 60, 90)  # minutes: the lengths in which lessons are taught; each offers those that its slides name
NOTES = "**Notes**"  # the line of a slide cell below which the notes begin

FROM_CODE = ("code", "text", "figure", "question", "answer", "html", "widget")
FROM_MARKDOWN = ("math", "table", "list")

FORMULA = re.compile(r"\$\$.+?\$\$", re.DOTALL)
INLINE = re.compile(r"(?<![\\$])\$(?!\$)([^$]+?)\$(?!\$)")
COMMA = re.compile(r"\s*[.,;]\s*\$\$$")  # the sentence that a formula ends in the lesson is not on the slide
TABLE = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)
LIST = re.compile(r"(?:^(?:-|\d+\.) .*\n?(?:^ +\S.*\n?)*)+", re.MULTILINE)
ANSWER = re.compile(r'(<div style="[^"]*">)?<details><summary>Show the answer.*?</details>(?(1)</div>)', re.DOTALL)
ITEM = re.compile(r"^(?:-|\d+\.) .*(?:\n +\S.*)*", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Slide:
    """One slide: a heading, words of its own, and what it shows of the lesson's cell that carries it."""

    cell: int  # index of that cell in the lesson
    text: str  # Markdown: a heading, then at most a few points
    notes: str  # Markdown: what to say, what to ask
    paths: tuple[int, ...]  # in which of the PATHS it is
    minutes: float
    show: tuple[str, ...] = ()  # of FROM_CODE or FROM_MARKDOWN
    code: tuple[str, str] | None = None  # how the first and the last line of code begin; None: all
    formula: tuple[str, ...] = ()  # how the formulas of the lesson begin that it shows below its own words
    steps: bool = False  # whether points and outputs appear one by one

    @property
    def heading(self) -> str:
        """The heading, without its number signs."""
        return self.text.partition("\n")[0].lstrip("# ").strip()

    @property
    def name(self) -> str:
        """The heading as an identifier: letters, digits and hyphens."""
        return slug(self.heading)

    @property
    def parts(self) -> tuple[str, ...]:
        """What it shows of a code cell's outputs."""
        return tuple(kind for kind in self.show if kind in FROM_CODE[1:])


def slug(heading: str) -> str:
    """A heading as an identifier: letters, digits and hyphens."""
    return "-".join(re.findall(r"[a-z0-9]+", heading.lower()))[:60]


def slides_of(notebook: NotebookNode, path: int | None = None) -> list[Slide]:
    """The slides of a lesson in their order; of one path, if one is named.

    Raises ValueError for a path that does not exist, or a slide whose metadata are not as described above.
    """
    _check_path(path)
    slides = [
        _slide(index, fields)
        for index, cell in enumerate(notebook.cells)
        for fields in cell.metadata.get("lecture", {}).get("slides", [])
    ]
    return [slide for slide in slides if path is None or path in slide.paths]


def paths_of(notebook: NotebookNode) -> tuple[int, ...]:
    """The paths that a lesson offers, the longest last: those that its slides name. Raises ValueError, as above."""
    named = {path for slide in slides_of(notebook) for path in slide.paths}
    return tuple(path for path in PATHS if path in named)


def _check_path(path: int | None) -> None:
    if path is not None and path not in PATHS:
        raise ValueError(f"a lecture takes {', '.join(map(str, PATHS))} minutes, not {path!r}")


def _slide(index: int, fields: Mapping) -> Slide:
    slide = Slide(
        cell=index,
        text=fields.get("text", ""),
        notes=fields.get("notes", ""),
        paths=tuple(fields.get("paths", ())),
        minutes=fields.get("minutes", 0),
        show=tuple(fields.get("show", ())),
        code=tuple(fields["code"]) if "code" in fields else None,
        formula=tuple(fields.get("formula", ())),
        steps=fields.get("steps", False),
    )
    if not re.match(r"##? \S", slide.text):
        raise ValueError(f"a slide begins with a heading such as '## Look back', not with {slide.text[:40]!r}")
    if not slide.paths or not set(slide.paths) <= set(PATHS):
        raise ValueError(f"the slide {slide.heading!r} is in the paths {slide.paths}; there are {PATHS}")
    if not slide.minutes > 0:
        raise ValueError(f"the slide {slide.heading!r} takes {slide.minutes} minutes; say how long it takes")
    if unknown := set(slide.show) - {*FROM_CODE, *FROM_MARKDOWN}:
        raise ValueError(f"the slide {slide.heading!r} shows {sorted(unknown)}; {FROM_CODE + FROM_MARKDOWN} are known")
    return slide


# ---------------------------------------------------------------------------------------- as an author writes them


def fold(cells: Sequence[NotebookNode]) -> list[NotebookNode]:
    """The lesson's cells with the slide cells above each of them moved into its metadata.

    A slide cell is a Markdown cell with the key `slide` in its metadata, which names its paths: "30 60 90".
    Raises ValueError if one stands below the last cell of the lesson, or is not as described.
    """
    kept, waiting = [], []
    for cell in cells:
        if "slide" in cell.metadata:
            waiting.append(_fields(cell))
            continue
        if waiting:
            cell.metadata["lecture"] = {"slides": waiting}
            waiting = []
        kept.append(cell)
    if waiting:
        heading = waiting[0]["text"].partition("\n")[0]
        raise ValueError(f"a slide stands above the cell that carries it, but none follows {heading!r}")
    return kept


def _fields(cell: NotebookNode) -> dict:
    text, _, notes = cell.source.partition(f"\n{NOTES}\n")
    fields = {"text": text.strip(), "notes": notes.strip()}
    meta = dict(cell.metadata)
    fields["paths"] = [int(word) for word in str(meta["slide"]).split()]
    fields |= {key: meta[key] for key in ("minutes", "code", "formula", "steps") if key in meta}
    if "show" in meta:
        fields["show"] = meta["show"].split()
    _slide(0, fields)  # raises ValueError if something is wrong
    return fields


def unfold(cells: Sequence[NotebookNode]) -> list[NotebookNode]:
    """The inverse of `fold`: each slide as a Markdown cell above the cell that carries it."""
    unfolded = []
    for cell in cells:
        cell = nbformat.from_dict(cell)
        lecture = cell.metadata.pop("lecture", {})
        for fields in lecture.get("slides", []):
            meta = {"slide": " ".join(map(str, fields["paths"])), "minutes": fields["minutes"]}
            if "show" in fields:
                meta["show"] = " ".join(fields["show"])
            meta |= {key: fields[key] for key in ("code", "formula", "steps") if key in fields}
            unfolded.append(
                nbformat.v4.new_markdown_cell(f"{fields['text']}\n\n{NOTES}\n\n{fields['notes']}", metadata=meta)
            )
        unfolded.append(cell)
    return unfolded


# ---------------------------------------------------------------------------------------- as a deck reads them


def compose(notebook: NotebookNode, *, path: int | None = None, keep_code: bool = False) -> NotebookNode:
    """The slideshow of a lesson: for each slide its words, the lesson's cell that it shows, and its notes.

    `path` is one of those that the lesson offers; the longest, if none is named.

    The code that a slide shows stands in its Markdown, so the code cells themselves are all tagged `hide-input`; they
    keep the ids, the sources and those outputs that the slide shows. With `keep_code` the lesson's other code cells
    stand between the slides, of slide type "skip", so that the notebook can be executed.
    Raises ValueError if a slide asks for something that its cell does not have.
    """
    path = max(paths_of(notebook), default=None) if path is None else path
    cells: list[NotebookNode] = []
    by_cell: dict[int, list[Slide]] = {}
    for slide in slides_of(notebook, path):
        by_cell.setdefault(slide.cell, []).append(slide)
    section, formulas = "", formulas_of(notebook)
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown" and (found := re.search(r"^##? (.+)$", cell.source, re.MULTILINE)):
            section = found[1].strip()
        showing = [slide for slide in by_cell.get(index, []) if slide.parts]
        if len(showing) > 1:
            raise ValueError(f"{showing[0].heading!r} and {showing[1].heading!r} show the outputs of one cell")
        for slide in by_cell.get(index, []):
            cells += _cells_of(slide, cell, section, formulas)
        if keep_code and cell.cell_type == "code" and not showing:
            cells.append(_code_cell(cell, "skip", {}, cell.outputs))
    lecture = {
        "path": path,
        "title": next((slide.heading for slide in slides_of(notebook, path)), ""),
        "minutes": sum(slide.minutes for slide in slides_of(notebook, path)),
    }
    metadata = {key: value for key, value in notebook.metadata.items() if key != "course_stamp"} | {"lecture": lecture}
    return nbformat.from_dict({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def formulas_of(notebook: NotebookNode) -> list[str]:
    """The formulas of a lesson's Markdown, each once, as they stand between their dollar signs."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    displayed = [COMMA.sub("$$", found).strip("$") for text in texts for found in FORMULA.findall(text)]
    inline = [found for text in texts for found in INLINE.findall(FORMULA.sub("", text))]
    return list(dict.fromkeys(" ".join(formula.split()) for formula in displayed + inline))


def _formula(slide: Slide, start: str, formulas: Sequence[str]) -> str:
    found = [formula for formula in formulas if formula.startswith(start)]
    if len(found) != 1 and start not in found:
        raise ValueError(
            f"the slide {slide.heading!r}: {len(found)} formulas of the lesson begin with {start!r}, not one"
        )
    return f"$${start if start in found else found[0]}$$"


def _cells_of(slide: Slide, cell: NotebookNode, section: str, formulas: Sequence[str]) -> Iterator[NotebookNode]:
    about = {"name": slide.name, "paths": list(slide.paths), "minutes": slide.minutes, "section": section}
    shown = (_formula(slide, start, formulas) for start in slide.formula)
    body = "\n\n".join([slide.text, *shown, *_shown_source(slide, cell)])
    first, *later = _steps(body) if slide.steps else [body]
    yield _markdown_cell(slide.name, first, "slide", about)
    for number, step in enumerate(later, start=1):
        yield _markdown_cell(f"{slide.name}-{number}", step, "fragment", {})
    if slide.parts:
        kept = [i for i, output in enumerate(cell.get("outputs", [])) if _wanted(output, slide.parts)]
        if not kept:
            raise ValueError(f"the slide {slide.heading!r} shows {slide.parts}, but its cell has no such output")
        shown = {"show": list(slide.parts), "outputs": kept}
        yield _code_cell(cell, "fragment" if slide.steps else "-", shown, [cell.outputs[i] for i in kept])
    yield _markdown_cell(f"{slide.name}-notes", slide.notes, "notes", {"minutes": slide.minutes})


def _steps(body: str) -> list[str]:
    """What stands above the first item of a list, each item, and what stands below or between them."""
    above, *rest = re.split(f"({ITEM.pattern})", body, flags=re.MULTILINE)
    return [above.strip(), *(piece.strip() for piece in rest if piece.strip())]


def _markdown_cell(name: str, source: str, slide_type: str, about: dict) -> NotebookNode:
    metadata = {"slideshow": {"slide_type": slide_type}} | ({"lecture": about} if about else {})
    return nbformat.v4.new_markdown_cell(source, id=name[:64], metadata=metadata)


def _code_cell(cell: NotebookNode, slide_type: str, about: dict, outputs: list) -> NotebookNode:
    copy = nbformat.from_dict(cell)
    copy.metadata.pop("lecture", None)
    copy.metadata["slideshow"] = {"slide_type": slide_type}
    copy.metadata["tags"] = [*copy.metadata.get("tags", []), "hide-input"]
    if about:
        copy.metadata["lecture"] = about
    copy["outputs"] = nbformat.from_dict(outputs)
    return copy


def _shown_source(slide: Slide, cell: NotebookNode) -> Iterator[str]:
    """The parts of the lesson's cell that become Markdown on the slide: formulas, tables, lists, lines of code."""
    known = FROM_CODE if cell.cell_type == "code" else FROM_MARKDOWN
    if other := [kind for kind in slide.show if kind not in known]:
        raise ValueError(f"the slide {slide.heading!r} shows {other} of a {cell.cell_type} cell, which has {known}")
    for kind in slide.show:
        if kind == "code":
            yield f"```python\n{_lines(slide, cell.source)}\n```"
        elif kind in FROM_MARKDOWN:
            found = {"math": FORMULA, "table": TABLE, "list": LIST}[kind].findall(cell.source)
            if not found:
                raise ValueError(f"the slide {slide.heading!r} shows a {kind}, but its cell has none")
            yield "\n\n".join(COMMA.sub("$$", part.strip()) for part in found)


def _lines(slide: Slide, source: str) -> str:
    lines = source.splitlines()
    if slide.code is None:
        return source
    first, last = (_only_line(slide, lines, start) for start in slide.code)
    if first > last:
        raise ValueError(f"the slide {slide.heading!r} ends its code before it begins: {slide.code}")
    return "\n".join(lines[first : last + 1])


def _only_line(slide: Slide, lines: list[str], start: str) -> int:
    found = [number for number, line in enumerate(lines) if line.strip().startswith(start)]
    if len(found) != 1:
        raise ValueError(f"the slide {slide.heading!r}: {len(found)} lines of its cell begin with {start!r}, not one")
    return found[0]


def for_students(slideshow: NotebookNode) -> NotebookNode:
    """The slideshow without notes, and without the answers to its questions."""
    made = nbformat.from_dict(slideshow)
    made.cells = [cell for cell in made.cells if cell.metadata.slideshow.slide_type != "notes"]
    made.metadata["lecture"]["student"] = True
    for cell in made.cells:
        if cell.cell_type != "code":
            continue
        cell.outputs = [output for output in cell.outputs if output_kind(output) != "answer"]
        for output in cell.outputs:
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = ANSWER.sub("", "".join(output.data["text/html"]))
    return made


def output_kind(output: Mapping) -> str:
    """What an output is on a slide: "text", "figure", "question", "answer" or "html"."""
    if output["output_type"] == "stream":
        return "text"
    data = output.get("data", {})
    plain = data.get("text/plain", "")
    if plain.startswith("Figure:") or "image/png" in data:
        return "figure"
    if plain.startswith(("Question", "Make your prediction")):
        return "question"
    if plain.startswith("Answer:"):
        return "answer"
    return "html" if "text/html" in data else "text"


def _wanted(output: Mapping, parts: Sequence[str]) -> bool:
    return "widget" in parts or output_kind(output) in parts
