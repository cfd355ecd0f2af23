"""Lesson 03, Recurrent networks."""

from course_lib.classroom.page import Page
from course_lib.lessons.lesson_03.playground import PLAYGROUNDS
from course_lib.lessons.lesson_03.questions import BEATS, BETS, QUIZZES
from course_lib.lessons.lesson_03.results import RESULTS
from course_lib.lessons.lesson_03.tasks import TASKS

page = Page("03", beats=BEATS, quizzes=QUIZZES, bets=BETS, results=RESULTS, tasks=TASKS, playgrounds=PLAYGROUNDS)
