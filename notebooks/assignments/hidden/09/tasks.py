"""Assignment 09, Scaling laws: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_09.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def some_runs(draw: Draw, *, near: bool = True, far: bool = True) -> tuple[Tensor, Tensor, float]:
    """What a law says and what came: within delta of each other, beyond it on both sides, or some of each."""
    (count,) = draw.sizes(1, low=3)
    delta = round(0.05 + 0.15 * torch.rand(1, generator=draw.generator).item(), 2)
    inside = delta * (2 * torch.rand(count, generator=draw.generator) - 1)
    signs = torch.tensor([1.0, -1.0]).repeat(count)[:count]
    gaps = torch.cat([inside] * near + [(delta + 0.2 + draw(count).abs()) * signs] * far)
    measured = 1.5 + draw(len(gaps)).abs()
    return measured * gaps.exp(), measured, delta


HUBER = replace(
    SHOWN["huber_of_logs"],
    cases=(
        Case("the sum over runs near and far", some_runs, 7),
        Case("all runs are far from the law", lambda draw: some_runs(draw, near=False), 4),
        Case("all runs are near the law", lambda draw: some_runs(draw, far=False), 3),
    ),
)


def runs_with_outliers(draw: Draw, *, outliers: bool = True, tuning: float | None = None) -> tuple:
    """What a law says and what came, for an odd number of runs; some are far off, on both sides, or none."""
    (count,) = draw.sizes(1, low=3)
    gaps = 0.05 * draw(2 * count + 1)
    gaps += 0.01 * gaps.sign() + 0.03  # the law says too much in most cases
    if outliers:
        signs = torch.tensor([1.0, -1.0]).repeat(count)[:count]
        gaps[:count] = (0.6 + draw(count).abs()) * signs
    measured = 1.5 + draw(len(gaps)).abs()
    order = draw(len(gaps)).argsort()
    tuning = round(1.5 + 2 * torch.rand(1, generator=draw.generator).item(), 2) if tuning is None else tuning
    return (measured * gaps.exp())[order], measured[order], tuning


BIWEIGHT = replace(
    SHOWN["biweight_of_logs"],
    cases=(
        Case("the sum over runs near and far", runs_with_outliers, 9),
        Case("all runs are near the law", lambda draw: runs_with_outliers(draw, outliers=False, tuning=9.0), 3),
        Case("a small tuning", lambda draw: runs_with_outliers(draw, tuning=0.9), 3),
    ),
)


def readings(draw: Draw) -> tuple[Tensor, float, float]:
    (count,) = draw.sizes(1)
    fade = round(1.5 + 4 * torch.rand(1, generator=draw.generator).item(), 2)
    return 1 + 6 * torch.rand(count, generator=draw.generator), 1.0 + draw.sizes(1)[0], fade


def read_once(draw: Draw) -> tuple[Tensor, float, float]:
    epochs, unique, fade = readings(draw)
    return torch.ones_like(epochs), unique, fade


EFFECTIVE = replace(
    SHOWN["effective_tokens"],
    cases=(Case("what repeated text is worth", readings, 11), Case("text that is read once", read_once, 4)),
)


def plans(draw: Draw, *, useless: bool = False) -> tuple:
    """Amounts of data and sizes of models, and the numbers of the law; `useless`: nothing is transferred."""
    (count,) = draw.sizes(1)
    k, alpha, beta = (1 + 2 * torch.rand(3, generator=draw.generator)).tolist()
    data, sizes = 1 + 5 * torch.rand(2, count, generator=draw.generator)
    return data, 2 * sizes, 0.0 if useless else k, 0.2 * alpha, 0.3 * beta


TRANSFER = replace(
    SHOWN["transferred_data"],
    cases=(
        Case("what is transferred, and the multiplier", plans, 13),
        Case("pretraining that is worth nothing", lambda draw: plans(draw, useless=True), 2),
    ),
)


def a_task(draw: Draw) -> tuple[Tensor, float, float]:
    """In thousands of steps and examples."""
    steps, times, count = draw.sizes(3)
    return 1 + 5 * torch.rand(count, generator=draw.generator), 1.0 * steps, 2.0 * steps * times


BATCH = replace(SHOWN["steps_and_examples"], cases=(Case("steps and examples for each batch", a_task, 15),))


def noisy_gradients(draw: Draw, *, steps: int | None = None, devices: int | None = None) -> tuple[Tensor, int]:
    """Gradients of all devices in some steps, whose lengths differ from step to step, and the size of a batch."""
    n, m, P = draw.sizes(3, 2, 7)
    n, m, P = steps or n, devices or m, P + 12
    true = draw(n, 1, P) * (1 + 2 * torch.rand(n, 1, 1, generator=draw.generator))
    return true + draw(n, m, P), draw.integers(2, 20, 1).item()


NOISE = replace(
    SHOWN["noise_scale"],
    cases=(
        Case("the noise scale over several steps", noisy_gradients, 9),
        Case("a single step", lambda draw: noisy_gradients(draw, steps=1), 3),
        Case("two devices", lambda draw: noisy_gradients(draw, devices=2), 3),
    ),
)


def best_floor(x: Tensor, y: Tensor, floors: Tensor, *, in_logs: bool) -> Tensor:
    """The floor c whose line through (ln x, ln(y - c)) has the least squared error, in logarithms or not."""
    errors = []
    u = x.log() - x.log().mean()
    for c in floors:
        v = (y - c).log()
        line = v.mean() + u * (u * v).sum() / u.square().sum()
        errors.append((line - v if in_logs else line.exp() + c - y).square().sum().nan_to_num(torch.inf, torch.inf))
    return floors[torch.stack(errors).argmin()]


def bent(draw: Draw, *, exact: bool = False, alone: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Points of a law with a floor, roughly or exactly; of the floors on offer some lie above a point, one touches it.

    With `alone` there is one floor only.
    """
    count, many = draw.sizes(2, low=6, high=9)
    x = torch.logspace(0, 3, count)
    c = 1.0 + 0.5 * torch.rand(1, generator=draw.generator)
    y = 3 * x**-0.6 + c + (0 if exact else 0.05 * draw(count).clamp(-1.5, 1.5))
    floors = torch.linspace(0.3, 2.4, 3 * many + draw.integers(0, 3, 1).item())
    if exact:
        floors = torch.cat([floors[(floors - c).abs() > 0.02], c])
    floors = torch.cat([floors, y.min()[None]])
    order = draw(len(floors)).argsort() if exact else floors.argsort(descending=True)
    return x, y, 0.8 * c if alone else floors[order]


def clearly_bent(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Points for which errors in logarithms would choose another floor."""
    for _ in range(20):
        given = bent(draw)
        if best_floor(*given, in_logs=False) != best_floor(*given, in_logs=True):
            break
    return given


FLOOR = replace(
    SHOWN["law_with_floor"],
    cases=(
        Case("the floor with the least squared error, and its line", clearly_bent, 9),
        Case("points that lie on a law with one of the floors", lambda draw: bent(draw, exact=True), 6),
        Case("a single floor", lambda draw: bent(draw, alone=True), 4),
    ),
)


def broken(draw: Draw, *, exact: bool = False, near: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Points of a law with a break, roughly or exactly, and breaks to try, some of them too near to an end.

    With `near` there is one line but for the last point, so that a break just before this point would fit best.
    """
    x = torch.logspace(0, 4, draw.integers(9, 13, 1).item())
    d, first, second = torch.rand(3, generator=draw.generator)
    d, first, second = 10 ** (1.6 + d), 0.2 + 0.3 * first, 0.7 + 0.4 * second
    y = 5 * x**-first * (x / d).clamp(min=1) ** (first - second)
    if not exact:
        y = y * (0.04 * draw(len(x)).clamp(-1.5, 1.5)).exp()
    if near:
        y = 5 * x**-first * (0.04 * draw(len(x)).clamp(-1.5, 1.5)).exp()
        y[-1] *= 3
    breaks = (x[1:] * x[:-1]).sqrt() * (0.2 * torch.rand(len(x) - 1, generator=draw.generator)).exp()
    if exact:
        breaks = torch.cat([breaks[(breaks.log() - d.log()).abs() > 0.1], d[None]])
    return x, y, breaks[draw(len(breaks)).argsort()]


def best_break(x: Tensor, y: Tensor, breaks: Tensor, *, in_logs: bool) -> Tensor:
    """The break with two points or more on both sides that fits best, by errors in logarithms or not."""
    found = []
    for d in (d for d in breaks if (x < d).sum() > 1 and (x > d).sum() > 1):
        columns = torch.stack([x**0, x.log(), (x / d).log().clamp(min=0)], dim=1)
        line = columns @ torch.linalg.lstsq(columns, y.log()[:, None]).solution[:, 0]
        error = line - y.log() if in_logs else line.exp() - y
        found.append((error.square().sum().item(), d))
    return min(found)[1]


def clearly_broken(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Points for which errors that are not in logarithms would choose another break, and neither is the first one."""
    for _ in range(50):
        given = broken(draw)
        one, other = (best_break(*given, in_logs=in_logs) for in_logs in (True, False))
        if one != other and given[2][0] not in (one, other):
            break
    return given


BREAK = replace(
    SHOWN["law_with_break"],
    cases=(
        Case("the break with the least squared error, and its two lines", clearly_broken, 9),
        Case("points that lie on a law with one of the breaks", lambda draw: broken(draw, exact=True), 6),
        Case("breaks too near to an end are left out", lambda draw: broken(draw, near=True), 4),
    ),
)


ASSIGNMENT = Assignment(
    "09",
    notebook="scaling",
    title="Scaling laws",
    tasks=(HUBER, BIWEIGHT, EFFECTIVE, TRANSFER, BATCH, NOISE, FLOOR, BREAK, SHOWN["study"]),
)
