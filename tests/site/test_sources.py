"""What stands on the site, and what is for instructors alone."""

import json
import re

import nbformat
import pytest

from course_lib.commands.lessons import lessons
from course_lib.site.sources import FLOORS, HOME, Sources, all_sources, as_rst, public_modules
from tests.site.small_site import LESSON, SMALL


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    SMALL.write(folder)
    return folder


def test_every_lesson_guide_and_floor_of_the_library_has_its_place_and_nothing_of_assignments_and_lectures():
    course = all_sources(lessons())
    assert len(course.lessons) == 18 and all((course.course / name).is_file() for name in course.pages)
    assert {name.split(".")[1] for name in course.modules} == set(FLOORS)
    assert "course_lib.functional.attention" in course.modules
    guides = {path.relative_to(course.course).as_posix() for path in (course.course / "docs").glob("*.md")}
    assert guides == {guide for guide in course.guides if guide.startswith("docs/")} | {HOME}
    instructors = (
        "notebooks/assignments",
        "docs/lectures",
        *(f"course_lib.{n}" for n in ("grading", "lessons", "authoring")),
    )
    assert not [name for name in (*course.pages, *course.modules) if name.startswith(instructors)]


def test_the_notes_of_a_lecture_stay_out_and_the_outputs_stay_in(laid_out):
    stored = nbformat.read(SMALL.course / LESSON, as_version=4)
    shown = nbformat.read(laid_out / LESSON, as_version=4)
    assert any("lecture" in cell.metadata for cell in stored.cells)
    assert not any(cell.metadata for cell in shown.cells) and set(shown.metadata) == {"kernelspec"}
    kept, given = (json.dumps([c.outputs for c in book.cells if "outputs" in c]) for book in (shown, stored))
    assert re.sub(r"05_attention\.html#[\w-]+", "PLACE", kept) == re.sub(r"05_attention\.ipynb#[\w=-]+", "PLACE", given)


def test_links_lead_to_pages_files_or_nowhere(tmp_path):
    course = tmp_path / "course"
    (course / "docs" / "lectures").mkdir(parents=True)
    for name in ("README.md", "LICENSE", "docs/a.md", "docs/b.md", "docs/lectures/05.md", "docs/picture.png"):
        (course / name).write_text("x", encoding="utf-8")
    sources = Sources(course=course, guides=["docs/a.md", "docs/b.md"])

    def relinked(text):
        return sources.relinked(text, "docs/a.md", tmp_path / "to")

    kept = "[b](b.md) [c](b.md#place) [d](#place) [e](https://example.org/x.md) ![f](picture.png)\n"
    kept += "```\n[g](gone.md)\n```\n"
    assert relinked(kept) == kept
    assert relinked("[notes](lectures/05.md), [none](gone.md)") == "notes, none"
    assert relinked("[start](../README.md#learn)") == "[start](../README.md#learn)"
    assert relinked("[text](../LICENSE)") == "[text](../LICENSE)"
    assert (tmp_path / "to" / "docs" / "picture.png").is_file() and (tmp_path / "to" / "LICENSE").is_file()


def test_a_lesson_that_lists_notebooks_leads_to_their_pages(tmp_path):
    cell = nbformat.v4.new_code_cell("x")
    links = '<a href="05_attention.ipynb">05</a><a href="00_a.ipynb#cell-id=two">2</a>'
    cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": links})]
    (tmp_path / "notebooks").mkdir()
    section = nbformat.v4.new_markdown_cell("## 2 · A safe: softmax\n\nText", id="two")
    cells = [nbformat.v4.new_markdown_cell("# 00"), section, cell]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "P"}})
    nbformat.write(notebook, tmp_path / "notebooks" / "00_a.ipynb")
    (tmp_path / "docs").mkdir()
    for name in ("README.md", "docs/home.md"):
        (tmp_path / name).write_text("# R\n", encoding="utf-8")
    Sources(course=tmp_path, lessons=["notebooks/00_a.ipynb"], guides=[]).write(tmp_path / "to")
    shown = nbformat.read(tmp_path / "to" / "notebooks" / "00_a.ipynb", as_version=4)
    assert shown.cells[-1].outputs[0].data["text/html"] == (
        '<a href="05_attention.html">05</a><a href="00_a.html#a-safe-softmax">2</a>'
    )


def test_the_first_page_is_one_of_its_own_with_the_lessons_of_the_readme(laid_out):
    page = (laid_out / "index.md").read_text(encoding="utf-8")
    assert "LESSONS" not in page and 'href="notebooks/05_attention.html"><img class="course-' in page
    assert "[Begin" not in page and "[lesson 05, Attention](/notebooks/05_attention.ipynb)" in page
    assert "PLAYGROUND" not in page and "data-playground" not in page  # this site has no lesson 08
    assert "(/docs/lecturing.md)" in page and "![Lesson 05 in JupyterLab: " in page
    assert [file.stem for file in (laid_out / "_figures" / "lessons").iterdir()] == ["05"]
    assert page.count("python3 course.py lab") == 1 and (laid_out / "docs" / "lesson_05.png").is_file()
    assert (laid_out / "README.md").read_text(encoding="utf-8").startswith("# ")


def test_docstrings_are_read_letter_by_letter_but_for_their_code():
    written = ["head_i * W_ |x| of `mask` and `a + b`.", "", "    x_ = *y", "", "- one", "- two"]
    assert as_rst(written) == [
        r"head\_i \* W\_ \|x\| of \ :py:obj:`mask`\  and \ ``a + b``\ .",
        "",
        *("::", "", "    x_ = *y", ""),
        *("- one", "- two", ""),
    ]


def test_modules_without_anything_public_have_no_page():
    assert "course_lib.training.loop" in public_modules("training")
    assert not [name for name in public_modules("models") if name == "course_lib.models"]
