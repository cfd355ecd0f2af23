"""The playgrounds of lessons 09 to 12 in JupyterLab: the kernel answers, keys are heard, and everybody can use them."""

import pytest

from tests.browser.playgrounds import THEMES, found_by_axe, play

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.lessons.lesson_09.playground import PLAYGROUNDS as of_09
from course_lib.lessons.lesson_10.playground import PLAYGROUNDS as of_10
from course_lib.lessons.lesson_11.playground import PLAYGROUNDS as of_11
from course_lib.lessons.lesson_12.playground import PLAYGROUNDS as of_12
from course_lib.lessons.lesson_09 import laws
from course_lib.lessons.lesson_10 import learner
from course_lib.lessons.lesson_10.tasks import TASKS
from course_lib.lessons.picture import the_picture

runs = laws.shipped()
tuned, reward = trained("demonstrated"), trained("kindness")
parts = learner.Parts(*(TASKS[name].reference for name in ("token_rewards", "gae")))
points = [learner.measure(tuned, tuned, reward)]
course = {"weights": trained("aligned").state_dict(), "critic": reward.state_dict(), "points": points}
"""
PLAYED = {  # what makes each of them, and what a learner does and reads
    "09 compute": ("of_09['compute'](runs['grid'] + runs['isoflop'])",
        ("says", "1.0e10 operations"), ("keys", "Compute C", "End"), ("says", "1.0e13 operations")),
    "09 fit": ("of_09['fit'](runs['grid'])",
        ("says", "floor 0.00"), ("type", "Floor c", "1.25"), ("says", "floor 1.25")),
    "10 labeller": ("of_10['labeller'](learner.before().model)",
        ("shows", "nothing yet"), ("click_on", ".play-vote"), ("shows", "Pair 2 of 80"),
        ("press", "One back"), ("shows", "Pair 1 of 80"),
        ("press", "20 votes of somebody who dislikes “not”"), ("shows", "20 votes, KL")),
    "10 paid": ("of_10['rewards'](tuned, reward, course, course, parts)",
        ("notes", "sum of the rewards"), ("keys", "β", "Home"), ("notes", "with penalty")),
    "11 draw": ("of_11['draw'](trained('vit_digits'))",
        ("says", "It says 5"), ("press", "Clear"), ("says", "It cannot say “nothing”"), ("press", "a wide three"),
        ("says", "It says 3"), ("click", "gridcell", "patch 6,"), ("says", "1 of 16 patches are hidden: 6.")),
    "11 hide": ("of_11['hide'](trained('vit'), the_picture().pixels)",
        ("says", "It says 3"), ("click", "gridcell", "patch 6,"), ("has_reached", 1), ("choose", "a dark eight"),
        ("says", "1 of 16 patches are hidden: 6."), ("press", "Show all"), ("says", "It says 8")),
    "12 reader": ("of_12['reader'](trained('swin'))",
        ("says", "Prepared, it says 3"), ("press", "Clear"), ("says", "It cannot say “nothing”")),
    "12 reach": ("of_12['reach']()",
        ("says", "after 1 block its receptive field has 4 of 64"), ("choose", "2", "Blocks"),
        ("says", "after 2 blocks its receptive field")),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAYED)
def test_a_playground_answers_its_learner(lab, name):
    play(lab, name, PLAYED)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(lab, theme):
    assert found_by_axe(lab, {name: f"# {name}\n" for name in PLAYED}, theme) == {}
