"""Lesson 02, Representation learning."""

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_02.playground import PLAYGROUNDS
from course_lib.lessons.lesson_02.questions import BEATS, BETS, QUIZZES
from course_lib.lessons.lesson_02.results import RESULTS
from course_lib.lessons.lesson_02.tasks import TASKS

page = Page("02", beats=BEATS, quizzes=QUIZZES, bets=BETS, results=RESULTS, tasks=TASKS, playgrounds=PLAYGROUNDS)
