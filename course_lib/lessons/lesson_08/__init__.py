"""Lesson 08, GPT."""

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_08.playground import PLAYGROUNDS
from course_lib.lessons.lesson_08.questions import BEATS, BETS, QUIZZES
from course_lib.lessons.lesson_08.results import RESULTS
from course_lib.lessons.lesson_08.tasks import TASKS

page = Page("08", beats=BEATS, quizzes=QUIZZES, bets=BETS, results=RESULTS, tasks=TASKS, playgrounds=PLAYGROUNDS)
