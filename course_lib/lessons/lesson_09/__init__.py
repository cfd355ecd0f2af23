"""Lesson 09, Scaling laws."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_09.diagrams import DIAGRAMS
from course_lib.lessons.lesson_09.models import MODELS
from course_lib.lessons.lesson_09.playground import PLAYGROUNDS
from course_lib.lessons.lesson_09.results import RESULTS
from course_lib.lessons.lesson_09.tasks import TASKS

page = Page(
    "09",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    models=MODELS,
    diagrams=DIAGRAMS,
)
