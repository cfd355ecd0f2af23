"""What stands under a check in the graded notebook: the judge's words, and points that nbgrader finds there."""

import json

import pytest

from course_lib.grading.graded import graded_notebook, task_in_words
from tests.grading.courses import cell, notebook, released, verdict


def outputs(judged, name, release=None):
    text = graded_notebook(json.dumps(release or released()).encode(), {}, judged)
    (found,) = [cell for cell in json.loads(text)["cells"] if cell["metadata"]["nbgrader"]["grade_id"] == name]
    return found["outputs"]


def said(judged, name="check-add"):
    """The words under a check, and the points that come last."""
    words, points = outputs(judged, name)
    return words["text"], float(points["data"]["text/plain"])


def test_a_task_is_told_with_its_points_and_each_check():
    assert said(verdict("ada")) == ("3 of 3 points.\n[passed] add is right (3)\n", 3.0)
    assert said(verdict("ada", add=1.5)) == (
        "1.5 of 3 points.\n[failed] add is right (3)\n    `add` is off. Look again.\n",
        1.5,
    )


def test_the_same_finding_is_told_once_and_a_hint_may_be_missing():
    task = verdict("ada", add=0.0)["tasks"]["add"]
    task["checks"][0]["findings"] *= 2
    assert task_in_words(task).count("`add` is off.") == 1
    task["checks"][0]["findings"] = [{"misconception": "wrong", "message": "`add` is off."}]
    assert task_in_words(task).endswith("\n    `add` is off.")


def test_no_answer_is_told_without_the_checks():
    judged = verdict("ada", add=0.0)
    judged["tasks"]["add"]["answered"] = False
    assert said(judged) == ("No answer. 0 of 3 points.\n", 0.0)


def test_a_task_that_the_judge_does_not_know_is_0_points():
    judged = verdict("ada")
    del judged["tasks"]["add"]
    assert said(judged) == ("The judge knows no such task: 0 points.\n", 0.0)


@pytest.mark.parametrize(("status", "told"), [("needs attention", True), ("graded", False)])
def test_notes_are_told_where_a_person_is_needed(status, told):
    words, _ = said(verdict("ada", status=status, notes=["a link", "too large"]))
    assert ("Needs attention: a link\nNeeds attention: too large\n" in words) == told == ("a link" in words)


def test_an_answer_in_code_that_a_person_grades_gets_no_points_from_the_judge():
    release = json.loads(notebook([cell("essay", source="x = 1", grade=True, solution=True, points=2)]))
    assert outputs(verdict("ada"), "essay", release) == []


def test_the_notebook_says_which_submission_was_judged_and_how():
    text = graded_notebook(json.dumps(released()).encode(), {}, verdict("ada", sandbox="none: trusted students"))
    assert json.loads(text)["metadata"]["course_lib"] == {
        "submission": "a" * 64,
        "spec": "b" * 64,
        "sandbox": "none: trusted students",
        "status": "graded",
    }


def test_the_graded_notebook_is_the_release_with_answers_and_words():
    judged = verdict("ada", add=1.0)
    text = graded_notebook(
        json.dumps(released()).encode(), {"add": "def add(): ...", "why": "So.", "setup": "x"}, judged
    )
    cells = {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in json.loads(text)["cells"]}
    assert (cells["add"]["source"], cells["why"]["source"]) == ("def add(): ...", "So.")
    assert cells["setup"]["source"] == "import torch"  # only answers are the student's
    said, points = cells["check-add"]["outputs"]
    assert "[failed] add is right" in said["text"] and points["data"]["text/plain"] == "1.0"
    assert "trusted" not in said["text"]


def test_a_graded_notebook_shows_no_output_but_the_judges():
    release = released()
    for each in release["cells"]:
        if each["cell_type"] == "code":
            each["outputs"], each["execution_count"] = [{"output_type": "stream", "name": "stdout", "text": "old"}], 7
    cells = json.loads(graded_notebook(json.dumps(release).encode(), {}, verdict("ada")))["cells"]
    shown = {cell["metadata"]["nbgrader"]["grade_id"] for cell in cells if cell.get("outputs")}
    assert shown == {"check-add", "check-double"} and "old" not in json.dumps(cells)
    assert {cell["execution_count"] for cell in cells if cell["cell_type"] == "code"} == {None}


def test_a_graded_notebook_says_that_there_was_no_sandbox():
    judged = verdict("ada", sandbox="none: trusted students")
    text = graded_notebook(json.dumps(released()).encode(), {}, judged).decode()
    assert text.count("Judged without a sandbox (none: trusted students).") == 2


def test_nbgrader_reads_the_judges_points_from_the_graded_notebook():
    from nbformat import reads
    from nbgrader.utils import determine_grade, is_grade

    text = graded_notebook(json.dumps(released()).encode(), {"why": "So."}, verdict("ada", add=1.0)).decode()
    grades = [determine_grade(cell) for cell in reads(text, as_version=4).cells if is_grade(cell)]
    assert grades == [(1.0, 3.0), (2.0, 2.0), (None, 4.0)]


def test_what_is_no_notebook_is_an_error():
    with pytest.raises(ValueError):
        graded_notebook(b"{", {}, verdict("ada"))
