"""Lesson 07, BERT."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_07.diagrams import DIAGRAMS
from course_lib.lessons.lesson_07.models import MODELS
from course_lib.lessons.lesson_07.playground import PLAYGROUNDS
from course_lib.lessons.lesson_07.results import RESULTS
from course_lib.lessons.lesson_07.tasks import TASKS

page = Page(
    "07",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    models=MODELS,
    diagrams=DIAGRAMS,
)
