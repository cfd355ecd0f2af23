"""Pixels become images of HTML that are large, not smoothed, and said in words."""

import base64
import io
import re

import numpy as np
from PIL import Image

from course_lib.classroom.widgets import in_rows, pixel_image


def test_pixels_are_large_squares_of_their_own_colours():
    pixels = np.array([[0, 80, 255]], np.uint8)
    made = pixel_image(pixels, 30, "a <bar>")
    assert 'alt="a &lt;bar&gt;"' in made and 'width="30" height="10"' in made
    data = re.search(r"base64,([^\"]+)", made)[1]
    np.testing.assert_array_equal(Image.open(io.BytesIO(base64.b64decode(data))), pixels.repeat(10, 0).repeat(10, 1))


def test_colours_stay_colours():
    assert "data:image/png" in pixel_image(np.full((2, 2, 3), 7, np.uint8), 8, "brown")


def test_images_stand_in_rows_below_their_caption():
    made = in_rows([["a", "b"], ["c"]], "Two<br>rows")
    assert re.sub(r" style=\"[^\"]*\"", "", made).endswith(
        "<div>Two<br>rows</div><table><tbody><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></tbody></table></div>"
    )
