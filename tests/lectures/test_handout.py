"""What `course slides` and `course handout` write, and what these and `course lecture` say where they cannot."""

import re

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from course_lib.commands.files import read_notebook, write_notebook
from course_lib.data.place import CannotStart, course_folder
from course_lib.lectures import browser
from course_lib.lectures.browser import find_browser, print_pdf
from course_lib.lectures.commands import teach, write_handouts, write_slides
from course_lib.lectures.handout import lesson_page
from course_lib.lectures.story import slides_of
from tests.needs import find_chromium

LESSON = course_folder() / "notebooks" / "05_attention.ipynb"


@pytest.mark.needs("chromium", "lecture_assets")
def test_the_hand_outs_are_complete(tmp_path, capsys):
    assert write_handouts(LESSON, path=30, to=tmp_path) == 0
    names = ["slides.pdf", "lesson.html", "lesson.pdf"]
    assert [line.partition("30.")[2] for line in capsys.readouterr().out.splitlines()[-3:]] == names
    slides = (tmp_path / "05_attention.30.slides.pdf").read_bytes()
    number = len(slides_of(read_notebook(LESSON), 30))
    assert number <= pages(slides) <= 1.2 * number  # a slide and its notes on each page, and the answers at the end
    assert pages((tmp_path / "05_attention.30.lesson.pdf").read_bytes()) > 20


def pages(pdf):
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@pytest.mark.needs("chromium")
def test_a_page_that_never_gets_ready_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(browser, "SECONDS", 4)
    (tmp_path / "page.html").write_text("<p>never ready</p>")
    with pytest.raises(CannotStart, match=r"did not print page.pdf: the page was not ready within 4 seconds"):
        print_pdf(tmp_path / "page.html", tmp_path / "page.pdf", browser=find_chromium())
    assert not (tmp_path / "page.pdf").exists()


def test_without_a_browser_a_sentence_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "PLACES", ())
    with pytest.raises(CannotStart, match="Install one .*apt-get install chromium.*COURSE_CHROMIUM"):
        write_handouts(LESSON, to=tmp_path)
    monkeypatch.setenv("COURSE_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(CannotStart, match="COURSE_CHROMIUM names /nowhere/chromium, which is not a program"):
        find_browser()


def test_a_browser_that_ends_at_once_is_named(tmp_path):
    (tmp_path / "page.html").write_text("<p>")
    with pytest.raises(CannotStart, match="did not print page.pdf: it ended at once with exit code 0"):
        print_pdf(tmp_path / "page.html", tmp_path / "page.pdf", browser="true")


@pytest.mark.needs("lecture_assets")
def test_the_lesson_for_reading_holds_every_cell_and_no_address_that_is_fetched():
    lesson = read_notebook(LESSON)
    page = lesson_page(lesson).partition("<script>")[0]
    assert page.count('<div class="words">') == sum(cell.cell_type == "markdown" for cell in lesson.cells)
    assert page.count('<div class="code">') == sum(cell.cell_type == "code" for cell in lesson.cells)
    assert not re.search(r"""src=["'](?!data:)""", page) and "<title>05 · Attention</title>" in page


@pytest.mark.needs("lecture_assets")
def test_the_slides_are_written_where_one_says(tmp_path, capsys):
    assert write_slides(LESSON, path=60, theme="dark", to=tmp_path / "talk.html") == 0
    assert 'data-theme="dark"' in (tmp_path / "talk.html").read_text(encoding="utf-8")[:200]
    assert re.search(r"\d+ slides, \d+ minutes, \d\.\d MB", capsys.readouterr().out)


def written(path, *slides):
    """The file of a lesson whose only cell has these slides."""
    write_notebook(new_notebook(cells=[new_markdown_cell("# A", metadata={"lecture": {"slides": list(slides)}})]), path)
    return path


OPENING = {"text": "# Opening", "notes": "Say.", "paths": [30, 60], "minutes": 9}


@pytest.mark.needs("lecture_assets")
@pytest.mark.parametrize(("path", "name"), [(None, "08_opening"), (60, "08_opening"), (30, "08_opening.30")])
def test_without_a_length_the_longest_lecture_of_the_lesson_is_written(tmp_path, capsys, path, name):
    more = {"text": "## More", "notes": "Say.", "paths": [60], "minutes": 8}
    assert write_slides(written(tmp_path / "08_opening.ipynb", OPENING, more), path=path, to=tmp_path) == 0
    assert (tmp_path / f"{name}.slides.html").is_file()
    assert ("1 slides, 9 minutes" if path == 30 else "2 slides, 17 minutes") in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "options", "said"),
    [
        (write_slides, {"path": 45}, "^The lecture of 05_attention takes 30, 60 or 90 minutes, not 45.$"),
        (write_slides, {"theme": "pink"}, "A deck is light or dark, not 'pink'"),
        (teach, {"path": 45}, "not 45"),
        (teach, {"theme": "pink"}, "light or dark"),
    ],
)
def test_a_theme_or_a_length_that_does_not_exist_is_named(command, options, said):
    with pytest.raises(CannotStart, match=said):
        command(LESSON, **options)


def test_a_lesson_without_slides_and_a_file_that_is_none_are_named(tmp_path):
    with pytest.raises(CannotStart, match="07_empty has no slides yet.* docs/lecturing.md"):
        write_slides(written(tmp_path / "07_empty.ipynb"))
    with pytest.raises(CannotStart, match="^The lecture of 09_short takes 30 minutes, not 90.$"):
        write_slides(written(tmp_path / "09_short.ipynb", OPENING | {"paths": [30]}), path=90)
    (tmp_path / "08_broken.ipynb").write_text("{")
    with pytest.raises(CannotStart, match="08_broken.ipynb cannot be read"):
        write_handouts(tmp_path / "08_broken.ipynb")
