"""Assignment 05: what is its own, and what a student is told."""

import re

import nbformat
import pytest

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.intake import Submission
from course_lib.grading.judge import GRADED, judge
from course_lib.grading.prove import trials
from course_lib.grading.release import student_version
from course_lib.grading.spec import load, read_assignment
from course_lib.grading.validation import KEY, visible_files
from course_lib.tasks import run_checks
from tests.assignments.mistaken import mistaken

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "05")
LOADED = load(FILES)
TABLES = {table.name: table for table in LOADED.assignment.tasks}
REFERENCE, RELEASE, *MISTAKES = trials(LOADED)
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)
TASKS = [task.name for task in LOADED.assignment.tasks]


def tag(cell, name):
    return cell.metadata.get("nbgrader", {}).get(name)


def run(*answers):
    """The names that the notebook's own cells and these answers define."""
    names = {"__name__": "__main__"}
    for source in (*(cell.source for cell in LOADED.cells if cell.kind == "setup"), *answers):
        exec(source, names)
    return names


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("missing tanh", "the radius taken for sigma"),
        ("positions counted from 1", "missing scale"),
        ("softmax over the wrong axis", "distance not squared"),
    ],
)
def test_two_mistakes_are_named_together(first, second):
    table = TABLES["predictive_attention"]
    told = {name for check in table.all_checks for name in told_by(table, check, first, second)}
    assert {first, second} <= told


def told_by(table, check, *mistakes):
    return run_checks(mistaken(table, *mistakes), [check], asks=table.asks).misconceptions


def test_a_mistake_costs_only_where_it_is_asked_for():
    table = TABLES["GroupedQueryAttention"]
    grouped, hidden, nothing, *_ = table.all_checks
    assert told_by(table, grouped, "missing scale") == ["missing scale"]
    assert told_by(table, hidden, "missing scale") == told_by(table, nothing, "missing scale") == []
    in_turn = "keys and values dealt to the heads in turn"
    assert told_by(table, grouped, in_turn) == [in_turn]
    assert told_by(table, hidden, in_turn) == told_by(table, nothing, in_turn) == []


def test_weights_and_window_of_local_attention_earn_points_apart():
    table = TABLES["local_attention"]
    weighing, neighbours, *_ = table.all_checks
    too_few = "one neighbour too few"
    assert told_by(table, weighing, too_few) == told_by(table, neighbours, "missing scale") == []
    assert told_by(table, neighbours, too_few) == [too_few]
    assert told_by(table, weighing, "missing scale") == ["missing scale"]


@pytest.fixture(scope="module")
def visible_checks_as_files():
    """What `course assign validate` gives to the judge in place of the hidden checks."""
    released = nbformat.writes(student_version(FILES.source_notebook, "source"))
    return visible_files("05", FILES.notebook, released.encode())


def validated(answers, files, zygote):
    """What the visible checks find in each of these answers when the judge runs them in the sandbox."""
    submission = Submission(student="ada", assignment="05", sha256="0" * 64, answers=answers)
    verdict = judge(submission, files, key=KEY, zygote=zygote)
    assert verdict["status"] == GRADED
    checked = {name: verdict["tasks"][name]["checks"] for name in answers}
    return {name: [found for check in checks for found in check["findings"]] for name, checks in checked.items()}


@pytest.mark.needs("sandbox")
def test_validate_finds_nothing_in_the_reference(visible_checks_as_files, zygote):
    assert validated(REFERENCE.answers, visible_checks_as_files, zygote) == {name: [] for name in TASKS}


@pytest.mark.needs("sandbox")
def test_validate_finds_what_the_example_shows(visible_checks_as_files, zygote):
    wrong = {
        trial.task: trial.answers[trial.task]
        for trial in MISTAKES
        if trial.name in ("always zero", "zeros of the right shape")
    }
    found = validated(wrong, visible_checks_as_files, zygote)
    assert len(wrong) == 7 and {name: found[name][0]["misconception"] for name in wrong} == dict.fromkeys(
        wrong, "another result than by hand"
    )


# written --------------------------------------------------------------------------------------------


def test_only_cells_to_fill_in_can_be_changed():
    for cell in NOTEBOOK.cells:
        if tag(cell, "grade_id"):
            assert tag(cell, "locked") != tag(cell, "solution")
        else:
            assert cell.id == "look-at-one"


def test_the_code_of_the_statements_runs_before_anything_is_filled_in(capsys):
    (example,) = (cell for cell in NOTEBOOK.cells if cell.cell_type == "code" and not tag(cell, "grade_id"))
    names = run(*LOADED.stubs.values(), example.source)
    assert "inputs (300, 6, 2) targets (300,)" in capsys.readouterr().out
    for row, target in zip(names["inputs"].tolist(), names["targets"].tolist(), strict=True):
        assert dict(row[1:])[row[0][0]] == target and row[0][1] == 8


def test_names_of_hidden_checks_hold_no_number_of_an_input():
    for task in LOADED.assignment.tasks:
        for asked in task.checks:
            assert set(re.findall(r"\d+", asked.name)) <= {"32", "64", "70", "90", "95"}
