"""Lesson 17, Long sequences, old roots."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_17.diagrams import DIAGRAMS
from course_lib.lessons.lesson_17.models import MODELS
from course_lib.lessons.lesson_17.playground import PLAYGROUNDS
from course_lib.lessons.lesson_17.results import RESULTS
from course_lib.lessons.lesson_17.tasks import TASKS

page = Page(
    "17",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    diagrams=DIAGRAMS,
    models=MODELS,
)
