"""A drawing is prepared in JavaScript as the playgrounds of lessons 11, 13 and 14 prepare it in Python."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_lib.classroom.widgets import as_digit
from course_lib.lessons.lesson_11.playground import EXAMPLES, placed
from tests.engine.modules import relative_error

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def drawings():
    """Digits of several sizes and places, one of dark ink on bright paper, a stroke at the edge, and a single pixel."""
    digits = [placed(*where) for where in EXAMPLES.values()]
    stroke, dot = np.zeros((2, 56, 56), np.uint8)
    stroke[10:40, :4] = 255
    dot[55, 55] = 255
    return [*digits, 255 - digits[0], stroke, dot]


def as_pixels(drawing):
    return torch.from_numpy(drawing.copy()).float().flatten() / 255


def test_drawings_become_the_digits_of_python(engine, drawings):
    found = engine.run(
        "return given.map((drawing) => Array.from(asDigit(Float32Array.from(drawing))));",
        [as_pixels(drawing).tolist() for drawing in drawings],
    )
    for drawing, digit in zip(drawings, found, strict=True):
        assert relative_error(digit, as_digit(torch.from_numpy(drawing.copy()))) < 1e-4


def test_an_empty_pad_stays_black(engine):
    assert engine.run("return asDigit(new Float32Array(56 * 56)).every((value) => value === 0);")


@pytest.mark.parametrize("size", [28, 32, 24, 80])
def test_images_are_resized_as_by_torch(engine, drawings, size):
    image = as_pixels(drawings[0])
    found = engine.run(
        """const image = Float32Array.from(given[0]);
        return [resizeByArea, resizeSmoothly].map((resize) => Array.from(resize(image, given[1])));""",
        [image.tolist(), size],
    )
    image = image.view(1, 1, 56, 56)
    assert relative_error(found[0], F.interpolate(image, (size, size), mode="area")) < 1e-4
    smooth = F.interpolate(image, (size, size), mode="bilinear", antialias=True)
    assert relative_error(found[1], smooth) < 1e-4
