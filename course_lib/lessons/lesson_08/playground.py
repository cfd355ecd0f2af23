"""What one plays with in lesson 08: a dictionary to ask, a game of guessing, and a GPT to write with."""

from course_lib.lessons.lesson_08.guess import guess
from course_lib.lessons.lesson_08.lookup import lookup
from course_lib.lessons.lesson_08.writer import writer

PLAYGROUNDS = {"lookup": lookup, "writer": writer, "guess": guess}
