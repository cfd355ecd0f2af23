"""Every lesson notebook, as it is stored, keeps every rule."""

import functools

import pytest

from course_lib.authoring.lesson_rules import RULES, count_of, read_lesson
from tests.notebooks.stored import FOLDER, LESSONS

read = functools.cache(read_lesson)


def test_the_lessons_are_where_the_course_says():
    numbers = [path.name[:2] for path in LESSONS]
    assert {"00", "05"} <= set(numbers) and len(numbers) == len(set(numbers))


def test_every_notebook_in_the_folder_is_a_lesson():
    assert sorted(FOLDER.glob("*.ipynb")) == LESSONS


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_lesson_keeps_every_rule(path, rule):
    assert rule(read(path)) == []


def test_lesson_05_has_at_least_three_widgets():
    path = next(path for path in LESSONS if path.name.startswith("05"))
    assert count_of(read(path), "widgets") >= 3
