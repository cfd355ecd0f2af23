"""Lesson 10, Aligning a language model."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_10.diagrams import DIAGRAMS
from course_lib.lessons.lesson_10.models import MODELS
from course_lib.lessons.lesson_10.playground import PLAYGROUNDS
from course_lib.lessons.lesson_10.results import RESULTS
from course_lib.lessons.lesson_10.tasks import TASKS

page = Page(
    "10",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    models=MODELS,
    diagrams=DIAGRAMS,
)
