"""What the page for lecturers says about lesson 05 is what the lesson's metadata say."""

import re
from pathlib import Path

import pytest

from course_lib.lectures.story import PATHS, compose, slides_of
from course_lib.tools.files import read_notebook

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lecturing.md").read_text(encoding="utf-8")
LESSON = read_notebook(ROOT / "notebooks" / "05_attention.ipynb")


def table_rows():
    rows = re.findall(r"^\| (.+?) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    return {name.strip("*"): [cell.strip().strip("*") for cell in cells] for name, *cells in rows}


@pytest.mark.parametrize("path", PATHS)
def test_the_timing_on_the_page_is_that_of_the_slides(path):
    column, minutes = PATHS.index(path), {}
    for cell in compose(LESSON, path=path).cells:
        if cell.metadata.slideshow.slide_type == "slide":
            about = cell.metadata.lecture
            minutes[about["section"]] = minutes.get(about["section"], 0) + about["minutes"]
    rows = table_rows()
    sections = {name: cells[column] for name, cells in rows.items() if re.match(r"\d+ · ", name)}
    assert {name: int(cell) for name, cell in sections.items() if cell != "–"} == minutes
    assert int(rows["together"][column]) == sum(minutes.values())
    assert int(rows["slides"][column]) == len(slides_of(LESSON, path))


def test_slides_that_the_page_names_exist():
    named = set(re.findall(r"\*([A-Z][^*\n]{8,60})\*(?!\*)", PAGE.split("## Writing")[0]))
    headings = {slide.heading for slide in slides_of(LESSON)}
    assert len(named) > 3 and named <= headings
