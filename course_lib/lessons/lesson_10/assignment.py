"""Lesson 10, aligning a language model: what its assignment's check cells ask; the grader's tables are in hidden/10."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from course_lib.tasks import Check, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general

WORDS, LONGEST, NOT = 24, 10, 1  # numbers of words, 0 fills up; words of a text; the word that turns the next one round
COMPARED, SLIPS = 4_000, 0.1  # pairs to learn from, and the share of them that is the wrong way round

NEIGHBOURS = Finding(
    "rewards depend on the other texts",
    "The reward of a text changes with the others of its batch.",
    "Each text is judged by itself: no mean over the batch, and `model.eval()` where there is a BatchNorm.",
)
SAME = Finding(
    "all texts worth the same",
    "All texts get the same reward.",
    "The head must see the words: does a gradient reach the embedding?",
)
TURNED = Finding(
    "the worse one preferred",
    "Your rewards prefer the *rejected* text.",
    "$-\\ln \\sigma(r_w - r_l)$: which of the two is w, where `first_wins` is False?",
)
NOT_LEARNED = Finding(
    "not learned",
    "New pairs are told apart hardly better than by a coin.",
    "Does the loss fall below ln 2?",
)
ORDER = Finding(
    "order not learned",
    "Better than a coin, but no better than counting words.",
    "One word turns the next one round: let the model see pairs of neighbours, by a convolution or an LSTM.",
)


class Taste:
    """A labeller: each word has a worth, which the word 1 in front of it turns round."""

    def __init__(self, generator: Generator):
        self.random = generator
        self.worth = torch.randn(WORDS, generator=generator)
        self.worth[:2] = 0

    def texts(self, count: int) -> Tensor:
        """So many texts, (count, 10), of 4 to 10 words, filled up with 0."""
        texts = torch.randint(2, WORDS, (count, LONGEST), generator=self.random)
        texts[torch.rand(count, LONGEST, generator=self.random) < 0.2] = NOT
        lengths = torch.randint(4, LONGEST + 1, (count, 1), generator=self.random)
        return texts * (torch.arange(LONGEST) < lengths)

    def value(self, texts: Tensor) -> Tensor:
        """What texts are worth to this labeller."""
        turned = F.pad(texts, (1, 0))[:, :-1] == NOT
        return torch.where(turned, -self.worth[texts], self.worth[texts]).sum(dim=1)

    def compare(self, count: int, slips: float) -> tuple[Tensor, Tensor, Tensor]:
        """Pairs of texts, and whether the first was preferred."""
        first, second = self.texts(count), self.texts(count)
        slipped = torch.rand(count, generator=self.random) < slips
        return first, second, (self.value(first) > self.value(second)) ^ slipped


def rewards(model: ModuleProbe, texts: Tensor) -> Tensor:
    """One number for each text; a CheckFailed if it depends on chance or on the other texts, or is always the same."""
    found = model.tensor(texts, shape=(len(texts),))
    if not torch.allclose(found, model.tensor(texts, shape=(len(texts),)), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    for few in (5, 1):
        if not torch.allclose(found[:few], model.tensor(texts[:few], shape=(few,)), atol=1e-3, rtol=1e-3):
            raise CheckFailed(NEIGHBOURS)
    if found.std() < 1e-4:
        raise CheckFailed(SAME)
    return found


def agrees(name: str, points: float, *, above: float) -> Check:
    """In more than this share of new pairs, compared without slips, the preferred text has the larger reward."""

    def trained(probe: Probe) -> tuple[ModuleProbe, Taste]:
        taste = Taste(probe.draw.generator)
        return probe.make("train", *taste.compare(COMPARED, SLIPS), seconds=90), taste

    def run(probe: Probe) -> list[Finding]:
        model, taste = probe.once("trained", trained)
        first, second, wins = taste.compare(1_000, 0.0)
        both = rewards(model, torch.cat([first, second]))
        share = ((both[:1_000] > both[1_000:]) == wins).float().mean().item()
        fault = TURNED if share < 0.4 else NOT_LEARNED if share < 0.6 else ORDER
        return [] if share > above else [fault]

    told = (NEIGHBOURS, SAME, TURNED, NOT_LEARNED, ORDER)
    return Check(name=name, points=points, run=run, detects=tuple(one.misconception for one in told))


# the examples -----------------------------------------------------------------------------------------------

RANKED = (([[2.0, 1.0, 0.0]],), 0.2512)
BEST = (([3.0, 0.0, 0.0, 1.0], 2), [1.625, 0.1931])
NATS = (
    ([[-1.0, -1.0], [-2.0, -9.0]], [[-2.0, -1.0], [-2.0, -1.0]], torch.tensor([[True, True], [True, False]])),
    0.1839,
)
SQUARED = (([-1.0], [-4.0], [-2.0], [-3.0], 0.5), 1.0)

SHOWN = (
    Task("ranking_loss", "More than two", asks="rewards", also=(keeps_type, gradients), example=(RANKED,)),
    Task("best_of_n", "The best of n", asks="rewards, n", also=(keeps_type,), example=(BEST,)),
    Task("kl_estimate", "A distance that is never negative", asks="log_probs, reference, valid",
         also=(keeps_type, gradients), example=(NATS,)),
    Task("identity_loss", "Far enough is far enough",
         asks="chosen, rejected, reference_chosen, reference_rejected, beta", also=(keeps_type, gradients),
         example=(SQUARED,)),
    Task(
        "train",
        "A taste in the box",
        asks="first, second, first_wins",
        seconds=90.0,
        checks=(
            agrees("New pairs: clearly better than a coin", 8, above=0.6),
            agrees("New pairs: better than counting words", 12, above=0.78),
        ),
    ),
)  # fmt: skip
ASSIGNMENT = {task.name: task for task in SHOWN}
