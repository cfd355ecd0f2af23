"""Squares of a drawing are hidden and shown again by a click."""

import ipywidgets as widgets
import pytest

from course_lib.classroom.widgets import Squares
from course_lib.classroom.widgets.steps import Clicks

SQUARES = Squares(name="hidden", label="Hidden", count=4)


@pytest.fixture
def live():
    heard = []
    box, put = SQUARES.build(heard.append)
    (clicks,) = [child for child in box.children if isinstance(child, Clicks)]
    show, swap = [child for child in box.children if isinstance(child, widgets.Button)]

    def click(message):
        clicks._handle_custom_msg(message, [])

    return heard, put, click, show, swap


def test_a_click_hides_and_a_second_one_shows_again(live):
    heard, _, click, _, _ = live
    for number in (2, 3, 2):
        click({"step": number, "item": ""})
    assert heard == [{2}, {2, 3}, {3}]


def test_what_is_no_square_is_not_heard(live):
    heard, _, click, _, _ = live
    for message in ({"count": 4}, {"step": 0}, {"step": 5}, {"step": None}):
        click(message)
    assert heard == []


def test_buttons_show_all_and_swap(live):
    heard, put, _, show, swap = live
    put(frozenset({1}))
    swap.click()
    show.click()
    assert heard == [{1}, {2, 3, 4}, set()]


def test_it_says_which_are_hidden_and_refuses_others():
    assert SQUARES.start == frozenset() and SQUARES.check([3, 1]) == {1, 3}
    assert SQUARES.words(frozenset({3, 1})) == "1, 3" and SQUARES.words(SQUARES.start) == "none"
    with pytest.raises(ValueError, match=r"Hidden takes numbers from 1 to 4, but got \[5\]"):
        SQUARES.check({5})
