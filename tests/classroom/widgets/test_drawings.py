"""A drawing in HTML holds the numbers it was given, escaped, and lights up what belongs together."""

import re

import numpy as np
import pytest
import torch

from course_lib.classroom.widgets import heat_map, linked, token_bars

MATRIX = np.array([[0.9, 0.1], [0.25, 0.75]])


def squares(html):
    return re.findall(r'<td[^>]* title="([^"]*)" style="background-color:(#\w+);color:(#\w+)', html)


def test_each_square_has_its_number_in_words_and_text_that_can_be_read_on_it():
    html = heat_map(MATRIX, ["un", "<b>"], ["one", "two"], label="A & B")
    said, paints, texts = zip(*squares(html), strict=True)
    assert said[0] == "“un”, “one”: 0.90" and said[3] == "“&lt;b&gt;”, “two”: 0.75"
    assert "A &amp; B" in html and "<b>" not in html
    for paint, text in zip(paints, texts, strict=True):
        assert contrast(paint, text) >= 4.5


def contrast(one, other):
    def luminance(colour):
        parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_can_be_read_on_every_shade():
    shades = heat_map(np.linspace(0, 1, 101)[None], ["row"], [str(i) for i in range(101)], label="Shades")
    assert min(contrast(paint, text) for _, paint, text in squares(shades)) >= 4.5


def test_marks_are_rings_with_a_word_and_hidden_squares_are_crosses():
    hidden = np.array([[False, True], [False, False]])
    html = heat_map(torch.tensor(MATRIX), ["un", "deux"], ["one", "two"], label="x", marks={(1, 0)}, hidden=hidden)
    assert html.count("border-radius:50%") == 1 and "“deux”, “one”: 0.25 (gold)" in html
    assert "“un”, “two”: hidden" in html and html.count("×") == 1


def test_a_row_lights_up_its_columns_by_their_shares():
    html = linked("<p class='row-0'>x</p>", MATRIX)
    name = re.search(r'<div class="(linked-\w+)">', html)[1]
    assert f".{name}:has(.row-0:is(:hover,:focus,:focus-within)){{--light-0:0.90;--light-1:0.10}}" in html
    assert html == linked("<p class='row-0'>x</p>", MATRIX) != linked("<p class='row-0'>x</p>", MATRIX.T)


def test_words_that_do_not_fit_the_matrix_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 2\), but there are 1 rows and 2 columns"):
        heat_map(MATRIX, ["un"], ["one", "two"], label="x")


def test_bars_are_as_long_as_their_chances_and_blanks_can_be_seen():
    html = token_bars([(" the", 0.5), ("\n", 0.031), ("<s>", 0)], label="Next token")
    assert re.findall(r"<code>(.*?)</code>", html) == ["␣the", "⏎", "&lt;s&gt;"]
    assert re.findall(r"width:([\d.]+)%", html) == ["50.0", "3.1", "0.0"]
    assert re.findall(r">([\d.]+%)<", html) == ["50.0%", "3.1%", "0.0%"]
