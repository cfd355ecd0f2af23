"""The figures of lesson 00, and the landscape and the map that it draws with them."""

import importlib
import json

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from torch import nn

from course_lib.classroom.session import LESSONS
from course_lib.lessons.lesson_00 import diagrams, landscape
from course_lib.lessons.lesson_00 import map as content
from course_lib.lessons.lesson_00.landscape import Era
from course_lib.lessons.lesson_00.words import Measured
from course_lib.viz.style import PALETTE
from tests.lessons.answered import NOTEBOOKS

WEIGHTS = [np.array([[1.0, -2.0], [0.5, 0.25], [-0.1, 4.0]]), np.array([[3.0, -1.0, 0.5]])]


def wiring(stages=None, inputs="ab", outputs=("yes",)):
    stages = {"before": WEIGHTS, "after": [2 * w for w in WEIGHTS]} if stages is None else stages
    return landscape.wiring(stages, inputs=inputs, outputs=outputs)


def wires(axes):
    return [line for line in axes.lines if len(line.get_xdata()) == 2]


def measured(operations=1000, accuracy=0.5, parameters=100):
    costs = {"parameters": parameters, "operations": operations}
    return Measured(model=nn.Identity(), reach=0, accuracy=accuracy, new_pairs=0.5, **costs)


def course_map():
    return landscape.course_map(LESSONS, content.PLACES, content.BUILDS_ON)


def takeovers():
    return landscape.takeovers(content.LANDSCAPE, first=2004, last=2026)


def price(predicted=None):
    better = [measured(), measured(operations=5000, accuracy=0.9, parameters=12_345)]
    return landscape.price_of_accuracy({"alone": [measured(), measured(operations=2000)], "near": better}, predicted)


def letters_at_work():
    weights, bars = [np.ones((3, 2)), np.ones((2, 3))], np.array([[0.5, 1.0], [0.25, 0.0]])
    return landscape.letters_at_work(weights, bars, inputs="ab", outputs=("yes", "no"), title="95 % right")


def drawn(fig):
    fig.draw_without_rendering()
    return fig


FIGURES = {
    "wiring": wiring,
    "belief_bars": lambda: landscape.belief_bars(["English", "French"], [0.93, 0.07]),
    "letters_at_work": letters_at_work,
    "price_of_accuracy": price,
    "takeovers": takeovers,
    "course_map": course_map,
    "network": lambda: diagrams.network()[0],
}


@pytest.mark.parametrize("name", FIGURES)
def test_it_fits_on_a_slide_with_type_that_is_large_enough_for_a_hall_and_no_text_cut_off(name):
    fig = drawn(FIGURES[name]())
    width, height = fig.get_size_inches() * fig.dpi
    assert width <= 1225 and height <= 600
    texts = [t for axes in fig.axes for t in axes.findobj(lambda a: hasattr(a, "get_fontsize")) if t.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 12
    for text in (text for axes in fig.axes for text in axes.texts):
        box = text.get_window_extent()
        assert -1 <= box.x0 and box.x1 <= width + 1, text.get_text()
        assert -1 <= box.y0 and box.y1 <= height + 1, text.get_text()


def test_each_stage_of_training_draws_every_wire_once_on_one_scale_thicker_for_a_larger_weight():
    fig = wiring()
    assert [axes.get_title(loc="left") for axes in fig.axes] == ["before", "after"]
    before, after = (sorted(line.get_linewidth() for line in wires(axes)) for axes in fig.axes)
    assert before == sorted(0.4 + 6 * abs(w) / 8 for matrix in WEIGHTS for w in matrix.flat)
    assert all(a > b for a, b in zip(after, before, strict=True))


def test_a_negative_weight_is_told_by_dashes_and_by_colour():
    lines = wires(wiring().axes[0])
    dashed = [line for line in lines if line.get_linestyle() != "-"]
    assert len(dashed) == sum((matrix < 0).sum() for matrix in WEIGHTS)
    assert {line.get_color() for line in dashed}.isdisjoint(line.get_color() for line in lines if line not in dashed)


TWO_ERAS = {"vision": [Era(name="a", since=2015), Era(name="b", since=2012)]}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: wiring({"before": WEIGHTS, "after": [WEIGHTS[0], np.ones((2, 3))]}), r"same.*\(1, 3\).*\(2, 3\)"),
        (lambda: wiring(inputs="abc"), "2 inputs and 1 outputs"),
        (lambda: wiring(outputs=("yes", "no")), "2 inputs and 1 outputs"),
        (lambda: landscape.takeovers(TWO_ERAS, first=2004, last=2026), r"'vision'.*\[2015, 2012\]"),
        (lambda: landscape.course_map({"a": "A", "b": "B"}, {"a": (0, 0)}, {}), "look at b"),
        (
            lambda: landscape.course_map({"a": "A", "b": "B"}, {"a": (0, 0), "b": (1, 0)}, {"b": ["c"]}),
            "look at c",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_belief_bars_are_as_long_as_the_probabilities():
    axes = landscape.belief_bars(["a", "b"], [0.7, 0.3]).axes[0]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([70, 30])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert axes.patches[0].get_y() > axes.patches[1].get_y()


def test_models_stand_at_their_operations_and_percent_and_the_prediction_above_the_largest_that_sees_a_word_alone():
    axes = price(predicted=82).axes[0]
    alone, near, *_, star = axes.lines
    assert list(near.get_xdata()) == [1000, 5000] and list(near.get_ydata()) == [50, 90]
    assert near.get_linewidth() > alone.get_linewidth()
    assert "12,345" in [text.get_text() for text in axes.texts]
    assert (list(star.get_xdata()), list(star.get_ydata())) == ([2000], [82]) and len(price().axes[0].lines) == 2


def test_each_letter_has_a_bar_in_either_language():
    assert [bar.get_height() for bar in letters_at_work().axes[1].patches] == [0.5, 1.0, 0.25, 0.0]


def test_an_era_ends_where_the_next_begins_and_the_last_at_the_edge():
    eras = [Era(name="old", since=1990), Era(name="new", since=2012), Era(name="now", since=2018, transformer=True)]
    axes = landscape.takeovers({"vision": eras}, first=2008, last=2025).axes[0]
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    assert ends == [(2008, 2012), (2012, 2018), (2018, 2025)]
    assert [text.get_text() for text in axes.texts] == ["◀ 1990 old", "2012 new", "2018 now"]


def test_only_transformers_are_dark_as_the_legend_says_and_each_name_fits_into_its_bar():
    fig = drawn(takeovers())
    axes, (legend,) = fig.axes[0], fig.legends
    dark = [to_hex(bar.get_facecolor()) == PALETTE["blue"].lower() for bar in axes.patches]
    assert dark == [era.transformer for eras in content.LANDSCAPE.values() for era in eras]
    assert [text.get_text() for text in legend.get_texts()] == ["what came before", "Transformer"]
    assert to_hex(legend.legend_handles[-1].get_facecolor()) == PALETTE["blue"].lower()
    for bar, text in zip(axes.patches, axes.texts, strict=True):
        assert text.get_window_extent().x1 <= bar.get_window_extent().x1, text.get_text()


def test_all_communities_but_reinforcement_learning_end_with_a_transformer_as_the_page_says():
    last = {community: eras[-1].transformer for community, eras in content.LANDSCAPE.items()}
    assert [community for community, transformer in last.items() if not transformer] == ["reinforcement\nlearning"]
    assert not any(era.transformer for eras in content.LANDSCAPE.values() for era in eras[:-1])


def test_the_map_shows_each_lesson_once_in_its_box_and_an_arrow_for_each_dependence_through_no_other():
    axes = drawn(course_map()).axes[0]
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    arrows = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    assert len(boxes) == len(LESSONS) == 18
    assert len(arrows) == sum(map(len, content.BUILDS_ON.values()))
    written = [text.get_text().replace("\n", " ") for text in axes.texts]
    assert written == [rf"$\bf{{{number}}}$ {title}" for number, title in LESSONS.items()]
    for text, box in zip(axes.texts, (box.get_window_extent() for box in boxes), strict=True):
        extent = text.get_window_extent()
        assert box.x0 <= extent.x0 and extent.x1 <= box.x1, text.get_text()
        assert box.y0 <= extent.y0 and extent.y1 <= box.y1, text.get_text()
    corners = [box.get_bbox() for box in boxes]
    for arrow in arrows:
        (x0, y0), (x1, y1) = arrow._posA_posB
        for t in np.linspace(0, 1, 200):
            x, y = x0 + t * (x1 - x0), y0 + t * (y1 - y0)
            assert not any(box.x0 < x < box.x1 and box.y0 < y < box.y1 for box in corners), (x0, y0, x1, y1)


def test_every_lesson_builds_on_earlier_ones_and_comes_from_the_start():
    assert set(content.PLACES) == set(content.TEACHES) == set(LESSONS)
    assert set(content.BUILDS_ON) == set(LESSONS) - {"00"}
    for name, before in content.BUILDS_ON.items():
        assert before and all(earlier < name for earlier in before), name


def test_lessons_in_the_folder_are_links(tmp_path, monkeypatch):
    table = content.table_of_lessons({"05": "05_attention.ipynb"}, {"05": (193, 24), "06": (180, 0)})
    assert table.count("<tr>") == 19 and table.count("<a ") == 1
    assert '<a href="05_attention.ipynb">05 Attention</a></td>' in table
    assert ">193 + 24</td>" in table and ">180</td>" in table
    (tmp_path / "notebooks").mkdir()
    for name in ("06_transformer.ipynb", "00_start_here.ipynb", "notes.ipynb"):
        (tmp_path / "notebooks" / name).touch()
    monkeypatch.setattr(content, "course_folder", lambda: tmp_path)
    assert content.lessons_here() == {"00": "00_start_here.ipynb", "06": "06_transformer.ipynb"}


def test_the_minutes_of_the_lessons_are_those_of_their_pages_and_the_hours_that_are_told_their_sum():
    minutes = content.lesson_minutes()
    assert list(minutes) == list(LESSONS)
    for number, (main, optional) in minutes.items():
        sections = importlib.import_module(f"course_lib.lessons.lesson_{number}").page.sections
        assert main == sum(one.minutes for one in sections if not one.optional)
        assert optional == sum(one.minutes for one in sections if one.optional)
    main, optional = (round(sum(column) / 60) for column in zip(*minutes.values(), strict=True))
    readme = (NOTEBOOKS.parent / "README.md").read_text(encoding="utf-8")
    assert f"All eighteen take {main} hours, {optional} more with what is optional" in readme
    assert f"take {main} hours, and {optional} more" in (NOTEBOOKS / "00_start_here.ipynb").read_text("utf-8")


def test_each_term_of_the_glossary_is_used_by_its_lesson_and_comes_once():
    terms = content.read_glossary()
    assert len({term for term, *_ in terms}) == len(terms) >= 30
    for term, meaning, number in terms:
        (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = " ".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown").lower()
        assert all(word in text for word in term.lower().split(", ")), (term, number)
        assert len(meaning.split()) <= 20, term


def test_a_term_leads_to_its_lesson_where_there_is_one():
    terms = [("a < b", "one & two", "05"), ("gate", "0 to 1", "04")]
    table = content.table_of_terms({"05": "05_attention.ipynb"}, terms)
    assert '<a href="05_attention.ipynb">05 Attention</a>' in table and table.count("<a ") == 1
    assert "<strong>a &lt; b</strong>" in table and "one &amp; two" in table and ">04 LSTM and GRU</td>" in table
