"""Lesson 09, Scaling laws: what its exercises are tried with; what they say and how they go wrong is in tasks.md."""

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from course_lib.tasks import Case, Check, Draw, Finding, TaskInput
from course_lib.tasks.core import Probe
from course_lib.tasks.markdown import read_tasks

NAMES = ("log_E", "log_A", "log_B", "alpha", "beta")
FLOAT32 = Finding(
    "parameters in float32",
    "The parameters of the law are not in float64.",
    "Make each of them by `nn.Parameter(torch.tensor(value, dtype=torch.float64))`: the fit compares objectives that "
    "differ in later digits.",
)
STARTS_ELSEWHERE = Finding(
    "starting values ignored",
    "The parameters do not start at the values that `ScalingLaw` was given.",
    "The five arguments of `__init__`, in their order, are the starting values of `log_E`, `log_A`, `log_B`, `alpha` "
    "and `beta`.",
)


def a_model_and_tokens(draw: Draw) -> tuple[int, int, int, int, int]:
    """A width, a depth, a context, a vocabulary, and some thousands of tokens."""
    return (*draw.sizes(4, 3, 20), 1000 * draw.sizes(1)[0])


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
    picks[::9] = picks[::9, 2:3]  # and some with a single run, which are to be left out
    return x, y, picks, 0.8


def uniform(draw: Draw, low: float, high: float) -> float:
    """A number between these."""
    return low + (high - low) * torch.rand(1, generator=draw.generator).item()


def a_law(draw: Draw) -> tuple[float, ...]:
    """log_E, log_A, log_B, alpha and beta."""
    return (
        uniform(draw, 0.0, 0.5),
        uniform(draw, 3.5, 5.0),
        uniform(draw, 6.0, 7.5),
        uniform(draw, 0.45, 0.6),
        uniform(draw, 0.5, 0.65),
    )


def sizes_and_tokens(draw: Draw, sizes: int = 4, amounts: int = 4) -> tuple[Tensor, Tensor]:
    """Every size with every amount of text."""
    N = torch.logspace(3.5, 5, sizes, dtype=torch.float64)
    D = torch.logspace(5.3, 6.4, amounts, dtype=torch.float64)
    return tuple(
        (column.flatten() * (0.1 * draw(sizes * amounts)).exp()) for column in torch.meshgrid(N, D, indexing="ij")
    )


def of_law(values: tuple[float, ...], N: Tensor, D: Tensor) -> Tensor:
    """The losses that a law predicts."""
    log_E, log_A, log_B, alpha, beta = values
    return torch.tensor(log_E).exp() + (log_A - alpha * N.log()).exp() + (log_B - beta * D.log()).exp()


def runs_for_a_law(draw: Draw) -> TaskInput:
    """Sizes and tokens for a law whose parameters are given."""
    values = a_law(draw)
    given = {name: torch.tensor(value, dtype=torch.float64) for name, value in zip(NAMES, values, strict=True)}
    return TaskInput(sizes_and_tokens(draw, 3, 3), build=a_law(draw), parameters=given)


def runs_to_fit(draw: Draw) -> tuple[Tensor, Tensor, Tensor, list]:
    """Sixteen runs, two of them far off, and three starts, of which the middle one leads to the lowest objective."""
    values = a_law(draw)
    N, D = sizes_and_tokens(draw)
    noise = 2e-4 * draw(len(N)).double()
    noise[3], noise[10] = 0.04, -0.03
    L = of_law(values, N, D).double() * noise.exp()
    stuck = (0.3, -20.0, -25.0, 2.0, 2.0), (0.4, -25.0, -20.0, 2.0, 2.0)  # terms too small to have a gradient
    return N, D, L, [stuck[0], (0.2, 4.0, 7.0, 0.5, 0.6), stuck[1]]


def one_budget(draw: Draw) -> tuple[Tensor, Tensor]:
    """Five to eight sizes at one cost, the best one between two of them."""
    count = draw.integers(5, 9, 1).item()
    u = torch.linspace(7.0, 10.0, count) + 0.05 * draw(count)
    middle = 8.2 + 0.3 * torch.rand(1, generator=draw.generator)
    return u.exp(), 2 + 0.1 * (u - middle) ** 2 + 0.005 * draw(count)


def a_law_and_budget(draw: Draw) -> tuple[float, ...]:
    """log_A, log_B, alpha and beta of a law, and a budget."""
    _, log_A, log_B, alpha, beta = a_law(draw)
    return log_A, log_B, alpha, beta + 0.1, 1e11


def a_goal_and_a_use(draw: Draw) -> tuple:
    """A law, a loss that larger sizes can reach, tokens in use, and sizes; the cheapest one is between the ends."""
    values = a_law(draw)
    sizes = torch.logspace(3, 8, 120, dtype=torch.float64)
    loss = of_law(values, torch.tensor([2e5]).double(), torch.tensor([4e6]).double()).item()
    return (*values, loss, 1e8, sizes)


def of_its_parameters(probe: Probe) -> Iterable[Finding]:
    """Whether they start where they are told to, and have enough digits."""
    started = a_law(Draw(1))
    made = probe.make("ScalingLaw", *started, asks=", ".join(NAMES)).parameters()
    if any(value.dtype != torch.float64 for value in made.values()):
        yield FLOAT32
    elif any(abs(float(made[name]) - value) > 1e-6 for name, value in zip(NAMES, started, strict=True)):
        yield STARTS_ELSEWHERE


CASES = {
    "flops": (Case("operations of a whole training", a_model_and_tokens, tolerance=1e-6),),
    "power_law": (Case("a and b of the line with the least squares in logarithms", some_runs),),
    "bootstrap_interval": (Case("the middle of the exponents of all resamples", resampled),),
    "law": (Case("the logarithm of the loss", runs_for_a_law),),
    "fit_law": (Case("the parameters with the lowest objective", runs_to_fit, tolerance=5e-3),),
    "best_size": (Case("the lowest point of the parabola", one_budget, tolerance=1e-3),),
    "allocation": (Case("the best N and D for this budget", a_law_and_budget),),
    "lifetime": (Case("the cheapest size for training and use", a_goal_and_a_use),),
}


def law(*values: float):
    """What a learner's fit takes if she has no law of her own."""
    return TASKS["law"].module(*values)


TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"),
    CASES,
    {"ScalingLaw": law},
    flops={"example": (((10, 2, 5, 7, 1000), 16_020_000.0),)},
    power_law={"example": ((([1.0, 10.0, 100.0], [8.0, 4.0, 2.0]), [8.0, 0.30103]),)},
    law={
        "checks": (
            Check(
                name="five parameters in float64 that start as told",
                detects=(FLOAT32.misconception, STARTS_ELSEWHERE.misconception),
                run=of_its_parameters,
            ),
        )
    },
    best_size={"example": ((([2.718281828, 7.389056099, 20.08553692], [1.0, 0.0, 1.0]), 7.389056),)},
    allocation={"example": (((0.0, 0.0, 0.5, 0.5, 600.0), [10.0, 10.0]),)},
)
