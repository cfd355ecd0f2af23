"""A drawing that is shaken stays the same drawing."""

import numpy as np

from course_lib.classroom.widgets import shaken


def centre(drawing):
    """Row and column of the centre of mass, in pixels, and the ink."""
    weights = drawing.astype(float)
    rows, columns = np.indices(drawing.shape)
    return np.array([(weights * rows).sum(), (weights * columns).sum()]) / weights.sum(), weights.sum()


def test_shaking_moves_a_drawing_a_little_and_keeps_it_whole():
    drawing = np.zeros((28, 28), np.uint8)
    drawing[6:22, 12:16] = 255  # an upright stroke in the middle
    still = shaken(drawing, np.random.default_rng(0), degrees=0, scale=0, slant=0, shift=0)
    assert np.array_equal(still, drawing)
    (middle, ink), made = centre(drawing), [shaken(drawing, np.random.default_rng(seed)) for seed in range(20)]
    assert len({one.tobytes() for one in made}) == 20
    for place, weight in map(centre, made):
        assert np.abs(place - middle).max() < 1.5 + 0.5 and 0.8 < weight / ink < 1.25
