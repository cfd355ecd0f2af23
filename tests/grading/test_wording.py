"""Numbers and texts in reports."""

import math

import pytest

from course_lib.grading.wording import counted, one_line, points, visible


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
