"""The figures of lesson 00, and the landscape and the map that it draws with them."""

import dataclasses

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgba
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from course_lib.classroom.session import LESSONS
from course_lib.lessons.lesson_00 import landscape
from course_lib.lessons.lesson_00 import questions as content
from course_lib.lessons.lesson_00.landscape import Bias, Era, Event, Measured
from course_lib.viz.style import PALETTE, STYLE


@pytest.fixture(autouse=True)
def course_style():
    """The style that `lesson` sets for the whole notebook."""
    with mpl.rc_context(dict(STYLE)):
        yield


WEIGHTS = [np.array([[1.0, -2.0], [0.5, 0.25], [-0.1, 4.0]]), np.array([[3.0, -1.0, 0.5]])]


def wiring(stages=None, inputs="ab", outputs=("yes",)):
    stages = {"before": WEIGHTS, "after": [2 * w for w in WEIGHTS]} if stages is None else stages
    return landscape.wiring(stages, inputs=inputs, outputs=outputs)


def wires(axes):
    return [line for line in axes.lines if len(line.get_xdata()) == 2]


def measured(**changes):
    values = {"width": 4, "parameters": 100, "operations": 1000, "seconds": 1.0, "accuracy": 0.5}
    return Measured(**values | changes)


def course_map(there=("00",)):
    return landscape.course_map(LESSONS, content.PLACES, content.BUILDS_ON, there=there)


def drawn(fig):
    fig.draw_without_rendering()
    return fig


FIGURES = {
    "wiring": wiring,
    "belief_bars": lambda: landscape.belief_bars(["English", "French"], [0.93, 0.07]),
    "price_of_accuracy": lambda: landscape.price_of_accuracy({"small": [measured(), measured(operations=2000)]}),
    "falling_bias": lambda: landscape.falling_bias(content.BIASES),
    "bitter_lesson": lambda: landscape.bitter_lesson(content.BIASES),
    "takeovers": lambda: landscape.takeovers(content.LANDSCAPE, first=2008, last=2025),
    "waves": lambda: landscape.waves(content.WAVES, first=2011, last=2022),
    "course_map": course_map,
}


@pytest.mark.parametrize("name", FIGURES)
def test_type_is_large_enough_for_a_hall(name):
    fig = drawn(FIGURES[name]())
    texts = [t for axes in fig.axes for t in axes.findobj(lambda a: hasattr(a, "get_fontsize")) if t.get_text()]
    assert texts
    assert min(text.get_fontsize() for text in texts) >= 12


@pytest.mark.parametrize("name", FIGURES)
def test_it_fits_on_a_slide_without_being_shrunk(name):
    fig = FIGURES[name]()
    width, height = fig.get_size_inches() * fig.dpi
    assert width <= 1225 and height <= 600


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_is_cut_off(name):
    fig = drawn(FIGURES[name]())
    width, height = fig.get_size_inches() * fig.dpi
    for axes in fig.axes:
        for text in axes.texts:
            box = text.get_window_extent()
            assert -1 <= box.x0 and box.x1 <= width + 1, text.get_text()
            assert -1 <= box.y0 and box.y1 <= height + 1, text.get_text()


def test_each_stage_of_training_draws_every_wire_once():
    fig = wiring()
    assert [axes.get_title(loc="left") for axes in fig.axes] == ["before", "after"]
    assert [len(wires(axes)) for axes in fig.axes] == [9, 9]


def test_a_larger_weight_is_a_thicker_wire_on_one_scale_for_all_stages():
    before, after = (sorted(line.get_linewidth() for line in wires(axes)) for axes in wiring().axes)
    assert before == sorted(0.4 + 6 * abs(w) / 8 for matrix in WEIGHTS for w in matrix.flat)
    assert all(a > b for a, b in zip(after, before, strict=True))


def test_a_negative_weight_is_told_by_dashes_and_by_colour():
    lines = wires(wiring().axes[0])
    dashed = [line for line in lines if line.get_linestyle() != "-"]
    assert len(dashed) == sum((matrix < 0).sum() for matrix in WEIGHTS)
    assert {line.get_color() for line in dashed}.isdisjoint(line.get_color() for line in lines if line not in dashed)


def test_stages_with_different_wires_are_refused():
    with pytest.raises(ValueError, match=r"same wires.*\(1, 3\).*\(2, 3\)"):
        wiring({"before": WEIGHTS, "after": [WEIGHTS[0], np.ones((2, 3))]})


@pytest.mark.parametrize("names", [{"inputs": "abc"}, {"outputs": ("yes", "no")}])
def test_names_that_do_not_fit_the_ends_of_the_wires_are_refused(names):
    with pytest.raises(ValueError, match="2 inputs and 1 outputs"):
        wiring(**names)


def test_belief_bars_are_as_long_as_the_shares():
    axes = landscape.belief_bars(["a", "b", "c"], [0.7, 0.25, 0.05]).axes[0]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([70, 25, 5])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]
    assert axes.patches[0].get_y() > axes.patches[1].get_y()


def test_models_stand_at_their_operations_and_percent_with_their_parameters():
    models = [measured(), measured(operations=5000, accuracy=0.9, parameters=12_345)]
    axes = landscape.price_of_accuracy({"one": models[:1], "two": models}).axes[0]
    assert [list(line.get_xdata()) for line in axes.lines] == [[1000], [1000, 5000]]
    assert list(axes.lines[1].get_ydata()) == [50, 90]
    assert "12,345 parameters" in [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("name", ["falling_bias", "bitter_lesson"])
def test_a_schematic_says_that_it_is_not_measured(name):
    [axes] = FIGURES[name]().axes
    assert axes.get_title(loc="right") == "schematic, not measured"


def test_what_people_build_in_falls_and_the_curve_of_the_least_built_in_ends_highest():
    shares = [kind.built_in for kind in content.BIASES]
    assert shares == sorted(shares, reverse=True)
    curves = [line.get_ydata() for line in landscape.bitter_lesson(content.BIASES).axes[0].lines]
    starts, ends = [curve[0] for curve in curves], [curve[-1] for curve in curves]
    assert starts == sorted(starts, reverse=True) and ends == sorted(ends)


def test_bars_of_built_in_and_learned_make_a_whole():
    kinds = [Bias(name="a", built_in=0.3, by_people="x", from_data="y")]
    built_in, learned = landscape.falling_bias(kinds).axes[0].patches
    assert (built_in.get_x(), built_in.get_width()) == (0, 0.3)
    assert (learned.get_x(), learned.get_width()) == (0.3, 0.7)


def test_an_era_ends_where_the_next_begins_and_the_last_at_the_edge():
    eras = [Era(name="old", since=1990), Era(name="new", since=2012), Era(name="now", since=2018, transformer=True)]
    axes = landscape.takeovers({"vision": eras}, first=2008, last=2025).axes[0]
    assert [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches] == [
        (2008, 2012),
        (2012, 2018),
        (2018, 2025),
    ]
    assert [text.get_text() for text in axes.texts] == ["old\n◀ 1990", "new\n2012", "now\n2018"]


def test_only_transformers_are_dark():
    axes = landscape.takeovers(content.LANDSCAPE, first=2008, last=2025).axes[0]
    dark = [to_hex(bar.get_facecolor()) == PALETTE["blue"].lower() for bar in axes.patches]
    assert dark == [era.transformer for eras in content.LANDSCAPE.values() for era in eras]


def test_eras_out_of_order_are_refused():
    with pytest.raises(ValueError, match=r"'vision'.*\[2015, 2012\]"):
        landscape.takeovers({"vision": [Era(name="a", since=2015), Era(name="b", since=2012)]}, first=2008, last=2025)


def test_the_name_of_an_era_fits_into_its_bar():
    axes = drawn(landscape.takeovers(content.LANDSCAPE, first=2008, last=2025)).axes[0]
    for bar, text in zip(axes.patches, axes.texts, strict=True):
        assert text.get_window_extent().x1 <= bar.get_window_extent().x1, text.get_text()


def test_each_community_of_the_landscape_ends_with_a_transformer():
    for community, eras in content.LANDSCAPE.items():
        assert [era.transformer for era in eras] == [False] * (len(eras) - 1) + [True], community


def test_the_colours_of_the_takeovers_are_named():
    fig = landscape.takeovers(content.LANDSCAPE, first=2008, last=2025)
    (legend,) = fig.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["what came before", "Transformer"]
    assert to_hex(legend.legend_handles[-1].get_facecolor()) == PALETTE["blue"].lower()


def test_only_years_that_are_drawn_to_scale_have_a_tick_and_early_events_lie_beyond_the_break():
    axes = drawn(landscape.waves(content.WAVES, first=2011, last=2022)).axes[0]
    assert list(axes.get_xticks()) == list(range(2011, 2023))
    (early,) = [line for line in axes.lines if line.get_marker() == "o" and line.get_xdata()[0] < 2011]
    assert axes.get_xlim()[0] < early.get_xdata()[0] < axes.spines["bottom"].get_bounds()[0] < 2011
    lanes = [list(part.get_segments()[0][:, 0]) for part in axes.collections]
    assert lanes == [pytest.approx(ends) for ends in ([2010, 2022.6], [2008.2, 2009.88], [2010, 2022.6])]


def test_without_early_events_there_is_no_break():
    axes = landscape.waves({"lane": [Event(name="then", year=2014)]}, first=2011, last=2022).axes[0]
    assert axes.get_xlim() == pytest.approx((2010.4, 2022.6)) and len(axes.lines) == len(axes.collections) == 1


def test_events_are_written_with_their_years_and_early_ones_stand_apart():
    events = [Event(name="first", year=1989), Event(name="then", year=2014, until=2015, below=True)]
    axes = landscape.waves({"lane": events}, first=2011, last=2022).axes[0]
    notes = {text.get_text(): text.get_position() for text in axes.texts}
    assert notes["first\n1989"][0] < 2010 and notes["first\n1989"][1] > 0
    assert notes["then\n2014-2015"][0] == 2014.5 and notes["then\n2014-2015"][1] < 0


def test_notes_of_events_do_not_cover_each_other():
    axes = drawn(landscape.waves(content.WAVES, first=2011, last=2022)).axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_the_map_shows_each_lesson_once_and_an_arrow_for_each_dependence():
    axes = course_map().axes[0]
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    arrows = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    assert len(boxes) == len(LESSONS) == 16
    assert len(arrows) == sum(map(len, content.BUILDS_ON.values()))
    written = [text.get_text().replace("\n", " ") for text in axes.texts]
    assert all(number in written and title in written for number, title in LESSONS.items())


def test_lessons_that_are_there_have_a_solid_frame_and_those_to_come_a_dashed_one():
    axes = course_map(there=("00", "05")).axes[0]
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    solid = {name for name, box in zip(LESSONS, boxes, strict=True) if box.get_linestyle() in ("-", "solid")}
    filled = {name for name, box in zip(LESSONS, boxes, strict=True) if box.get_facecolor() != to_rgba("white")}
    assert solid == filled == {"00", "05"}


def test_no_arrow_of_the_map_runs_through_a_lesson():
    axes = drawn(course_map()).axes[0]
    boxes = [p.get_bbox() for p in axes.patches if isinstance(p, FancyBboxPatch)]
    for arrow in (p for p in axes.patches if isinstance(p, FancyArrowPatch)):
        (x0, y0), (x1, y1) = arrow._posA_posB
        for t in np.linspace(0, 1, 200):
            x, y = x0 + t * (x1 - x0), y0 + t * (y1 - y0)
            assert not any(box.x0 < x < box.x1 and box.y0 < y < box.y1 for box in boxes), (x0, y0, x1, y1)


def test_titles_on_the_map_fit_into_their_boxes():
    axes = drawn(course_map()).axes[0]
    boxes = [patch.get_window_extent() for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    for text in axes.texts:
        if text.get_text().replace("\n", " ") in LESSONS.values():
            extent = text.get_window_extent()
            assert any(b.x0 <= extent.x0 and extent.x1 <= b.x1 and b.y0 <= extent.y0 for b in boxes), text.get_text()


@pytest.mark.parametrize(
    ("places", "builds_on", "wrong"),
    [({"a": (0, 0)}, {}, "b"), ({"a": (0, 0), "b": (1, 0)}, {"b": ["c"]}, "c")],
)
def test_a_lesson_without_a_place_or_a_title_is_refused(places, builds_on, wrong):
    with pytest.raises(ValueError, match=f"look at {wrong}"):
        landscape.course_map({"a": "A", "b": "B"}, places, builds_on, there=[])


def test_every_lesson_builds_on_earlier_ones_and_comes_from_the_start():
    assert set(content.PLACES) == set(content.TEACHES) == set(LESSONS)
    assert set(content.BUILDS_ON) == set(LESSONS) - {"00"}
    for name, before in content.BUILDS_ON.items():
        assert before and all(earlier < name for earlier in before), name


def test_measurements_cannot_be_changed_afterwards():
    with pytest.raises(dataclasses.FrozenInstanceError):
        measured().accuracy = 1.0
