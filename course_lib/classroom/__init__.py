"""What a notebook shows: figures with alt text, questions, exercises with checks, progress and widgets."""

from course_lib.classroom.exercises import check, exercise, hint, solution
from course_lib.classroom.output import show
from course_lib.classroom.quizzes import predict, quiz, reveal
from course_lib.classroom.report import progress
from course_lib.classroom.session import lesson
from course_lib.classroom.source import show_source
from course_lib.tasks.claims import claim

__all__ = [
    "check",
    "claim",
    "exercise",
    "hint",
    "lesson",
    "predict",
    "progress",
    "quiz",
    "reveal",
    "show",
    "show_source",
    "solution",
]
