"""Lesson 10, Aligning a language model: what its exercises are tried with; tasks.md has their text and mistakes."""

import copy
from pathlib import Path

import torch
from torch import Tensor

from course_lib.lessons.lesson_08.tasks import TASKS as OF_LESSON_08
from course_lib.tasks import Case, Draw, TaskInput
from course_lib.tasks.markdown import read_tasks


def some_texts(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of prompts with answers of different lengths, the tokens, and which of them are of the answers."""
    B, T, V = draw.sizes(3, low=5)
    length = draw.integers(3, T, B)
    length[0] = T
    begin = (length * torch.rand(B, generator=draw.generator)).long().clamp(1, T - 2)
    columns = torch.arange(T)
    answer = (columns >= begin[:, None]) & (columns < length[:, None])
    return 2 * draw(B, T, V), draw.integers(0, V, B, T), answer


def texts_and_gpt(draw: Draw) -> TaskInput:
    """Padded texts, and a small GPT on which a reward model is built."""
    B, T, V, heads = draw.sizes(4, low=3)
    gpt = OF_LESSON_08["gpt"].module(V, T, 4 * heads, 1, heads)
    with torch.no_grad():
        for parameter in gpt.parameters():
            parameter.copy_(0.5 * draw(*parameter.shape))
    length = draw.integers(2, T, B)
    length[0] = T
    return TaskInput((draw.integers(0, V, B, T), torch.arange(T) < length[:, None]), build=(gpt,))


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


def a_trace(draw: Draw, *more: float) -> tuple:
    """Rewards and values of some answers, lambda, and perhaps gamma."""
    count, length = draw.sizes(2, low=4)
    return draw(count, length), draw(count, length), *(more or (0.7,))


def groups(draw: Draw, equal: bool = False) -> tuple[Tensor]:
    """Rewards of groups whose means and standard deviations differ; with `equal` those of one group are the same."""
    count, size = draw.sizes(2, low=3)
    rewards = draw(count, size) * (1 + torch.arange(count))[:, None] + 3 * draw(count, 1)
    if equal:
        rewards[0] = 1.0
    return (rewards,)


def a_group_round(draw: Draw) -> tuple:
    """Tokens of answers on both sides of the clip, with advantages of both signs."""
    count, length = draw.sizes(2, low=4)
    count *= 2
    ends = draw.integers(1, length, count)
    ends[0] = length
    old = -draw(count, length).abs() - 0.7
    new = old + 0.4 * draw(count, length)
    return new, old, new + 0.5 * draw(count, length), draw(count) + 0.2, torch.arange(length) < ends[:, None], 0.2, 0.3


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
    "sft_loss": (Case("mean of -ln p over the tokens of the answers", some_texts),),
    "reward_model": (Case("one reward for each text, read at its last token", texts_and_gpt),),
    "pair_loss": (
        Case("mean of -ln of the probability that the chosen one wins", two_rewards),
        Case("rewards far apart", rewards_far_apart),
    ),
    "token_rewards": (Case("a penalty for each token, the score at an answer's last one", a_round),),
    "gae": (
        Case("the advantage of each token", a_trace),
        Case("lambda 0: delta itself", lambda draw: a_trace(draw, 0.0)),
        Case("a discount", lambda draw: a_trace(draw, 0.6, 0.8)),
    ),
    "clipped": (Case("the clipped objective, which is to grow", some_steps),),
    "direct_loss": (
        Case("mean of -ln of the probability that the chosen one wins", four_logs),
        Case("far apart", four_far_apart),
    ),
    "group_advantage": (
        Case("groups of different prompts", groups),
        Case("a group with equal rewards", lambda draw: groups(draw, equal=True)),
    ),
    "grpo_loss": (Case("the clipped objective and the penalty, over real tokens", a_group_round),),
    "best_policy": (
        Case("the probability of each answer", some_answers),
        Case("large rewards", lambda draw: some_answers(draw, 60.0)),
    ),
}


def clipped(log_probs: Tensor, old: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """The clipped objective that the loss of GRPO takes if a learner has none of her own."""
    return TASKS["clipped"].reference(log_probs, old, advantage, clip)


HALVES, QUARTERS = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.25])
TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"),
    CASES,
    {"clipped": clipped, "copy": copy},
    sft_loss={
        "example": (
            (
                (
                    [[[0.0, 0.0], [1.0986, 0.0], [5.0, 0.0]]],
                    torch.tensor([[0, 1, 0]]),
                    torch.tensor([[False, True, True]]),
                ),
                0.4904,
            ),
        )
    },
    group_advantage={"example": ((([[1.0, 0.0], [1.0, 1.0]],), [[0.707, -0.707], [0.0, 0.0]]),)},
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
