"""Assignment 10, Aligning a language model: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_10.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def ranked(draw: Draw, K: int | None = None, *, lift: float = 1.0) -> tuple[Tensor]:
    """Rewards that follow the ranking now and then."""
    count, answers = draw.sizes(2, low=4)
    K = K or answers
    return (lift * (1.5 * draw(count, K) - 0.4 * torch.arange(K)),)


RANKING = replace(
    SHOWN["ranking_loss"],
    cases=(
        Case("all pairs of several answers", ranked, 10),
        Case("two answers", lambda draw: ranked(draw, 2), 4),
        Case("rewards that lie far apart", lambda draw: ranked(draw, lift=200.0), 2),
    ),
)


def some_rewards(draw: Draw, fewest: int, most: int) -> tuple[Tensor, int]:
    (count,) = draw.sizes(1, low=5)
    return 2 * draw(count) + 0.5, draw.integers(fewest, most + 1, 1).item()


BEST_OF_N = replace(
    SHOWN["best_of_n"],
    cases=(
        Case("the best of a few", lambda draw: some_rewards(draw, 3, 6), 10),
        Case("the best of many", lambda draw: some_rewards(draw, 9, 20), 7),
        Case("the best of one", lambda draw: some_rewards(draw, 1, 1), 2),
    ),
)


def groups(draw: Draw, G: int | None = None) -> tuple[Tensor]:
    """Rewards of groups of answers; the means of the groups differ."""
    count, size = draw.sizes(2, low=3)
    return (draw(count, G or size) + 2 * draw(count, 1),)


LEAVE_ONE_OUT = replace(
    SHOWN["leave_one_out"],
    cases=(
        Case("groups of several answers", groups, 10),
        Case("groups of two answers", lambda draw: groups(draw, 2), 4),
    ),
)


def four_logs(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    (count,) = draw.sizes(1, low=4)
    beta = round(0.1 + 0.8 * torch.rand(1, generator=draw.generator).item(), 2)
    return (*(3 * draw(count) - 12 for _ in range(4)), beta)


def a_pair(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    *logs, beta = four_logs(draw)
    return *(each[:1] for each in logs), beta


IDENTITY = replace(
    SHOWN["identity_loss"],
    cases=(Case("mean of the squared distance from the goal", four_logs, 9), Case("a single pair", a_pair, 5)),
)


ASSIGNMENT = Assignment(
    "10",
    notebook="alignment",
    title="Aligning a language model",
    tasks=(RANKING, BEST_OF_N, LEAVE_ONE_OUT, IDENTITY, SHOWN["train"]),
    seconds={"train": 90},
)
