import math

import pytest
import torch

from course_lib.functional import diffusion

STEPS = 50
SCHEDULE = diffusion.linear_schedule(STEPS)


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_papers_schedule():
    schedule = diffusion.linear_schedule(1000)
    assert len(schedule) == 1000 and schedule.betas[0] == pytest.approx(1e-4) and schedule.betas[-1] == 0.02
    assert schedule.alpha_bars[-1] == pytest.approx(4.04e-5, rel=0.01)  # appendix B: nearly pure noise
    assert diffusion.linear_schedule(100).alpha_bars[-1] < 1e-4


def test_under_the_cosine_schedule_alpha_bar_is_a_squared_cosine():
    kept = diffusion.cosine_schedule(1000).alpha_bars
    assert kept[0] > 0.999 and kept[-1] < 1e-4 and (kept.diff() < 0).all()
    angle = [math.cos((x + 0.008) / 1.008 * math.pi / 2) ** 2 for x in (0.5, 0.0)]
    assert kept[499] == pytest.approx(angle[0] / angle[1], rel=1e-3)


def test_a_velocity_says_the_noise_and_the_image():
    images, noise, t = randn(4, 1, 3, 3), randn(4, 1, 3, 3, seed=1), torch.tensor([0, 9, 30, STEPS - 1])
    noisy, v = diffusion.add_noise(images, noise, t, SCHEDULE), diffusion.velocity(images, noise, t, SCHEDULE)
    torch.testing.assert_close(diffusion.noise_of_velocity(noisy, v, t, SCHEDULE), noise, atol=1e-6, rtol=1e-6)
    kept = SCHEDULE.alpha_bars.double()[t][:, None, None, None]
    torch.testing.assert_close(kept.sqrt() * noisy - (1 - kept).sqrt() * v, images, atol=1e-6, rtol=1e-6)


def test_noise_at_once_is_noise_step_by_step():
    schedule = diffusion.NoiseSchedule(torch.tensor([0.1, 0.3, 0.5], dtype=torch.float64))
    x, images = torch.full((20_000, 1, 1, 1), 2.0, dtype=torch.float64), torch.full((1, 1, 1, 1), 2.0).double()
    for t, beta in enumerate(schedule.betas):
        x = (1 - beta).sqrt() * x + beta.sqrt() * randn(*x.shape, seed=t)
    mean = diffusion.add_noise(images, torch.zeros_like(images), torch.tensor([2]), schedule).item()
    assert x.mean().item() == pytest.approx(mean, abs=0.03)
    assert x.var().item() == pytest.approx(1 - schedule.alpha_bars[2].item(), abs=0.03)


def test_the_clean_image_is_read_off_the_true_noise():
    images, noise, t = randn(5, 2, 4, 4), randn(5, 2, 4, 4, seed=1), torch.tensor([0, 3, 7, 12, STEPS - 1])
    noisy = diffusion.add_noise(images, noise, t, SCHEDULE)
    torch.testing.assert_close(diffusion.clean_estimate(noisy, noise, t, SCHEDULE), images, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("t", [1, 9, STEPS - 1])
def test_a_step_has_the_mean_of_algorithm_2_and_the_posteriors_variance(t):
    noisy, predicted, fresh = (randn(2, 3, 4, 4, seed=seed) for seed in range(3))
    beta, kept, before = SCHEDULE.betas[t], SCHEDULE.alpha_bars[t], SCHEDULE.alpha_bars[t - 1]
    mean = (noisy - beta / (1 - kept).sqrt() * predicted) / (1 - beta).sqrt()
    expected = mean + (beta * (1 - before) / (1 - kept)).sqrt() * fresh
    torch.testing.assert_close(
        diffusion.denoise_step(noisy, predicted, fresh, t, SCHEDULE), expected, atol=1e-5, rtol=1e-4
    )


def test_the_last_step_is_the_estimate_and_the_estimate_is_clipped():
    noisy, predicted, fresh = (3 * randn(2, 3, 4, 4, seed=seed) for seed in range(3))
    estimate = diffusion.clean_estimate(noisy, predicted, torch.zeros(2, dtype=torch.long), SCHEDULE)
    torch.testing.assert_close(
        diffusion.denoise_step(noisy, predicted, fresh, 0, SCHEDULE), estimate, atol=1e-5, rtol=1e-4
    )
    clipped = diffusion.denoise_step(noisy, predicted, fresh, 0, SCHEDULE, clip=1.0)
    torch.testing.assert_close(clipped, estimate.clamp(-1, 1), atol=1e-5, rtol=1e-4)


def test_samples_have_the_distribution_of_the_data():
    """Pixels are N(0.5, 0.04): then the best prediction of the noise is linear in x_t, and known."""
    schedule, mean, variance = diffusion.linear_schedule(1000), 0.5, 0.04

    def predict(x, t):
        kept = schedule.alpha_bars.double()[t][:, None, None, None]
        return (1 - kept).sqrt() * (x - kept.sqrt() * mean) / (kept * variance + 1 - kept)

    generator = torch.Generator().manual_seed(0)
    *_, x = diffusion.denoised(predict, randn(2000, 1, 2, 2), schedule, generator=generator)
    assert len(list(diffusion.denoised(predict, randn(1, 1, 2, 2), schedule))) == 1000
    assert x.mean().item() == pytest.approx(mean, abs=0.01) and x.std().item() == pytest.approx(0.2, abs=0.01)
