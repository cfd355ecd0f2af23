"""Steps of a drawing: the slider and the drawing's own parts move one value, and each move is heard once."""

import ipywidgets
import pytest

from course_lib.classroom.widgets import Slider, Steps
from tests.classroom.widgets.test_explorer import parts


@pytest.fixture
def built():
    seen = []
    box, put = Steps(name="at", label="Step", value=2, most=9).build(seen.append)
    slider, clicks = parts(box, ipywidgets.IntSlider)[0], box.children[1]
    return slider, lambda **message: clicks._handle_custom_msg(message, []), put, seen


def test_a_click_sets_step_and_item_and_is_heard_once(built):
    slider, click, _, seen = built
    click(step=4, item="le ministre")
    assert slider.value == 4 and seen == [(4, "le ministre")]
    click(step=4, item="la")
    assert seen[1:] == [(4, "la")]


def test_the_slider_forgets_what_was_clicked(built):
    slider, click, _, seen = built
    click(step=4, item="le")
    slider.value = 5
    assert seen == [(4, "le"), (5, "")]


def test_the_slider_ends_where_the_drawing_ends_and_starts_again_where_it_started(built):
    slider, click, put, seen = built
    slider.value = 8
    click(count=3)
    assert (slider.max, slider.value) == (3, 3) and seen == [(8, ""), (3, "")]
    put((7, ""))
    assert slider.value == 7 and seen[-1] == (7, "")
    click(count=500)
    assert slider.max == 9


@pytest.mark.parametrize("value", [(0, ""), (10, ""), (1, None)])
def test_a_step_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match="Step must be a number from 1 to 9 and a text"):
        Steps(name="at", label="Step", most=9).check(value)


def test_a_slider_over_whole_numbers_shows_no_decimals():
    whole = Slider(name="n", label="N", low=1, high=5, step=1, value=4)
    half = Slider(name="n", label="N", low=0, high=2, step=0.5, value=1)
    shown = [control.build(print)[0].readout_format for control in (whole, half)]
    assert shown == [".0f", ".2f"] and [whole.words(4.0), half.words(1.0)] == ["4", "1.00"]
