"""Lesson 07, BERT."""

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_07.playground import PLAYGROUNDS
from course_lib.lessons.lesson_07.questions import BEATS, BETS, QUIZZES
from course_lib.lessons.lesson_07.results import RESULTS
from course_lib.lessons.lesson_07.tasks import TASKS

page = Page("07", beats=BEATS, quizzes=QUIZZES, bets=BETS, results=RESULTS, tasks=TASKS, playgrounds=PLAYGROUNDS)
