"""The table of progress over all lessons."""

import re

import pytest

from course_lib.classroom import progress
from course_lib.classroom.session import Session
from course_lib.lessons.lesson_17 import page as lesson


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
    met = ["06 The Transformer", "under way", "1 of 1 (1 at the first try)", "1 of 1", "1 of 1 (1 with hints)"]
    assert row == met
    assert "1 of 1 (1 with hints)" in page[-1]["text/html"]


def test_a_lesson_is_done_when_nothing_is_open_in_it(page, monkeypatch):
    monkeypatch.delitem(lesson.__dict__, "session", raising=False)
    session = Session("17")
    session.store.open("17")
    needed = {name for section in lesson.sections if not section.optional for name in section.holds}
    for name in sorted(needed):
        if name in lesson.predictions:
            session.record("predictions", name, choice=0)
            session.record("parts", name, seen=True)
        if name in lesson.quizzes:
            session.record("quizzes", name, right=True)
        if name in lesson.tasks:
            session.record("exercises", name, passed=True)
        if name in lesson.models:
            session.record("parts", f"model {name}", opened=True)
        if name in lesson.playgrounds and name != "dream":
            session.record("parts", f"playground {name}", played=True)
    progress("17")
    assert rows(page)[0][1] == "under way"
    session.record("parts", "playground dream", played=True)
    progress("17")
    assert rows(page)[0][1] == "done"
    monkeypatch.delitem(lesson.__dict__, "session")


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
    assert page[0]["text/plain"].count("not started") == 17


def test_progress_of_an_unknown_lesson_is_refused(page):
    with pytest.raises(ValueError, match="no lesson '99'"):
        progress("99")
