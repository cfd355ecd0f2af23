"""What a notebook shows: the page of a lesson and its pieces, figures with alt text, source, progress."""

import course_lib.classroom.first  # noqa: F401  (before what follows)
from course_lib.classroom.cards import Section
from course_lib.classroom.output import show, varies
from course_lib.classroom.page import Page
from course_lib.classroom.predictions import Prediction
from course_lib.classroom.quizzes import Number, Quiz
from course_lib.classroom.report import progress
from course_lib.classroom.results import Result
from course_lib.classroom.source import show_source
from course_lib.tasks.claims import claim

__all__ = [
    "Section",
    "Prediction",
    "Number",
    "Page",
    "Quiz",
    "Result",
    "claim",
    "progress",
    "show",
    "show_source",
    "varies",
]
