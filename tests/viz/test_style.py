"""The palette is told apart without colour vision and without colour, and read from the back row."""

import re
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

import course_lib
from course_lib.viz.style import CYCLE, GREY, LINE_STYLES, PALETTE, STYLE, figure, use_style

# Full loss of one kind of cone: Machado, Oliveira & Fernandes 2009, table 1, severity 1.0, on linear RGB.
PROTANOPIA = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
DEUTERANOPIA = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]


def linear(colour):
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast_on_white(colour):
    """The contrast ratio of WCAG 2.2."""
    return 1.05 / (linear(colour) @ [0.2126, 0.7152, 0.0722] + 0.05)


@pytest.mark.parametrize("sight", [np.eye(3), PROTANOPIA, DEUTERANOPIA])
def test_colours_differ_for_every_common_kind_of_colour_vision(sight):
    seen = {name: np.cbrt(np.clip(np.array(sight) @ linear(c), 0, 1)) for name, c in PALETTE.items()}
    assert min(np.linalg.norm(seen[a] - seen[b]) for a, b in combinations(seen, 2)) > 0.1


def test_each_line_has_a_dash_pattern_of_its_own():
    assert len(LINE_STYLES) == len(CYCLE) == len({str(style) for style in LINE_STYLES})
    _, axes = figure()
    lines = [axes.plot([0, 1])[0] for _ in CYCLE]
    assert len({(line.get_color(), str(line._dash_pattern)) for line in lines}) == len(CYCLE)


def test_secondary_text_has_the_highest_contrast_grade():
    assert contrast_on_white(GREY) >= 7


def test_no_text_is_smaller_than_twelve_points():
    sizes = [
        value for name, value in STYLE.items() if name.endswith(("size", "font.size")) and name != "lines.markersize"
    ]
    assert len(sizes) >= 7 and min(sizes) >= 12


def test_a_figure_has_the_style_whatever_was_set_before():
    with mpl.rc_context({"font.size": 5, "axes.spines.top": True, "axes.labelsize": 4}):
        fig, axes = figure(6, 3, columns=2)
        assert axes[0].xaxis.label.get_size() == 12 and not axes[0].spines["top"].get_visible()
        assert tuple(fig.get_size_inches()) == (6, 3) and len(axes) == 2
        assert mpl.rcParams["font.size"] == 5


@pytest.mark.parametrize("size", [(8, 4), (12.2, 4.6), (9, 5.4), (4, 3)])
def test_type_has_24_pixels_on_a_slide(size):
    fig, _ = figure(*size)
    pixels = fig.get_size_inches() * fig.dpi
    assert pixels == pytest.approx(np.multiply(size, 100))  # as large on a page as was asked for
    grown = min(1184 / pixels[0], 585 / pixels[1], 1.5)  # deck.css
    assert 24 <= grown * fig.dpi * 12 / 72 < 25.1  # and no larger, so that there is room for what is drawn


def test_no_figure_asks_for_smaller_type():
    sources = Path(course_lib.__file__).parent.rglob("*.py")
    sizes = {
        float(size) for file in sources for size in re.findall(r"(?:font|label)size=(\d+\.?\d*)", file.read_text())
    }
    assert sizes and min(sizes) >= 12


def test_a_figure_is_not_registered_with_pyplot():
    before = plt.get_fignums()
    figure()
    assert plt.get_fignums() == before


def test_the_style_can_be_set_for_all_figures():
    with mpl.rc_context({"font.size": 5}):
        use_style()
        assert mpl.rcParams["font.size"] == STYLE["font.size"]


@pytest.mark.parametrize("wrong", [{"width": 0}, {"height": -1}, {"rows": 0}, {"columns": 0}])
def test_a_figure_without_size_is_refused(wrong):
    with pytest.raises(ValueError, match="positive size"):
        figure(**wrong)
