"""Checks answer in sentences, help opens in its order, and only working code counts as done."""

import pytest
import torch

from course_lib.classroom import check, exercise, hint, lesson, progress, solution
from course_lib.classroom.output import WIDGET_VIEW
from course_lib.tasks import Check, Finding
from course_lib.tasks.attention import SCALED_DOT_PRODUCT_ATTENTION


def _adds_one(probe):
    if probe.call(1) != 2:
        yield Finding(misconception="off by one", message="`add(1)` is not 2.", hint="What is *missing*?")


CHECKS = [Check(name="adds one", detects=("off by one",), run=_adds_one)]


def add(x):
    return x + 1


@pytest.fixture
def task(page, item):
    lesson("06")
    exercise("e", "Add one", task="Write `add`.", checks=CHECKS, hints=["h1", "h2", "h3"], solution=add)
    return item("exercises", "e")


def test_working_code_passes_and_is_recorded(task, page, record):
    check("e", add)
    assert page[-1]["text/plain"] == "✓ All right: your code passes its check."
    assert record("exercises", "e")["passed"] is True


def test_wrong_code_is_told_what_failed_and_gets_a_hint(task, page, record):
    check("e", lambda x: x)
    assert "off by one: add(1) is not 2." in page[-1]["text/plain"]
    assert "Hint: What is missing?" in page[-1]["text/plain"]
    assert "<em>missing</em>" in page[-1]["text/html"]
    assert record("exercises", "e") == {"met": True, "attempts": 1}


def unwritten_with_dots(x): ...


def unwritten_with_error(x):
    raise NotImplementedError("your code here")


@pytest.mark.parametrize("function", [None, ..., unwritten_with_dots, unwritten_with_error])
def test_a_placeholder_is_not_a_mistake(task, page, record, function):
    check("e", function)
    assert page[-1]["text/plain"].startswith("○ Not written yet")
    assert record("exercises", "e") == {"met": True}


def broken(x):
    return x / 0


def test_code_that_stops_gets_a_sentence_and_no_traceback(task, page):
    check("e", broken)
    assert "ZeroDivisionError" in page[-1]["text/plain"] and "Traceback" not in page[-1]["text/plain"]


def test_checks_that_cannot_run_are_a_sentence_too(task, page, record):
    task.checks = []
    check("e", add)
    assert page[-1]["text/plain"].startswith("✗ Your code could not be checked: ValueError")
    assert "passed" not in record("exercises", "e")


def test_text_of_an_error_cannot_become_html(task, page):
    def evil(x):
        raise ValueError("<script>alert(1)</script>")

    check("e", evil)
    assert "<script>" not in page[-1]["text/html"]


def test_a_later_failure_does_not_take_the_pass_away(task, record):
    check("e", add)
    check("e", lambda x: x)
    assert record("exercises", "e")["passed"] is True


def test_the_real_checks_name_the_missing_scale(page):
    lesson("06")
    exercise("a", "Attention", checks=SCALED_DOT_PRODUCT_ATTENTION, hints=["h"], solution="...")

    def unscaled(q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1)
        scores = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v

    check("a", unscaled)
    assert "missing scale" in page[-1]["text/plain"]


def test_the_button_opens_hints_one_by_one_and_the_solution_last(task, record):
    task.widget()
    seen = []
    for _ in range(4):
        seen.append(task.button.description)
        task.button.click()
    assert seen == ["Open hint 1 of 3", "Open hint 2 of 3", "Open hint 3 of 3", "Show the solution"]
    assert task.button.disabled and "return x + 1" in task.opened.value
    assert record("exercises", "e")["help"] == 4


def test_the_button_is_as_wide_as_its_text_and_not_as_the_page(task):
    assert task.button in task.widget().children
    assert (task.button.layout.width, task.button.layout.align_self) == ("auto", "flex-start")


def test_nothing_is_open_that_was_not_asked_for(task):
    task.widget()
    assert task.opened.value == ""
    task.button.click()
    assert "h1" in task.opened.value and "h2" not in task.opened.value and "return" not in task.opened.value


def test_help_stays_open_when_the_cell_runs_again(task, page, item):
    task.open_next()
    stored = [shown["text/html"] for shown in page]
    page.clear()
    exercise("e", "Add one", task="Write `add`.", checks=CHECKS, hints=["h1", "h2", "h3"], solution=add)
    assert "h1" in item("exercises", "e").opened.value
    assert [shown["text/html"] for shown in page] == stored


def test_the_stored_help_opens_in_its_order(task, page):
    html = page[1]["text/html"]
    assert WIDGET_VIEW in page[1]
    parts = ["Hint 1 of 3", "h1", "Hint 2 of 3", "h2", "Hint 3 of 3", "h3", "Show the solution", "return x + 1"]
    places = [html.index(part) for part in parts]
    assert places == sorted(places)
    assert html[: places[-1]].count("<details>") == 4 and "</details>" not in html[: places[-1]]


def test_the_solution_waits_for_the_hints(task, page):
    hint("e")
    solution("e")
    assert "2 hints are still closed" in page[-1]["text/plain"] and "return" not in page[-1]["text/html"]
    hint("e")
    hint("e")
    assert page[-1]["text/plain"].splitlines() == ["Hint 1 of 3: h1", "Hint 2 of 3: h2", "Hint 3 of 3: h3"]
    solution("e")
    assert "return x + 1" in page[-1]["text/plain"]


def test_an_unknown_exercise_says_what_to_run_first(task):
    with pytest.raises(ValueError, match="'x' is not known yet.*exercise.*'e'"):
        check("x", add)


def test_an_exercise_without_checks_is_refused(page):
    lesson("06")
    with pytest.raises(ValueError, match="got 0 and 1"):
        exercise("e", "Add", checks=[], hints=["h"], solution="...")


def test_progress_counts_what_was_done(task, page):
    task.open_next()
    check("e", add)
    progress("00", "06")
    lines = page[-1]["text/plain"].splitlines()
    assert lines[1].split() == ["00", "Start", "here", "not", "started", "-", "-", "-"]
    assert lines[2].split(None, 3)[3].split("  ")[0] == "done"
    assert "1 of 1 (1 with hints)" in lines[2] and "1 of 1 (1 with hints)" in page[-1]["text/html"]


def test_progress_is_the_same_in_every_fresh_home(page, home):
    for _ in range(2):
        lesson("00")
        progress()
        (home / "progress.json").unlink()
    assert page[0] == page[1]
    assert page[0]["text/plain"].count("not started") == 15


def test_progress_of_an_unknown_lesson_is_refused(page):
    with pytest.raises(ValueError, match="no lesson '99'"):
        progress("99")
