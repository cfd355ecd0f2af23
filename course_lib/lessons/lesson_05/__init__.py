"""Lesson 05, Attention."""

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_05.exercises import TASKS
from course_lib.lessons.lesson_05.playground import mask_painter, softmax_explorer, translator
from course_lib.lessons.lesson_05.questions import BEATS, BETS, QUIZZES
from course_lib.lessons.lesson_05.results import RESULTS
from course_lib.models.seq2seq import Seq2Seq
from course_lib.training.translation import translate, vocabularies

EXAMPLES = (
    "The minister does not see the European Economic Area.",
    "She doesn't see them.",
    "The rich actress visits her old school.",
)


def talk(model: Seq2Seq):
    """A translator to talk to."""
    english, _ = vocabularies()
    return translator(lambda text: translate(model, text), english.vocabulary[4:], EXAMPLES)


page = Page(
    "05",
    beats=BEATS,
    quizzes=QUIZZES,
    bets=BETS,
    results=RESULTS,
    tasks=TASKS,
    playgrounds={"translator": talk, "mask": mask_painter, "softmax": softmax_explorer},
)
