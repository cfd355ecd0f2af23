"""Lesson 14, Image to image."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_14.diagrams import DIAGRAMS
from course_lib.lessons.lesson_14.models import MODELS
from course_lib.lessons.lesson_14.playground import PLAYGROUNDS
from course_lib.lessons.lesson_14.results import RESULTS
from course_lib.lessons.lesson_14.tasks import TASKS

page = Page(
    "14",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    diagrams=DIAGRAMS,
    models=MODELS,
)
