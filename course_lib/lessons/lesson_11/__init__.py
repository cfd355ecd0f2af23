"""Lesson 11, Vision Transformer."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_11.diagrams import DIAGRAMS
from course_lib.lessons.lesson_11.models import MODELS
from course_lib.lessons.lesson_11.playground import PLAYGROUNDS
from course_lib.lessons.lesson_11.results import RESULTS
from course_lib.lessons.lesson_11.tasks import TASKS

page = Page(
    "11",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    diagrams=DIAGRAMS,
    models=MODELS,
)
