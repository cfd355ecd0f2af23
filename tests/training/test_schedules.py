import math

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, OneCycleLR, SequentialLR

from course_lib.training.schedules import SCHEDULES, constant, cosine, inverse_sqrt, linear, one_cycle, vaswani_peak

STEPS, WARMUP = 60, 12


def torch_factors(make_scheduler):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler, factors = make_scheduler(optimizer), []
    for _ in range(STEPS):
        factors.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return factors


def after_warmup(optimizer, decay):
    rise = LinearLR(optimizer, start_factor=1 / WARMUP, total_iters=WARMUP - 1)
    return SequentialLR(optimizer, [rise, decay], milestones=[WARMUP])


OFFICIAL = {
    cosine: lambda optimizer: after_warmup(optimizer, CosineAnnealingLR(optimizer, STEPS - WARMUP)),
    linear: lambda optimizer: after_warmup(
        optimizer, LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=STEPS - WARMUP)
    ),
    one_cycle: lambda optimizer: OneCycleLR(optimizer, 1.0, total_steps=STEPS, pct_start=WARMUP / STEPS),
}


@pytest.mark.filterwarnings("ignore:The epoch parameter")  # torch's own SequentialLR passes it
@pytest.mark.parametrize("schedule", OFFICIAL, ids=lambda schedule: schedule.__name__)
def test_agrees_with_torchs_scheduler(schedule):
    ours = [schedule(step, STEPS, WARMUP) for step in range(STEPS)]
    assert ours == pytest.approx(torch_factors(OFFICIAL[schedule]), abs=1e-12)


def test_one_cycle_without_a_warmup_is_torchs_default():
    ours = [one_cycle(step, STEPS, 0) for step in range(STEPS)]
    assert ours == pytest.approx(torch_factors(lambda o: OneCycleLR(o, 1.0, total_steps=STEPS)), abs=1e-12)


def test_inverse_sqrt_is_equation_3_of_vaswani():
    dim, warmup = 512, 4000
    for t in (1, 2, 1000, 3999, 4000, 4001, 16000, 100_000):
        paper = dim**-0.5 * min(t**-0.5, t * warmup**-1.5)
        assert vaswani_peak(dim, warmup) * inverse_sqrt(t - 1, 100_000, warmup) == pytest.approx(paper, rel=1e-12)


def test_constant_rises_in_equal_parts_then_stays():
    assert [constant(step, 6, 4) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]


@pytest.mark.parametrize("warmup", [0, 1, WARMUP, STEPS])
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_rate_is_above_0_and_the_peak_is_1(name, warmup):
    factors = [SCHEDULES[name](step, STEPS, warmup) for step in range(STEPS)]
    assert all(0 < factor <= 1 + 1e-12 for factor in factors)
    # The one cycle's default warm-up may peak between two steps.
    assert math.isclose(max(factors), 1.0, rel_tol=1e-12)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_single_step_has_a_rate(name):
    assert 0 < SCHEDULES[name](0, 1, 0) <= 1
