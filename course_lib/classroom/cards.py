"""The card at a lesson's head and end: its sections with their minutes, what is done, and where to go on."""

import html
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import quote

from course_lib.classroom.markup import inline_html, plain_list, to_html
from course_lib.classroom.output import BLUE, THEMES, panel
from course_lib.classroom.session import LESSONS
from course_lib.data.place import CannotStart, course_folder


@dataclass(frozen=True)
class Section:
    """One part of a lesson; `holds` names the items in it, so that the card knows what is done."""

    title: str
    minutes: float
    holds: tuple[str, ...] = ()
    optional: bool = False
    sitting: int = 1


@dataclass
class Item:
    """Something to do in a section, as the card tells of it; `prediction` says what was predicted and what came."""

    words: str
    done: bool
    prediction: str = ""


@dataclass
class Part:
    """A section with its number on the card (none if it is optional) and the learner's items in it."""

    section: Section
    number: int | None
    items: list[Item] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The section as one would call it: 'section 4, Write', or 'optional, Order'."""
        return f"{f'section {self.number}' if self.number else 'optional'}, {self.section.title}"

    @property
    def state(self) -> str:
        """How far the learner is."""
        done, total = sum(item.done for item in self.items), len(self.items)
        if not total:
            return ""
        return "✓ done" if done == total else f"{done} of {total} done" if done else "open"

    def open_items(self) -> list[Item]:
        """Return what is still to be done."""
        return [item for item in self.items if not item.done]


def number_sections(sections: Sequence[Section]) -> Iterator[tuple[int | None, Section]]:
    """Yield each section with its number; optional ones have none."""
    number = 0
    for section in sections:
        number += not section.optional
        yield None if section.optional else number, section


def minutes(sections: Sequence[Section]) -> str:
    """Return the lesson's length in words."""
    needed = [section for section in sections if not section.optional]
    sittings = sorted({section.sitting for section in needed})
    each = [sum(section.minutes for section in needed if section.sitting == one) for one in sittings]
    optional = sum(section.minutes for section in sections if section.optional)
    told = f"{sum(each):g} minutes"
    if len(each) > 1:
        told += f" in {len(each)} sittings ({' and '.join(f'{one:g}' for one in each)})"
    return told + (f", and {optional:g} that are optional" if optional else "")


def plain_card(lesson: str, sections: Sequence[Section]) -> str:
    """Return the head card as plain text, the same for every reader."""
    rows = [
        f"  {number or '+'} {section.title} ({section.minutes:g} min)" for number, section in number_sections(sections)
    ]
    return "\n".join([f"Lesson {lesson}, {LESSONS[lesson]}: {minutes(sections)}", *rows])


def html_card(lesson: str, sections: Sequence[Section], parts: Sequence[Part] = ()) -> str:
    """Return the head card as HTML; with a learner's `parts`, what is done and where to go on."""
    states = [part.state for part in parts] or [""] * len(sections)
    left = 'style="text-align:left;padding:0.15em 1.2em 0.15em 0"'
    begins = {section for before, section in pairwise(sections) if section.sitting > before.sitting}
    rows = "".join(
        (f'<tr><td colspan="4" {left}>Sitting {section.sitting}</td></tr>' if section in begins else "")
        + f"<tr><td {left}>{number or 'optional'}</td>"
        f'<th scope="row" {left}>{title}</th>'
        f'<td {left[:-1]};white-space:nowrap">{section.minutes:g} min</td>'
        f"{f'<td {left}>{state}</td>' if parts else ''}</tr>"
        for (number, section), title, state in zip(
            number_sections(sections), _titles(lesson, sections), states, strict=True
        )
    )
    columns = ("Section", "Title", "Time", *(["Done"] if parts else []))
    head = "".join(f'<th scope="col" {left}>{column}</th>' for column in columns)
    title = f"<strong>Lesson {lesson}, {html.escape(LESSONS[lesson])}</strong>: {minutes(sections)}"
    table = (
        f'<table style="margin:0.4em 0;font-size:inherit"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        if sections
        else ""
    )
    return panel(f"{THEMES}<p>{title}</p>{table}" + (to_html(where_next(parts)) if parts else ""), colour=BLUE)


def heading(number: int | None, section: Section) -> str:
    """Return the heading of a section on the page."""
    return f"{number} · {section.title}" if number else section.title


def section_cells(lesson: str) -> dict[str, str]:
    """Return the id of the cell with the heading of each section of a lesson: {"1": id, ..., "optional": id}."""
    for name in _notebooks():
        if name[:2] == lesson:
            cells = json.loads((course_folder() / "notebooks" / name).read_text(encoding="utf-8"))["cells"]
            found = ((re.match(r"## (\d+|Optional)\b", "".join(cell["source"])), cell["id"]) for cell in cells)
            return {heading[1].lower(): cell for heading, cell in found if heading}
    return {}


def _titles(lesson: str, sections: Sequence[Section]) -> list[str]:
    """The titles as HTML, each with a link to its cell in the notebook that is open, as JupyterLab follows it."""
    cells = section_cells(lesson)
    opened = os.path.basename(os.environ.get("JPY_SESSION_NAME", ""))  # a copy of the lesson may have another name
    notebook = opened if opened.endswith(".ipynb") else next((name for name in _notebooks() if name[:2] == lesson), "")
    titles = []
    for number, section in number_sections(sections):
        title, cell = inline_html(section.title), cells.get(str(number or "optional"))
        titles.append(f'<a href="{quote(notebook)}#cell-id={cell}">{title}</a>' if cell else title)
    return titles


def where_next(parts: Sequence[Part]) -> str:
    """Return where the learner goes on: the first section, not an optional one, with something open in it."""
    needed = [part for part in parts if part.number]
    going = next((part for part in needed if part.open_items()), None)
    if going is None:
        return "✓ **All done.**" if any(part.items for part in needed) else ""
    if not any(item.done for part in parts for item in part.items):
        return f"**Begin with section 1: {needed[0].section.title}**"
    return f"**Continue with section {going.number}: {going.section.title}**"


def html_end(lesson: str, sections: Sequence[Section], parts: Sequence[Part]) -> str:
    """Return the closing card as HTML: what was predicted and what came, what is open, what comes next."""
    predictions = [f"{item.words}: {item.prediction}" for part in parts for item in part.items if item.prediction]
    still = [(part, item) for part in parts for item in part.open_items()]
    text = html_card(lesson, sections, parts)
    if predictions:
        text += panel(to_html("**Your predictions, and the results**") + plain_list(map(inline_html, predictions)))
    if still:
        rows = (inline_html(f"{part.name}: {item.words}") for part, item in still)
        text += panel(to_html("**Still open**") + plain_list(rows))
    where = f"<p>{_where(lesson)}</p>" if following(lesson) else ""
    return text + panel(to_html(next_lesson(lesson)) + where)


def following(lesson: str) -> str | None:
    """Return the number of the next lesson."""
    number = f"{int(lesson) + 1:02d}"
    return number if number in LESSONS else None


def next_lesson(lesson: str) -> str:
    """Return what comes next, in words that are the same for every reader."""
    number = following(lesson)
    return f"**Next: lesson {number}, {LESSONS[number]}.**" if number else "**This was the last lesson.**"


def _where(lesson: str) -> str:
    """Where the next lesson is, as HTML; a link beside this notebook opens in JupyterLab and on the site."""
    later = [name for name in _notebooks() if name[:2] > lesson]
    if later and later[0].startswith(following(lesson)):
        return f"It is in {_link(later[0])}."
    return "It is not written yet" + (f": go on with {_link(later[0])}." if later else ".")


def _notebooks() -> list[str]:
    """The names of the lessons' notebooks in the course folder; none without one."""
    try:
        return sorted(path.name for path in (course_folder() / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    except CannotStart:
        return []


def _link(notebook: str) -> str:
    return f'<a href="{html.escape(notebook)}">{html.escape(notebook)}</a>'
