"""Lesson 10, Aligning a language model: what its exercises are tried with; tasks.md has their text and mistakes."""

from pathlib import Path

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw
from course_lib.tasks.markdown import read_tasks


def two_rewards(draw: Draw) -> tuple[Tensor, Tensor]:
    """Rewards of chosen and of rejected answers."""
    (count,) = draw.sizes(1, low=4)
    return draw(count) + 0.5, 2 * draw(count) - 0.3


def rewards_far_apart(_draw: Draw) -> tuple[Tensor, Tensor]:
    """Rewards of two pairs whose differences are beyond 100."""
    return torch.tensor([60.0, -80.0]), torch.tensor([-60.0, 80.0])


def a_round(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    """Answers of different lengths; one is as long as can be."""
    count, length = draw.sizes(2, low=4)
    ends = draw.integers(1, length, count)
    ends[0] = length
    valid = torch.arange(length) < ends[:, None]
    return draw(count), -draw(count, length).abs(), -draw(count, length).abs(), valid, 0.3


def a_trace(draw: Draw, trace: float = 0.7) -> tuple[Tensor, Tensor, float]:
    """Rewards and values of some answers, and a trace."""
    count, length = draw.sizes(2, low=4)
    return draw(count, length), draw(count, length), trace


def some_steps(draw: Draw) -> tuple[Tensor, Tensor, Tensor, float]:
    """Ratios on both sides of the clip, with advantages of both signs."""
    (count,) = draw.sizes(1, low=5)
    old = -draw(4 * count).abs() - 0.5
    moved = torch.tensor([0.5, -0.5, 0.05, -0.05]).repeat(count)
    return old + moved + 0.02 * draw(4 * count), old, draw(4 * count) + 0.2, 0.2


def four_logs(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    """Logarithms of the chances of two answers under two policies, and a beta."""
    (count,) = draw.sizes(1, low=4)
    return (*(4 * draw(count) - 12 for _ in range(4)), 0.3)


def four_far_apart(_draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    """One pair whose rewards differ by nearly 500."""
    return (*(torch.tensor([value]) for value in (-500.0, -5.0, -9.0, -7.0)), 1.0)


def some_answers(draw: Draw, lift: float = 0.0) -> tuple[Tensor, Tensor, float]:
    """A policy, rewards that are so much higher, and a beta."""
    (count,) = draw.sizes(1, low=4)
    return draw(count).softmax(dim=0), draw(count) + lift, 0.4


CASES = {
    "pair_loss": (
        Case("mean of -ln of the chance that the chosen one wins", two_rewards),
        Case("rewards far apart", rewards_far_apart),
    ),
    "token_rewards": (Case("a penalty for each token, the score on an answer's last one", a_round),),
    "gae": (
        Case("the advantage of each token", a_trace),
        Case("trace 0: the surprise of one step", lambda draw: a_trace(draw, 0.0)),
    ),
    "clipped": (Case("the clipped objective, which is to grow", some_steps),),
    "direct_loss": (
        Case("mean of -ln of the chance that the chosen one wins", four_logs),
        Case("far apart", four_far_apart),
    ),
    "best_policy": (
        Case("what each answer's probability should be", some_answers),
        Case("large rewards", lambda draw: some_answers(draw, 60.0)),
    ),
}
HALVES, QUARTERS = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.25])
TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"),
    CASES,
    pair_loss={"example": ((([2.0, 0.0], [1.0, 0.0]), 0.5032),)},
    token_rewards={
        "example": (
            (
                ([2.0], [[-1.0, -1.0, -1.0]], [[-1.0, -3.0, -1.0]], torch.tensor([[True, True, False]]), 0.5),
                [[0.0, 1.0, 0.0]],
            ),
        )
    },
    gae={"example": ((([[0.0, 0.0, 1.0]], [[0.5, 0.5, 0.5]], 0.5), [[0.125, 0.25, 0.5]]),)},
    clipped={"example": (((HALVES.log(), QUARTERS.log(), [1.0, -1.0], 0.2), -0.4),)},
    direct_loss={
        "example": (
            (([-1.0], [-2.0], [-1.0], [-2.0], 0.5), 0.6931),
            (([-1.0], [-5.0], [-3.0], [-3.0], 0.5), 0.1269),
        )
    },
    best_policy={
        "example": (
            (([0.5, 0.5], [0.6931, 0.0], 1.0), [0.6667, 0.3333]),
            (([0.9, 0.1], [0.0, 2.1972], 1.0), [0.5, 0.5]),
        )
    },
)
