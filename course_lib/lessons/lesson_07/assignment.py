"""Lesson 07, BERT: what the check cells of its assignment ask; the grader's tables are in hidden/07."""

import functools
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.tasks import TRAINING_SECONDS, Check, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import CheckFailed
from course_lib.tasks.trained import ELSEWHERE, in_parameters

WORDS, TAGS = 60, 4  # of the made-up languages


def guess(tokens: Tensor, E: Tensor) -> Tensor:
    """Logits of all tokens at each position, (B, T, V), from the position and its two neighbours: a tiny BERT."""
    x = F.pad(E[tokens], (0, 0, 1, 1))
    return (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) @ E.T


def language(generator: torch.Generator) -> Callable[[int, int], tuple[Tensor, Tensor]]:
    """A made-up language as a function of count and length: sentences and their tags, both (count, length).

    Each word has one of four tags, ten words a second one, too; with a probability of about nine in ten a
    tag is followed by its own successor.
    """

    def drawn(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator)

    tag = drawn(WORDS).argsort() % TAGS
    can_be = F.one_hot(tag, TAGS)
    can_be[torch.arange(10), (tag[:10] + 1 + (3 * drawn(10)).long()) % TAGS] = 1
    ring = drawn(TAGS).argsort()
    successor = torch.empty_like(ring).scatter(0, ring, ring.roll(1))

    def speak(count: int, length: int) -> tuple[Tensor, Tensor]:
        tags = (TAGS * drawn(count, length)).long()
        for t in range(1, length):
            tags[:, t] = torch.where(drawn(count) < 0.9, successor[tags[:, t - 1]], tags[:, t])
        chance = can_be.T[tags] * drawn(count, length, WORDS)
        return chance.argmax(dim=-1), tags

    return speak


NOT_LEARNED = Finding(
    "hardly better than guessing",
    "Even words that had a tag in the six sentences are often tagged wrongly in new ones.",
    "Does the loss fall, first on the texts, then on the six sentences? Does the largest logit belong to the tag?",
)
ONLY_TAGGED = Finding(
    "only tagged words are known",
    "Words that had a tag in the six sentences are tagged well, other words are not.",
    "Let the tagger read features that were learned from the texts. A task of predicting words from their neighbours "
    "gives similar features to words that occur beside the same words.",
)
ONE_TAG = Finding(
    "one tag for a word, wherever it stands",
    "Words that can have two tags are often tagged wrongly, as if they had one tag in every sentence.",
    "Let the tagger read the neighbours of the word as well.",
)
ONE_LENGTH = Finding(
    "only sentences of one length",
    "Sentences of eight words are tagged well, longer ones are not.",
    "Does something in the module depend on the number of words, such as a table of positions?",
)


def tagged(name: str, points: float, *, level: float, words: str = "all", length: int = 8) -> Check:
    """What `train` returns classifies at least this fraction of some words of new sentences correctly."""

    def trained(probe: Probe) -> tuple[ModuleProbe, Callable, Tensor, dict[str, Tensor]]:
        speak = language(probe.draw.generator)
        texts, examples = speak(1000, 8)[0], speak(6, 8)
        had_tag = torch.isin(torch.arange(WORDS), examples[0])
        double = torch.arange(WORDS) < 10
        kinds = {"all": had_tag | ~had_tag, "tagged": had_tag & ~double, "new": ~had_tag & ~double, "double": double}
        turn = probe.draw(WORDS).argsort()  # so that a word's number says nothing
        kinds = {kind: torch.empty_like(chosen).scatter(0, turn, chosen) for kind, chosen in kinds.items()}
        model = probe.make("train", turn[texts], turn[examples[0]], examples[1])
        made = model, speak, turn, kinds
        in_parameters(model, turn[texts[:50]], knows=lambda: share(*made, "tagged") > 0.6)
        return made

    def share(model: ModuleProbe, speak: Callable, turn: Tensor, kinds: dict, kind: str, length: int = 8) -> float:
        tokens, tags = speak(500, length)
        found = model.tensor(turn[tokens], shape=(500, length, TAGS)).argmax(dim=-1)
        return (found == tags)[kinds[kind][turn[tokens]]].float().mean().item()

    def run(probe: Probe) -> list[Finding]:
        right = functools.partial(share, *probe.once("trained", trained))
        try:
            reached = right(words, length)
        except CheckFailed:
            if length == 8:
                raise
            reached = 0.0
        if reached >= level:
            return []
        if words == "tagged" or right("tagged") < 0.75:
            return [NOT_LEARNED]
        if words == "new" or right("new") < 0.8:
            return [ONLY_TAGGED]
        return [(ONE_TAG if words == "double" else ONE_LENGTH)]

    told = (NOT_LEARNED, ONLY_TAGGED, ONE_TAG, ONE_LENGTH)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


PIECES = [[-1, 0, 0, 1, 2, 2, 2, 3, -1]]  # un ##real | cats | w ##and ##er | on, between two signs
HIDDEN = (torch.tensor(PIECES), [[0.3, 0.6, 0.1, 0.8]], 0.3), [[False, True, True] + [False] * 6]
REAL = torch.tensor([[False] + [True] * 7 + [False]])
SPANS = (
    (torch.tensor([[6, 2, 4, 5]]), torch.tensor([[3, 3, 2, 2]]), REAL, 0.6),
    [[False] * 2 + [True] * 4 + [False] * 3],
)
SIDE = math.sqrt(math.log(3))
LIKELY = [[SIDE, 0.0], [0.0, SIDE], [0.0, 0.0]], torch.tensor([[0, 0, 1]]), torch.ones(1, 3, dtype=torch.bool), 2
FILLED = (
    LIKELY[0],
    torch.tensor([[1, 0, 1, 0, 1]]),
    torch.tensor([[False, True, False, False, True]]),
    1,
    2,
)
DISTILLED = (
    [[[0.0, 0.0], [2 * math.log(3), 0.0], [5.0, 1.0]]],
    [[[2 * math.log(3), 0.0], [0.0, 0.0], [1.0, 5.0]]],
    torch.tensor([[True, True, False]]),
    2.0,
)
REPLACED = (
    (
        torch.tensor([[5, 7, 9, 0]]),
        torch.tensor([[False, True, True, False]]),
        torch.tensor([[3, 7, 8, 4]]),
        [[-math.log(3), math.log(3), math.log(3), 9.0]],
        torch.tensor([[True, True, True, False]]),
    ),
    math.log(64 / 9) / 3,
)

SHOWN = (
    Task("whole_words", "Whole words", asks="words, noise, fraction", example=(HIDDEN,)),
    Task("span_mask", "Spans", asks="starts, lengths, real, fraction", example=(SPANS,)),
    Task(
        "replaced_loss",
        "Which tokens were replaced?",
        asks="tokens, chosen, samples, logits, valid",
        also=(keeps_type, gradients),
        example=(REPLACED,),
    ),
    Task(
        "distillation_loss",
        "A small model learns from a large one",
        asks="student, teacher, valid, temperature",
        also=(keeps_type, gradients),
        example=((DISTILLED, math.log(3) / 2),),
    ),
    Task(
        "pseudo_log_likelihood",
        "How likely is a sentence?",
        asks="E, tokens, scored, mask_id",
        also=(keeps_type, gradients),
        example=((LIKELY, [math.log(9 / 175)]),),
    ),
    Task(
        "mask_predict",
        "Fill in a sentence",
        asks="E, tokens, masked, keep, mask_id",
        example=((FILLED, [[1, 1, 1, 0, 2]]),),
    ),
    Task(
        "train",
        "A tagger from six sentences",
        asks="texts, tokens, tags",
        seconds=TRAINING_SECONDS,
        checks=(
            tagged("Words that had a tag, in new sentences: at least 75 % right", 5, level=0.75, words="tagged"),
            tagged("Words that never had a tag: at least 80 % right", 8, level=0.8, words="new"),
            tagged("Words that can have two tags: at least 70 % right", 5, level=0.7, words="double"),
            tagged("All words of longer sentences: at least 75 % right", 4, level=0.75, length=13),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
