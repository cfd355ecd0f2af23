"""Lesson 10, aligning a language model: what its assignment's check cells ask; the grader's tables are in hidden/10."""

import math

import torch
from torch import Generator, Tensor

from course_lib.tasks import TRAINING_SECONDS, Check, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.trained import ELSEWHERE, in_parameters

DIGITS, LENGTH = 10, 3  # of prompts and of answers; digits of an answer
LOWEST, HIGHEST = 8, 19  # targets
SAMPLES = 50  # of each prompt

NOT_LEARNED = Finding(
    "hardly ever accepted",
    "The program accepts few of the sampled answers.",
    "Do accepted answers become more probable? Give each prompt a group of so many samples that some are accepted, "
    "and subtract a baseline.",
)
OTHER_TARGETS = Finding(
    "accepted too rarely",
    "More than half of the sampled answers are accepted, but fewer than nine in ten.",
    "Train for longer, or with more samples; is the weight of your penalty too large?",
)
ONE_ANSWER = Finding(
    "one answer for each prompt",
    "The sampled answers are accepted, but to a prompt they are nearly always the same.",
    "Only success counts, so the policy may end with any accepted answer. Keep it close to where it began, or reward "
    "its entropy.",
)


def accepts(targets: Tensor, prompts: Tensor, answers: Tensor) -> Tensor:
    """1.0 where the three digits of an answer, (B, 3), sum to the target of its prompt, (B,); else 0.0."""
    return (answers.sum(dim=1) == targets[prompts]).float()


def sampled(model: ModuleProbe, count: int, generator: Generator) -> Tensor:
    """Prompts with so many answers each, (10 count, 4), sampled digit by digit."""
    tokens = torch.arange(DIGITS).repeat_interleave(count)[:, None]
    for _ in range(LENGTH):
        logits = model.tensor(tokens, shape=(*tokens.shape, DIGITS))[:, -1]
        tokens = torch.cat([tokens, torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)], dim=1)
    return tokens


def accepted(model: ModuleProbe, targets: Tensor) -> tuple[float, float]:
    """The fraction of accepted samples, and how many different ones a prompt has among 50, on average."""
    tokens = sampled(model, SAMPLES, Generator().manual_seed(5))
    right = accepts(targets, tokens[:, 0], tokens[:, 1:]).bool()
    different = {tuple(row) for row in tokens[right].tolist()}
    return right.float().mean().item(), len(different) / DIGITS


def solves(name: str, points: float, *, level: float, different: float = 0.0) -> Check:
    """At least this fraction of samples is accepted, and so many different answers to a prompt."""

    def trained(probe: Probe) -> tuple[ModuleProbe, Tensor]:
        targets = probe.integers(LOWEST, HIGHEST + 1, DIGITS)
        model = probe.make("train", targets)
        tokens = torch.arange(DIGITS)[:, None]
        in_parameters(model, tokens, knows=lambda: accepted(model, targets)[0] > 0.4)
        return model, targets

    def run(probe: Probe) -> list[Finding]:
        model, targets = probe.once("trained", trained)
        fraction, kinds = accepted(model, targets)
        if fraction < level:
            return [NOT_LEARNED if fraction < 0.5 else OTHER_TARGETS]
        return [ONE_ANSWER] if kinds < different else []

    told = (NOT_LEARNED, OTHER_TARGETS, ONE_ANSWER)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


# the examples -----------------------------------------------------------------------------------------------

RANKED = (([[2.0, 1.0, 0.0]],), 0.2512)
PLACED = (([[math.log(5), math.log(3), 0.0, 0.0]], 2), -math.log(0.3))
BEST = (([3.0, 0.0, 0.0, 1.0], 2), [1.625, 0.1931])
TILTED = (
    ([0.0, 2 * math.log(2), 4 * math.log(2)], [-math.log(2), -math.log(4), -math.log(4)], 2.0),
    [2.5 * math.log(2), math.log(2) / 4],
)
OTHERS = (([[1.0, 0.0, 0.0, 1.0]],), [[2 / 3, -2 / 3, -2 / 3, 2 / 3]])
LEAST = (([[3.0, 0.0, 6.0]], [[[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]]]), [[-0.3, -3.3, 2.7]])
SQUARED = (([-1.0], [-4.0], [-2.0], [-3.0], 0.5), 1.0)

SHOWN = (
    Task("ranking_loss", "More than two", asks="rewards", also=(keeps_type, gradients), example=(RANKED,)),
    Task("listwise_loss", "The best few, in order", asks="rewards, k", also=(keeps_type, gradients),
         example=(PLACED,)),
    Task("best_of_n", "The best of n", asks="rewards, n", also=(keeps_type,), example=(BEST,)),
    Task("tilted_policy", "The best policy near the reference", asks="rewards, log_reference, beta",
         also=(keeps_type, gradients), example=(TILTED,)),
    Task("leave_one_out", "The others are the baseline", asks="rewards", also=(keeps_type, gradients),
         example=(OTHERS,)),
    Task("least_variance", "The baseline of least variance", asks="rewards, gradients",
         also=(keeps_type, gradients), example=(LEAST,)),
    Task("identity_loss", "Far enough is far enough",
         asks="chosen, rejected, reference_chosen, reference_rejected, beta", also=(keeps_type, gradients),
         example=(SQUARED,)),
    Task(
        "train",
        "A program is the reward",
        asks="targets",
        seconds=TRAINING_SECONDS,
        checks=(
            solves("At least half of the sampled answers are accepted", 6, level=0.5),
            solves("At least 90 % of the sampled answers are accepted", 8, level=0.9),
            solves("90 % are accepted, and each prompt keeps several answers", 6, level=0.9, different=2.0),
        ),
    ),
)  # fmt: skip
ASSIGNMENT = {task.name: task for task in SHOWN}
