"""Lesson 05, Attention."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_05.diagrams import DIAGRAMS
from course_lib.lessons.lesson_05.models import MODELS
from course_lib.lessons.lesson_05.playground import PLAYGROUNDS
from course_lib.lessons.lesson_05.results import RESULTS
from course_lib.lessons.lesson_05.tasks import TASKS

page = Page(
    "05",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    models=MODELS,
    diagrams=DIAGRAMS,
)
