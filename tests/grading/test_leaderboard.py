"""The leaderboard: the judge's scores in order, by pseudonyms that stand on the feedback pages."""

from dataclasses import replace

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading import judge
from course_lib.grading.feedback import feedback
from course_lib.grading.gradebook import scores
from course_lib.grading.intake import Submission
from course_lib.grading.leaderboard import leaderboard, leaderboard_names, ranked
from course_lib.grading.spec import read_assignment
from course_lib.tasks.core import Check
from course_lib.tasks.table import Measure, Task
from tests.grading import courses
from tests.grading.courses import GOOD, NAME
from tests.grading.test_summary import score

MEASURED = courses.SUMS_CHECKS.replace(
    "from course_lib.tasks import Case, Task",
    "from course_lib.tasks import Case, Task\nfrom course_lib.tasks.table import Measure",
).replace('asks="x", reference', 'asks="x", measure=Measure("error in metres", lower_is_better=True), reference')
CHECKS = (Check(name="a", detects=(), run=lambda probe: []),)


def tasks_found(error):
    """What the judge says on the tasks where `double` was measured to be off by so much; None: not measured."""
    tasks = courses.verdict("x")["tasks"]
    tasks["double"] |= {} if error is None else {"score": error}
    return tasks


@pytest.fixture
def folders(folders):
    (folders.hidden(NAME) / "tasks.py").write_text(MEASURED)
    for student, error in (("ada", 0.52341), ("bob", 0.1), ("eve", None)):
        courses.record(folders, student, {"why": "So."}, tasks=tasks_found(error))
    return folders


def test_the_board_has_pseudonyms_in_order_and_no_name(folders, capsys):
    assert leaderboard(NAME, folder=folders.root) == 0
    page = (folders.exports / f"{NAME}-leaderboard.html").read_text()
    names = leaderboard_names(folders, NAME, scores(folders.gradebook, NAME))
    assert page.index(names["bob"]) < page.index("0.100") < page.index(names["ada"]) < page.index("0.523")
    assert names["eve"] not in page and not any(f">{student}<" in page for student in names)
    assert "error in metres; lower is better" in page and "2 students of 3" in capsys.readouterr().out


def test_a_student_finds_the_own_name_in_the_feedback_and_nobody_elses(folders):
    assert feedback(NAME, folder=folders.root) == 0
    names = leaderboard_names(folders, NAME, scores(folders.gradebook, NAME))
    pages = {student: (folders.feedback(student, NAME) / f"{courses.NOTEBOOK}.html").read_text() for student in names}
    assert {student: [n for n in names if names[n] in page] for student, page in pages.items()} == {
        "ada": ["ada"],
        "bob": ["bob"],
        "eve": [],  # without a score
    }


@pytest.mark.parametrize(
    ("lower", "wanted"), [(True, [(1, "b"), (2, "a"), (2, "c")]), (False, [(1, "a"), (1, "c"), (3, "b")])]
)
def test_equal_scores_share_the_better_rank(lower, wanted):
    errors = {"a": 0.5001, "b": 0.2, "c": 0.5002}
    rows = [replace(score(name), verdict={"tasks": tasks_found(error)}) for name, error in errors.items()]
    task = Task("double", "Double", asks="x", measure=Measure("error", lower), checks=CHECKS)
    found = ranked(rows, task, {name: name for name in "abc"})
    assert [(rank, name) for rank, name, _ in found] == wanted


def test_without_an_open_task_or_a_score_a_sentence_says_so(tmp_path, folders):
    plain = courses.make_course(tmp_path / "plain")
    with pytest.raises(CannotStart, match="has no open task"):
        leaderboard(NAME, folder=plain.root)
    (plain.hidden(NAME) / "tasks.py").write_text(MEASURED)
    with pytest.raises(CannotStart, match="Nobody has a score"):
        leaderboard(NAME, folder=plain.root)


@pytest.mark.parametrize(("answer", "wanted"), [("return 2 * x + 1", 1.0), ("raise ValueError", None)])
def test_the_judge_keeps_what_the_checks_of_an_open_task_measure(tmp_path, zygote, answer, wanted):
    checks = """
import torch
from course_lib.grading.spec import Assignment
from course_lib.tasks import Check, Finding, Task
from course_lib.tasks.table import Measure

def off(probe, *given):
    probe.measured = float((probe.tensor(*given) - 2).abs().mean())
    return [Finding("off", "It is off.")] if probe.measured else []

one = torch.ones(3)
ADD = Task("add", "Add", asks="a, b", reference=lambda a, b: a + b,
           checks=(Check(name="any", points=3, detects=(), run=lambda probe: off(probe, one, one)),))
DOUBLE = Task("double", "Double", asks="x", measure=Measure("error", True),
              checks=(Check(name="small error", points=2, detects=(), run=lambda probe: off(probe, one)),))
ASSIGNMENT = Assignment("07", notebook="sums", title="Sums", tasks=(ADD, DOUBLE))
"""
    files = read_assignment(courses.small_course(tmp_path, checks=checks).root, NAME)
    answers = {"add": GOOD["add"], "double": f"def double(x):\n    {answer}"}
    submission = Submission(student="ada", assignment=NAME, sha256="", answers=answers)
    found = judge.judge(submission, files, key=b"key", zygote=zygote)["tasks"]
    assert found["double"].get("score") == wanted and "score" not in found["add"]
    assert found["double"]["points"] == 0
