"""Lesson 10: the learner's models are built, sampled, measured and shown; she trains them on the page."""

import copy
import html
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.classroom.opening import copy_weights
from course_lib.data.checkpoints import TrainedModel, load_trained
from course_lib.lessons.lesson_08.models import MODELS as OF_LESSON_08
from course_lib.lessons.lesson_10 import recipes
from course_lib.models.gpt import GPT
from course_lib.training import preference
from course_lib.training.preference import Answers, Comparison

END = recipes.END
ROUNDS, EVERY = 32, 4  # of PPO; between two measurements
MEASURED = 300  # prompts
PROMPTS = ("the minister", "our young", "she will")  # before the page
PAIRS = 2_000
WORDS = 8  # of a sentence that the checking program accepts, its full stop among them

Point = dict[str, float]
Course = Mapping[str, Any]  # a training of PPO: its weights, its critic's, and what was measured
Scorer = Callable[[Tensor, Tensor], Tensor]  # a reward model: texts and which of their tokens are real


class Parts(NamedTuple):
    """What the playground of rewards computes with, ours or the learner's; `gae(rewards, values, lam)`."""

    token_rewards: Callable[..., Tensor]
    gae: Callable[..., Tensor]


def before() -> TrainedModel:
    """The model that has read sentences, and knows nothing of what is wanted."""
    return load_trained("unaligned")


def opened(name: str, make: Callable[..., nn.Module]) -> nn.Module:
    """A shipped GPT of this lesson in the learner's class of lesson 08."""
    shipped, ours = OF_LESSON_08["gpt"], load_trained(name).model
    mine = make(**shipped.sizes(ours))
    copy_weights(ours, mine, shipped.names)
    return mine.eval()


def library(model: nn.Module) -> GPT:
    """The library's GPT with the weights of a learner's."""
    if isinstance(model, GPT):
        return model
    names = OF_LESSON_08["gpt"].names
    gpt = GPT(before().model.config)
    gpt.load_state_dict({names.get(name, name): value for name, value in model.state_dict().items()})
    return gpt.eval()


# ---------------------------------------------------------------------------------------------- what is learned from


@lru_cache(maxsize=1)
def _demonstrations() -> Answers:
    shown = recipes.as_answers(recipes.sentences()["train"])
    return recipes.rows_of(shown, recipes.kindness(shown) >= 1)


def demonstrations(size: int) -> Answers:
    """So many kind sentences, as prompts with their answers."""
    shown = _demonstrations()
    return recipes.rows_of(shown, torch.randint(len(shown.prompt), (size,)))


def tokens_and_mask(tokens: Int[Tensor, " T"], mask: Bool[Tensor, " T"], padding: int = 2) -> str:
    """A text token by token, and below each token its number in the mask; of the padding some tokens are shown."""
    shown = int(mask.nonzero().max()) + 1 + padding
    names = [recipes.words()[token] for token in tokens[:shown].tolist()]
    bits = [str(int(bit)).ljust(len(name)) for bit, name in zip(mask[:shown], names, strict=True)]
    return f"token  {'  '.join(names)}\nmask   {'  '.join(bits).rstrip()}"


def asked(model: nn.Module, count: int = PAIRS) -> Comparison:
    """The labellers compare answers of the model; one comparison in twenty is wrong."""
    return recipes.compared(library(model), count, recipes.SETTINGS.noise, before().card["seed"])


def prompts(count: int) -> Int[Tensor, "B P"]:
    """The first two words of so many sentences of the training set."""
    every = recipes.as_answers(recipes.sentences()["train"]).prompt
    return every[torch.randint(len(every), (count,))]


def held_out(count: int = MEASURED) -> Int[Tensor, "B P"]:
    """The first two words of test sentences, the same in each call."""
    return recipes.prompts_of("test", count, seed=1)


def texts(sentences: Sequence[str]) -> tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """Sentences as padded tokens with their end, and which tokens are real."""
    answers = recipes.as_answers([tuple(sentence.split()) for sentence in sentences])
    return answers.whole, answers.whole_valid


def grammatical(answers: Answers) -> Bool[Tensor, " B"]:
    """Whether prompt and answer are a sentence of our grammar."""
    return recipes.grammatical(answers)


def eight_words(answers: Answers) -> Bool[Tensor, " B"]:
    """Whether prompt and answer have eight words, the full stop among them; the end token is none."""
    return answers.whole_valid.sum(dim=1) == WORDS + 1


# ------------------------------------------------------------------------- as on the page, for its third sitting


@torch.no_grad()
def sample(policy: nn.Module, prompt: Int[Tensor, "B P"], longest: int = recipes.LONGEST) -> Answers:
    """Sampled answers, up to their end token."""
    whole = prompt
    for _ in range(longest):
        probs = policy(whole)[:, -1].softmax(dim=-1)
        whole = torch.cat([whole, torch.multinomial(probs, 1)], dim=1)
    tokens = whole[:, prompt.shape[1] :]
    ended = tokens == END
    valid = ended.cumsum(dim=1) - ended.long() == 0
    return Answers(prompt, tokens * valid, valid)


def log_probs(policy: nn.Module, answers: Answers) -> Float[Tensor, "B T"]:
    """ln pi of the tokens of answers."""
    logits = policy(answers.whole[:, :-1])[:, answers.prompt.shape[1] - 1 :]
    return logits.log_softmax(dim=-1).gather(-1, answers.tokens[..., None])[..., 0]


# ---------------------------------------------------------------------------------------------- what is measured


@torch.no_grad()
def accuracy(reward: Scorer, model: nn.Module) -> float:
    """How often the reward model prefers what the labellers would without a slip, on new pairs of the model."""
    pairs = recipes.compared(library(model), 400, 0.0, seed=3, split="test")
    better, worse = (reward(each.whole, each.whole_valid) for each in pairs)
    return (better > worse).double().mean().item()


@torch.no_grad()
def measure(policy: nn.Module, reference: nn.Module, reward: Scorer) -> Point:
    """The true goal, the labellers' kindness, the reward model's score and the KL, on held-out prompts."""
    policy, reference = library(policy), library(reference)
    draws = torch.Generator().manual_seed(2)
    answers = preference.answer(policy, held_out(), max_new_tokens=recipes.LONGEST, end_id=recipes.END, generator=draws)
    kind, right = recipes.kindness(answers), recipes.grammatical(answers).float()
    gap = preference.answer_log_probs(policy, answers) - preference.answer_log_probs(reference, answers)
    return {
        "true goal": (kind * right).mean().item(),
        "kindness": kind.mean().item(),
        "grammatical": right.mean().item(),
        "reward": reward(answers.whole, answers.whole_valid).mean().item(),
        "KL": gap.mean().item(),
    }


@torch.no_grad()
def checked(policy: nn.Module, count: int = 400) -> Point:
    """How many answers to held-out prompts have eight words, are grammatical, and differ from one another."""
    answers = preference.answer(
        library(policy), held_out(count), max_new_tokens=recipes.LONGEST, end_id=recipes.END,
        generator=torch.Generator().manual_seed(3),
    )  # fmt: skip
    right, eight = recipes.grammatical(answers), eight_words(answers)
    return {
        "both": (right & eight).double().mean().item(),
        "eight words": eight.double().mean().item(),
        "grammatical": right.double().mean().item(),
        "different sentences": len(set(recipes.texts_of(answers))) / count,
    }


def with_weights(model: nn.Module, course: Course) -> nn.Module:
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
def paid(model: nn.Module, reward: Any, course: Course, prompt: str = PROMPTS[0]) -> Paid:
    """What the policy that a training ended with answers to a prompt; the critic is that of the training."""
    policy, critic = with_weights(model, course), copy.deepcopy(reward)
    critic.load_state_dict(course["critic"])
    answers = recipes.as_answers(answered(policy, [prompt]))
    length, begin = int(answers.valid.sum()), answers.prompt.shape[1]
    new, first = (log_probs(one, answers)[0, :length] for one in (policy, model))
    values = critic.values(answers.whole[:, :-1])[0, begin - 1 :][:length]
    words = tuple(recipes.words()[token] for token in answers.tokens[0, :length].tolist())
    return Paid(words, new - first, values, float(reward(answers.whole, answers.whole_valid)[0]))


# ---------------------------------------------------------------------------------------------- what is shown


def answered(policy: nn.Module, prompts: Sequence[str] = PROMPTS, seed: int = 3) -> list[tuple[str, ...]]:
    """One sentence for each prompt."""
    number = {word: index for index, word in enumerate(recipes.words())}
    ids = torch.tensor([[number[word] for word in prompt.split()] for prompt in prompts])
    draws = torch.Generator().manual_seed(seed)
    answers = preference.answer(
        library(policy), ids, max_new_tokens=recipes.LONGEST, end_id=recipes.END, generator=draws
    )
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
    """An example for `page.watch`: what the policy answers, with the same random numbers each time."""

    def example(policy: nn.Module) -> str:
        return "".join(f"<p style='margin:.2em 0'>{painted(text)}</p>" for text in answered(policy, prompts))

    return example
