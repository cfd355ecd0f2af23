"""Lesson 06, The Transformer."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_06.diagrams import DIAGRAMS
from course_lib.lessons.lesson_06.models import MODELS
from course_lib.lessons.lesson_06.playground import PLAYGROUNDS
from course_lib.lessons.lesson_06.results import RESULTS
from course_lib.lessons.lesson_06.tasks import TASKS

page = Page(
    "06",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    diagrams=DIAGRAMS,
    models=MODELS,
)
