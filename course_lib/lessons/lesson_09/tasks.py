"""Lesson 09, Scaling laws: what its exercises are tried with; what they say and how they go wrong is in tasks.md."""

from pathlib import Path

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw
from course_lib.tasks.markdown import read_tasks


def model_and_tokens(draw: Draw) -> tuple[int, int, int]:
    """A width, a depth, and some thousands of tokens."""
    return (*draw.sizes(2, 5, 20), 1000 * draw.sizes(1)[0])


def some_runs(draw: Draw) -> tuple[Tensor, Tensor]:
    """Losses that fall roughly by a power law."""
    (count,) = draw.sizes(1, low=5)
    x = (2 + 6 * torch.rand(count, generator=draw.generator)).exp().sort().values
    return x, 4 * x**-0.3 * (0.2 * draw(count)).exp()


def resampled(draw: Draw) -> tuple[Tensor, Tensor, Tensor, float]:
    """Some runs, which of them each of 40 resamples takes, and a level."""
    x, y = some_runs(draw)
    picks = draw.integers(0, len(x), 40, len(x))
    picks[:, 0], picks[:, 1] = 0, len(x) - 1  # two different sizes, so that there is a line
    return x, y, picks, 0.8


def one_budget(draw: Draw) -> tuple[Tensor, Tensor]:
    """Five to eight sizes at one cost, the best one between two of them."""
    count = draw.integers(5, 9, 1).item()
    u = torch.linspace(7.0, 10.0, count) + 0.05 * draw(count)
    middle = 8.2 + 0.3 * torch.rand(1, generator=draw.generator)
    return u.exp(), 2 + 0.1 * (u - middle) ** 2 + 0.005 * draw(count)


def a_law(draw: Draw) -> tuple[float, float, float, float, float]:
    """A, B, alpha and beta of a law, and a budget."""
    A, B, alpha, beta = (float(value) for value in torch.rand(4, generator=draw.generator))
    return 1 + 2 * A, 2 + 3 * B, 0.3 + 0.2 * alpha, 0.55 + 0.2 * beta, 600.0


CASES = {
    "training_cost": (Case("operations of a whole training", model_and_tokens, tolerance=1e-6),),
    "power_law": (Case("a and b of the line with the least squares in logarithms", some_runs),),
    "bootstrap_interval": (Case("the middle of the exponents of all resamples", resampled),),
    "best_size": (Case("the lowest point of the parabola", one_budget, tolerance=1e-3),),
    "allocation": (Case("the best N and D for this much computing", a_law),),
}
TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"),
    CASES,
    training_cost={"example": (((10, 2, 1000), 14_400_000.0),)},
    power_law={"example": ((([1.0, 10.0, 100.0], [8.0, 4.0, 2.0]), [8.0, 0.30103]),)},
    best_size={"example": ((([2.718281828, 7.389056099, 20.08553692], [1.0, 0.0, 1.0]), 7.389056),)},
    allocation={"example": (((1.0, 1.0, 0.5, 0.5, 600.0), [10.0, 10.0]),)},
)
