"""Lesson 04, LSTM and GRU."""

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_04.playground import PLAYGROUNDS
from course_lib.lessons.lesson_04.questions import BEATS, BETS, QUIZZES
from course_lib.lessons.lesson_04.results import RESULTS
from course_lib.lessons.lesson_04.tasks import TASKS

page = Page("04", beats=BEATS, quizzes=QUIZZES, bets=BETS, results=RESULTS, tasks=TASKS, playgrounds=PLAYGROUNDS)
