"""Votes are cast by buttons, taken back, or cast by somebody else."""

import pytest

from course_lib.classroom.widgets import Votes
from course_lib.classroom.widgets.votes import told_apart

VOTES = Votes(name="votes", label="Better is", most=4, others={"a friend": "ab="})


def test_buttons_vote_take_back_and_stop_when_all_is_compared():
    heard = []
    box, put = VOTES.build(heard.append)
    buttons = {child.description: child for child in box.children[1:]}
    for name in ("The first", "The second", "No difference", "One back", "a friend", "The first", "The first"):
        buttons[name].click()
    assert heard == ["a", "ab", "ab=", "ab", "ab=", "ab=a", "ab=a"]
    assert VOTES.remark("ab=a") and not VOTES.remark("ab=")
    buttons["Start again"].click()
    put("bb")
    assert heard[-2:] == ["", "bb"]


def test_pairs_without_a_difference_are_no_votes():
    assert told_apart("ab==") == 2 and VOTES.words("ab=") == "a friend"
    assert VOTES.words("") == "no votes" and VOTES.words("a=") == "1 votes"


@pytest.mark.parametrize("wrong", ["abx", "aaaaa", None])
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError, match="up to 4 votes of a, b and ="):
        VOTES.check(wrong)
