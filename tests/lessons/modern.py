"""What the tests of lessons 14 to 17 share: their pages, results in words, goals of playgrounds, sheets of diagrams."""

import functools
import importlib
import re
from pathlib import Path

import nbformat

from course_lib.classroom.texts import read_results
from tests.lessons.answered import run_alone, sittings

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SCREEN = """
from types import SimpleNamespace

losses = []

class screen:
    stopped = False
    def update(done, steps, loss): losses.append(loss)

torch.manual_seed(0)
"""
read_texts = functools.cache(read_results)


def page_of(lesson):
    return importlib.import_module(f"course_lib.lessons.lesson_{lesson}").page


def notebook(lesson):
    (path,) = NOTEBOOKS.glob(f"{lesson}_*.ipynb")
    return nbformat.read(path, as_version=4)


def numbers_alone(folder, lesson, *, tasks=None, **options):
    """The numbers that a plain file of solutions and cells prints, whose driver finds `losses` and a `screen`."""
    options["driver"] = SCREEN + options["driver"]
    printed = run_alone(folder, tasks or page_of(lesson).tasks, notebook(lesson), **options)
    return [float(number) for number in printed.split()]


def two_sittings(folder, monkeypatch, lesson, **options):
    """All that the two sittings of a lesson show when a learner's answers are in it."""
    monkeypatch.setenv("COURSE_HOME", str(folder))
    first, second = sittings(notebook(lesson), page_of(lesson).tasks, **options)
    return first, second


def in_words(module, name, *arguments, **options):
    """A result of a module in its words; no slot is left."""
    texts = read_texts(Path(module.__file__).with_name("results.md"))
    result = module.RESULTS[name](*arguments, **options).told(name, texts)
    assert not re.search(r"\{\w+(:[^}]*)?\}", re.sub(r"\$[^$]*\$", "", result.alt + result.outcome))
    return result


def holds(result):
    """Whether each claim of a result holds."""
    return all(all(conditions) for _, conditions in result.conditions())


def reached(explorer, **state):
    """Which goals of a playground are reached in a state."""
    return [goal(explorer.state(**state)) for goal in explorer.goals]
