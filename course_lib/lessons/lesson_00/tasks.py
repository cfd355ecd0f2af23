"""Lesson 00, Start here: what its one exercise is tried with, large logits among it."""

from pathlib import Path

from course_lib.lessons.lesson_05.tasks import rows_apart
from course_lib.tasks import Case
from course_lib.tasks.markdown import read_tasks

CASES = {
    "softmax": (
        Case("the probabilities sum to one along the last axis", lambda draw: (draw(*draw.sizes(3)),)),
        Case("large logits do no harm", lambda draw: (1000 + draw(*draw.sizes(3)),)),
        Case("logits far apart do no harm", rows_apart),
    )
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES)
