"""Assignment 10, Aligning a language model: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_10.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, mistakes


def ranking_loss(
    rewards: Tensor, *, pairs: str = "all", turned: bool = False, sign: float = -1.0,
    log: str = "log-sigmoid", reduce: str = "mean",
) -> Tensor:  # fmt: skip
    """-mean ln sigmoid(r_i - r_j) over all i before j: Ouyang et al. 2022, eq. (1)."""
    K = rewards.shape[1]
    gap = rewards[:, :, None] - rewards[:, None]
    before = torch.ones(K, K, dtype=torch.bool).triu(1)
    kept = {
        "all": before,
        "neighbours": before & ~torch.ones(K, K, dtype=torch.bool).triu(2),
        "first against all": before & (torch.arange(K) == 0)[:, None],
        "both ways": ~torch.eye(K, dtype=torch.bool),
        "with itself": torch.ones(K, K, dtype=torch.bool).triu(),
        "first and last": before & (torch.arange(K) == 0)[:, None] & (torch.arange(K) == K - 1),
    }[pairs]
    gap = (-gap if turned else gap)[:, kept]
    won = F.logsigmoid(gap) if log == "log-sigmoid" else gap.sigmoid()
    won = won.log() if log == "of the sigmoid" else won
    return sign * (won.mean() if reduce == "mean" else won.sum(dim=1).mean())


def ranked(draw: Draw, K: int | None = None, *, lift: float = 1.0) -> tuple[Tensor]:
    """Rewards that follow the ranking now and then."""
    count, answers = draw.sizes(2, low=4)
    K = K or answers
    return (lift * (1.5 * draw(count, K) - 0.4 * torch.arange(K)),)


RANKING = replace(
    SHOWN["ranking_loss"],
    reference=ranking_loss,
    cases=(
        Case("all pairs of several answers", ranked, 10),
        Case("two answers", lambda draw: ranked(draw, 2), 4, ("turned", "sign", "log")),
        Case("rewards that lie far apart", lambda draw: ranked(draw, lift=200.0), 2),
    ),
    mistakes=mistakes(r"""
neighbours only: pairs='neighbours'
    Only neighbours in the ranking are compared.
    > The first against the third says something, too: all K (K - 1) / 2 pairs.
first against all: pairs='first against all'
    Only the best answer is compared with the others.
    > All pairs: the second against the third, too.
first and last only: pairs='first and last'
    Only the best and the worst answer are compared.
    > All K (K - 1) / 2 pairs.
pairs both ways: pairs='both ways'
    Each pair is counted twice, once the wrong way round.
    > Only $i < j$: the better one first.
answers with themselves: pairs='with itself'
    Each answer is compared with itself, too.
    > $i < j$, not $i \le j$.
winner and loser exchanged: turned=True
    The difference has the wrong sign.
    > The better answer stands first: $\sigma(r_i - r_j)$ for $i < j$.
sign: sign=1.0
    The loss has the wrong sign.
    > *Minus* the logarithm.
logarithm forgotten: log='none'
    The logarithm is missing.
    > $-\ln \sigma$.
logarithm of a sigmoid that is 0: log='of the sigmoid'
    Where a worse answer has a much larger reward, the loss is infinite: there the sigmoid rounds to 0.
    > `F.logsigmoid` computes the logarithm without the sigmoid, and stays finite.
sum over the pairs: reduce='sum'
    The pairs of a prompt are added up.
    > The mean: so that a prompt with nine answers, 36 pairs, does not count six times as much as one with four.
"""),
    wrong={
        "neighbours only": ("torch.triu_indices(K, K, 1)", "torch.arange(K)[:-1], torch.arange(K)[1:]"),
        "logarithm of a sigmoid that is 0": (
            "F.logsigmoid(rewards[:, better] - rewards[:, worse])",
            "(rewards[:, better] - rewards[:, worse]).sigmoid().log()",
        ),
    },
)


def best_of_n(
    rewards: Tensor, n: int, *, order: str = "up", chance: str = "last of n", kl: str = "ln n - (n - 1) / n",
) -> Tensor:  # fmt: skip
    """What the best of n drawn answers is worth on average, and how far that is from drawing one."""
    N = len(rewards)
    sorted_ = rewards.sort(descending=order == "down").values
    upto = torch.arange(N + 1, dtype=rewards.dtype) / N
    weights = {
        "last of n": upto[1:] ** n - upto[:-1] ** n,
        "one draw": upto[1:] - upto[:-1],
        "not taken off": upto[1:] ** n,
        "best of all": F.one_hot(torch.tensor(N - 1), N).to(rewards.dtype),
        "one less": upto[1:] ** max(n - 1, 1) - upto[:-1] ** max(n - 1, 1),
    }[chance]
    far = {
        "ln n - (n - 1) / n": math.log(n) - (n - 1) / n,
        "ln n": math.log(n),
        "plus": math.log(n) + (n - 1) / n,
        "base 2": (math.log(n) - (n - 1) / n) / math.log(2),
    }[kl]
    return torch.stack([(sorted_ * weights).sum(), torch.tensor(far, dtype=rewards.dtype)])


def some_rewards(draw: Draw, fewest: int, most: int) -> tuple[Tensor, int]:
    (count,) = draw.sizes(1, low=5)
    return 2 * draw(count) + 0.5, draw.integers(fewest, most + 1, 1).item()


BEST_OF_N = replace(
    SHOWN["best_of_n"],
    reference=best_of_n,
    cases=(
        Case("the best of a few", lambda draw: some_rewards(draw, 3, 6), 10),
        Case("the best of many", lambda draw: some_rewards(draw, 9, 20), 7),
        Case("the best of one", lambda draw: some_rewards(draw, 1, 1), 2),
    ),
    mistakes=mistakes(r"""
the worst of n: order='down'
    That is what the *worst* of n is worth.
    > Sort from small to large: the i-th is the best if all n draws are among the first i, not all among i - 1.
one draw: chance='one draw'
    That is the mean: what a single draw is worth.
    > With n draws the good ones come up more often: $(i / N)^n - ((i - 1) / N)^n$.
chances do not sum to one: chance='not taken off'
    The chances do not sum to 1.
    > $(i / N)^n$ is the chance that the best is the i-th *or a smaller one*: take off that of the one before.
the best of all: chance='best of all'
    You return the largest reward: that comes up for certain only if n is infinite.
    > It is drawn among n with the probability $1 - ((N - 1) / N)^n$.
one draw too few: chance='one less'
    You have drawn one answer too few.
    > n draws.
logarithm alone: kl='ln n'
    The second number is $\ln n$.
    > $\ln n - (n - 1) / n$: only for n = 1 are the two the same.
sign within: kl='plus'
    The second number has a wrong sign in it.
    > $\ln n - (n - 1) / n$.
bits, not nats: kl='base 2'
    The second number is in bits.
    > The natural logarithm: `math.log`.
"""),
    wrong={"one draw too few": ("** n", "** max(n - 1, 1)")},
)


def kl_estimate(
    log_probs: Tensor, reference: Tensor, valid: Tensor, *, ratio: str = "reference over policy", kind: str = "k3",
    counts: str = "valid", reduce: str = "answers",
) -> Tensor:  # fmt: skip
    """Mean over answers of the sum over tokens of e^d - 1 - d, d = ln(pi_ref / pi); Schulman 2020."""
    d = reference - log_probs if ratio == "reference over policy" else log_probs - reference
    each = {"k3": d.exp() - 1 - d, "k1": -d, "k2": d.square() / 2, "no -d": d.exp() - 1, "no 1": d.exp() - d}[kind]
    if counts == "valid":
        each = torch.where(valid, each, 0.0)
    if counts == "times":
        each = each * valid
    if reduce == "tokens":
        return each.sum() / (valid.numel() if counts == "all" else valid.sum())
    return each.sum(dim=1).mean() if reduce == "answers" else each.sum()


def some_texts(draw: Draw, *, infinite: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Answers of different lengths; behind their ends stands rubbish, or minus infinity."""
    count, length = draw.sizes(2, low=4)
    ends = draw.integers(1, length, count)
    first = -draw(count, length).abs() - 0.1
    valid = torch.arange(length) < ends[:, None]
    reference = first + 0.6 * draw(count, length)
    return first, reference.masked_fill(~valid, -math.inf) if infinite else reference, valid


KL_ESTIMATE = replace(
    SHOWN["kl_estimate"],
    reference=kl_estimate,
    cases=(
        Case("mean over answers of the sum over their tokens", some_texts, 11),
        Case("whatever stands behind an answer's end", lambda draw: some_texts(draw, infinite=True), 3),
    ),
    mistakes=mistakes(r"""
quotient turned: ratio='policy over reference'
    The quotient is turned round.
    > $d = \ln \pi_{ref} - \ln \pi$.
the plain logarithm: kind='k1'
    That is the mean of $\ln (\pi / \pi_{ref})$: right on average, and often negative.
    > $e^d - 1 - d$.
half the square: kind='k2'
    That is half the square of the logarithm: never negative, but wrong on average.
    > $e^d - 1 - d$.
logarithm forgotten: kind='no -d'
    The $-d$ is missing: that can be negative.
    > $e^d - 1 - d$.
one forgotten: kind='no 1'
    The 1 is missing: two equal policies are not 0 apart.
    > $e^d - 1 - d$.
what fills up counts: counts='all'
    What stands behind an answer's end counts, too.
    > Only where `valid` is True. (`torch.where` or `masked_fill`.)
infinity times 0: counts='times'
    What stands behind an answer's end was multiplied by 0. If it is infinite, the product is NaN.
    > Put a 0 in its place: `torch.where` or `masked_fill`.
mean over tokens: reduce='tokens'
    That is a mean over tokens.
    > The sum over the tokens of each answer; then the mean over the answers.
sum over answers: reduce='sum'
    The answers are added up.
    > Their mean.
"""),
    wrong={
        "what fills up counts": ("each.masked_fill(~valid, 0.0)", "each"),
        "infinity times 0": ("each.masked_fill(~valid, 0.0)", "(each * valid)"),
    },
)


def identity_loss(
    chosen: Tensor, rejected: Tensor, reference_chosen: Tensor, reference_rejected: Tensor, beta: float, *,
    referred: str = "both", goal: str = "1 / 2 beta", turned: bool = False, power: str = "square",
    reduce: str = "mean",
) -> Tensor:  # fmt: skip
    """(h - 1 / (2 beta))², h the difference of log-ratios: Azar et al. 2023, eq. (17)."""
    won = chosen - (reference_chosen if referred in ("both", "chosen") else 0)
    lost = rejected - (reference_rejected if referred in ("both", "rejected") else 0)
    h = lost - won if turned else won - lost
    h = h * beta if goal == "1 / 2, beta times h" else h
    far = {
        "1 / 2 beta": 1 / (2 * beta),
        "1 / beta": 1 / beta,
        "beta / 2": beta / 2,
        "0": 0.0,
        "1 / 2, beta times h": 0.5,
    }[goal]
    gap = h - far
    each = {"square": gap.square(), "absolute": gap.abs(), "hinge": (-gap).clamp_min(0).square()}[power]
    return each.mean() if reduce == "mean" else each.sum()


def four_logs(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    (count,) = draw.sizes(1, low=4)
    beta = round(0.1 + 0.8 * torch.rand(1, generator=draw.generator).item(), 2)
    return (*(3 * draw(count) - 12 for _ in range(4)), beta)


def a_pair(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    *logs, beta = four_logs(draw)
    return *(each[:1] for each in logs), beta


IDENTITY = replace(
    SHOWN["identity_loss"],
    reference=identity_loss,
    cases=(
        Case("mean of the squared distance from the goal", four_logs, 9),
        Case("a single pair", a_pair, 5),
    ),
    mistakes=mistakes(r"""
no reference: referred='none'
    The reference is missing.
    > Each answer's $\ln \pi$ less its $\ln \pi_{ref}$.
one reference only: referred='chosen' | 'rejected'
    Only one of the two answers is compared with the reference.
    > Both.
a wrong goal: goal='1 / beta' | 'beta / 2' | '0' | '1 / 2, beta times h'
    The difference is drawn to another goal than the formula's.
    > $1 / (2 \beta)$.
winner and loser exchanged: turned=True
    The difference has the wrong sign.
    > What the chosen one gained, less what the rejected one gained.
not squared: power='absolute'
    The distance from the goal is not squared.
    > $(h - 1 / (2 \beta))^2$.
one side only: power='hinge'
    A difference *beyond* the goal costs nothing.
    > It costs, too: that is what keeps the policy near the reference.
sum instead of mean: reduce='sum'
    The pairs were added up.
    > Their mean.
"""),
    wrong={"one reference only": ("chosen - reference_chosen", "chosen")},
)

TRAIN = replace(
    SHOWN["train"],
    wrong={
        "the worse one preferred": ("torch.where(wins, gap, -gap)", "torch.where(wins, -gap, gap)"),
        "all texts worth the same": ("return model.eval()", "model.head.weight.data.zero_()\n    return model.eval()"),
        "order not learned": ("WIDTH = 2", "WIDTH = 1"),
        "numbers of different types meet": ("return model.eval()", "return model(first.float())"),
    },
)

ASSIGNMENT = Assignment(
    "10",
    notebook="alignment",
    title="Aligning a language model",
    tasks=(RANKING, BEST_OF_N, KL_ESTIMATE, IDENTITY, TRAIN),
    seconds={"train": 120},  # for the training, and all questions
)
