"""Lesson 01, Transfer learning."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_01.diagrams import DIAGRAMS
from course_lib.lessons.lesson_01.models import MODELS
from course_lib.lessons.lesson_01.playground import PLAYGROUNDS
from course_lib.lessons.lesson_01.results import RESULTS
from course_lib.lessons.lesson_01.tasks import TASKS

page = Page(
    "01",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    diagrams=DIAGRAMS,
    models=MODELS,
)
