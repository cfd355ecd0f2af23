"""Lesson 13, Masked autoencoders."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_13.diagrams import DIAGRAMS
from course_lib.lessons.lesson_13.models import MODELS
from course_lib.lessons.lesson_13.playground import PLAYGROUNDS
from course_lib.lessons.lesson_13.results import RESULTS
from course_lib.lessons.lesson_13.tasks import TASKS

page = Page(
    "13",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    diagrams=DIAGRAMS,
    models=MODELS,
)
