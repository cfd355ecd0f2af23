"""Lesson 00, Start here."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.classroom.widgets import Explorer
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_00.diagrams import DIAGRAMS
from course_lib.lessons.lesson_00.playground import choose, language
from course_lib.lessons.lesson_00.results import RESULTS
from course_lib.lessons.lesson_00.tasks import TASKS
from course_lib.lessons.lesson_08.lookup import lookup
from course_lib.text.tokenizer import Tokenizer


def dictionary() -> Explorer:
    """The GPT of lesson 08 defines any word, before anything is explained."""
    gpt = load_trained("dictionary")
    return lookup(gpt.model, Tokenizer.from_state_dict(gpt.extra["tokenizer"]), alone=True)


page = Page(
    "00",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds={"dictionary": dictionary, "language": language, "choose": choose},
    diagrams=DIAGRAMS,
)
