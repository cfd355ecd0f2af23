"""The pages for lecturers say what the slides of the lessons say."""

import re
from pathlib import Path

import pytest

from course_lib.commands.files import read_notebook
from course_lib.commands.lessons import lessons
from course_lib.lectures.story import compose, paths_of, slides_of

DOCS = Path(__file__).parents[2] / "docs"
TAUGHT = {path.name[:2]: path for path in lessons() if slides_of(read_notebook(path))}


def page(number):
    return (DOCS / "lectures" / f"{number}.md").read_text(encoding="utf-8")


def timing(lesson):
    """The minutes of each section in each path, as the table that stands on a lecture's page."""
    paths, rows = paths_of(lesson), {}
    for path in reversed(paths):  # the longest has all sections in their order
        for cell in compose(lesson, path=path).cells:
            if cell.metadata.slideshow.slide_type == "slide":
                minutes = rows.setdefault(cell.metadata.lecture["section"], dict.fromkeys(paths, 0))
                minutes[path] += cell.metadata.lecture["minutes"]
    together = [sum(row[path] for row in rows.values()) for path in paths]
    table = [
        ["section", *paths],
        ["---"] * (1 + len(paths)),
        *([name, *(minutes or "–" for minutes in row.values())] for name, row in rows.items()),
        ["**together**", *(f"**{minutes}**" for minutes in together)],
        ["slides", *(len(slides_of(lesson, path)) for path in paths)],
    ]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in table).replace("| --- | --- |", "|---|---|")


@pytest.mark.parametrize("number", TAUGHT)
def test_the_timing_of_a_lecture_is_that_of_its_slides(number):
    expected = timing(read_notebook(TAUGHT[number]))
    assert expected.replace(" --- ", "---") in page(number).replace(" --- ", "---"), f"it should have\n{expected}"


@pytest.mark.parametrize("number", TAUGHT)
def test_slides_that_a_lecture_page_names_exist(number):
    named = set(re.findall(r"\*([A-Z][^*\n]{8,60})\*(?!\*)", page(number)))
    assert len(named) > 1 and named <= {slide.heading for slide in slides_of(read_notebook(TAUGHT[number]))}


def test_the_page_for_lecturers_opens_with_the_lectures_that_there_are():
    first = (DOCS / "lecturing.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert re.findall(r"\(lectures/(\d\d)\.md\)", first) == list(TAUGHT)
