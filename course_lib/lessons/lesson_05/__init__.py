"""Lesson 05, Attention."""

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_05.playground import PLAYGROUNDS
from course_lib.lessons.lesson_05.questions import BEATS, BETS, QUIZZES
from course_lib.lessons.lesson_05.results import RESULTS
from course_lib.lessons.lesson_05.tasks import TASKS

page = Page("05", beats=BEATS, quizzes=QUIZZES, bets=BETS, results=RESULTS, tasks=TASKS, playgrounds=PLAYGROUNDS)
