import math

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from course_lib.training import FitConfig
from course_lib.training.schedules import SCHEDULES, constant, cosine, inverse_sqrt, linear, vaswani_peak

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
}


@pytest.mark.filterwarnings("ignore:The epoch parameter")  # torch's own SequentialLR passes it
@pytest.mark.parametrize("schedule", OFFICIAL, ids=lambda schedule: schedule.__name__)
def test_agrees_with_torchs_scheduler(schedule):
    ours = [schedule(step, STEPS, WARMUP) for step in range(STEPS)]
    assert ours == pytest.approx(torch_factors(OFFICIAL[schedule]), abs=1e-12)


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
    assert math.isclose(max(factors), 1.0, rel_tol=1e-12)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_single_step_has_a_rate(name):
    assert 0 < SCHEDULES[name](0, 1, 0) <= 1


def test_a_cosine_may_end_at_a_tenth_of_its_peak_as_nanogpts_does():
    config = FitConfig(steps=5000, learning_rate=1e-3, schedule="cosine", warmup=100, final_factor=0.1)
    rates = [1e-3 * factor for factor in config.learning_rate_factors()]
    for step in (0, 42, 99, 100, 101, 2550, 4999):
        if step < 100:
            expected = 1e-3 * (step + 1) / 100
        else:
            expected = 1e-4 + 0.5 * (1 + math.cos(math.pi * (step - 100) / 4900)) * (1e-3 - 1e-4)
        assert rates[step] == pytest.approx(expected, rel=1e-12)
    assert rates[-1] == pytest.approx(1e-4, rel=1e-6)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_final_factor_lifts_what_follows_the_warmup_alone(name):
    def factors(final_factor):
        settings = {"steps": STEPS, "warmup": WARMUP, "schedule": name, "final_factor": final_factor}
        return FitConfig(**settings).learning_rate_factors()

    plain = [SCHEDULES[name](step, STEPS, WARMUP) for step in range(STEPS)]
    assert factors(0.0) == plain  # to the last bit: stored runs go on
    assert factors(0.3) == plain[:WARMUP] + [pytest.approx(0.3 + 0.7 * factor) for factor in plain[WARMUP:]]
    assert factors(1.0)[WARMUP:] == [1.0] * (STEPS - WARMUP)
