"""Learning-rate schedules: pure functions of the step.

Each returns the factor by which the peak learning rate is multiplied at `step` = 0, 1, ..., `steps` - 1.
`warmup` is the number of steps over which the factor rises to 1; the first step is never wasted on a rate of
zero. `FitConfig.final_factor` lifts the end of each above 0.
"""

import math
from collections.abc import Callable

Schedule = Callable[[int, int, int], float]  # (step, steps, warmup) -> factor


def constant(step: int, steps: int, warmup: int) -> float:
    """Linear warm-up, then 1."""
    return min(1.0, (step + 1) / max(1, warmup))


def linear(step: int, steps: int, warmup: int) -> float:
    """Linear warm-up, then a straight line, 0 at `step` = `steps`."""
    if step < warmup:
        return (step + 1) / warmup
    return (steps - step) / (steps - warmup)


def cosine(step: int, steps: int, warmup: int) -> float:
    """Linear warm-up, then half a cosine, 0 at `step` = `steps` (Loshchilov & Hutter 2017)."""
    if step < warmup:
        return (step + 1) / warmup
    return (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


def inverse_sqrt(step: int, steps: int, warmup: int) -> float:
    """min(t^-0.5, t warmup^-1.5) warmup^0.5, t = step + 1: Vaswani et al. 2017, eq. (3), with a peak of 1.

    The paper's own rate is this factor times `vaswani_peak(dim, warmup)`.
    """
    t, warmup = step + 1, max(1, warmup)
    return min(math.sqrt(warmup / t), t / warmup)


def vaswani_peak(dim: int, warmup: int) -> float:
    """The highest rate of Vaswani et al. 2017, eq. (3): (d_model warmup)^-0.5, at the end of the warm-up."""
    return (dim * warmup) ** -0.5


SCHEDULES: dict[str, Schedule] = {
    "constant": constant,
    "linear": linear,
    "cosine": cosine,
    "inverse_sqrt": inverse_sqrt,
}
