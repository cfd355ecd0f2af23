"""Lesson 15, One model for text and sound."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_15.diagrams import DIAGRAMS
from course_lib.lessons.lesson_15.models import MODELS
from course_lib.lessons.lesson_15.playground import PLAYGROUNDS
from course_lib.lessons.lesson_15.results import RESULTS
from course_lib.lessons.lesson_15.tasks import TASKS

page = Page(
    "15",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    diagrams=DIAGRAMS,
    models=MODELS,
)
