"""Lesson 03, recurrent networks: what the check cells of its assignment ask; the grader's tables are in hidden/03."""

import torch
from torch import Tensor

from course_lib.tasks import Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# words of four made languages -------------------------------------------------------------------------------

LANGUAGES, LETTERS, LENGTH = 4, 8, 15


class Languages:
    """Four languages of eight letters; in each a letter has its own odds for the next one."""

    def __init__(self, draw: Draw):
        self.odds = (1.5 * draw(LANGUAGES, LETTERS, LETTERS)).softmax(-1)

    def words(self, draw: Draw, count: int, length: int = LENGTH) -> tuple[Tensor, Tensor]:
        """So many words, (count, length), and the language of each."""
        spoken = draw.integers(0, LANGUAGES, count)
        letters = [draw.integers(0, LETTERS, count)]
        for _ in range(length - 1):
            odds = self.odds[spoken, letters[-1]]
            letters.append(torch.multinomial(odds, 1, generator=draw.generator)[:, 0])
        return torch.stack(letters, dim=1), spoken


READS_AHEAD = Finding(
    "reads ahead",
    "What your model says after some letters changes with the letters that follow.",
    "A reading from left to right knows what came, and nothing of what comes: no second reading from the end.",
)
NOT_LEARNED = Finding(
    "not learned",
    "New words are told apart worse than asked for.",
    "Does the loss fall from step to step? Ask for an answer after every letter, and take more steps.",
)
BY_HEART = Finding(
    "learned by heart",
    "The words of the training are told apart, new ones of the same languages are not.",
    "Use all of the words: other ones in each step.",
)
ONE_LENGTH = Finding(
    "only the length of the training",
    "Words of the length that it has seen are told apart, longer ones are not.",
    "The same step for every letter, however many there are.",
)


def right(model: ModuleProbe, words: Tensor, spoken: Tensor, after: int) -> float:
    """The share told right after so many letters; a CheckFailed if that depends on chance, or on later letters."""
    shape = (*words.shape, LANGUAGES)
    found = model.tensor(words, shape=shape)
    if not torch.allclose(found, model.tensor(words, shape=shape), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    seen = min(after, words.shape[1] // 2)
    others = torch.cat([words[:, :seen], (words[:, seen:] + 1) % LETTERS], dim=1)
    if not torch.allclose(found[:, :seen], model.tensor(others, shape=shape)[:, :seen], atol=1e-3, rtol=1e-3):
        raise CheckFailed(READS_AHEAD)
    return (found[:, after - 1].argmax(dim=1) == spoken).float().mean().item()


def tells(name: str, points: float, *, above: float, after: int, length: int = LENGTH) -> Check:
    """New words are told apart after so many letters in more cases than this; a guess is right in one of four."""

    def trained(probe: Probe) -> tuple[ModuleProbe, Languages, tuple[Tensor, Tensor]]:
        languages = Languages(probe.draw)
        seen, new = languages.words(probe.draw, 4_000), languages.words(probe.draw, 200)
        model = probe.make("train", *seen, seconds=45)
        in_parameters(model, new[0], knows=lambda: right(model, *new, LENGTH) > 0.5)
        return model, languages, seen

    def run(probe: Probe) -> list[Finding]:
        model, languages, seen = probe.once("trained", trained)
        if right(model, *languages.words(probe.draw, 1_000, length), after) > above:
            return []
        if length != LENGTH and right(model, *languages.words(probe.draw, 1_000), LENGTH) > 0.9:
            return [ONE_LENGTH]
        by_heart = max(right(model, *(part[some] for part in seen), LENGTH) for some in (slice(8), slice(-8, None)))
        return [(BY_HEART if by_heart == 1 else NOT_LEARNED)]

    told = (READS_AHEAD, NOT_LEARNED, BY_HEART, ONE_LENGTH)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


# the examples -----------------------------------------------------------------------------------------------

DEEP = (
    ([[1.0]], [[[0.0]], [[1.0]]], [[[1.0]], [[2.0]]], [[[3.0]], [[-1.0]]], [[0.0], [0.0]]),
    [[[0.76159]], [[0.48016]]],
)
LATER = (([[0.0, 0.5], [0.5, 0.0]], [2.0, 0.0], torch.tensor([0, 1, 2])), [[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
CUT = (
    ([[2.0]], [[1.0], [1.0], [2.0], [3.0], [1.0]], [[0.0], [0.0], [0.0], [1.0]], 2),
    [[7.0]],
)
SCORES = ((torch.tensor([0, 1]), ["ab", "ba"], ["ab"], 2), [[-5.2054, -7.2848]])

SHOWN = (
    Task("deep_step", "Layers on layers", asks="x, h, W, U, b", also=(keeps_type, gradients), example=(DEEP,)),
    Task("states_at", "The state at any time", asks="theta, start, times", example=(LATER,)),
    Task(
        "cut_gradient",
        "A gradient with a short memory",
        asks="theta, A, dA, length",
        forbids=("autograd", "backward", "grad", "requires_grad", "requires_grad_", "vjp", "jacrev", "jacobian"),
        example=(CUT,),
    ),
    Task("language_scores", "Three letters are enough", asks="labels, names, asked, num_languages", example=(SCORES,)),
    Task(
        "train",
        "Which language is this?",
        asks="words, spoken",
        seconds=45.0,
        checks=(
            tells("After four letters it is right more often than not", 5, above=0.5, after=4),
            tells("After all fifteen letters it is nearly always right", 9, above=0.9, after=LENGTH),
            tells("Words that are twice as long", 6, above=0.9, after=2 * LENGTH, length=2 * LENGTH),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
