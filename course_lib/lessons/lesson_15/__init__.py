"""Lesson 15: Transformers everywhere."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_15.playground import takeover_map
from course_lib.lessons.lesson_15.results import RESULTS
from course_lib.lessons.lesson_15.tasks import TASKS
from course_lib.lessons.lesson_15.walker import walker

PLAYGROUNDS = {"map": takeover_map, "walker": walker}

page = Page("15", folder=Path(__file__).parent, results=RESULTS, tasks=TASKS, playgrounds=PLAYGROUNDS)
