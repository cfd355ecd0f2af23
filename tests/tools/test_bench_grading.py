"""The benchmark of grading: what it grades, and which of it nbgrader gets."""

import itertools

import pytest

from course_lib.grading.folders import assignments_folder
from course_lib.grading.spec import load, read_assignment
from course_lib.tools.bench_grading import ASSIGNMENT, KINDS, Timing, answers, sample


@pytest.fixture(scope="module")
def files():
    return read_assignment(assignments_folder().root, ASSIGNMENT)


def test_submissions_come_in_turns_of_each_kind_and_no_two_answers_are_equal(files):
    loaded = load(files)
    stubs = loaded.stubs
    reference = {cell.grade_id: cell.source for cell in loaded.cells if cell.kind == "solution"}
    wrong = {task: ["wrong = 1", "wrong = 2"] for task in stubs}
    made = list(itertools.islice(answers(files, wrong), 12))
    assert all(given.keys() == stubs.keys() for given in made)
    for number in range(0, 12, len(KINDS)):
        right, blank, mistaken, mixed = made[number : number + len(KINDS)]
        assert all(right[task].startswith(reference[task]) for task in stubs)
        assert blank == stubs
        assert all(mistaken[task].startswith("wrong") for task in stubs)
        assert {text.startswith("wrong") for text in mixed.values()} == {True, False}
    written = [(task, text) for given in made for task, text in given.items() if text != stubs[task]]
    assert len(set(written)) == len(written)


@pytest.mark.parametrize(("count", "wanted"), [(4, 4), (8, 8), (9, 9), (100, 40)])
def test_the_sample_has_each_kind_equally_often(count, wanted):
    students = [f"{number:04}" for number in range(40)]
    chosen = sample(students, count)
    assert len(set(chosen)) == len(chosen) == wanted
    kinds = [int(student) % len(KINDS) for student in chosen]
    assert max(map(kinds.count, range(4))) - min(map(kinds.count, range(4))) <= 1


def test_seconds_for_each_further_submission_leave_the_start_out():
    timing = Timing(submissions=11, total=30.0, first=10.0)
    assert (timing.each, timing.further) == (30 / 11, 2.0)
    assert Timing(submissions=8, total=80.0).further is None
