"""Lesson 10: the three steps and the short cut, before the page and on the learner's functions."""

import copy
import html
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.data.checkpoints import TrainedModel, load_trained
from course_lib.generation.stepwise import log_probs
from course_lib.lessons.lesson_10 import recipes
from course_lib.models.gpt import GPT
from course_lib.models.reward import RewardModel, reward_model_on
from course_lib.training import preference
from course_lib.training.batches import Rollouts
from course_lib.training.config import FitConfig
from course_lib.training.loop import fit
from course_lib.training.preference import ActorCritic, Answers, Comparison, PPOConfig
from course_lib.training.progress import Progress

ROUNDS, EVERY = 36, 6  # of PPO; between two measurements
MEASURED = 300  # prompts
PROMPTS = ("the minister", "our young", "she will")  # before the page
PAIRS = 2_000

PairLoss = Callable[[Tensor, Tensor], Tensor]
Point = dict[str, float]
Course = dict[str, Any]  # a training of PPO: its weights, its critic's, and what was measured


class Parts(NamedTuple):
    """What PPO is made of, ours or the learner's: arguments as in the lesson's exercises."""

    token_rewards: Callable[..., Tensor]
    gae: Callable[..., Tensor]
    clipped: Callable[..., Tensor]


def before() -> TrainedModel:
    """The model that has read sentences, and knows nothing of what is wanted."""
    return load_trained("unaligned")


def seed() -> int:
    return before().card["seed"]


def demonstrate(model: GPT) -> GPT:
    """Step 1 on a copy of the model."""
    settings = replace(recipes.SETTINGS, seed=seed())
    tuned = copy.deepcopy(model)
    batches, loss = recipes.demonstrations(settings, at_least=1)
    config = FitConfig(steps=settings.sft_steps, learning_rate=5e-4, warmup=8, seed=settings.seed)
    fit(tuned, batches, loss, config=config)
    return tuned.eval()


def asked(model: GPT, count: int = PAIRS) -> Comparison:
    """The labellers compare answers of the model."""
    return recipes.compared(model, count, recipes.SETTINGS.noise, seed())


def learn_reward(model: GPT, pairs: Comparison, loss: PairLoss) -> RewardModel:
    """Step 2: a reward model on top of what the language model knows."""
    settings = replace(recipes.SETTINGS, seed=seed())
    reward = reward_model_on(model)

    def batch_at(step: int) -> Comparison:
        rows = recipes.drawn(settings, step, len(pairs.chosen.prompt))
        return Comparison(*(recipes.rows_of(each, rows) for each in pairs))

    def objective(model: RewardModel, pair: Comparison) -> Float[Tensor, ""]:
        return loss(*(model(each.whole, valid=each.whole_valid) for each in pair))

    config = FitConfig(
        steps=settings.reward_steps, learning_rate=1e-3, warmup=settings.reward_steps // 20, seed=settings.seed
    )
    fit(reward, batch_at, objective, config=config)
    return reward.eval()


def agrees(reward: RewardModel, model: GPT) -> float:
    """How often the reward model prefers what the labellers would without a slip, on new pairs."""
    pairs = recipes.compared(model, 400, 0.0, seed=3, split="test")
    with torch.no_grad():
        better, worse = (recipes.scored(reward)(each) for each in pairs)
    return (better > worse).double().mean().item()


def improve(
    model: GPT,
    reward: RewardModel,
    parts: Parts,
    beta: float,
    display: Callable[[ActorCritic], Progress] | None = None,
    rounds: int = ROUNDS,
) -> Course:
    """Step 3, PPO: the weights at the end, and what was measured on the way."""
    both = ActorCritic(copy.deepcopy(model), reward_model_on(model))
    config = PPOConfig(beta=beta, prompts=128, max_new_tokens=recipes.LONGEST, epochs=2, minibatches=4)
    points = [measure(model, model, reward)]

    def make(now: ActorCritic, number: int) -> dict[str, Tensor]:
        prompts = recipes.prompts_of("train", config.prompts, 10_000 * seed() + number)
        answers = preference.answer(now.policy, prompts, max_new_tokens=recipes.LONGEST, end_id=recipes.END)
        old, first = (log_probs(one, answers.prompt, answers.tokens) for one in (now.policy, model))
        paid = parts.token_rewards(recipes.scored(reward)(answers), old, first, answers.valid, beta)
        values = now.values(answers)
        better = parts.gae(paid, values, config.trace)
        known = better[answers.valid]
        scaled = (better - known.mean()) / known.std().clamp_min(1e-6)
        return answers._asdict() | {"old": old, "advantage": scaled, "returns": better + values}

    def objective(now: ActorCritic, batch: dict[str, Tensor]) -> Float[Tensor, ""]:
        answers = Answers(batch["prompt"], batch["tokens"], batch["valid"])
        new = log_probs(now.policy, answers.prompt, answers.tokens)
        chosen = (each[answers.valid] for each in (new, batch["old"], batch["advantage"]))
        error = (now.values(answers) - batch["returns"])[answers.valid].square().mean()
        return -parts.clipped(*chosen, config.clip) + 0.25 * error

    def look(now: ActorCritic) -> float:
        points.append(measure(now.policy, model, reward))
        return points[-1]["reward"]

    steps = config.epochs * config.minibatches
    training = FitConfig(
        steps=steps * rounds,
        learning_rate=1e-3,
        schedule="constant",
        seed=seed(),
        evaluate_every=steps * min(EVERY, rounds),
    )
    rollouts = Rollouts(make, epochs=config.epochs, minibatches=config.minibatches)
    fit(both, rollouts, objective, config=training, validate=look, mode="max", progress=display and display(both))
    return {"weights": both.policy.state_dict(), "critic": both.critic.state_dict(), "points": points}


def directly(model: GPT, pairs: Comparison, loss: Callable[..., Tensor], beta: float = 1.0) -> GPT:
    """DPO: the policy learns from the comparisons themselves."""
    settings = replace(recipes.SETTINGS, seed=seed())
    policy = copy.deepcopy(model)
    with torch.no_grad():
        behind = [preference.answer_log_probs(model, each) for each in pairs]

    def batch_at(step: int) -> tuple[Comparison, list[Tensor]]:
        rows = recipes.drawn(settings, step, len(behind[0]))
        return Comparison(*(recipes.rows_of(each, rows) for each in pairs)), [each[rows] for each in behind]

    def objective(policy: GPT, batch: tuple[Comparison, list[Tensor]]) -> Float[Tensor, ""]:
        pair, before = batch
        return loss(*(preference.answer_log_probs(policy, each) for each in pair), *before, beta)

    config = FitConfig(
        steps=settings.dpo_steps, learning_rate=5e-4, warmup=settings.dpo_steps // 20, seed=settings.seed
    )
    fit(policy, batch_at, objective, config=config)
    return policy.eval()


def with_weights(model: GPT, course: Course) -> GPT:
    """The policy that a training ended with."""
    policy = copy.deepcopy(model)
    policy.load_state_dict(course["weights"])
    return policy.eval()


class Paid(NamedTuple):
    """An answer, token by token: words, ln pi / pi_ref, what the critic expected before, and the score at the end."""

    words: tuple[str, ...]
    ratios: Float[Tensor, " T"]
    values: Float[Tensor, " T"]
    score: float


@torch.no_grad()
def paid(model: GPT, reward: RewardModel, course: Course, prompt: str = PROMPTS[0]) -> Paid:
    """What the policy that a training ended with answers to a prompt; the critic is that of the training."""
    policy, critic = with_weights(model, course), reward_model_on(model)
    critic.load_state_dict(course["critic"])
    answers = recipes.as_answers(answered(policy, [prompt]))
    length = int(answers.valid.sum())
    new, first = (log_probs(one, answers.prompt, answers.tokens)[0, :length] for one in (policy, model))
    values = ActorCritic(policy, critic.eval()).values(answers)[0, :length]
    words = tuple(recipes.words()[token] for token in answers.tokens[0, :length].tolist())
    return Paid(words, new - first, values, float(recipes.scored(reward)(answers)[0]))


@torch.no_grad()
def measure(policy: GPT, reference: GPT, reward: RewardModel) -> Point:
    """What is wanted, what labellers look at, what the reward model says, and how far it went, on held-out prompts."""
    draws = torch.Generator().manual_seed(2)
    prompts = recipes.prompts_of("test", MEASURED, seed=1)
    answers = preference.answer(
        policy.eval(), prompts, max_new_tokens=recipes.LONGEST, end_id=recipes.END, generator=draws
    )
    kind, right = recipes.kindness(answers), recipes.grammatical(answers).float()
    gap = preference.answer_log_probs(policy, answers) - preference.answer_log_probs(reference, answers)
    return {
        "true goal": (kind * right).mean().item(),
        "kindness": kind.mean().item(),
        "grammatical": right.mean().item(),
        "reward": recipes.scored(reward)(answers).mean().item(),
        "KL": gap.mean().item(),
    }


# ---------------------------------------------------------------------------------------------------- what is seen


def answered(policy: GPT, prompts: Sequence[str] = PROMPTS, dice: int = 3) -> list[tuple[str, ...]]:
    """One sentence for each prompt."""
    number = {word: index for index, word in enumerate(recipes.words())}
    ids = torch.tensor([[number[word] for word in prompt.split()] for prompt in prompts])
    draws = torch.Generator().manual_seed(dice)
    answers = preference.answer(policy, ids, max_new_tokens=recipes.LONGEST, end_id=recipes.END, generator=draws)
    return recipes.texts_of(answers)


def painted(text: Sequence[str], prompt: int = recipes.PROMPT) -> str:
    """A sentence in HTML: kind words underlined, unkind ones dotted, and whether it is a sentence of our grammar."""
    marks = {word: "solid #00735a" for word in recipes.KIND} | {word: "dotted #b00020" for word in recipes.UNKIND}
    words = []
    for position, word in enumerate(text):
        style = f"border-bottom:3px {marks[word]}" if word in marks and position >= prompt else ""
        weight = "font-weight:600" if position < prompt else ""
        words.append(f'<span style="{style or weight}">{html.escape(word)}</span>')
    sign = ("✓", "a sentence") if recipes.is_grammatical(tuple(text)) else ("✗", "no sentence of the grammar")
    return f'{" ".join(words)} <span title="{sign[1]}">{sign[0]}</span>'


def showing(prompts: Sequence[str] = PROMPTS) -> Callable[[Any], str]:
    """An example for `page.watch`: what the policy answers, with the same dice each time."""

    def example(model: Any) -> str:
        policy = model.policy if isinstance(model, ActorCritic) else model
        return "".join(f"<p style='margin:.2em 0'>{painted(text)}</p>" for text in answered(policy, prompts))

    return example
