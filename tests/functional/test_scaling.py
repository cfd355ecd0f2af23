"""Planted laws come back; degenerate data is refused."""

import math

import pytest
import torch

from course_lib.functional import scaling
from course_lib.functional.cost import count_flops
from course_lib.models.gpt import GPT, GPTConfig

X = torch.logspace(3, 6, 8, dtype=torch.float64)
PAIRS = torch.cartesian_prod(torch.logspace(5, 9, 5).double(), torch.logspace(7, 10, 5).double()).unbind(1)


@pytest.mark.parametrize(("a", "b", "c"), [(3.0, 0.3, 1.5), (40.0, 0.7, 0.2), (2.0, 0.05, 0.0)])
def test_a_planted_power_law_comes_back(a, b, c):
    law = scaling.fit_power_law(X, a * X**-b + c)
    assert (law.a, law.b) == pytest.approx((a, b), rel=1e-4) and law.c == pytest.approx(c, abs=1e-4)
    torch.testing.assert_close(law(X), a * X**-b + c)


def test_without_a_floor_it_is_zero():
    law = scaling.fit_power_law(X, 3 * X**-0.3, floor=False)
    assert (law.a, law.b, law.c) == pytest.approx((3, 0.3, 0), rel=1e-6)


def test_a_law_that_would_need_a_negative_floor_has_none():
    law = scaling.fit_power_law(X, 5 - 0.3 * X.log())  # a straight line in log x: falls faster than any power
    assert law.c == 0 and law.a > 0


def test_intervals_cover_the_planted_exponent_about_as_often_as_they_say():
    generator, inside = torch.Generator().manual_seed(0), 0
    x = torch.logspace(3, 6, 16, dtype=torch.float64)
    for trial in range(100):
        y = 3 * x**-0.3 + 1.5 + 0.004 * torch.randn(16, generator=generator, dtype=torch.float64)
        low, high = scaling.interval([law.b for law in scaling.bootstrap_power_laws(x, y, resamples=100, seed=trial)])
        inside += low <= 0.3 <= high
    assert 78 <= inside <= 98  # 90 of 100 are promised


def test_an_interval_is_the_middle_part():
    assert scaling.interval([float(i) for i in range(101)], 0.8) == pytest.approx((10, 90))


def test_bootstrapping_repeats_itself_and_depends_on_the_seed():
    y = 3 * X**-0.3 + 1.5 + 0.01 * torch.tensor([1, -1, 1, 1, -1, -1, 1, -1])
    one, same, other = (scaling.bootstrap_power_laws(X, y, resamples=5, seed=seed) for seed in (0, 0, 1))
    assert one == same != other


@pytest.mark.parametrize(
    "law", [scaling.CHINCHILLA, scaling.REPLICATION, scaling.ScalingLaw(E=1.1, A=20, B=300, alpha=0.3, beta=0.45)]
)
def test_a_planted_law_of_two_variables_comes_back(law):
    found = scaling.fit_scaling_law(*PAIRS, law(*PAIRS))
    for name in ("E", "A", "B", "alpha", "beta"):
        assert getattr(found, name) == pytest.approx(getattr(law, name), rel=1e-4)


def test_one_run_that_went_wrong_hardly_moves_the_law():
    losses = scaling.CHINCHILLA(*PAIRS)
    losses[7] *= 1.3
    found = scaling.fit_scaling_law(*PAIRS, losses)
    assert (found.alpha, found.beta, found.E) == pytest.approx((0.34, 0.28, 1.69), rel=0.02)


@pytest.mark.parametrize("law", [scaling.CHINCHILLA, scaling.REPLICATION])
def test_no_other_allocation_of_a_budget_is_better(law):
    n, d = law.allocation(5.76e23)
    assert scaling.training_flops(n, d) == pytest.approx(5.76e23)
    factors = torch.linspace(0.5, 2, 301, dtype=torch.float64)
    losses = law(n * factors, d / factors)
    assert factors[losses.argmin()].item() == pytest.approx(1, abs=0.006)


def test_the_exponents_of_the_allocation_are_those_of_table_2():
    one, ten = scaling.CHINCHILLA.allocation(1e20), scaling.CHINCHILLA.allocation(1e21)
    growth = [math.log10(ten[i] / one[i]) for i in (0, 1)]
    assert growth == pytest.approx(scaling.ALLOCATIONS["parametric fit"], abs=0.015)
    assert all(a + b == pytest.approx(1) for a, b in scaling.ALLOCATIONS.values())


def test_the_lowest_point_of_a_planted_valley_comes_back():
    best = scaling.fit_isoflop(X, 0.02 * (X.log() - 10.5) ** 2 + 2)
    assert (best.parameters, best.loss, best.q) == pytest.approx((math.exp(10.5), 2, 0.02)) and best.inside
    assert not scaling.fit_isoflop(X, 0.02 * (X.log() - 15) ** 2 + 2).inside


def test_6nd_is_what_the_matrices_of_the_blocks_cost():
    dim, depth, length, vocabulary = 32, 2, 16, 11
    model = GPT(GPTConfig(vocab_size=vocabulary, context_length=length, dim=dim, depth=depth, num_heads=2, dropout=0.0))
    tokens = torch.randint(vocabulary, (3, length))
    weights = sum(p.numel() for p in model.blocks.parameters() if p.dim() == 2)
    attention = depth * 2 * 2 * length * dim * tokens.numel()  # Q K^T and A V, forward
    head = 2 * dim * vocabulary * tokens.numel()
    forward = count_flops(lambda: model(tokens))
    assert forward == scaling.training_flops(weights, tokens.numel()) / 3 + attention + head
    both = count_flops(lambda: model(tokens).sum().backward())
    assert both == pytest.approx(scaling.training_flops(weights, tokens.numel()) + 3.5 * attention + 3 * head, rel=1e-6)
