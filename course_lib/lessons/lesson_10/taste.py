"""You are the labeller: a reward model of words that learns from clicks, and the best policy for it.

The reward is a weight for each word of an answer, and one for its length, learned from who won (Bradley & Terry 1952).
The policy is the one that Rafailov et al. 2023, arXiv 2305.18290, eq. (4), write down: what the language model found
likely, times e to the reward over beta. Over a few hundred drawn answers it can be computed instead of trained.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.widgets.votes import FIRST, NEITHER, SECOND
from course_lib.lessons.lesson_10 import recipes
from course_lib.models.gpt import GPT
from course_lib.training import preference

PROMPTS = ("the minister", "our young", "she will")
ASKED = (
    *PROMPTS,
    "the farmers",
    "his friend",
    "the european",
    "my teacher",
    "this woman",
    "some students",
    "they never",
)
ANSWERS, PAIRS = 300, 80  # drawn for each prompt; to be compared
LINES = 6  # written
PENALTY = 0.3  # on squared weights: whoever knows little should not claim much

Text = tuple[str, ...]


class Policy(NamedTuple):
    """What is written at some beta: probabilities of the drawn answers, their KL in nats, and a few lines."""

    probabilities: Float[Tensor, " N"]
    kl: float
    lines: list[Text]


@dataclass(frozen=True)
class Answered:
    """Answers of a language model to prompts: those to compare, and those to choose from."""

    pairs: list[tuple[Text, Text]]
    choices: dict[str, list[Text]]

    @classmethod
    def of(cls, model: GPT) -> "Answered":
        draws = torch.Generator().manual_seed(10)
        number = {word: index for index, word in enumerate(recipes.words())}

        def answered(prompts: Sequence[str]) -> list[Text]:
            ids = torch.tensor([[number[word] for word in prompt.split()] for prompt in prompts])
            drawn = preference.answer(model, ids, max_new_tokens=recipes.LONGEST, end_id=recipes.END, generator=draws)
            return recipes.texts_of(drawn)

        asked = ASKED * (2 * PAIRS // len(ASKED))
        both = zip(answered(asked), answered(asked), strict=True)
        pairs = [(one, other) for one, other in both if one != other and all(map(recipes.is_grammatical, (one, other)))]
        choices = {prompt: answered([prompt] * ANSWERS) for prompt in PROMPTS}
        return cls(pairs[:PAIRS], choices)


def features(text: Text) -> Float[Tensor, " F"]:
    """How often each word stands in the answer, and in front of all how long it is, in fours of words."""
    words = recipes.words()
    counts = torch.zeros(len(words) + 1)
    for word in text[recipes.PROMPT :]:
        counts[words.index(word) + 1] += 1
    counts[words.index(".") + 1] = 0  # each sentence has one
    counts[0] = len(text) / 4
    return counts


@lru_cache(maxsize=512)
def learned(votes: str, pairs: tuple[tuple[Text, Text], ...]) -> Float[Tensor, " F"]:
    """The weights after some votes: the most probable ones, with a penalty on their squares."""
    gaps = [features(one) - features(other) if vote == FIRST else features(other) - features(one)
            for vote, (one, other) in zip(votes, pairs, strict=False) if vote != NEITHER]  # fmt: skip
    weights = torch.zeros_like(features(()), requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=40, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        objective = -F.logsigmoid(torch.stack(gaps) @ weights).sum() + PENALTY / 2 * weights.square().sum()
        objective.backward()
        return objective

    if gaps:
        with torch.enable_grad():
            optimiser.step(loss)
    return weights.detach()


def foreseen(votes: str, pairs: tuple[tuple[Text, Text], ...]) -> list[bool]:
    """For each choice: whether what was learned from those before it would have chosen so."""
    right = []
    for number, vote in enumerate(votes):
        if vote != NEITHER:
            one, other = pairs[number]
            gap = float((features(one) - features(other)) @ learned(votes[:number], pairs))
            right.append(gap > 0 if vote == FIRST else gap < 0)
    return right


def voted(pairs: tuple[tuple[Text, Text], ...], taste: Callable[[Text], float], count: int) -> str:
    """What somebody with a taste says of pairs, until he has chosen so many times."""
    votes = ""
    for one, other in pairs:
        gap = taste(one) - taste(other)
        votes += NEITHER if gap == 0 else FIRST if gap > 0 else SECOND
        if len(votes.replace(NEITHER, "")) == count:
            break
    return votes


def dice() -> Float[Tensor, " L"]:
    """The random numbers by which lines are drawn, always the same."""
    return torch.rand(LINES, generator=torch.Generator().manual_seed(5))


def write(choices: list[Text], weights: Float[Tensor, " F"], beta: float) -> Policy:
    """The best policy for the rewards over the drawn answers, and lines from it, always with the same dice."""
    rewards = torch.stack([features(text) for text in choices]) @ weights
    logs = (rewards / beta).log_softmax(dim=0)  # drawn answers stand for the language model: each counts once
    kl = float((logs.exp() * (logs + torch.tensor(float(len(choices))).log())).sum())
    order = rewards.sort(descending=True, stable=True).indices
    positions = torch.searchsorted(logs[order].exp().cumsum(0), dice()).clamp(max=len(choices) - 1)
    return Policy(logs.exp(), kl, [choices[int(order[position])] for position in positions])


def shared_word(lines: list[Text], before: list[Text]) -> str | None:
    """A word in all lines that stands in at most one of those before, prompts left out."""
    own = [set(text[recipes.PROMPT :]) for text in lines]
    rare = [word for word in set.intersection(*own) if sum(word in text[recipes.PROMPT :] for text in before) <= 1]
    return min(rare, default=None)
