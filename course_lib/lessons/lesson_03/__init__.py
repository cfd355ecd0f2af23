"""Lesson 03, Recurrent networks."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_03.diagrams import DIAGRAMS
from course_lib.lessons.lesson_03.models import MODELS
from course_lib.lessons.lesson_03.playground import PLAYGROUNDS
from course_lib.lessons.lesson_03.results import RESULTS
from course_lib.lessons.lesson_03.tasks import TASKS

page = Page(
    "03",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    models=MODELS,
    diagrams=DIAGRAMS,
)
