"""Lesson 12, Swin Transformer."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_12.diagrams import DIAGRAMS
from course_lib.lessons.lesson_12.models import MODELS
from course_lib.lessons.lesson_12.playground import PLAYGROUNDS
from course_lib.lessons.lesson_12.results import RESULTS
from course_lib.lessons.lesson_12.tasks import TASKS

page = Page(
    "12",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    models=MODELS,
    diagrams=DIAGRAMS,
)
