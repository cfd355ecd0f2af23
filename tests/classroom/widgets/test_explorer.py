"""One definition gives the live widget and the still frames, and both say in words what they show."""

import asyncio
import base64
import contextlib
import html
import json
import re
import threading
from dataclasses import replace

import ipywidgets
import pytest

from course_lib.classroom.output import WIDGET_VIEW
from course_lib.classroom.widgets import Choice, Explorer, Goal, PaintGrid, Slider, TextBox
from course_lib.classroom.widgets import explorer as explorer_module
from course_lib.classroom.widgets.script import ScriptWidget
from course_lib.viz.style import figure

GRID = ((True, False), (False, True))


def draw(state):
    fig, axes = figure(3, 2, layout=None)
    axes.plot([0, state["slope"]])
    return fig


@pytest.fixture
def calls():
    return []


@pytest.fixture
def explorer(calls):
    def counted(state):
        calls.append(state)
        if state["text"] == "bad":
            raise ValueError("Please type something <else>.")
        if state["text"] == "bug":
            raise KeyError("oops")
        return draw(state)

    return Explorer(
        name="demo",
        title="A *demo*",
        controls=[
            Slider(name="slope", label="Slope", low=0, high=4, step=0.5, value=1.0),
            Slider(name="size", label="Size", low=-1, high=1, step=0.5, value=1.0, log=True),
            Choice(name="way", label="Way", options={"up": 1, "down": -1}, value=-1),
            TextBox(name="text", label="Text", value="good", examples=["good", "better"]),
            PaintGrid(
                name="grid",
                label="Grid",
                value=GRID,
                rows="ab",
                columns="cd",
                square=lambda r, c, on: f"{r}{c}{'on' if on else 'off'}",
                presets={"diagonal": GRID, "full": ((True, True), (True, True))},
            ),
        ],
        draw=counted,
        alt=lambda state: f"Slope {state['slope']:.1f}, {sum(map(sum, state['grid']))} squares.",
    )


def parts(box, kind):
    """All controls of a kind inside a box."""
    found = [box] if isinstance(box, kind) else []
    return found + [part for child in getattr(box, "children", ()) for part in parts(child, kind)]


def button(box, text):
    return next(b for b in parts(box, ipywidgets.Button) if b.description == text)


def drawing(box):
    return parts(box, ipywidgets.HTMLMath)[-1].value


def test_moving_a_slider_redraws_in_place(explorer):
    box = explorer.widget()
    before, place = drawing(box), parts(box, ipywidgets.HTMLMath)[-1]
    parts(box, ipywidgets.FloatSlider)[0].value = 3.0
    assert parts(box, ipywidgets.HTMLMath)[-1] is place and place.value != before
    assert "Slope 3.0" in place.value


def test_a_live_state_is_the_frame_of_that_state(explorer):
    box = explorer.widget()
    parts(box, ipywidgets.FloatSlider)[0].value = 3.0
    button(box, "full").click()
    assert drawing(box) == explorer.frame({"slope": 3.0, "grid": ((True, True), (True, True))}).html


def test_a_preset_paints_many_squares_and_draws_once(explorer, calls):
    box = explorer.widget()
    calls.clear()
    button(box, "full").click()
    assert len(calls) == 1 and calls[0]["grid"] == ((True, True), (True, True))


def test_a_painted_square_says_what_it_means_without_colour(explorer):
    box = explorer.widget()
    square = parts(box, ipywidgets.ToggleButton)[1]
    assert (square.description, square.tooltip) == ("·", "01off")
    square.value = True
    assert (square.description, square.tooltip) == ("✓", "01on")
    assert "3 squares" in drawing(box)


def test_everything_goes_back_to_the_start_with_one_drawing(explorer, calls):
    box = explorer.widget()
    start = drawing(box)
    parts(box, ipywidgets.FloatSlider)[0].value = 3.0
    parts(box, ipywidgets.Dropdown)[0].value = 1
    parts(box, ipywidgets.Text)[0].value = "better"
    button(box, "full").click()
    calls.clear()
    button(box, "Back to the start").click()
    assert drawing(box) == start and len(calls) == 1 and calls[0] == explorer.state()


def test_an_example_is_put_into_the_box(explorer, calls):
    box = explorer.widget()
    button(box, "better").click()
    assert parts(box, ipywidgets.Text)[0].value == "better" and calls[-1]["text"] == "better"


def test_a_drawing_that_fails_is_one_kind_sentence_and_the_next_one_works(explorer):
    box = explorer.widget()
    text = parts(box, ipywidgets.Text)[0]
    text.value = "bad"
    assert "Please type something &lt;else&gt;." in drawing(box) and "Traceback" not in drawing(box)
    text.value = "bug"
    assert "KeyError" in drawing(box)
    text.value = "good"
    assert "<img" in drawing(box)


def test_every_control_has_its_label(explorer):
    box = explorer.widget()
    kinds = (ipywidgets.FloatSlider, ipywidgets.FloatLogSlider, ipywidgets.Dropdown, ipywidgets.Text)
    assert [part.description for kind in kinds for part in parts(box, kind)] == ["Slope", "Size", "Way", "Text"]


def test_a_frame_holds_the_drawing_and_its_words(explorer):
    frame = explorer.frame({"slope": 2.0})
    drawing = base64.b64decode(re.search(r"svg\+xml;base64,([^\"]+)", frame.html)[1]).decode()
    other = base64.b64decode(re.search(r"base64,([^\"]+)", explorer.frame({"slope": 1.0}).html)[1]).decode()
    assert "<path" in drawing and drawing != other
    assert frame.alt == "Slope 2.0, 2 squares." and f'alt="{frame.alt}"' in frame.html
    assert frame.html.count(frame.alt) == 2
    assert frame.state == explorer.state(slope=2.0)


def test_a_drawing_may_be_html(explorer):
    plain = Explorer(name="x", title="x", controls=[], draw=lambda state: "<b>here</b>", alt=lambda state: "Words.")
    assert plain.frame().html.startswith("<b>here</b>")


def test_the_words_stand_below_the_drawing_or_above_it(explorer):
    for words_first in (False, True):
        text = replace(explorer, words_first=words_first).frame().html
        assert (text.index("2 squares.</p>") < text.index("<img")) is words_first


def test_a_drawing_that_speaks_has_no_words_beside_it(explorer):
    frame = replace(explorer, speaks=True, draw=lambda state: "<table></table>").frame()
    assert frame.html == "<table></table>" and frame.alt == "Slope 1.0, 2 squares."


def test_goals_are_ticked_when_they_are_reached_and_stay_so(explorer, calls):
    def steep(state):
        if state["text"] == "bad":
            raise ValueError("Please type something else.")
        return state["slope"] > 2

    live = replace(explorer, goals=(Goal("steep", steep), Goal("as it starts", lambda s: s["slope"] == 1))).widget()
    goals, slider = live.explorer.goals, parts(live, ipywidgets.FloatSlider)[0]
    assert goals.texts == ["steep", "as it starts"] and goals.reached == [False, False]  # nobody did anything yet
    parts(live, ipywidgets.Text)[0].value = "bad"
    assert goals.reached == [False, True]
    parts(live, ipywidgets.Text)[0].value = "good"
    slider.value = 3.0
    slider.value = 1.5
    assert goals.reached == [True, True]


def test_a_goal_waits_until_the_slider_that_reaches_it_is_let_go(explorer):
    goals = (Goal("steep", lambda s: s["slope"] > 2), Goal("flat", lambda s: s["slope"] < 1), Goal("any", bool))
    live = replace(explorer, goals=goals).widget().explorer
    slider = parts(live.box, ipywidgets.FloatSlider)[0]
    live.goals.held = True
    live.goals.held = False  # it was not moved
    assert live.goals.reached == [False, False, False]
    live.goals.held = True
    slider.value = 3.0
    assert "Slope 3.0" in live.drawing.value and live.goals.reached == [False, False, False]
    slider.value = 0.5
    live.goals.held = False
    assert live.goals.reached == [False, True, True]
    slider.value = 2.5  # by a key
    assert live.goals.reached == [True, True, True]


def test_the_last_value_of_a_drag_counts_also_if_it_arrives_after_the_release(explorer, monkeypatch):
    live = replace(explorer, goals=(Goal("steep", lambda s: s["slope"] > 2), Goal("any", bool))).widget().explorer
    slider = parts(live.box, ipywidgets.FloatSlider)[0]

    def drag(slope, pause):
        monkeypatch.setattr(explorer_module, "PAUSE", pause)
        live.goals.held = True
        slider.value = slope
        live.goals.held = False

    async def drags():
        drag(3.0, pause=3600)
        for _ in range(3):
            await asyncio.sleep(0)
        assert live.goals.reached == [False, False]
        slider.value = 0.5  # it was sent while 3.0 was drawn
        assert live.goals.reached == [False, True]
        drag(3.5, pause=0.01)
        while live.goals.reached != [True, True]:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(drags(), 60))


def test_only_what_the_learner_sets_is_heard_of(explorer, page):
    heard, touched = [], []
    live = replace(explorer, heard=heard.append, steps={"slope": (1.0, 2.0)})
    live.live(lambda: touched.append(True))
    assert page and heard == touched == []
    box = live.widget(lambda: touched.append(True))
    parts(box, ipywidgets.FloatSlider)[0].value = 3.0
    parts(box, ipywidgets.FloatSlider)[0].value = 2.0
    assert [state["slope"] for state in heard] == [3.0, 2.0] and touched == [True]  # said once


def test_controls_that_are_moved_at_once_are_drawn_one_after_the_other(explorer):
    meet, met = threading.Barrier(2), []

    def slow(state):  # JupyterLab hands the messages of different controls to different threads
        if state["slope"] > 1:
            with contextlib.suppress(threading.BrokenBarrierError):
                meet.wait(timeout=0.2)
                met.append(state)
        return "<p></p>"

    live = replace(explorer, draw=slow).widget().explorer
    threads = [threading.Thread(target=live.changed, args=("slope", slope)) for slope in (2.0, 3.0)]
    for step in (threading.Thread.start, threading.Thread.join):
        for thread in threads:
            step(thread)
    assert met == []


def test_a_page_without_a_kernel_names_the_goals(explorer, page):
    replace(explorer, goals=(Goal("steep & high", bool),)).live()
    assert page[0]["text/plain"].endswith("Can you get there? ○ steep & high")
    assert page[0]["text/html"].endswith("<p>Can you get there? ○ steep &amp; high</p>")


def test_a_page_with_a_script_holds_the_static_form_and_what_the_script_needs(explorer, page):
    scripted = replace(
        explorer, script="softmax", config={"start": {"scores": (1, 2)}}, goals=(Goal("a *b* & c", bool),)
    )
    scripted.live()
    scripted.live()
    text = page[0]["text/html"]
    found = re.fullmatch(
        r'<div class="course-playground" data-playground="softmax" data-config="([^"]*)">(.*)</div>', text
    )
    wanted = {"title": "A demo", "goals": ["a b & c"], "start": {"scores": [1, 2]}}
    assert json.loads(html.unescape(found[1])) == wanted
    replace(explorer, goals=scripted.goals).live()
    assert found[2] == page[2]["text/html"] and page[1]["text/html"] == text
    assert page[0]["text/plain"] == page[2]["text/plain"]
    widget = scripted.widget()
    assert isinstance(widget, ScriptWidget) and json.loads(json.dumps(widget.config)) == wanted


def test_only_the_presets_that_are_asked_for_have_a_button():
    grid = PaintGrid(
        name="g", label="Grid", value=GRID, rows="ab", columns="cd", square=lambda *_: "", buttons=("diagonal",),
        presets={"diagonal": GRID, "secret": ((False, False), (False, False))},
    )  # fmt: skip
    box, _ = grid.build(lambda value: None)
    assert [b.description for b in parts(box, ipywidgets.Button)] == ["diagonal"]
    assert grid.words(grid.presets["secret"]) == "secret"


def test_the_page_without_a_kernel_shows_the_first_frame(explorer, page):
    explorer.live()
    explorer.live()
    assert explorer.frame().html in page[0]["text/html"]
    assert page[0][WIDGET_VIEW] != page[1].pop(WIDGET_VIEW)
    page[0].pop(WIDGET_VIEW)
    assert page[0] == page[1]
    assert page[0]["text/plain"].splitlines() == [
        "A demo",
        "  Slope: 1.00",
        "  Size: 1.00",
        "  Way: down",
        "  Text: good",
        "  Grid: diagonal",
        "Slope 1.0, 2 squares.",
    ]


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"slop": 1}, "no control 'slop'; it has slope, size"),
        ({"slope": 5}, "Slope must lie between 0 and 4, but got 5"),
        ({"size": 0.01}, "Size must lie between 0.1 and 10, but got 0.01"),
        ({"way": 0}, "Way must be one of 1, -1, but got 0"),
        ({"text": 3}, "Text must be text, but got 3"),
        ({"grid": ((True,),)}, r"Grid must have rows of \[2, 2\] squares, but got \[1\]"),
    ],
)
def test_a_state_that_cannot_be_is_refused(explorer, state, sentence):
    with pytest.raises(ValueError, match=sentence):
        explorer.frame(state)


def test_two_controls_of_one_name_are_refused():
    twice = [TextBox(name="t", label="T", value="") for _ in range(2)]
    with pytest.raises(ValueError, match="different names"):
        Explorer(name="x", title="x", controls=twice, draw=str, alt=str)


def test_a_page_without_a_kernel_steps_through_the_combinations(explorer, page):
    stepped = replace(explorer, steps={"slope": (1.0, 2.0), "text": ("good", "better", "best")})
    stepped.live()
    text = page[0]["text/html"]
    assert text.count("<details") == 6 and text.count('<details data-at="0 0" open>') == 1 == text.count(" open>")
    assert "<summary>Slope: 2.00; Text: best</summary>" in text
    assert stepped.frame(stepped.state(slope=2.0, text="best")).html in text


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ({"slope": (2.0, 3.0)}, "steps of 'slope' must hold the value it starts with, 1.0"),
        ({"slope": (1.0, 9.0)}, "Slope must lie between 0 and 4"),
    ],
)
def test_steps_that_cannot_be_are_refused(explorer, steps, sentence):
    with pytest.raises(ValueError, match=sentence):
        replace(explorer, steps=steps)


def test_controls_beside_a_drawing_are_as_wide_as_their_column(explorer):
    sliders = {
        beside: replace(explorer, beside=beside).widget().children[1].children[0].children[0]
        for beside in (True, False)
    }
    assert sliders[True].description == sliders[False].description == "Slope"
    assert sliders[True].layout.width == "98%" and sliders[False].layout.width == "29em"
