"""The playgrounds of lessons 13 to 17 in JupyterLab: the kernel answers, keys are heard, and everybody can use them."""

import pytest

from tests.browser.playgrounds import THEMES, found_by_axe, play

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.lessons.lesson_13.playground import PLAYGROUNDS as of_13
from course_lib.lessons.lesson_14.playground import PLAYGROUNDS as of_14
from course_lib.lessons.lesson_15.playground import PLAYGROUNDS as of_15
from course_lib.lessons.lesson_17.playground import PLAYGROUNDS as of_17
from course_lib.lessons.lesson_16 import control_playground, words_playground
from course_lib.lessons.picture import the_picture
"""
PLAYED = {  # what makes each of them, and what a learner does and reads
    "13 mask": ("of_13['mask'](trained('mae'))",
        ("says", "No patch is hidden"), ("click", "gridcell", "patch 25, visible"),
        ("says", "48 of 49 patches are visible"), ("press", "Swap visible and hidden"),
        ("says", "1 of 49 patches are visible. Error (MSE)")),
    "13 ruin": ("of_13['ruin'](trained('mae_scenes'), the_picture().pixels)",
        ("says", "16 of 64 patches are visible. Error (MSE)"), ("press", "Show all"),
        ("click", "gridcell", "patch 28, visible"), ("says", "63 of 64 patches are visible"), ("choose", "a dahlia"),
        ("click", "gridcell", "patch 28, hidden"), ("says", "No patch is hidden")),
    "14 drawing": ("of_14['drawing'](trained('unet'))",
        ("says", "1 object: a 5"), ("choose", "coins"), ("says", "1 object: a 5"), ("press", "Clear"),
        ("says", "Draw a digit, or anything.")),
    "14 scene": ("of_14['scene'](trained('unet'), trained('unet_no_skips'))",
        ("says", "With skips: 2 objects: a 3"), ("keys", "Position of the 7", *["ArrowLeft"] * 18),
        ("says", "With skips: 1 object"), ("has_reached", 1)),
    "15 spans": ("of_15['spans'](trained('gaps'))",
        ("counts", ".play-gaps > .gone", 5), ("type", "Corruption rate", "0.3"),
        ("counts", ".play-gaps > .gone", 10)),
    "15 transcribe": ("of_15['transcribe'](trained('tones'))",
        ("says", "Collapsed: C E G c, correct. Nearest clean tone in each frame: C E G c, correct."),
        ("type", "Noise", "0.8"), ("has_reached", 1), ("choose", "C C D E E"), ("says", "Played: C C D E E.")),
    "16 agent": ("control_playground.agent(trained('mazes'))",
        ("shows", "Asked for -10: "), ("keys", "Return asked for", "Home"), ("shows", "Asked for -40: ")),
    "16 search": ("words_playground.search(trained('icon_clip'))",
        ("counts", ".play-icons canvas:visible", 6), ("type_keys", "Words", "green book"),
        ("shows", "The icons with the highest cosine for “green book”"), ("write", "Words", "fish"),
        ("choose", "unseen things"), ("shows", "The icons with the highest cosine for “fish”")),
    "17 scores": ("of_17['scores']()",
        ("says", "softmax attention needs 1 times the multiplications"), ("choose", "linear"),
        ("type", "Tokens", "16"), ("says", "One head, 16 tokens: linear attention needs 7.65 times"),
        ("has_reached", 1)),
    "17 dream": ("of_17['dream'](trained('boltzmann'))",
        ("says", "The label 3 is clamped. After 30 Gibbs steps"), ("choose", "0", "Clamped label"),
        ("says", "The label 0 is clamped. After 30 Gibbs steps"), ("choose", "8", "Begin at"),
        ("type", "Gibbs steps", "1"), ("says", "After 1 Gibbs step ")),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAYED)
def test_a_playground_answers_its_learner(lab, name):
    play(lab, name, PLAYED)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(lab, theme):
    assert found_by_axe(lab, {name: f"# {name}\n" for name in PLAYED}, theme) == {}
