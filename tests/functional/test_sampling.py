import pytest
import torch
from scipy.stats import chisquare
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from course_lib.functional.sampling import draw, temperature, top_k, top_p

NONE = float("-inf")


def logits(rows=6, vocab_size=23, seed=0):
    return 2 * torch.randn(rows, vocab_size, generator=torch.Generator().manual_seed(seed))


def same_distribution(ours, theirs):
    return (
        torch.allclose(ours.softmax(-1), theirs.softmax(-1), atol=1e-6) and ((ours == NONE) == (theirs == NONE)).all()
    )


@pytest.mark.parametrize("value", [0.1, 0.7, 1.0, 1.5, 10.0])
def test_temperature_equals_the_official_one(value):
    assert same_distribution(temperature(logits(), value), TemperatureLogitsWarper(float(value))(None, logits()))


@pytest.mark.parametrize("k", [1, 2, 5, 22, 23, 50])
def test_top_k_equals_the_official_one(k):
    assert same_distribution(top_k(logits(), k), TopKLogitsWarper(k)(None, logits()))


@pytest.mark.parametrize("p", [1e-6, 0.05, 0.3, 0.5, 0.9, 0.95, 0.999, 1.0])
def test_top_p_equals_the_official_one(p):
    for seed in range(5):
        assert same_distribution(top_p(logits(seed=seed), p), TopPLogitsWarper(p)(None, logits(seed=seed)))


def test_the_nucleus_of_an_even_distribution_is_a_share_of_it():
    assert (top_p(torch.zeros(1, 8), 0.5) > NONE).sum() == 4


def test_top_k_keeps_all_that_tie_with_the_last():
    assert (top_k(torch.tensor([3.0, 1.0, 1.0, 0.0]), 2) > NONE).tolist() == [True, True, True, False]


def test_filters_leave_their_input_alone():
    scores = logits()
    before = scores.clone()
    top_p(top_k(temperature(scores, 0.5), 3), 0.5)
    assert (scores == before).all()


def test_filters_take_any_number_of_axes():
    scores = logits()
    for filtered in (lambda x: temperature(x, 0.7), lambda x: top_k(x, 3), lambda x: top_p(x, 0.6)):
        assert (filtered(scores[0]) == filtered(scores)[0]).all()
        assert (filtered(scores.view(2, 3, -1)).flatten(0, 1) == filtered(scores)).all()


def test_draws_follow_the_distribution():
    scores = top_p(temperature(logits(rows=1, vocab_size=8), 1.5), 0.9)
    expected = 20_000 * scores[0].softmax(-1)
    drawn = draw(scores.expand(20_000, -1), torch.Generator().manual_seed(0))
    counts = torch.bincount(drawn, minlength=8)
    possible = expected > 0
    assert 2 < possible.sum() < 8 and counts[~possible].sum() == 0
    assert chisquare(counts[possible].double(), expected[possible].double(), sum_check=False).pvalue > 0.01


def test_a_seed_repeats_its_draws():
    first, again, other = (draw(logits(rows=40), torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()
