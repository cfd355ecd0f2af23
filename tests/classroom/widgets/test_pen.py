"""Buttons that write token by token."""

import pytest

from course_lib.classroom.widgets import Pen

PEN = Pen(name="pen", label="Pen", most=60, value=(1, 24 * "d"))


def test_the_pen_takes_only_its_own_strokes():
    for value in ((0, ""), (1, "x"), (1, 61 * "d")):
        with pytest.raises(ValueError, match="Pen takes dice from 1 on and up to 60 strokes"):
            PEN.check(value)
    assert PEN.check((2, "td")) == (2, "td")


def test_the_buttons_write_token_by_token_take_back_and_stop_when_the_page_is_full():
    heard = []
    box, _ = PEN.build(heard.append)
    button = {one.description: one for one in box.children[1:]}
    for name in ("Clear", "Take the likeliest", "Draw one", "One back", "Other dice"):
        button[name].click()
    assert heard == [(1, ""), (1, "t"), (1, "td"), (1, "t"), (2, "t")]
    del heard[:]
    button["Draw 40"].click()
    assert [len(strokes) for _, strokes in heard] == list(range(2, 42))
    button["Draw 40"].click()
    assert heard[-1] == (2, "t" + 59 * "d")


def test_a_full_page_and_an_empty_one_are_said():
    assert PEN.remark((1, 60 * "t")) == "The page is full with 60 tokens: clear it." and not PEN.remark((1, 59 * "t"))
    assert [PEN.words((3, "tt")), PEN.words((3, ""))] == ["2 tokens written, dice 3", "nothing written"]
