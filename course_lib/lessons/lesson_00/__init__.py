"""Lesson 00, Start here."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_00.playground import choose, language
from course_lib.lessons.lesson_00.results import RESULTS
from course_lib.lessons.lesson_00.tasks import TASKS

page = Page(
    "00",
    folder=Path(__file__).parent,
    results=RESULTS,
    tasks=TASKS,
    playgrounds={"language": language, "choose": choose},
)
