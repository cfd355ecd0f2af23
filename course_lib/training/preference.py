"""From a language model to one that answers as people prefer: the three steps of InstructGPT, and DPO beside them.

Ouyang et al., "Training language models to follow instructions with human feedback", NeurIPS 2022, arXiv 2203.02155,
figure 2. Rafailov et al., "Direct preference optimization", NeurIPS 2023, arXiv 2305.18290. Each step is a loss, or
batches with a loss, for `course_lib.training.loop.fit`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.functional.preference import (
    advantages,
    clipped_objective,
    clipped_value_loss,
    dpo_loss,
    penalised_rewards,
    ranking_loss,
)
from course_lib.generation.stepwise import log_probs, sample
from course_lib.models.gpt import GPT
from course_lib.models.reward import RewardModel
from course_lib.training.batches import Rollouts

Score = Callable[["Answers"], Tensor]  # answers to one number each, (B)


class Answers(NamedTuple):
    """Prompts of one length, and an answer to each; behind its end an answer is filled up."""

    prompt: Int[Tensor, "B P"]
    tokens: Int[Tensor, "B T"]
    valid: Bool[Tensor, "B T"]  # True at an answer's tokens, the one that ends it among them

    @property
    def whole(self) -> Int[Tensor, "B T_whole"]:
        """Prompt and answer as one text."""
        return torch.cat([self.prompt, self.tokens], dim=1)

    @property
    def whole_valid(self) -> Bool[Tensor, "B T_whole"]:
        """True at all but what fills up."""
        return torch.cat([torch.ones_like(self.prompt, dtype=torch.bool), self.valid], dim=1)


class Comparison(NamedTuple):
    """Two answers to each prompt: the one that was preferred, and the other."""

    chosen: Answers
    rejected: Answers


def answer(
    policy: GPT,
    prompt: Int[Tensor, "B P"],
    *,
    max_new_tokens: int,
    end_id: int,
    generator: torch.Generator | None = None,
) -> Answers:
    """What a policy answers, drawn token by token."""
    tokens = sample(policy, prompt, max_new_tokens=max_new_tokens, generator=generator, end_id=end_id, pad_id=end_id)
    ended = (tokens == end_id).cumsum(dim=1)
    return Answers(prompt, tokens, (ended == 0) | ((ended == 1) & (tokens == end_id)))


def answer_log_probs(policy: GPT, answers: Answers) -> Float[Tensor, " B"]:
    """ln pi(y | x) of whole answers, in nats; what fills up does not count."""
    return (log_probs(policy, answers.prompt, answers.tokens) * answers.valid).sum(dim=1)


# ---------------------------------------------------------------------------------------- the three steps


def demonstration_loss(policy: GPT, answers: Answers) -> Float[Tensor, ""]:
    """Step 1, supervised fine-tuning: -mean ln pi of the demonstrated answers' tokens; the prompt is not learned."""
    return -log_probs(policy, answers.prompt, answers.tokens)[answers.valid].mean()


def comparison_loss(model: RewardModel, pair: Comparison) -> Float[Tensor, ""]:
    """Step 2, the reward model: Ouyang et al. 2022, eq. (1), for two answers to each prompt."""
    rewards = [model(each.whole, valid=each.whole_valid) for each in pair]
    return ranking_loss(torch.stack(rewards, dim=1))


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """Step 3: how a policy is improved by what a reward model says. Raises ValueError for a negative weight."""

    beta: float = 0.1  # weight of the KL penalty, in reward for each nat
    clip: float = 0.2  # epsilon
    trace: float = 0.95  # lambda
    value_weight: float = 0.5
    prompts: int = 64  # answered in each round
    epochs: int = 4
    minibatches: int = 4
    max_new_tokens: int = 16

    def __post_init__(self):
        if min(self.beta, self.clip, self.value_weight) < 0:
            raise ValueError(
                f"beta, clip and value_weight must be 0 or more, got {self.beta}, {self.clip}, {self.value_weight}"
            )


class ActorCritic(nn.Module):
    """A policy, and what it may expect: two networks that PPO trains together."""

    def __init__(self, policy: GPT, critic: RewardModel):
        super().__init__()
        self.policy, self.critic = policy, critic

    def values(self, answers: Answers) -> Float[Tensor, "B T"]:
        """V before each token of the answers is written; 0 behind their end."""
        before = self.critic.values(answers.whole[:, :-1])[:, answers.prompt.shape[1] - 1 :]
        return before * answers.valid


def ppo_rollouts(
    reference: GPT, score: Score, prompts_at: Callable[[int], Tensor], config: PPOConfig, *, end_id: int
) -> Rollouts:
    """Batches for `fit(ActorCritic, ..., ppo_loss(config))`: a round of answers, what was paid for them, and how much
    more that was than expected.

    `prompts_at(round)` are the prompts of a round, `score(answers)` is what the reward model says. The `reference` is
    the policy at the start: each token costs beta times the logarithm of how much likelier it has become.
    """

    def make(model: ActorCritic, number: int) -> dict[str, Tensor]:
        answers = answer(model.policy, prompts_at(number), max_new_tokens=config.max_new_tokens, end_id=end_id)
        old = log_probs(model.policy, answers.prompt, answers.tokens)
        behind = log_probs(reference, answers.prompt, answers.tokens)
        paid = penalised_rewards(score(answers), old, behind, beta=config.beta, valid=answers.valid)
        values = model.values(answers)
        advantage = advantages(paid, F.pad(values, (0, 1)), trace=config.trace)
        known = advantage[answers.valid]
        made = {
            "old": old,
            "old_values": values,
            "returns": advantage + values,
            "advantage": (advantage - known.mean()) / known.std().clamp_min(1e-6),
        }
        return answers._asdict() | made

    return Rollouts(make, epochs=config.epochs, minibatches=config.minibatches)


def ppo_loss(config: PPOConfig) -> Callable[[ActorCritic, dict[str, Tensor]], Float[Tensor, ""]]:
    """The clipped objective, to be maximised, and the error of the values: Schulman et al. 2017, eq. (9)."""

    def loss(model: ActorCritic, batch: dict[str, Tensor]) -> Float[Tensor, ""]:
        answers = Answers(batch["prompt"], batch["tokens"], batch["valid"])
        new = log_probs(model.policy, answers.prompt, answers.tokens)
        shared = {"clip": config.clip, "valid": answers.valid}
        objective = clipped_objective(new, batch["old"], batch["advantage"], **shared)
        error = clipped_value_loss(model.values(answers), batch["old_values"], batch["returns"], **shared)
        return -objective + config.value_weight * error

    return loss


# ------------------------------------------------------------------------------------------------- beside


def direct_loss(reference: GPT, *, beta: float = 0.1) -> Callable[[GPT, Comparison], Float[Tensor, ""]]:
    """DPO in place of steps 2 and 3: the policy learns from comparisons directly, Rafailov et al. 2023, eq. (7)."""

    def loss(policy: GPT, pair: Comparison) -> Float[Tensor, ""]:
        with torch.no_grad():
            before = [answer_log_probs(reference, each) for each in pair]
        return dpo_loss(*(answer_log_probs(policy, each) for each in pair), *before, beta=beta)

    return loss
