"""Denoising diffusion: noise is added in many small steps, and a network learns to take each of them back.

Ho, Jain & Abbeel, "Denoising diffusion probabilistic models", NeurIPS 2020, arXiv 2006.11239. Nichol & Dhariwal,
"Improved denoising diffusion probabilistic models", ICML 2021, arXiv 2102.09672 (the cosine schedule). Salimans & Ho,
"Progressive distillation for fast sampling of diffusion models", ICLR 2022, arXiv 2202.00512 (the velocity).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

Predict = Callable[[Float[Tensor, "B C H W"], Int[Tensor, " B"]], Float[Tensor, "B C H W"]]  # the noise in images


@dataclass(frozen=True)
class NoiseSchedule:
    """The variances beta_t of the noise that step t adds, t = 0 ... T - 1: the paper's beta_1 ... beta_T."""

    betas: Float[Tensor, " T"]

    @property
    def alpha_bars(self) -> Float[Tensor, " T"]:
        """The product of all 1 - beta up to and including step t: how much of the image's variance is left."""
        return (1 - self.betas).cumprod(dim=0)

    def __len__(self) -> int:
        return len(self.betas)


def linear_schedule(steps: int, *, first: float = 1e-4, last: float = 0.02) -> NoiseSchedule:
    """Betas that grow linearly, section 4: `first` to `last` for 1,000 steps; for fewer, each in proportion larger.

    So the image is as noisy at the end, whatever the number of steps. Raises ValueError if a beta is 1 or more.
    """
    scale = 1000 / max(steps, 1)
    if steps < 1 or not 0 < scale * min(first, last) <= scale * max(first, last) < 1:
        raise ValueError(f"betas must lie between 0 and 1; {steps} steps from {first} to {last} give others")
    return NoiseSchedule(torch.linspace(first, last, steps) * scale)


def cosine_schedule(steps: int, *, offset: float = 0.008, largest: float = 0.999) -> NoiseSchedule:
    """Betas for which alpha_bar falls as a squared cosine, Nichol & Dhariwal 2021, eq. (17): fewer steps of mere noise.

    Raises ValueError for less than one step.
    """
    if steps < 1:
        raise ValueError(f"a schedule needs a step or more, got {steps}")
    angle = (torch.arange(steps + 1, dtype=torch.float64) / steps + offset) / (1 + offset) * math.pi / 2
    kept = angle.cos().square()
    return NoiseSchedule((1 - kept[1:] / kept[:-1]).clamp(max=largest).float())


def add_noise(
    images: Float[Tensor, "B C H W"], noise: Float[Tensor, "B C H W"], t: Int[Tensor, " B"], schedule: NoiseSchedule
) -> Float[Tensor, "B C H W"]:
    """x_t = sqrt(alpha_bar_t) x_0 + sqrt(1 - alpha_bar_t) noise, eq. (4): t steps of noise at once."""
    kept = schedule.alpha_bars.to(images)[t][:, None, None, None]
    return kept.sqrt() * images + (1 - kept).sqrt() * noise


def velocity(
    images: Float[Tensor, "B C H W"], noise: Float[Tensor, "B C H W"], t: Int[Tensor, " B"], schedule: NoiseSchedule
) -> Float[Tensor, "B C H W"]:
    """v = sqrt(alpha_bar_t) noise - sqrt(1 - alpha_bar_t) x_0, Salimans & Ho 2022: what a network may predict instead.

    At much noise it is nearly -x_0, so the image counts in the loss; the noise there is nearly x_t, and easy.
    """
    kept = schedule.alpha_bars.to(images)[t][:, None, None, None]
    return kept.sqrt() * noise - (1 - kept).sqrt() * images


def noise_of_velocity(
    noisy: Float[Tensor, "B C H W"], predicted: Float[Tensor, "B C H W"], t: Int[Tensor, " B"], schedule: NoiseSchedule
) -> Float[Tensor, "B C H W"]:
    """The noise in x_t that a predicted velocity means: sqrt(1 - alpha_bar_t) x_t + sqrt(alpha_bar_t) v."""
    kept = schedule.alpha_bars.to(noisy)[t][:, None, None, None]
    return (1 - kept).sqrt() * noisy + kept.sqrt() * predicted


def clean_estimate(
    noisy: Float[Tensor, "B C H W"], predicted: Float[Tensor, "B C H W"], t: Int[Tensor, " B"], schedule: NoiseSchedule
) -> Float[Tensor, "B C H W"]:
    """The x_0 that eq. (4) says, if the noise in x_t is the predicted one."""
    kept = schedule.alpha_bars.to(noisy)[t][:, None, None, None]
    return (noisy - (1 - kept).sqrt() * predicted) / kept.sqrt()


def denoise_step(
    noisy: Float[Tensor, "B C H W"],
    predicted: Float[Tensor, "B C H W"],
    fresh: Float[Tensor, "B C H W"],
    t: int,
    schedule: NoiseSchedule,
    *,
    clip: float | None = None,
) -> Float[Tensor, "B C H W"]:
    """x_{t-1} of x_t: the mean of eq. (7) for the estimated x_0, and the variance beta_tilde_t times `fresh` noise.

    Without `clip` the mean is that of algorithm 2, (x_t - beta_t / sqrt(1 - alpha_bar_t) predicted) / sqrt(alpha_t).
    With it the estimate is kept from -clip to clip, as the authors' code does. The last step, t = 0, adds no noise.
    """
    beta, kept = schedule.betas[t].item(), schedule.alpha_bars[t].item()
    before = schedule.alpha_bars[t - 1].item() if t > 0 else 1.0
    estimate = clean_estimate(noisy, predicted, torch.full((len(noisy),), t, device=noisy.device), schedule)
    if clip is not None:
        estimate = estimate.clamp(-clip, clip)
    mean = (before**0.5 * beta * estimate + (1 - beta) ** 0.5 * (1 - before) * noisy) / (1 - kept)
    return mean + (beta * (1 - before) / (1 - kept)) ** 0.5 * fresh


@torch.no_grad()
def denoised(
    predict: Predict,
    noise: Float[Tensor, "B C H W"],
    schedule: NoiseSchedule,
    *,
    generator: torch.Generator | None = None,
    clip: float | None = None,
) -> Iterator[Float[Tensor, "B C H W"]]:
    """Algorithm 2: x_{T-1} ... x_0, one after the other, from pure noise x_T; `predict(x, t)` is the network."""
    x = noise
    for t in reversed(range(len(schedule))):
        predicted = predict(x, torch.full((len(x),), t, device=x.device))
        fresh = torch.randn(x.shape, generator=generator).to(x)
        x = denoise_step(x, predicted, fresh, t, schedule, clip=clip)
        yield x
