import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from course_lib.functional.metrics import (
    accuracy,
    bits_per_byte,
    f1_per_class,
    f1_score,
    matthews_correlation,
    pearson_correlation,
    perplexity,
    spearman_correlation,
)


def pairs(values, *, least=1):
    return st.lists(st.tuples(values, values), min_size=least, max_size=30).map(
        lambda rows: list(zip(*rows, strict=True))
    )


LABELS = pairs(st.integers(0, 4))
BINARY = pairs(st.integers(0, 1))
WORDS = pairs(st.sampled_from(["noun", "verb", "adjective"]))
FEW = pairs(st.integers(-3, 3), least=2)
NUMBERS = pairs(st.floats(-100, 100).map(lambda x: round(x, 3)), least=2)


def quietly(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


@given(LABELS | WORDS | BINARY)
def test_class_scores_equal_scikit_learn(rows):
    predicted, true = rows
    assert accuracy(predicted, true) == pytest.approx(metrics.accuracy_score(true, predicted), abs=1e-12)
    wanted = quietly(metrics.matthews_corrcoef, true, predicted)
    assert matthews_correlation(predicted, true) == pytest.approx(wanted, abs=1e-12)
    for average in ("macro", "micro"):
        wanted = quietly(metrics.f1_score, true, predicted, average=average)
        assert f1_score(predicted, true, average=average) == pytest.approx(wanted, abs=1e-12)
    per_class = f1_per_class(predicted, true)
    assert list(per_class) == sorted(set(predicted) | set(true))
    wanted = quietly(metrics.f1_score, true, predicted, average=None)
    assert list(per_class.values()) == pytest.approx(list(wanted), abs=1e-12)


@given(BINARY)
def test_binary_f1_equals_scikit_learn_even_without_a_positive(rows):
    predicted, true = rows
    wanted = quietly(metrics.f1_score, true, predicted)
    assert f1_score(predicted, true) == pytest.approx(wanted, abs=1e-12)
    wanted = quietly(metrics.f1_score, true, predicted, pos_label=0)
    assert f1_score(predicted, true, positive=0) == pytest.approx(wanted, abs=1e-12)


@given(FEW | NUMBERS)
def test_correlations_equal_scipy_ties_included(rows):
    x, y = rows
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    assert pearson_correlation(x, y) == pytest.approx(quietly(stats.pearsonr, x, y).statistic, abs=1e-9)
    assert spearman_correlation(x, y) == pytest.approx(quietly(stats.spearmanr, x, y).statistic, abs=1e-9)


def test_tensors_and_arrays_are_welcome():
    predicted, true = torch.tensor([0, 1, 1]), np.array([0, 1, 0])
    assert accuracy(predicted, true) == pytest.approx(2 / 3)
    assert f1_score(predicted, true) == pytest.approx(2 / 3)
    assert pearson_correlation(torch.tensor([1.0, 2.0, 3.0]), [2, 4, 6]) == pytest.approx(1)


def test_a_model_that_knows_nothing_has_the_vocabulary_s_perplexity():
    nats = 50 * math.log(1000)
    assert perplexity(nats, 50) == pytest.approx(1000)
    assert bits_per_byte(nats, 200) == pytest.approx(50 * math.log2(1000) / 200)
    assert bits_per_byte(100 * math.log(256), 100) == pytest.approx(8)
