"""The settings of a training."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.training.schedules import SCHEDULES


@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """How to train. NumPy's numbers become Python's. Raises ValueError for a setting that makes no sense."""

    steps: int
    learning_rate: float = 1e-3  # the peak, reached at the end of the warm-up
    schedule: str | Callable = "cosine"  # a name in SCHEDULES, or (step, steps, warmup) -> factor
    warmup: int = 0  # steps
    final_factor: float = 0.0  # what the schedule falls to instead of 0, as a share of the peak
    clip_norm: float | None = 1.0  # longest gradient, Euclidean norm over all parameters; None: any
    weight_decay: float = 0.0  # of matrices; biases and norms are left alone
    betas: tuple[float, float] = (0.9, 0.999)  # of Adam
    evaluate_every: int | None = None  # steps; None: only after the last one
    checkpoint_every: int | None = None  # steps; None: only after the last one
    keep_weights: int = 0  # of so many last checkpoints, to be averaged
    seed: int = 0  # of dropout and everything else random inside the loop
    ema: float | None = None  # decay of a moving average of the weights

    def __post_init__(self):
        for field in dataclasses.fields(self):  # a checkpoint keeps plain numbers alone
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))
        optional = "at least 1 or None"
        rules = {
            "steps": (self.steps >= 1, "at least 1"),
            "learning_rate": (0 < self.learning_rate < math.inf, "positive and finite"),
            "schedule": (
                callable(self.schedule) or self.schedule in SCHEDULES,
                f"a function or one of {', '.join(SCHEDULES)}",
            ),
            "warmup": (0 <= self.warmup <= self.steps, f"between 0 and steps={self.steps}"),
            "final_factor": (0 <= self.final_factor <= 1, "between 0 and 1"),
            "clip_norm": (self.clip_norm is None or self.clip_norm > 0, "positive or None"),
            "weight_decay": (self.weight_decay >= 0, "0 or more"),
            "betas": (all(0 <= beta < 1 for beta in self.betas), "two numbers from 0 to below 1"),
            "evaluate_every": (self.evaluate_every is None or self.evaluate_every >= 1, optional),
            "checkpoint_every": (self.checkpoint_every is None or self.checkpoint_every >= 1, optional),
            "keep_weights": (self.keep_weights >= 0, "0 or more"),
            "seed": (0 <= self.seed < 2**32, "between 0 and 2**32 - 1"),
            "ema": (self.ema is None or 0 < self.ema < 1, "between 0 and 1 or None"),
        }
        for name, (holds, rule) in rules.items():
            if not holds:
                raise ValueError(f"{name} must be {rule}, got {getattr(self, name)!r}.")

    def learning_rate_factors(self) -> list[float]:
        """What the peak learning rate is multiplied by, for each step.

        The schedule's factor f during the warm-up, then f_end + (1 - f_end) f with f_end = `final_factor`. Cosine from
        1e-3 to 1e-4 is `learning_rate=1e-3, final_factor=0.1`.
        """
        schedule = self.schedule if callable(self.schedule) else SCHEDULES[self.schedule]
        factors = [schedule(step, self.steps, self.warmup) for step in range(self.steps)]
        end = self.final_factor
        return factors[: self.warmup] + [end + (1 - end) * factor for factor in factors[self.warmup :]]

    def validation_steps(self) -> list[int]:
        """After how many steps the model is validated: every `evaluate_every` and at the end."""
        return [done for done in range(1, self.steps + 1) if is_due(done, self.evaluate_every, self.steps)]


def is_due(done: int, every: int | None, steps: int) -> bool:
    """Whether something that happens `every` so many steps, and at the end, happens after `done` steps."""
    return done == steps or (every is not None and done % every == 0)


def plain(value: Any) -> Any:
    """A number of NumPy's as Python's, alone or in a tuple."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value.item() if isinstance(value, np.generic) else value
