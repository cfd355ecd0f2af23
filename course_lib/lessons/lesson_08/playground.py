"""What one plays with in lesson 08: a GPT to write with, and a game of guessing the next character."""

from course_lib.lessons.lesson_08.guess import guess
from course_lib.lessons.lesson_08.writer import writer

PLAYGROUNDS = {"writer": writer, "guess": guess}
