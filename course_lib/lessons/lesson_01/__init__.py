"""Lesson 01, Transfer learning."""

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_01.playground import PLAYGROUNDS
from course_lib.lessons.lesson_01.questions import BEATS, BETS, QUIZZES
from course_lib.lessons.lesson_01.results import RESULTS
from course_lib.lessons.lesson_01.tasks import TASKS

page = Page("01", beats=BEATS, quizzes=QUIZZES, bets=BETS, results=RESULTS, tasks=TASKS, playgrounds=PLAYGROUNDS)
