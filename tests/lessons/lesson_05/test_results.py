import numpy as np
import pytest

from course_lib.lessons.lesson_05 import results


def test_the_largest_gradients_have_their_share_of_the_squares():
    assert results.share_of_largest(np.ones(40)) == pytest.approx(0.05)
    assert results.share_of_largest(np.array([3.0] + [1.0] * 19)) == pytest.approx(9 / 28)


def test_at_width_one_the_division_changes_no_gradient_and_at_16_it_makes_the_one_of_the_matrix_smaller():
    for measured in (results.query_gradients, results.gradient_at_matrix):
        assert np.array_equal(measured(1, divided=True), measured(1, divided=False))
    assert (results.gradient_at_matrix(16, divided=True) < results.gradient_at_matrix(16, divided=False) / 2).all()
