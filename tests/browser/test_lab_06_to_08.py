"""The playgrounds of lessons 06 to 08 in JupyterLab: the kernel answers, keys are heard, and everybody can use them."""

import pytest

from tests.browser.playgrounds import THEMES, found_by_axe, play

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

FIRST = """
from course_lib.lessons.lesson_06.playground import PLAYGROUNDS as of_06
from course_lib.lessons.lesson_07.playground import PLAYGROUNDS as of_07
from course_lib.lessons.lesson_08.playground import PLAYGROUNDS as of_08
from course_lib.lessons.lesson_07.sentences import passages
from course_lib.text.tokenizer import Tokenizer

gpt = load_trained("dictionary")
tokenizer = Tokenizer.from_state_dict(gpt.extra["tokenizer"])
"""
PLAYED = {  # what makes each of them, and what a learner does and reads
    "06 explorer": ("of_06['explorer'](trained('translator'))",
        ("shows", "le ministre ne voit pas la zone économique européenne."),
        ("enter", "English sentence", "judge is the young"), ("shows", "le juge est jeune."), ("has_reached", 2),
        ("press", "juge est: log p"), ("says", "“est” after “juge”"), ("enter", "English sentence", ""),
        ("shows", "Type a sentence, or take one of the examples."), ("press", "Back to the start")),
    "06 bpe": ("of_06['bpe']()",
        ("says", "79 letters are 70 tokens"), ("type", "Merges", "30"), ("enter", "A word to cut", "newer"),
        ("has_reached", 2)),
    "07 blank": ("of_07['blank'](trained('bert'))",
        ("press", "La [loi] est nouvelle."), ("shows", "“loi” stood there"), ("press", "Show “loi”"),
        ("shows", "No word is hidden: press one"), ("press", "Hide “nouvelle”"), ("has_reached", 1),
        ("enter", "Sentence", "the ministers of the country [are] old"), ("has_reached", 2)),
    "07 search": ("of_07['search'](None, passages(['05']))",
        ("type_keys", "Question", "padding"), ("shows", "lesson 05"), ("write", "Question", "xyzzy"),
        ("shows", "No sentence has a word of yours.")),
    "08 lookup": ("of_08['lookup'](gpt.model, tokenizer)",
        ("write", "Word", "sixty-one"), ("choose", "adjective"), ("press", "Define"),
        ("shows", "being one more than sixty"), ("has_reached", 1), ("press", "dogfish"), ("choose", "noun"),
        ("contains", "any of several small sharks")),
    "08 writer": ("of_08['writer'](gpt.model, tokenizer)",
        ("counts", ".play-next button", 10), ("press", "One token"), ("shows", "1 tokens written"),
        ("choose", "1", "Top-k"), ("shows", "1 of 2048 tokens can be drawn"), ("press", "Back to the start"),
        ("shows", "0 tokens written"), ("counts", ".play-next button", 10)),
    "08 guess": ("of_08['guess']()",
        ("type_keys", "Next character", "except the dd"), ("shows", "27 to go"), ("shows", "Not “d” but"),
        ("press", "Another text"), ("shows", "The context manager returns"), ("type_keys", "Next character", "i"),
        ("shows", "✓ Yes, “i”")),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAYED)
def test_a_playground_answers_its_learner(lab, name):
    play(lab, name, PLAYED)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(lab, theme):
    assert found_by_axe(lab, {name: f"# {name}\n" for name in PLAYED}, theme) == {}
