"""What a written answer is marked for: the aspects of its model answer, with typical partial answers to each.

The model answer is the solution cell of the source notebook, where each aspect begins with its title and its points,
`**The plot (4).**`. Typical partial answers stand in hidden/<assignment>/written.md:

    # experiment

    ## The plot
    - 2: The lines are there, but the axes have no labels. Name each quantity with its unit.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nbformat import NotebookNode

from course_lib.data.place import CannotStart
from course_lib.grading.folders import FILE_BYTES, read_small
from course_lib.grading.spec import AssignmentFiles
from course_lib.grading.stripped import SOLUTION_MARKS, read_notebook, tags_of
from course_lib.grading.wording import points
from course_lib.tasks.headings import Lines, entries_of, lines_of

FILE = "written.md"
_ASPECT = re.compile(r"^\*\*([^*]+?) \((\d+(?:\.\d+)?)\)\.\*\*", re.MULTILINE)
_TYPICAL = re.compile(r"- (\d+(?:\.\d+)?): (\S.*)")
_INTRODUCTION = re.compile(r"\A\s*\*A good answer[^*]*\*\s*")


@dataclass(frozen=True, kw_only=True)
class Aspect:
    """A part of a written answer: its title, points and model text, and (points, comment) of partial answers."""

    title: str
    points: float
    model: str
    typical: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Written:
    """A question that a person marks; `text` is the question as students read it."""

    grade_id: str
    title: str
    points: float
    text: str
    aspects: tuple[Aspect, ...]


def written_questions(files: AssignmentFiles, folder: Path) -> dict[str, Written]:
    """The questions of an assignment that a person marks, by grade_id; `folder` is hidden/<assignment>.

    Raises CannotStart where aspects do not sum to the points of their cell, or written.md does not fit them.
    """
    found = {question.grade_id: question for question in _questions(files)}
    content = read_small(folder / FILE, FILE_BYTES)
    if content is None:
        return found
    place = f"hidden/{files.name}/{FILE}"
    try:
        for name, line, body in entries_of(lines_of(content, place), "# ", place):
            if name not in found:
                raise ValueError(f"{place}:{line}: there is no written question {name!r}; there is: {', '.join(found)}")
            found[name] = replace(found[name], aspects=_with_typical(found[name].aspects, body, place))
    except ValueError as problem:
        raise CannotStart(f"{problem}.") from problem
    return found


def _questions(files: AssignmentFiles) -> Iterator[Written]:
    cells = read_notebook(files.source_notebook, files.name).cells
    for number, cell in enumerate(cells):
        tags = tags_of(cell)
        if tags.get("grade") and tags.get("solution"):
            name, most = tags["grade_id"], float(tags.get("points", 0))
            aspects = _aspects(cell.source) or (Aspect(title="Answer", points=most, model=cell.source),)
            if (total := sum(aspect.points for aspect in aspects)) != most:
                raise CannotStart(
                    f"The aspects of the model answer {name!r} in source/{files.name} have {points(total)} points, and "
                    f"the cell has {points(most)}: correct one of them, and release the assignment again."
                )
            title = name.replace("-", " ").replace("_", " ").capitalize()
            yield Written(grade_id=name, title=title, points=most, text=_question(cells[:number]), aspects=aspects)


def _aspects(source: str) -> tuple[Aspect, ...]:
    for mark in SOLUTION_MARKS:
        source = re.sub(rf"^.*{mark}.*$\n?", "", source, flags=re.MULTILINE)
    heads = list(_ASPECT.finditer(_INTRODUCTION.sub("", source)))
    ends = [head.start() for head in heads[1:]] + [None]
    return tuple(
        Aspect(title=head[1], points=float(head[2]), model=head.string[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=False)
    )


def _question(before: list[NotebookNode]) -> str:
    """The last text with a heading in front of the answer, or the last text."""
    texts = [cell.source for cell in before if cell.cell_type == "markdown" and not tags_of(cell).get("solution")]
    return next((text for text in reversed(texts) if text.startswith("#")), texts[-1] if texts else "")


def _with_typical(aspects: tuple[Aspect, ...], body: Lines, place: str) -> tuple[Aspect, ...]:
    """The aspects with the partial answers listed below their titles. Raises ValueError, with the line, for a slip."""
    typical: Mapping[str, list[tuple[float, str]]] = {aspect.title: [] for aspect in aspects}
    for title, line, entries in entries_of(body, "## ", place):
        if title not in typical:
            raise ValueError(f"{place}:{line}: there is no aspect {title!r}; there is: {', '.join(typical)}")
        most = next(aspect.points for aspect in aspects if aspect.title == title)
        for number, text in entries:
            if not text.strip():
                continue
            entry = _TYPICAL.fullmatch(text.rstrip())
            if not entry or float(entry[1]) > most:
                raise ValueError(f"{place}:{number}: a partial answer reads `- POINTS: comment`, up to {points(most)}")
            typical[title].append((float(entry[1]), entry[2]))
    return tuple(replace(aspect, typical=tuple(typical[aspect.title])) for aspect in aspects)
