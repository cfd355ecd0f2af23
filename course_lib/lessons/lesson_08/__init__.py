"""Lesson 08, GPT."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_08.diagrams import DIAGRAMS
from course_lib.lessons.lesson_08.models import MODELS
from course_lib.lessons.lesson_08.playground import PLAYGROUNDS
from course_lib.lessons.lesson_08.results import RESULTS
from course_lib.lessons.lesson_08.tasks import TASKS

page = Page(
    "08",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds=PLAYGROUNDS,
    models=MODELS,
    diagrams=DIAGRAMS,
)
