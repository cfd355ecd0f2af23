"""A mark of a drawing is picked by a click or by the slider."""

import ipywidgets as widgets
import pytest

from course_lib.classroom.widgets import Pick
from course_lib.classroom.widgets.steps import Clicks

PICK = Pick(name="point", label="Point", count=4, value=2)


def test_a_click_moves_the_slider_and_is_told_once_and_nonsense_is_not_heard():
    heard = []
    box, put = PICK.build(heard.append)
    slider, clicks = box.children
    assert isinstance(slider, widgets.IntSlider) and isinstance(clicks, Clicks)
    for message in ({"step": 3, "item": ""}, {"count": 4}, {"step": 0}, {"step": 5}, {"step": None}, {"step": 3}):
        clicks._handle_custom_msg(message, [])
    put(1)
    slider.value = 4
    assert heard == [3, 1, 4]


def test_it_begins_where_it_should_and_refuses_others():
    assert PICK.start == 2 == PICK.check(2) and PICK.words(2) == "2"
    with pytest.raises(ValueError, match="Point must be a whole number from 1 to 4, but got 5"):
        PICK.check(5)
