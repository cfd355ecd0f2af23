"""The tables after grading: each student, what the class found hard, and no text of others that steers a terminal."""

from dataclasses import replace

import pytest

from course_lib.grading.gradebook import Score
from course_lib.grading.judge import NOT_YET
from course_lib.grading.summary import MOST_ROWS, print_summary
from tests.grading.courses import verdict


def score(student, *, add=3.0, double=2.0, why=0.0, unread=(), penalty=0.0):
    return Score(
        student=student,
        first_name=None,
        last_name=None,
        email=None,
        lms_user_id=None,
        submitted=None,
        seconds_late=0.0,
        points={"check-add": add, "check-double": double, "why": why},
        possible={"check-add": 3.0, "check-double": 2.0, "why": 4.0},
        penalty=penalty,
        unread=unread,
    )


@pytest.fixture
def printed(capsys):
    def text(rows, verdicts):
        print_summary([replace(row, verdict=verdicts.get(row.student)) for row in rows])
        return capsys.readouterr().out

    return text


def test_each_student_has_a_line_with_all_points(printed):
    rows = [score("ada", why=2.5), score("bob", add=0.1 + 0.2, unread=("why",), penalty=0.5)]
    text = printed(rows, {"ada": verdict("ada"), "bob": verdict("bob", add=0.3)})
    ada, bob = (next(line for line in text.splitlines() if name in line) for name in ("ada", "bob"))
    assert ada.replace("│", " ").split() == ["ada", "3", "2", "2.5", "7.5"]
    assert bob.replace("│", " ").split() == ["bob", "0.3", "2", "0?", "−0.5", "1.8"]
    assert all(words in text for words in ("1 add", "2 double", "3 why", "/9", "waits for points by hand"))


def test_what_the_class_found_hard_is_counted_once_a_submission(printed):
    found = verdict("bob", add=0.0)
    found["tasks"]["add"]["checks"] *= 2
    unanswered = verdict("cy", add=0.0)
    unanswered["tasks"]["add"]["answered"] = False
    rows = [score("ada"), score("bob", add=0.0), score("cy", add=0.0)]
    text = printed(rows, {"ada": verdict("ada"), "bob": found, "cy": unanswered})
    line = next(line for line in text.splitlines() if line.startswith("1 add"))
    assert [cell.strip() for cell in line.split("│")] == ["1 add", "1 of 3", "1 of 3", "1", "wrong (1)"]
    assert "3 students: mean 3, median 2, from 2 to 5 of 9 points." in text


def test_an_unread_answer_is_no_zero_and_a_check_that_waits_no_misconception(printed):
    found = verdict("bob", add=0.0)
    found["tasks"]["add"]["checks"][0]["findings"][0]["misconception"] = NOT_YET
    rows = [score("ada", why=2.5), score("bob", unread=("why",))]
    lines = printed(rows, {"ada": verdict("ada"), "bob": found}).splitlines()
    add, why = (
        [cell.strip() for cell in next(x for x in lines if x.startswith(n)).split("│")] for n in ("1 add", "3 w")
    )
    assert add[-1] == "" and why[:3] == ["3 why", "2.5 of 4", "0 of 1"]


def test_an_answer_that_nobody_has_read_yet_has_no_numbers(printed):
    lines = printed([score("bob", unread=("why",))], {"bob": verdict("bob")}).splitlines()
    (why,) = [line for line in lines if line.startswith("3 why")]
    assert [cell.strip() for cell in why.split("│")][1:3] == ["not graded", "–"]


def test_remarks_name_attention_trust_and_what_was_wrong_with_the_file(printed):
    strange = verdict("ada", status="needs attention", sandbox="none: trusted students", notes=["Cell missing."])
    text = printed([score("ada"), score("bob")], {"ada": strange, "bob": None})
    assert "needs attention; judged without a sandbox; Cell missing." in text and "no verdict" in text


def test_names_and_notes_cannot_steer_the_terminal_or_the_table(printed):
    name = "[bold red]ada\x1b[31m\u202e"
    text = printed([score(name)], {name: verdict(name, notes=["\x1b]0;title\x07[/]\nbob"])})
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text
    assert "[bold red]ada⟨U+001B⟩" in text and "[/] bob" in text


def test_a_large_class_shows_those_that_need_a_person(printed):
    rows = [score(f"s{number:03}") for number in range(MOST_ROWS + 1)]
    verdicts = {row.student: verdict(row.student) for row in rows}
    verdicts["s007"]["status"] = "needs attention"
    text = printed(rows, verdicts)
    assert "s007" in text and "s008" not in text and f"{MOST_ROWS} further students" in text


def test_nobody_graded_gives_a_sentence(printed):
    assert printed([], {}) == "Nobody has been graded yet.\n"
