"""The report on a class: what it counts and correlates, what it leaves out, and that it names nobody unasked."""

import csv
import io
import math
import re
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading.gradebook import Gradebook
from course_lib.teaching.report import Graded, hours_late, pearson, report
from tests.grading.courses import NAME, NOTEBOOK, make_course, submit, verdict
from tests.grading.test_summary import score

DUE = datetime(2026, 3, 1, 12)
CLASS = {"ada": (3.0, 2.0, -30), "bob": (3.0, 0.0, -2), "eve": (0.0, 2.0, 0.5), "gus": (0.0, 0.0, 30)}


@pytest.fixture
def folders(tmp_path):
    folders = make_course(tmp_path / "course")
    for student, (add, double, hours) in CLASS.items():
        submit(folders, student)
        with Gradebook(folders.gradebook, assignment=NAME, notebook=NOTEBOOK) as book:
            moment = DUE + timedelta(hours=hours)
            book.record(verdict(student, add=add, double=double), {"why": "So." * (student == "bob")}, submitted=moment)
    return folders


def graded(*rows):
    titles = {"check-add": "Add", "check-double": "Double", "why": "Why"}
    return Graded(name=NAME, title="Sums", titles=titles, rows=list(rows))


def student(name, add, double, **more):
    return replace(score(name, add=add, double=double, **more), verdict=verdict(name, add=add, double=double))


def words(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split("</style>")[1]))


# numbers -----------------------------------------------------------------------------------------------------


def test_for_zeros_and_ones_the_correlation_is_the_point_biserial_one():
    passed, rest = [1, 1, 0, 0, 1], [4.0, 6.0, 1.0, 3.0, 2.0]
    mean = sum(rest) / 5
    s = math.sqrt(sum((value - mean) ** 2 for value in rest) / 5)
    m1, m0, p = 12 / 3, 4 / 2, 3 / 5
    assert pearson(passed, rest) == pytest.approx((m1 - m0) / s * math.sqrt(p * (1 - p)))
    assert pearson([1, 1, 1], [1.0, 2.0, 3.0]) is None and pearson([1], [1.0]) is None


def test_an_item_is_correlated_with_the_rest_and_not_with_itself():
    rows = [student("a", 3.0, 2.0), student("b", 0.0, 2.0), student("c", 3.0, 0.0), student("d", 0.0, 0.0)]
    add, *_ = graded(*rows).items
    assert add.discrimination == pytest.approx(0.0) and add.checks[0].discrimination == pytest.approx(0.0)
    same = [student("a", 3.0, 2.0), student("b", 0.0, 0.0)]
    assert graded(*same).items[0].discrimination == pytest.approx(1.0)


def test_difficulty_is_the_mean_fraction_of_the_points():
    rows = [student("a", 3.0, 2.0), student("b", 1.5, 0.0)]
    assert [item.difficulty for item in graded(*rows).items][:2] == [0.75, 0.5]
    assert graded(*rows).items[0].checks[0].difficulty == 0.5  # passed by one of two


def test_an_answer_that_waits_counts_neither_as_an_item_nor_in_a_rest_score():
    rows = [student("a", 3.0, 2.0, unread=("why",)), student("b", 0.0, 0.0, why=4.0)]
    add, _, why = graded(*rows).items
    assert why.students == 1 and add.discrimination == pytest.approx(1.0)  # with the 4 points it were -1


@pytest.mark.parametrize(
    ("difficulty", "r", "students", "remark"),
    [(0.2, 0.5, 10, "hard"), (0.2, 0.5, 9, ""), (0.96, 0.5, 10, "easy"), (0.5, 0.1, 10, "hardly separates")],
)
def test_a_remark_needs_enough_students(difficulty, r, students, remark):
    item = graded(student("a", 3.0, 2.0)).items[0]
    assert replace(item, difficulty=difficulty, discrimination=r, students=students).remark == remark


def test_a_mistake_counts_once_for_each_student_and_task_that_was_answered():
    rows = [student("a", 0.0, 2.0), student("b", 0.0, 0.0), student("c", 3.0, 2.0)]
    rows[1].verdict["tasks"]["double"]["answered"] = False
    checks = rows[0].verdict["tasks"]["add"]["checks"]
    checks.append(checks[0])
    assert graded(*rows).mistakes == [("wrong", "Add", 2, 3)]


def test_submissions_are_sorted_by_hours_before_and_after_the_deadline():
    rows = [
        replace(student(str(hours), 3.0, 2.0), due=DUE, submitted=DUE + timedelta(hours=hours))
        for hours in (-100, -30, -7, -2, 0, 0.5, 2, 30)
    ]
    assert graded(*rows).times == [1] * 8
    assert graded(student("a", 3.0, 2.0)).times is None and hours_late(rows[1]) == -30


# page and tables ---------------------------------------------------------------------------------------------


def test_the_page_has_every_part_and_names_nobody_unless_it_is_asked_to(folders, capsys):
    assert report(folder=folders.root) == 0
    page = (folders.exports / "report.html").read_text()
    text = words(page)
    assert not re.search(r"\b(ada|bob|eve|gus)\b", text) and all(f"S{number}" in text for number in range(1, 5))
    for part in (
        "Totals",
        "Points: students and tasks",
        "Mistakes that were named",
        "point-biserial",
        "up to 1 hour late",
    ):
        assert part in text
    assert "script" not in page and "http" not in re.sub(r'http-equiv="', "", page)
    assert "1 assignment, 4 students" in capsys.readouterr().out
    report(folder=folders.root, names=True)
    assert "ada" in words((folders.exports / "report.html").read_text())


def test_the_tables_have_the_same_numbers(folders):
    report(folder=folders.root, csv=True)
    tables = {
        name: list(csv.DictReader(io.StringIO((folders.exports / f"report-{name}.csv").read_text("utf-8-sig"))))
        for name in ("points", "items", "mistakes", "times")
    }
    assert len(tables["points"]) == 12 and {row["student"] for row in tables["points"]} == {"S1", "S2", "S3", "S4"}
    assert sorted(float(row["hours after the deadline"].lstrip("'")) for row in tables["times"]) == [-30, -2, 0.5, 30]
    assert [row["mistake"] for row in tables["mistakes"]] == ["wrong", "wrong"]
    assert {row["difficulty"] for row in tables["items"] if row["task"] == "Add"} == {"0.500"}


def test_without_a_graded_assignment_a_sentence_says_so(tmp_path):
    with pytest.raises(CannotStart, match="No assignment has been graded yet"):
        report(folder=make_course(tmp_path / "course").root)
