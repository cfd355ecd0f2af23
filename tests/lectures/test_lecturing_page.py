"""What the page for lecturers says about lessons 00 and 05 is what their metadata say."""

import re
from pathlib import Path

import pytest

from course_lib.commands.files import read_notebook
from course_lib.commands.lessons import find_lesson, lessons
from course_lib.lectures.story import compose, paths_of, slides_of

PAGE = (Path(__file__).parents[2] / "docs" / "lecturing.md").read_text(encoding="utf-8")
OPENING, ATTENTION = (read_notebook(find_lesson(number)) for number in ("00", "05"))


def timing(number, paths):
    """The table on the page that tells the timing of a lesson: {name of a row: its cells}."""
    part = PAGE.split(f"### Lesson {number}\n")[1].split("\n#")[0]
    rows = re.findall(r"^\|" + r" ([^|]+) \|" * (1 + len(paths)) + "$", part, re.MULTILINE)
    return {name.strip("*"): [cell.strip("*") for cell in cells] for name, *cells in rows}


@pytest.mark.parametrize("path", paths_of(ATTENTION))
def test_the_timing_of_lesson_05_is_that_of_the_slides(path):
    column, minutes = paths_of(ATTENTION).index(path), {}
    for cell in compose(ATTENTION, path=path).cells:
        if cell.metadata.slideshow.slide_type == "slide":
            about = cell.metadata.lecture
            minutes[about["section"]] = minutes.get(about["section"], 0) + about["minutes"]
    rows = timing("05", paths_of(ATTENTION))
    sections = {name: cells[column] for name, cells in rows.items() if re.match(r"\d+ · ", name)}
    assert {name: int(cell) for name, cell in sections.items() if cell != "–"} == minutes
    assert int(rows["together"][column]) == sum(minutes.values())
    assert int(rows["slides"][column]) == len(slides_of(ATTENTION, path))


@pytest.mark.parametrize("path", paths_of(OPENING))
def test_the_clock_of_lesson_00_is_that_of_the_slides(path):
    column, gone, clock = paths_of(OPENING).index(path), 0, {}
    for slide in slides_of(OPENING, path):
        gone += slide.minutes
        clock[slide.heading] = gone
    rows = timing("00", paths_of(OPENING))
    assert rows.pop("after the slide")[column] == str(path)
    assert int(rows.pop("slides")[column]) == len(clock)
    assert {name: cells[column] for name, cells in rows.items()} == {name: str(clock.get(name, "–")) for name in rows}
    assert list(rows)[-1] == list(clock)[-1] and len(rows) > 8


def test_slides_that_the_page_names_exist():
    named = set(re.findall(r"\*([A-Z][^*\n]{8,60})\*(?!\*)", PAGE.split("## Writing")[0]))
    headings = {slide.heading for path in lessons() for slide in slides_of(read_notebook(path))}
    assert len(named) > 3 and named <= headings


def test_the_page_opens_with_the_lessons_that_are_taught():
    first = PAGE.split("\n## ")[0]
    taught = [path.name[:2] for path in lessons() if slides_of(read_notebook(path))]
    assert re.findall(r"[Ll]esson (\d\d)", first) == taught
