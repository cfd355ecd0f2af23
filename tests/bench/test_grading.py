"""The benchmark of grading: what it grades, and which of it nbgrader gets."""

import itertools
import os
import shutil
from types import SimpleNamespace

import pytest

from course_lib.bench import grading as bench_grading
from course_lib.bench.grading import ASSIGNMENT, KINDS, Timing, answers, sample
from course_lib.grading.folders import Folders, assignments_folder
from course_lib.grading.spec import load, read_assignment


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


def test_the_sample_is_spread_over_the_class():
    assert sample([f"{number:02}" for number in range(40)], 8) == ["00", "01", "02", "03", "20", "21", "22", "23"]


def test_seconds_for_each_further_submission_leave_the_start_out():
    timing = Timing(submissions=11, total=30.0, first=10.0)
    assert (timing.each, timing.further) == (30 / 11, 2.0)
    assert Timing(submissions=8, total=80.0).further is None


def test_no_two_submissions_of_a_class_are_the_same_file(tmp_path, monkeypatch):
    def release_as_it_is(name, *, folder):
        folders = Folders(root=folder)
        shutil.copytree(folders.source(name), folders.release(name))

    monkeypatch.setattr(bench_grading, "release", release_as_it_is)
    folders = bench_grading.make_course(tmp_path / "course", 2 * len(KINDS))
    files = list(folders.root.glob(f"submitted/*/{ASSIGNMENT}/*.ipynb"))
    assert len(files) == len({file.read_bytes() for file in files}) == len(folders.students(ASSIGNMENT)) == 8


def finished(**said):
    return lambda *_, **__: SimpleNamespace(**{"stdout": "", "stderr": ""} | said)


def test_the_time_of_course_grade_ends_with_its_process_and_its_first_verdict_is_told(tmp_path, monkeypatch):
    folders = Folders(root=tmp_path)
    for number, moment in enumerate((1107, 1104, 1109)):
        path = folders.autograded(f"s{number}", ASSIGNMENT) / "attention.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (moment, moment))
    clock = iter((1100.0, 1110.0))
    monkeypatch.setattr(bench_grading.time, "time", lambda: next(clock))
    monkeypatch.setattr(bench_grading.subprocess, "run", finished(stdout="3 graded now, 0 graded before"))
    assert bench_grading.time_course(folders, 3) == Timing(submissions=3, total=10.0, first=4.0)


def test_a_run_that_did_not_grade_them_all_is_no_measurement(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_grading.subprocess, "run", finished(stdout="2 graded now", stderr="it broke"))
    with pytest.raises(ValueError, match="not all of 3 submissions were graded: .*it broke"):
        bench_grading.time_course(Folders(root=tmp_path), 3)
    course = Folders(root=tmp_path / "course")
    for place in (course.root / "source", course.root / "release", course.submitted("ada", ASSIGNMENT)):
        place.mkdir(parents=True)
    course.gradebook.touch()
    (tmp_path / "scratch").mkdir()
    with pytest.raises(ValueError, match="nbgrader graded 0 of 1 submissions: it broke"):
        bench_grading.time_nbgrader(course, ["ada"], tmp_path / "scratch")


@pytest.mark.parametrize(("seconds", "code"), [(80.0, 0), (79.0, 1)])
def test_the_exit_code_says_whether_the_aim_was_reached(monkeypatch, capsys, seconds, code):
    course = SimpleNamespace(students=lambda name: ["0000", "0001"])
    monkeypatch.setattr(bench_grading, "make_course", lambda root, count: course)
    monkeypatch.setattr(bench_grading, "time_nbgrader", lambda *_: Timing(submissions=2, total=seconds))
    monkeypatch.setattr(bench_grading, "time_course", lambda *_, **__: Timing(submissions=4, total=4.0, first=1.0))
    assert bench_grading.main(["--submissions", "4", "--nbgrader", "2"]) == code
    assert ("MISSED" in capsys.readouterr().out) == bool(code)
