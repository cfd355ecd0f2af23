"""The leaderboard: the judge's scores in order, by pseudonyms that stand on the feedback pages."""

from dataclasses import replace
from functools import partial

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading import judge
from course_lib.grading.feedback import feedback
from course_lib.grading.gradebook import scores
from course_lib.grading.intake import take_from
from course_lib.grading.leaderboard import leaderboard, leaderboard_names, ranked
from course_lib.grading.spec import read_assignment
from course_lib.tasks.core import Check
from course_lib.tasks.table import Measure, Task
from tests.grading import courses, test_marking
from tests.grading.test_summary import score

MEASURED = courses.SUMS_CHECKS.replace(
    "from course_lib.tasks import Case, Task",
    "from course_lib.tasks import Case, Task\nfrom course_lib.tasks.table import Measure",
).replace('asks="x", reference', 'asks="x", measure=Measure("error in metres", lower_is_better=True), reference')
OPEN = Task(
    "double",
    "Double",
    asks="x",
    measure=Measure("error", True),
    checks=(Check(name="a", detects=(), run=lambda p: []),),
)


@pytest.fixture
def folders(tmp_path):
    folders = courses.make_course(tmp_path / "course")
    (folders.hidden(courses.NAME) / "tasks.py").write_text(MEASURED)
    for student, error in (("ada", 0.52341), ("bob", 0.1), ("eve", None)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(test_marking, "verdict", partial(_scored_verdict, error))
            test_marking.record(folders, student, "So.")
    return folders


def _scored_verdict(error, *args, **more):
    return _scored(courses.verdict(*args, **more), error)


def _scored(found, error):
    if error is not None:
        found["tasks"]["double"]["score"] = error
    return found


def test_the_board_has_pseudonyms_in_order_and_no_name(folders, capsys):
    assert leaderboard(courses.NAME, folder=folders.root) == 0
    page = (folders.exports / f"{courses.NAME}-leaderboard.html").read_text()
    names = leaderboard_names(folders, courses.NAME, scores(folders.gradebook, courses.NAME))
    assert page.index(names["bob"]) < page.index("0.100") < page.index(names["ada"]) < page.index("0.523")
    assert names["eve"] not in page and not any(f">{student}<" in page for student in names)
    assert "error in metres; lower is better" in page and "2 students of 3" in capsys.readouterr().out


def test_a_student_finds_the_own_name_in_the_feedback_and_nobody_elses(folders):
    assert feedback(courses.NAME, folder=folders.root) == 0
    names = leaderboard_names(folders, courses.NAME, scores(folders.gradebook, courses.NAME))
    pages = {
        student: (folders.feedback(student, courses.NAME) / f"{courses.NOTEBOOK}.html").read_text() for student in names
    }
    assert {student: [n for n in names if names[n] in page] for student, page in pages.items()} == {
        "ada": ["ada"],
        "bob": ["bob"],
        "eve": [],  # without a score
    }


@pytest.mark.parametrize(
    ("lower", "wanted"), [(True, [(1, "b"), (2, "a"), (2, "c")]), (False, [(1, "a"), (1, "c"), (3, "b")])]
)
def test_equal_scores_share_the_better_rank(lower, wanted):
    rows = [
        replace(score(student), verdict=_scored(courses.verdict(student), error))
        for student, error in (("a", 0.5001), ("b", 0.2), ("c", 0.5002))
    ]
    task = Task("double", "Double", asks="x", measure=Measure("error", lower), checks=OPEN.checks)
    found = ranked(rows, task, {name: name for name in "abc"})
    assert [(rank, name) for rank, name, _ in found] == wanted


def test_without_an_open_task_or_a_score_a_sentence_says_so(tmp_path, folders):
    plain = courses.make_course(tmp_path / "plain")
    with pytest.raises(CannotStart, match="has no open task"):
        leaderboard(courses.NAME, folder=plain.root)
    (plain.hidden(courses.NAME) / "tasks.py").write_text(MEASURED)
    with pytest.raises(CannotStart, match="Nobody has a score"):
        leaderboard(courses.NAME, folder=plain.root)


@pytest.mark.needs("sandbox")
@pytest.mark.parametrize(("answer", "wanted"), [("return 2 * x + 1", 1.0), ("raise ValueError", None)])
def test_the_judge_keeps_what_the_checks_of_an_open_task_measure(tmp_path, zygote, answer, wanted):
    checks = """
import torch
from course_lib.grading.spec import Assignment
from course_lib.tasks import Check, Finding, Task
from course_lib.tasks.table import Measure

def run(probe):
    probe.measured = float((probe.tensor(torch.ones(3)) - 2).abs().mean())
    return [Finding("off", "It is off.")] if probe.measured else []

DOUBLE = Task("double", "Double", asks="x", measure=Measure("error", True),
              checks=(Check(name="small error", points=3, detects=(), run=run),))
HALVE = Task("halve", "Halve", asks="x", reference=lambda x: x / 2,
             checks=(Check(name="any", points=1, detects=(), run=run),))
ASSIGNMENT = Assignment("01", notebook="small", title="Small", tasks=(DOUBLE, HALVE))
"""
    files = read_assignment(courses.small_course(tmp_path, checks=checks), "01")
    answers = courses.answer_cells(double=f"def double(x):\n    {answer}", halve="def halve(x):\n    return x + 1")
    submission = take_from(courses.notebook(answers), files, student="ada")
    found = judge.judge(submission, files, key=b"key", zygote=zygote)["tasks"]
    assert found["double"].get("score") == wanted and "score" not in found["halve"]
    assert found["double"]["points"] == 0
