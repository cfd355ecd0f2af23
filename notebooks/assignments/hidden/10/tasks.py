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


def placed(draw: Draw, places: str, *, lift: float = 1.0) -> tuple[Tensor, int]:
    """Rewards that follow the ranking now and then; all answers have a place, one has, or some have."""
    K = draw.integers(5, 9, 1).item()
    (rewards,) = ranked(draw, K, lift=lift)
    return rewards, {"all": K, "one": 1, "some": draw.integers(3, K - 1, 1).item()}[places]


LISTWISE = replace(
    SHOWN["listwise_loss"],
    cases=(
        Case("the first places of several answers", lambda draw: placed(draw, "some"), 8),
        Case("a place for every answer", lambda draw: placed(draw, "all"), 4),
        Case("the first place alone", lambda draw: placed(draw, "one"), 2),
        Case("rewards that lie far apart", lambda draw: placed(draw, "some", lift=200.0), 2),
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


def listed(draw: Draw, beta: float | None = None, *, uniform: bool = False) -> tuple[Tensor, Tensor, float]:
    """Rewards of all answers, the logarithms of their probabilities, and a beta."""
    (count,) = draw.sizes(1, low=5)
    scores = (0.0 if uniform else 1.5) * draw(count)
    beta = round(0.3 + 1.2 * torch.rand(1, generator=draw.generator).item(), 2) if beta is None else beta
    return 2 * draw(count) + 3, scores.log_softmax(dim=0), beta


TILTED = replace(
    SHOWN["tilted_policy"],
    cases=(
        Case("answers of several probabilities", listed, 9),
        Case("equally probable answers", lambda draw: listed(draw, uniform=True), 3),
        Case("a large beta", lambda draw: listed(draw, 8.0), 3),
        Case("a small beta", lambda draw: listed(draw, 0.01), 3),
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


def groups_and_gradients(draw: Draw, G: int | None = None) -> tuple[Tensor, Tensor]:
    """Rewards of groups of answers, and gradients, some of which are much larger than others."""
    count, size, width = draw.sizes(3, low=3)
    rewards = draw(count, G or size) + 2 * draw(count, 1)
    return rewards, draw(count, G or size, width) * (0.5 + draw(count, G or size, 1).abs())


LEAST_VARIANCE = replace(
    SHOWN["least_variance"],
    cases=(
        Case("groups of several answers", groups_and_gradients, 10),
        Case("groups of two answers", lambda draw: groups_and_gradients(draw, 2), 4),
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
    cases=(Case("mean of the squared distance from the target", four_logs, 9), Case("a single pair", a_pair, 5)),
)


ASSIGNMENT = Assignment(
    "10",
    notebook="alignment",
    title="Aligning a language model",
    tasks=(RANKING, LISTWISE, BEST_OF_N, TILTED, LEAVE_ONE_OUT, LEAST_VARIANCE, IDENTITY, SHOWN["train"]),
)
