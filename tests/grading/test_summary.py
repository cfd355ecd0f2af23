"""The tables after grading, each student and what the class found hard; the words of all reports; nothing steers."""

import math
import re
from dataclasses import replace

import pytest

from course_lib.grading.gradebook import Score
from course_lib.grading.judge import NOT_YET
from course_lib.grading.summary import print_summary
from course_lib.grading.wording import counted, one_line, points, visible
from tests.grading.courses import verdict


def score(student, *, add=3.0, double=2.0, why=0.0, unread=(), penalty=0.0):
    given = dict.fromkeys(("first_name", "last_name", "email", "lms_user_id", "submitted"))
    given |= {"points": {"check-add": add, "check-double": double, "why": why}, "penalty": penalty, "unread": unread}
    possible = {"check-add": 3.0, "check-double": 2.0, "why": 4.0}
    return Score(student=student, seconds_late=0.0, possible=possible, **given)


@pytest.fixture
def printed(capsys):
    def text(rows, verdicts):
        print_summary([replace(row, verdict=verdicts.get(row.student)) for row in rows])
        return capsys.readouterr().out

    return text


def cells(text, start):
    """The cells of the line that begins so."""
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return re.split("  +", line)


def test_each_student_has_a_line_with_all_points(printed):
    rows = [score("ada", why=2.5), score("bob", add=0.1 + 0.2, unread=("why",), penalty=0.5)]
    text = printed(rows, {"ada": verdict("ada"), "bob": verdict("bob", add=0.3)})
    assert cells(text, "Student") == ["Student", "1/3", "2/2", "3/4", "Total/9", "Remarks"]
    assert cells(text, "ada") == ["ada", "3", "2", "2.5", "7.5"]
    assert cells(text, "bob") == ["bob", "0.3", "2", "0?", "1.8", "late: −0.5"]
    assert all(words in text for words in ("1 add", "2 double", "3 why", "waits for points by hand"))
    ada, bob = text.splitlines()[1:3]
    assert ada.index("7.5") == bob.index("1.8") and ada.index(" 3 ") + 2 == bob.index("0.3") + 3


def test_what_the_class_found_hard_is_counted_once_a_submission(printed):
    found = verdict("bob", add=0.0)
    found["tasks"]["add"]["checks"] *= 2
    unanswered = verdict("cy", add=0.0)
    unanswered["tasks"]["add"]["answered"] = False
    rows = [score("ada"), score("bob", add=0.0), score("cy", add=0.0)]
    text = printed(rows, {"ada": verdict("ada"), "bob": found, "cy": unanswered})
    assert cells(text, "1 add") == ["1 add", "1 of 3", "1 of 3", "1", "wrong (1)"]
    assert "3 students: mean 3, median 2, from 2 to 5 of 9 points." in text


def test_an_unread_answer_is_no_zero_and_a_check_that_waits_no_misconception(printed):
    found = verdict("bob", add=0.0)
    found["tasks"]["add"]["checks"][0]["findings"][0]["misconception"] = NOT_YET
    rows = [score("ada", why=2.5), score("bob", unread=("why",))]
    text = printed(rows, {"ada": verdict("ada"), "bob": found})
    assert cells(text, "1 add")[-1] == "0" and cells(text, "3 why") == ["3 why", "2.5 of 4", "0 of 1"]
    text = printed(rows[1:], {"bob": verdict("bob")})  # nobody has read any yet
    assert cells(text, "3 why") == ["3 why", "not graded", "–"]


def test_remarks_name_attention_trust_and_what_was_wrong_with_the_file(printed):
    strange = verdict("ada", status="needs attention", sandbox="none: trusted students", notes=["Cell missing."])
    text = printed([score("ada"), score("bob")], {"ada": strange, "bob": None})
    assert "needs attention; judged without a sandbox; Cell missing." in text and "no verdict" in text


def test_answers_that_are_published_or_another_students_are_remarked(printed):
    copied = {"fingerprints": {"add": "1", "double": "2"}}
    verdicts = {name: verdict(name, **copied) for name in ("ada", "bob")} | {"cy": verdict("cy")}
    verdicts["ada"]["published"] = ["double"]
    text = printed([score(name) for name in verdicts], verdicts)
    assert cells(text, "ada")[-1] == "as published: double; as bob: add"
    assert cells(text, "bob")[-1] == "as ada: add" and cells(text, "cy")[-1] == "5"


def test_names_and_notes_cannot_steer_the_terminal_or_the_table(printed):
    name = "[bold red]ada\x1b[31m\u202e"
    text = printed([score(name)], {name: verdict(name, notes=["\x1b]0;title\x07[/]\nbob"])})
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text
    assert "[bold red]ada⟨U+001B⟩" in text and "[/] bob" in text


def test_nobody_graded_gives_a_sentence(printed):
    assert printed([], {}) == "Nobody has been graded yet.\n"


# numbers and texts in all reports ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (2.675, "2.68"),
        (0.125, "0.13"),
        (1.004999, "1"),
        (100, "100"),
        (12.50, "12.5"),
        (-1e-9, "0"),
    ],
)
def test_points_have_two_decimals_at_most_and_halves_go_up(number, text):
    assert points(number) == text


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_is_no_number_of_points_is_refused(number):
    with pytest.raises(ValueError, match="no number of points"):
        points(number)


def test_what_hides_reorders_or_steers_is_shown_and_other_writing_stays():
    assert visible("a\x1b[31m\x9bb\u202ec\u200bd\ud800") == "a⟨U+001B⟩[31m⟨U+009B⟩b⟨U+202E⟩c⟨U+200B⟩d⟨U+D800⟩"
    assert visible("x\r\ny\rz\tw") == "x\ny\nz\tw"
    assert visible("Zoë نور می\u200cخواهم 👩\u200d🔬") == "Zoë نور می\u200cخواهم 👩\u200d🔬"


def test_one_line_is_one_line_and_short():
    assert one_line("a\n  b\tc") == "a b c" and one_line("x" * 300) == "x" * 199 + "…"
    assert len(one_line("\x00" * 10**6, 50)) == 50


def test_nouns_follow_their_numbers():
    assert (counted(1, "check"), counted(0, "check"), counted(2, "task")) == ("1 check", "0 checks", "2 tasks")
