"""Naive Bayes counts as one counts by hand."""

import pytest

from course_lib.models.naive_bayes import NaiveBayes


def test_log_scores_are_those_of_a_pencil():
    model = NaiveBayes(smoothing=1.0).fit([["a", "a", "b"], ["b"]], ["x", "y"])
    given = model.log_scores([["a", "c"]]).exp()[0].tolist()  # three features: a, b, and what was never seen
    assert model.classes == ["x", "y"] and given == pytest.approx([1 / 2 * 3 / 6 * 1 / 6, 1 / 2 * 1 / 4 * 1 / 4])
    assert model.predict([["a", "a"]]) == ["x"]


def test_settings_and_examples_are_checked():
    with pytest.raises(ValueError, match="smoothing must be positive, got 0"):
        NaiveBayes(smoothing=0)
    with pytest.raises(ValueError, match="got 1 and 2 labels"):
        NaiveBayes().fit([["a"]], ["x", "y"])
