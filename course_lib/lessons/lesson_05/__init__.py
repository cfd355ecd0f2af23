"""Lesson 05, Attention."""

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_05.exercises import TASKS
from course_lib.lessons.lesson_05.playground import PLAYGROUNDS
from course_lib.lessons.lesson_05.questions import BEATS, BETS, QUIZZES
from course_lib.lessons.lesson_05.results import RESULTS

page = Page("05", beats=BEATS, quizzes=QUIZZES, bets=BETS, results=RESULTS, tasks=TASKS, playgrounds=PLAYGROUNDS)
