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


def a_task(draw: Draw) -> tuple[Tensor, float, float]:
    """In thousands of steps and examples."""
    steps, times, count = draw.sizes(3)
    return 1 + 5 * torch.rand(count, generator=draw.generator), 1.0 * steps, 2.0 * steps * times


BATCH = replace(SHOWN["steps_and_examples"], cases=(Case("steps and examples for each batch", a_task, 15),))


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


ASSIGNMENT = Assignment(
    "09",
    notebook="scaling",
    title="Scaling laws",
    tasks=(HUBER, EFFECTIVE, BATCH, FLOOR, SHOWN["study"]),
    seconds={"study": 120},
)
