"""What the tests of lessons 14 to 17 have in common: their pages, plain files and results in words."""

import importlib
import re

from tests.lessons.answered import notebook_of, run_alone

SCREEN = """
from types import SimpleNamespace

losses = []

class screen:
    stopped = False
    def update(done, steps, loss): losses.append(loss)

torch.manual_seed(0)
"""


def page_of(lesson):
    return importlib.import_module(f"course_lib.lessons.lesson_{lesson}").page


def numbers_alone(folder, lesson, *, driver, more_tasks=None, **options):
    """The numbers that a plain file of solutions and cells prints; its driver finds `losses` and a `screen`."""
    tasks = page_of(lesson).tasks | (more_tasks or {})
    printed = run_alone(folder, tasks, notebook_of(lesson), driver=SCREEN + driver, **options)
    return [float(number) for number in printed.split()]


def in_words(lesson, name, *arguments, **options):
    """A result of a lesson in its words; no slot is left."""
    page = page_of(lesson)
    result = page.results[name](*arguments, **options).told(name, page.texts)
    assert not re.search(r"\{\w+(:[^}]*)?\}", re.sub(r"\$[^$]*\$", "", result.alt + result.outcome))
    return result


def holds(result):
    """Whether all claims of a result hold."""
    return all(all(held) for _, held in result.conditions())


def fails(result):
    """Whether no claim of a result holds."""
    return not any(all(held) for _, held in result.conditions())
