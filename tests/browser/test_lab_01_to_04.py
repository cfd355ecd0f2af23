"""The playgrounds of lessons 01 to 04 in JupyterLab: the kernel answers, keys are heard, and everybody can use them."""

import pytest

from tests.browser.playgrounds import THEMES, found_by_axe, play

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.lessons.lesson_01.playground import PLAYGROUNDS as of_01
from course_lib.lessons.lesson_02.playground import PLAYGROUNDS as of_02
from course_lib.lessons.lesson_03.playground import PLAYGROUNDS as of_03
from course_lib.lessons.lesson_04.playground import PLAYGROUNDS as of_04
from course_lib.lessons.lesson_02.tasks import TASKS
"""
PLAYED = {  # what makes each of them, and what a learner does and reads
    "01 six": ("of_01['six'](trained('transfer'))",
        ("says", "It knows 0 to 5, and says 2"), ("press", "any digit"), ("press", "a zero"),
        ("says", "It knows 0 to 5, and says 0")),
    "01 stages": ("of_01['stages'](trained('resnet'))",
        ("says", "A probe at each depth reads"), ("press", "a zero"), ("says", "stage 3 0")),
    "02 neighbours": ("of_02['neighbours'](trained('simclr'))",
        ("says", "Nearest by SimCLR: 2, 2, 2, 2, 2."), ("press", "an eight"),
        ("says", "Nearest by SimCLR: 8, 8, 8, 8, 8."), ("has_reached", 1)),
    "02 plane": ("of_02['plane'](trained('simclr'))",
        ("says", "Picture 50 is a 2"), ("click_on", ".play-digit", 149), ("says", "Picture 150 is a 7"),
        ("says", "changed views land nearest to a 7."), ("counts", ".play-land", 8)),
    "02 icons": ("of_02['icons'](TASKS['simclr'].module(3, (8, 8, 8, 8), 16))",
        ("says", "Chosen: thinking face by noto."), ("write", "Search", "microscope"),
        ("says", "“microscope” finds 7 of 571 drawings."), ("keys", "Map of the drawings", "ArrowRight"),
        ("says_no_more", "Chosen: thinking face by noto.")),
    "03 reader": ("of_03['reader']()",
        ("says", "“brazília”: Hungarian"), ("press", "kamboçya"), ("says", "“kamboçya”: Turkish"),
        ("write", "Name", ""), ("says", "Write a name")),
    "03 eigenvalues": ("of_03['eigenvalues']()",
        ("says", "Eigenvalues of absolute value 0.90"), ("keys", "Eigenvalue;", *["PageUp"] * 5),
        ("says", "Eigenvalues of absolute value 1.40"), ("has_reached", 1)),
    "04 machine": ("of_04['machine']()",
        ("says", "f = 0.70"), ("keys", "forget f", "PageUp", "PageUp", "PageUp"), ("says", "f = 1.00"),
        ("choose", "in the first step only"), ("has_reached", 1)),
    "04 reader": ("of_04['reader'](trained('lstm_characters'))",
        ("says", "Cell 0 over 84 characters"), ("write", "Text", "Two words."),
        ("says", "Cell 0 over 10 characters"), ("write", "Text", ""), ("says", "Write something")),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAYED)
def test_a_playground_answers_its_learner(lab, name):
    play(lab, name, PLAYED)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(lab, theme):
    assert found_by_axe(lab, {name: f"# {name}\n" for name in PLAYED}, theme) == {}
