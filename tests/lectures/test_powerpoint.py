"""`course slides --pptx`: each slide is a picture, with its title and its notes as text."""

import re

import pytest

from course_lib.commands.files import write_notebook
from course_lib.data.place import CannotStart
from course_lib.lectures import powerpoint
from course_lib.lectures.commands import write_slides
from tests.lectures.small_lesson import small_lesson

pptx = pytest.importorskip("pptx")


@pytest.fixture
def lesson(tmp_path):
    write_notebook(small_lesson(), tmp_path / "99_waves.ipynb")
    return tmp_path / "99_waves.ipynb"


@pytest.mark.needs("chromium", "lecture_assets")
def test_each_slide_is_a_picture_with_its_title_and_notes_as_text(lesson, tmp_path, capsys):
    assert write_slides(lesson, path=60, pptx=True, to=tmp_path) == 0
    assert re.search(r"99_waves.60.slides.pptx\n5 slides, 7.5 minutes, .* edit", capsys.readouterr().out)
    made = pptx.Presentation(tmp_path / "99_waves.60.slides.pptx")
    assert (made.slide_width, made.slide_height) == (1280 * 9525, 720 * 9525)
    slides = list(made.slides)
    assert [slide.shapes.title.text for slide in slides] == [
        "99 · Waves", "How it is drawn", "A wave", "Vote: which is slower?", "Play",
    ]  # fmt: skip
    for slide in slides:
        picture, title = slide.shapes
        assert (picture.left, picture.width, picture.image.size) == (0, made.slide_width, (1920, 1080))
        assert title.top + title.height < made.slide_height and title.text_frame.paragraphs[0].font.size.pt >= 28
    notes = [slide.notes_slide.notes_text_frame.text for slide in slides]
    assert all(text.startswith("Say. What stands under") for text in notes)
    assert [("A: a longer period." in text) for text in notes] == [False, False, False, True, False]
    assert "A wave that rises" in slides[2].shapes[0]._element.nvPicPr.cNvPr.get("descr")


def test_without_python_pptx_a_sentence_says_how_to_get_it(lesson, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pptx", None)
    with pytest.raises(CannotStart, match=re.escape("course.py slides 05 --pptx")):
        powerpoint.write_powerpoint(small_lesson(), tmp_path / "a.pptx")
