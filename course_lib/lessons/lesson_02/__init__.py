"""Lesson 02, Representation learning."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_02.diagrams import DIAGRAMS
from course_lib.lessons.lesson_02.models import MODELS
from course_lib.lessons.lesson_02.playground import PLAYGROUNDS
from course_lib.lessons.lesson_02.results import RESULTS
from course_lib.lessons.lesson_02.tasks import TASKS

page = Page(
    "02",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    models=MODELS,
    diagrams=DIAGRAMS,
)
