"""Lesson 14, Image to image."""

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_14.playground import PLAYGROUNDS
from course_lib.lessons.lesson_14.questions import BEATS, BETS, QUIZZES
from course_lib.lessons.lesson_14.results import RESULTS
from course_lib.lessons.lesson_14.tasks import TASKS

page = Page("14", beats=BEATS, quizzes=QUIZZES, bets=BETS, results=RESULTS, tasks=TASKS, playgrounds=PLAYGROUNDS)
