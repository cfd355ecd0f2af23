"""What holds for every lesson, so that none needs a test of its own for it."""

import ast
import functools
import re
from pathlib import Path

import pytest

from course_lib.authoring.lesson_pages import minutes_promised, read_lesson
from course_lib.authoring.lesson_rules import RULES
from course_lib.authoring.prose_rules import PROSE_RULES, LessonProse
from course_lib.tasks.wrong import undetected

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))

read = functools.cache(read_lesson)
prose = functools.cache(lambda path: LessonProse(read(path)))
each_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def test_every_notebook_in_the_folder_is_a_lesson_and_no_number_comes_twice():
    numbers = [path.name[:2] for path in LESSONS]
    assert {"00", "05"} <= set(numbers) and len(numbers) == len(set(numbers))
    assert sorted((ROOT / "notebooks").glob("[!.]*.ipynb")) == LESSONS


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@each_lesson
def test_it_keeps_the_rule(path, rule):
    assert list(rule(read(path))) == []


@pytest.mark.parametrize("rule", PROSE_RULES, ids=lambda rule: rule.__name__)
@each_lesson
def test_its_prose_keeps_the_rule(path, rule):
    assert list(rule(prose(path))) == []


@each_lesson
def test_each_mistake_in_its_tables_loses_points_and_is_told_its_name(path):
    tasks = read(path).items("tasks").values()
    assert [sentence for task in tasks for sentence in undetected(task)] == []


@each_lesson
def test_each_solution_that_it_shows_passes_its_own_check(path):
    for task in read(path).items("tasks").values():
        assert task.run(solved(task)).passed, task.name


def solved(task):
    """What a task's solution defines last, with the imports and the parts that a page has by then."""
    names = dict(getattr(task.reference, "names", {}))
    exec("import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n" + task.solution, names)
    return names[re.findall(r"^(?:def|class) (\w+)", task.solution, flags=re.MULTILINE)[-1]]


@each_lesson
def test_each_claim_has_its_words_and_its_condition(path):
    page, measured = read(path).page, {}
    folder = ROOT / "course_lib" / "lessons" / f"lesson_{path.name[:2]}"
    modules = [ast.parse(source.read_text(encoding="utf-8")) for source in folder.glob("*results.py")]
    for function in (function for module in modules for function in module.body):
        calls = [
            call for call in ast.walk(function) if isinstance(call, ast.Call) and ast.unparse(call.func) == "Result"
        ]
        given = [part for call in calls for word in call.keywords if word.arg == "claims" for part in ast.walk(word)]
        keys = {key.value for part in given if isinstance(part, ast.Dict) for key in part.keys}
        measured |= {name: keys for name, result in page.results.items() if calls and result.__name__ == function.name}
    told = {name: set() for name in page.results}
    for entry, text in page.texts.items():
        told[entry.split(", ")[0]] |= text.claims.keys()
    assert measured == told


@each_lesson
def test_the_readme_lists_it_with_the_minutes_that_its_page_promises(path):
    lesson = read(path)
    main, more = minutes_promised(lesson), minutes_promised(lesson, optional=True)
    rows = re.findall(r"^\| (\d\d) \| \[.*\]\((.*)\) \| (\d+)(?: \+ (\d+))? \|", README, flags=re.MULTILINE)
    expected = (path.name[:2], f"notebooks/{path.name}", f"{main:.0f}", f"{more - main:.0f}" if more > main else "")
    assert expected in rows


def test_the_readme_lists_no_lesson_that_is_not_there():
    assert re.findall(r"\]\(notebooks/(\d\d_\w+\.ipynb)\)", README) == [path.name for path in LESSONS]


README = (ROOT / "README.md").read_text(encoding="utf-8")
