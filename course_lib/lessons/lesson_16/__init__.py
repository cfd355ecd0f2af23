"""Lesson 16, Acting, and seeing with words."""

from pathlib import Path

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_16 import (
    control_diagrams,
    control_playground,
    control_results,
    words_diagrams,
    words_playground,
    words_results,
)
from course_lib.lessons.lesson_16.models import MODELS
from course_lib.lessons.lesson_16.tasks import TASKS

page = Page(
    "16",
    folder=Path(__file__).parent,
    results={**control_results.RESULTS, **words_results.RESULTS},
    tasks=TASKS,
    playgrounds={**control_playground.PLAYGROUNDS, **words_playground.PLAYGROUNDS},
    diagrams={**control_diagrams.DIAGRAMS, **words_diagrams.DIAGRAMS},
    models=MODELS,
)
