"""Assignment 05, which the guides show: what a student is told, in the sandbox too, and which names are given."""

import re

import nbformat
import pytest

from course_lib.grading.intake import Submission
from course_lib.grading.judge import GRADED, judge
from course_lib.grading.prove import trials
from course_lib.grading.release import student_version
from course_lib.grading.validation import KEY, visible_files
from tests.assignments.delivered import mistaken, read, table, told

FILES, LOADED = read("05").files, read("05").loaded


@pytest.mark.parametrize(
    "mistakes",
    [
        {"missing tanh", "the radius taken for sigma"},
        {"positions counted from 1", "missing scale"},
        {"softmax over the wrong axis", "distance not squared"},
    ],
)
def test_two_mistakes_are_named_together(mistakes):
    task = table("05", "predictive_attention")
    assert mistakes <= {name for one in task.all_checks for name in told(mistaken(task, *mistakes), [one], task)}


@pytest.mark.parametrize(
    ("name", "mistake", "costs"),  # in the first cases
    [
        ("GroupedQueryAttention", "missing scale", [1, 0, 0]),
        ("GroupedQueryAttention", "keys and values dealt to the heads in turn", [1, 0, 0]),
        ("local_attention", "missing scale", [1, 0]),
        ("local_attention", "one neighbour too few", [0, 1]),
    ],
)
def test_a_mistake_costs_only_where_it_is_asked_for(name, mistake, costs):
    task = table("05", name)
    found = [told(mistaken(task, mistake), [check], task) for check in task.all_checks[: len(costs)]]
    assert found == [[mistake] * cost for cost in costs]


@pytest.fixture(scope="module")
def validated():
    """What `course assign validate` gives to the judge in place of the hidden checks."""
    released = nbformat.writes(student_version(FILES.source_notebook, "source"))
    return visible_files("05", FILES.notebook, released.encode())


@pytest.mark.needs("sandbox")
def test_validate_finds_nothing_in_the_reference_and_in_wrong_answers_what_the_example_shows(validated, zygote):
    reference, _, *mistakes = trials(LOADED)
    names = ("always zero", "zeros of the right shape")
    wrong = {trial.task: trial.answers[trial.task] for trial in mistakes if trial.name in names}
    assert len(wrong) == 7
    for answers, told_each in ((reference.answers, []), (wrong, ["another result than by hand"])):
        submission = Submission(student="ada", assignment="05", sha256="0" * 64, answers=answers)
        verdict = judge(submission, validated, key=KEY, zygote=zygote)
        assert verdict["status"] == GRADED
        for name in answers:
            found = [finding for check in verdict["tasks"][name]["checks"] for finding in check["findings"]]
            assert [finding["misconception"] for finding in found][:1] == told_each


def test_only_cells_to_fill_in_can_be_changed_and_their_code_runs_before_anything_is_filled_in(capsys):
    tags = {cell.id: cell.metadata.get("nbgrader", {}) for cell in read("05").notebook.cells}
    assert [name for name, tag in tags.items() if "grade_id" not in tag] == ["look-at-one"]
    assert all(tag["locked"] != tag["solution"] for name, tag in tags.items() if name != "look-at-one")
    names = {"__name__": "__main__"}
    setups = [cell.source for cell in LOADED.cells if cell.kind == "setup"]
    for source in (*setups, *LOADED.stubs.values(), read("05").sources["look-at-one"]):
        exec(source, names)
    assert "inputs (300, 6, 2) targets (300,)" in capsys.readouterr().out
    for row, target in zip(names["inputs"].tolist(), names["targets"].tolist(), strict=True):
        assert dict(row[1:])[row[0][0]] == target and row[0][1] == 8


def test_names_of_hidden_checks_hold_no_number_of_an_input():
    names = " ".join(check.name for task in LOADED.assignment.tasks for check in task.checks)
    assert set(re.findall(r"\d+", names)) <= {"32", "64", "70", "90", "95"}
