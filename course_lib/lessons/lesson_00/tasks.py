"""Lesson 00, Start here: what its one exercise is tried with; large numbers are a surprise of lesson 05."""

from pathlib import Path

from course_lib.tasks import Case
from course_lib.tasks.markdown import read_tasks

CASES = {"softmax": (Case("shares sum to one along the last axis", lambda draw: (draw(*draw.sizes(3)),)),)}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES)
