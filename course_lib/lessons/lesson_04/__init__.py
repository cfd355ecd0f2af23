"""Lesson 04, LSTM and GRU."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_04.diagrams import DIAGRAMS
from course_lib.lessons.lesson_04.models import MODELS
from course_lib.lessons.lesson_04.playground import PLAYGROUNDS
from course_lib.lessons.lesson_04.results import RESULTS
from course_lib.lessons.lesson_04.tasks import TASKS

page = Page(
    "04",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    models=MODELS,
    diagrams=DIAGRAMS,
)
