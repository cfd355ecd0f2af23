"""Checks answer in sentences, help opens in its order and closes again, and only working code counts as done."""

import pytest
import torch

from course_lib.classroom.exercises import Exercise
from course_lib.classroom.output import WIDGET_VIEW
from course_lib.classroom.session import Session
from course_lib.tasks import Case, Mistake, Task
from course_lib.tasks.solution import Solution

TASK = Task(
    name="add",
    title="Add one",
    asks="x",
    reference=Solution("def add(x):\n    return x + 1"),
    cases=(Case("adds one", lambda draw: (draw(4, 3),)),),
    mistakes=(Mistake("adds two", "Two is `added`.", "What is *missing*?", ways=((("+ 1", "+ 2"),),)),),
    minutes=5,
    text="Write `add`.",
    hints=("h1", "h2", "h3"),
    solution="def add(x):\n    return x + 1",
)


def add(x):
    return x + 1


@pytest.fixture
def exercise(page):
    return Exercise(Session("06"), "e", TASK)


def test_the_task_says_its_minutes(exercise, page):
    exercise.show()
    assert page[0]["text/plain"] == "Exercise: Add one, 5 minutes\nWrite add."


def test_working_code_passes_and_is_recorded(exercise, page, record):
    assert exercise.check(add)
    assert page[-1]["text/plain"] == "✓ All right: your add passes its check."
    assert record("exercises", "e")["passed"] is True


def test_wrong_code_is_told_what_failed_and_gets_a_hint(exercise, page, record):
    exercise.show()
    assert not exercise.check(lambda x: x + 2)
    assert "adds two: Two is added." in page[-1]["text/plain"] and "Hint: What is missing?" in page[-1]["text/plain"]
    assert "<em>missing</em>" in page[-1]["text/html"]
    assert record("exercises", "e") == {"met": True, "attempts": 1}


def test_numbers_that_nothing_explains_are_shown_beside_the_wanted_ones(exercise, page):
    def off(x):
        x = x + 1
        return torch.cat([x[:, :1], x[:, 1:] + 0.5], dim=1)

    exercise.check(off)
    plain, table = page[-1]["text/plain"], page[-1]["text/html"]
    assert plain.count("yours") == plain.count("wanted") == 3 and plain.count("[") == 2
    assert table.count("<tr>") == 4 and table.count("<mark>") == 2 and '<th scope="col"' in table
    first = plain.splitlines()[2].split()
    assert first[:3] == ["row", "0:", "yours"] and first[4].startswith("[") and not first[3].startswith("[")


@pytest.mark.parametrize("function", [None, ..., lambda x: None])
def test_a_placeholder_is_not_a_mistake(exercise, page, record, function):
    exercise.show()
    assert exercise.check(function) is False and exercise.passes(function) is None
    assert page[-1]["text/plain"].startswith("○ Not written yet")
    assert record("exercises", "e") == {"met": True}


def test_it_can_be_asked_without_a_word(exercise, page, record):
    assert exercise.passes(add) is True and exercise.passes(lambda x: x) is False
    assert page == [] and record("exercises", "e") == {}


def test_code_that_stops_gets_a_sentence_and_no_traceback(exercise, page):
    exercise.check(lambda x: x / 0 @ x)
    assert "With x (4, 3) your function stopped in line 1" in page[-1]["text/plain"]
    assert "Traceback" not in page[-1]["text/plain"]


def test_checks_that_cannot_run_are_a_sentence_too(page):
    def reference(x):
        raise LookupError("lost")

    broken = Task(name="add", title="", asks="x", reference=reference, cases=TASK.cases)
    assert not Exercise(Session("06"), "e", broken).check(add)
    assert "lost" in page[-1]["text/plain"] and "Traceback" not in page[-1]["text/plain"]


def test_text_of_an_error_cannot_become_html(exercise, page):
    def evil(x):
        raise ValueError("<script>alert(1)</script>")

    exercise.check(evil)
    assert "<script>" not in page[-1]["text/html"]


def test_a_later_failure_does_not_take_the_pass_away(exercise, record):
    exercise.check(add)
    exercise.check(lambda x: x)
    assert record("exercises", "e")["passed"] is True


def test_the_buttons_open_hints_one_by_one_and_the_solution_last_and_close_them_again(exercise, record):
    exercise.widget()
    assert exercise.opened.value == "" and exercise.close.layout.display == "none"
    seen = []
    for _ in range(4):
        seen.append(exercise.next.description)
        exercise.next.click()
    assert seen == ["Open hint 1 of 3", "Open hint 2 of 3", "Open hint 3 of 3", "Open the solution"]
    assert exercise.next.layout.display == "none" and "return x + 1" in exercise.opened.value
    seen = []
    for _ in range(4):
        seen.append(exercise.close.description)
        exercise.close.click()
    assert seen == ["Close the solution", "Close hint 3 of 3", "Close hint 2 of 3", "Close hint 1 of 3"]
    assert exercise.opened.value == "" and record("exercises", "e") == {"open": 0, "help": 4}


def test_help_stays_as_it_was_left_and_closes_after_a_restart(exercise, page):
    exercise.open_next()
    exercise.open_next()
    again = Exercise(Session("06"), "e", TASK)
    again.widget()
    assert "h2" in again.opened.value
    again.close.click()
    assert "h1" in again.opened.value and "h2" not in again.opened.value


def test_the_stored_help_opens_in_its_order(exercise, page):
    exercise.show()
    assert WIDGET_VIEW in page[1]
    html = page[1]["text/html"]
    parts = ["Hint 1 of 3", "h1", "Hint 2 of 3", "h2", "Hint 3 of 3", "h3", "Show the solution", "return x + 1"]
    places = [html.index(part) for part in parts]
    assert places == sorted(places)
    assert html[: places[-1]].count("<details>") == 4 and "</details>" not in html[: places[-1]]


def test_what_is_stored_does_not_depend_on_the_help_that_is_open(exercise, stored):
    exercise.show()
    before = stored()
    exercise.open_next()
    exercise.show()
    assert stored()[2:] == before
