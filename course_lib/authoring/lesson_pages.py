"""A lesson as its page and its notebook show it: cells, calls of the page, sections, counts and minutes.

A heading cell tagged `section:1`, ... opens a section, `section:optional` what is optional. The metadata say which
lesson it is: {"course": {"lesson": "05", "kind": "lesson"}}; lesson 00 is of the kind "start".
"""

import ast
import importlib
import inspect
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from nbformat import NotebookNode, from_dict

from course_lib.classroom.cards import number_sections
from course_lib.classroom.page import Number
from course_lib.commands.files import read_notebook

OPTIONAL = "optional"
ITEMS = {  # the calls of a page that name one of its items, and where that stands
    "predict": "predictions",
    "result": "results",
    "quiz": "quizzes",
    "exercise": "tasks",
    "check": "tasks",
    "use": "tasks",
    "play": "playgrounds",
    "load": "models",
    "diagram": "diagrams",
}


class Pace(NamedTuple):
    """How fast a reader is; an exercise says how long it takes."""

    words: float  # a minute
    lines: float
    prediction: float  # minutes each
    widget: float
    diagram: float


PACES = {2: Pace(130, 20, 1, 4, 0), 3: Pace(100, 12, 1.5, 5, 3)}  # by edition; the third is what cold readings took


class Call(NamedTuple):
    """A call such as page.quiz("axis") in the notebook."""

    method: str
    name: str | None
    cell: int
    section: str | None


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson notebook as it is stored, and the page that it imports."""

    path: Path
    notebook: NotebookNode
    page: Any = None

    @property
    def course(self) -> dict:
        """What the notebook's metadata say about the lesson."""
        return self.notebook.metadata.get("course", {})

    @property
    def is_start(self) -> bool:
        """Whether this is lesson 00, an introduction."""
        return self.course.get("kind") == "start"

    @property
    def edition(self) -> int:
        """The third edition has two sittings, in which the learner builds and trains a whole model."""
        return self.course.get("edition", 2)

    @cached_property
    def section_of(self) -> list[str | None]:
        """For each cell the section in which it stands; None above the first."""
        sections, section = [], None
        for cell in self.notebook.cells:
            section = next(iter(sections_opened_by(cell)), section)
            sections.append(section)
        return sections

    @cached_property
    def calls(self) -> list[Call]:
        """All calls of the page, in order."""
        return [
            Call(node.func.attr, _first_argument(node), index, self.section_of[index])
            for index, cell in self.code()
            for node in nodes(cell.source)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and getattr(node.func.value, "id", "") == "page"
        ]

    def named(self, method: str) -> list[str]:
        """The names that a method is called with, each once, in order."""
        return list(dict.fromkeys(call.name for call in self.calls if call.method == method and call.name))

    def items(self, kind: str) -> dict:
        """What the page holds of a kind, such as "quizzes", by name."""
        return getattr(self.page, kind, {})

    def code(self) -> Iterator[tuple[int, NotebookNode]]:
        """Index and cell of each code cell."""
        return ((index, cell) for index, cell in enumerate(self.notebook.cells) if cell.cell_type == "code")

    def where(self, index: int) -> str:
        """A cell as its author finds it: its number, its kind and its first line."""
        cell = self.notebook.cells[index]
        first = next((line.strip() for line in cell.source.splitlines() if line.strip()), "empty")
        return f"cell {index + 1} ({cell.cell_type}, {first[:40]!r})"


def read_lesson(path: str | os.PathLike) -> Lesson:
    """The lesson in a notebook file, with its page if it has one. Raises ValueError if the file is no notebook."""
    path = Path(path)
    try:
        page = importlib.import_module(f"course_lib.lessons.lesson_{path.name[:2]}").page
    except (ImportError, AttributeError):
        page = None  # a rule says so
    return Lesson(path=path, notebook=read_notebook(path), page=page)


def sections(lesson: Lesson) -> list[tuple[str, Any]]:
    """The sections of the page's head card, each with its number, or "optional", as the tags have it."""
    return [
        (str(number or OPTIONAL), section) for number, section in number_sections(getattr(lesson.page, "sections", ()))
    ]


# ---------------------------------------------------------------------------------------- counts and minutes


def counts(lesson: Lesson) -> dict[str, int]:
    """How much there is on the page of all that has a budget."""
    quizzes = [lesson.items("quizzes").get(name) for name in lesson.named("quiz")]
    written = {call.name: call.section for call in lesson.calls if call.method == "exercise"}
    tried = {name: section for name, section in written.items() if name in lesson.named("check")}
    return {
        "cells": len(lesson.notebook.cells),
        "code cells": len(list(lesson.code())),
        "words": sum(words(cell) for cell in lesson.notebook.cells),
        "lines of code": sum(len(visible_lines(cell)) for _, cell in lesson.code()),
        "listings": len(listings(lesson)),
        "claims": len(claims(lesson)),
        "figures": len(figures(lesson)),
        "predictions": len(lesson.named("predict")),
        "quizzes": len(quizzes),
        "quizzes that ask for a number": sum(isinstance(quiz, Number) for quiz in quizzes),
        "quizzes that ask for a bug": sum(getattr(quiz, "kind", "") == "bug" for quiz in quizzes),
        "exercises": sum(section != OPTIONAL for section in tried.values()),
        "exercises that stretch": sum(section == OPTIONAL for section in tried.values()),
        "uses of the learner's code": len(lesson.named("use")),
        "widgets": len(lesson.named("play")),
        "diagrams": len(lesson.named("diagram")),
        "models of the learner's own": len(lesson.named("load")),
        "playgrounds with goals": sum(has_goals(lesson.items("playgrounds").get(n)) for n in lesson.named("play")),
    }


def minutes(lesson: Lesson) -> dict[str, float]:
    """How long a learner needs for what is not optional: text and code by their length, and each thing to do."""
    cells = [
        cell for cell, section in zip(lesson.notebook.cells, lesson.section_of, strict=True) if section != OPTIONAL
    ]
    main = replace(lesson, notebook=from_dict({**lesson.notebook, "cells": cells}))
    present, tasks = counts(main), lesson.items("tasks")
    listed = sum(length for _, length in listings(main))
    pace = PACES[lesson.edition]
    return {
        "text": present["words"] / pace.words,
        "code": (present["lines of code"] + listed) / pace.lines,
        "exercises": sum(getattr(tasks.get(name), "minutes", 0) for name in main.named("exercise")),
        "predictions and quizzes": pace.prediction * (present["predictions"] + present["quizzes"]),
        "widgets": pace.widget * present["widgets"],
        "diagrams": pace.diagram * present["diagrams"],
    }


def minutes_promised(lesson: Lesson, *, optional: bool = False) -> float:
    """The minutes that the head card promises, with what is optional or without."""
    return sum(section.minutes for _, section in sections(lesson) if optional or not section.optional)


def words(cell: NotebookNode) -> int:
    """The words of a Markdown cell; a formula counts as one, the address of a link and an HTML tag as none."""
    if cell.cell_type != "markdown":
        return 0
    text = re.sub(r"```.*?```|<!--.*?-->|<[^>]+>|(?<=\])\([^)]*\)", " ", cell.source, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$|\$[^$]+\$", " formula ", text, flags=re.DOTALL)
    return len(re.findall(r"[\w'’.,-]*\w[\w'’.,-]*", text))


def visible_lines(cell: NotebookNode) -> list[str]:
    """The lines of code that a reader sees, without empty ones."""
    if cell.cell_type != "code" or cell.metadata.get("jupyter", {}).get("source_hidden"):
        return []
    return [line for line in cell.source.splitlines() if line.strip()]


def listings(lesson: Lesson) -> list[tuple[int, int]]:
    """The cell and the lines of each piece of source that show_source(...) shows."""
    return [
        (index, sum(bool(line.strip()) for line in text.splitlines()) - 1)  # its first line says where it stands
        for index, cell in lesson.code()
        if "show_source" in called(cell.source)
        for text in plain_texts(cell)
        if text.strip()
    ]


def claims(lesson: Lesson) -> list[tuple[int, str]]:
    """The cell and the text of each badge that a result or a claim(...) has left in the stored page."""
    claiming = {call.cell for call in lesson.calls if call.method == "result"}
    return [
        (index, text.strip())
        for index, cell in lesson.code()
        if index in claiming or "claim" in called(cell.source)
        for plain in plain_texts(cell)
        for text in re.findall(r"[✓✗]([^✓✗\n]+)", plain)
    ]


def figures(lesson: Lesson) -> list[int]:
    """The cell of each picture; the still one of a playground is none, nor a diagram, nor a table that is coloured."""
    playing = {call.cell for call in lesson.calls if call.method in ("play", "diagram")}
    return [
        index
        for index, cell in lesson.code()
        if index not in playing
        for output in cell.outputs
        for form, text in output.get("data", {}).items()
        for _ in (re.findall(r"<img\b", text) if form == "text/html" else form.startswith("image/") * [text])
    ]


def has_goals(playground: Any) -> bool:
    """Whether the module of a playground states goals, as `Goal("...", reached)`."""
    return playground is not None and "Goal(" in inspect.getsource(inspect.getmodule(playground))


# ---------------------------------------------------------------------------------------- reading cells


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    return cell.metadata.get("tags", [])


def sections_opened_by(cell: NotebookNode) -> list[str]:
    """What follows `section:` in the tags of a cell."""
    return [tag.removeprefix("section:") for tag in tags(cell) if tag.startswith("section:")]


def plain_texts(cell: NotebookNode) -> list[str]:
    """What each output of a cell says in plain text."""
    return [output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in cell.outputs]


def nodes(source: str) -> list[ast.AST]:
    """All nodes of a cell's syntax tree; none if it cannot be read, which is a rule of its own."""
    try:
        return list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return []


def called(source: str) -> list[str]:
    """The last names of everything called: `claim` for claim(...) and for classroom.claim(...)."""
    calls = (node.func for node in nodes(source) if isinstance(node, ast.Call))
    return [getattr(function, "id", None) or getattr(function, "attr", "") for function in calls]


def _first_argument(node: ast.Call) -> str | None:
    value = getattr(node.args[0], "value", None) if node.args else None
    return value if isinstance(value, str) else None
