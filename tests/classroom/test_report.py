"""The table of progress over all lessons."""

import re

import pytest

from course_lib.classroom import progress
from course_lib.classroom.session import Session


def rows(page):
    return [re.split(r"  +", line) for line in page[-1]["text/plain"].splitlines()[1:]]


def test_progress_counts_what_was_done(page):
    session = Session("06")
    session.store.open("06")
    session.record("quizzes", "q", met=True)
    session.record("predictions", "b", choice=0.5)
    progress("00", "06")
    assert rows(page)[0] == ["00 Start here", "not started", "-", "-", "-"]
    assert "06 The Transformer  under way" in page[-1]["text/plain"]
    session.record("quizzes", "q", right=True, first_try=True)
    session.record("exercises", "e", passed=True, help=1)
    progress("06")
    (row,) = rows(page)
    done = ["06 The Transformer", "done", "1 of 1 (1 at the first try)", "1 of 1", "1 of 1 (1 with hints)"]
    assert row == done
    assert "1 of 1 (1 with hints)" in page[-1]["text/html"]


def test_a_lesson_in_which_nothing_was_done_is_only_opened(page):
    Session("06").store.open("06")
    progress("06")
    assert rows(page)[0][1] == "opened"


def test_progress_is_the_same_in_every_fresh_home(page, home):
    for _ in range(2):
        Session("00").store.open("00")
        progress()
        (home / "progress.json").unlink()
    assert page[0] == page[1]
    assert page[0]["text/plain"].count("not started") == 15


def test_progress_of_an_unknown_lesson_is_refused(page):
    with pytest.raises(ValueError, match="no lesson '99'"):
        progress("99")
