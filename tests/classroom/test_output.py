"""Displays carry every form, figures carry alt text, and nothing random is compared."""

import base64
import configparser
import io
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import course_lib.classroom.output as output
from course_lib.classroom import show
from course_lib.classroom.output import picture_html
from course_lib.viz.style import figure


def drawn():
    fig, axes = figure(4, 3)
    axes.plot([1, 2, 4])
    return fig


def test_a_figure_is_an_html_image_with_alt_text_and_says_it_in_plain_text(page):
    show(drawn(), alt='Rises <fast> "now"')
    assert set(page[0]) == {"text/plain", "text/html"}
    assert page[0]["text/plain"] == 'Figure: Rises <fast> "now"'
    assert 'alt="Rises &lt;fast&gt; &quot;now&quot;"' in page[0]["text/html"]
    assert "background:#fff" in page[0]["text/html"]  # a transparent figure can be read on a dark page, too


def test_a_figure_of_pyplot_is_closed_so_that_it_does_not_show_twice(page):
    fig = plt.figure()
    show(fig, alt="Empty.")
    assert not plt.fignum_exists(fig.number)


@pytest.mark.parametrize("alt", ["", "  \n "])
def test_a_figure_without_alt_text_is_refused(page, alt):
    with pytest.raises(ValueError, match="needs alt text"):
        show(drawn(), alt=alt)


def test_the_same_figure_twice_is_the_same_text(page):
    show(drawn(), alt="A line.")
    show(drawn(), alt="A line.")
    assert page[0] == page[1]


def test_nbval_is_told_to_leave_out_what_differs_between_machines_and_nothing_else(page):
    rules = configparser.ConfigParser()
    with open(output.__file__.replace("output.py", "nbval_sanitize.cfg"), encoding="utf-8") as file:
        rules.read_file(file)
    pixels, varying, computed = (rules[name] for name in rules.sections())
    assert pixels["regex"] == output.PIXELS.pattern and varying["regex"] == output.VARYING.pattern
    show(drawn(), alt="A line.")
    left = re.sub(pixels["regex"], pixels["replace"], page[0]["text/html"])
    assert re.search(r'<img alt="A line\." .*src="data:image/png;base64,PIXELS">$', left)
    playground = """<div class="course-playground" data-config="{&quot;w&quot;: 0.5}"><p>prepared</p></div>"""
    assert re.sub(computed["regex"], "", playground) == '<div class="course-playground" ><p>prepared</p></div>'
    text = f"<td>yours</td><td>{output.varies('86.6')}</td><td>{output.varies('<b>88</b>')}</td><td>99.7</td>"
    assert re.sub(varying["regex"], varying["replace"], text).count("VARIES") == 2
    assert re.sub(varying["regex"], "", text) == "<td>yours</td><td></td><td></td><td>99.7</td>"


def test_a_drawing_is_small_svg_and_an_image_has_twice_the_pixels():
    drawing = picture_html(drawn(), alt="A line.")
    fig = drawn()
    fig.axes[0].imshow([[0, 1]])
    pixels = picture_html(fig, alt="Two pixels.")
    assert 'class="course-drawing"' in drawing and "data:image/svg+xml;base64," in drawing
    assert picture_html(drawn(), alt="A line.") == drawing
    assert 'class="course-image"' in pixels
    for scale, found in ((2, pixels), (1, picture_html(fig, alt="Two pixels.", scale=1))):
        with Image.open(io.BytesIO(base64.b64decode(re.search(r"base64,([^\"]+)", found)[1]))) as image:
            assert f'width="{image.width // scale}" height="{image.height // scale}"' in found
            assert np.asarray(image.convert("L")).std() > 5


def test_a_drawing_is_stored_with_the_numbers_of_its_svg():
    def numbers(svg):
        return [float(number) for number in re.findall(r"\d+\.?\d*", re.sub(r"<!--.*?-->", "", svg))]

    fig, written = drawn(), io.StringIO()
    stored = base64.b64decode(re.search(r"base64,([^\"]+)", picture_html(fig, alt="A line."))[1]).decode()
    with mpl.rc_context({"svg.hashsalt": "course"}):
        fig.savefig(written, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    assert len(stored) < 0.95 * len(written.getvalue())
    assert numbers(stored) == pytest.approx(numbers(written.getvalue()), rel=0.01)  # 0.015625 scales every letter


def test_without_a_kernel_the_plain_text_is_printed(capsys):
    show(drawn(), alt="A line.")
    assert capsys.readouterr().out == "Figure: A line.\n"
