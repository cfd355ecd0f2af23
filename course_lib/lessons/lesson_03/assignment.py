"""Lesson 03, recurrent networks: what the check cells of its assignment ask; the grader's tables are in hidden/03."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from course_lib.tasks import TRAINING_SECONDS, Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, UNEXPLAINED, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# words of four made languages -------------------------------------------------------------------------------

LANGUAGES, LETTERS, LENGTH = 4, 8, 15


class Languages:
    """Four languages of eight letters, each with its own probabilities of the next letter given the last one."""

    def __init__(self, draw: Draw):
        self.probs = (1.5 * draw(LANGUAGES, LETTERS, LETTERS)).softmax(-1)

    def words(self, draw: Draw, count: int, length: int = LENGTH) -> tuple[Tensor, Tensor]:
        """Words, (count, length), and the language of each, (count,)."""
        spoken = draw.integers(0, LANGUAGES, count)
        letters = [draw.integers(0, LETTERS, count)]
        for _ in range(length - 1):
            probs = self.probs[spoken, letters[-1]]
            letters.append(torch.multinomial(probs, 1, generator=draw.generator)[:, 0])
        return torch.stack(letters, dim=1), spoken


READS_AHEAD = Finding(
    "reads ahead",
    "The logits after some letters change when later letters change.",
    "The network may read from left to right only. A second direction would see later letters.",
)
NOT_LEARNED = Finding(
    "not learned",
    "The accuracy on new words is too low.",
    "Does the loss fall from step to step? Compute it after every letter, and take more steps.",
)
MEMORISED = Finding(
    "memorised",
    "Training words are classified correctly, new words of the same languages are not.",
    "Use all training words: another batch in each step.",
)
ONE_LENGTH = Finding(
    "only the length of the training",
    "Words of the training's length are classified correctly, longer ones are not.",
    "Apply the same step to every letter, however many there are.",
)


def right(model: ModuleProbe, words: Tensor, spoken: Tensor, after: int) -> float:
    """The accuracy after some letters; a CheckFailed if the logits are random, or depend on later letters."""
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
    """The accuracy on new words after some letters is above this; guessing gives one in four."""

    def trained(probe: Probe) -> tuple[ModuleProbe, Languages, tuple[Tensor, Tensor]]:
        languages = Languages(probe.draw)
        seen, new = languages.words(probe.draw, 4_000), languages.words(probe.draw, 200)
        model = probe.make("train", *seen)
        in_parameters(model, new[0], knows=lambda: right(model, *new, LENGTH) > 0.5)
        return model, languages, seen

    def run(probe: Probe) -> list[Finding]:
        model, languages, seen = probe.once("trained", trained)
        if right(model, *languages.words(probe.draw, 1_000, length), after) > above:
            return []
        if length != LENGTH and right(model, *languages.words(probe.draw, 1_000), LENGTH) > 0.9:
            return [ONE_LENGTH]
        memorised = max(right(model, *(part[some] for part in seen), LENGTH) for some in (slice(8), slice(-8, None)))
        return [(MEMORISED if memorised == 1 else NOT_LEARNED)]

    found = (READS_AHEAD, NOT_LEARNED, MEMORISED, ONE_LENGTH)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in found)))


# a loop over the steps ----------------------------------------------------------------------------------------

LATE, MANY = 3_000_000, 20_000  # a time, and more operations than an answer needs that does not go step by step
STEP_BY_STEP = Finding(
    "one step after the other",
    "The answer computes the states before, one after the other: with large times it does not come to an end.",
    "Powers of the eigenvalues give any state at once: the time stands in the exponent.",
)


class _Counting(TorchFunctionMode):
    """Counts what torch is asked for, and stops whoever asks for more than MANY; what is asked later, it lets go."""

    count = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        if self.count == MANY + 1:
            raise RuntimeError(f"more than {MANY} operations")
        return function(*args, **(kwargs or {}))


def _at_once(probe: Probe) -> list[Finding]:
    """The matrix exchanges two numbers at each step, so an even time brings them back and an odd one exchanges them."""
    W, h0 = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double(), probe.draw(2).double()
    with _Counting() as counting:
        try:
            found = probe.tensor(W, h0, torch.tensor([LATE, LATE + 1]), shape=(2, 2))
        except CheckFailed:
            if counting.count > MANY:
                return [STEP_BY_STEP]
            raise
    return [] if torch.allclose(found, torch.stack([h0, h0.flip(0)]).float(), atol=1e-4) else [general(UNEXPLAINED)]


AT_ONCE = Check(name="states after millions of steps", detects=(STEP_BY_STEP.misconception,), run=_at_once)

# the examples -----------------------------------------------------------------------------------------------

DEEP = (
    (
        [[1.0, 0.0]],
        [[[0.0, 1.0]], [[1.0, 0.0]]],
        [[[1.0, 2.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 2.0]]],
        [[[0.0, -1.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]],
        [[0.0, 1.0], [0.0, -1.0]],
    ),
    [[[0.0, 0.76159]], [[0.94268, 0.90926]]],
)
CLOCKED = (
    (
        [[1.0, 0.0]],
        [[0.5, 0.4, -0.5]],
        [[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]],
        [[0.0, 1.0, 1.0], [5.0, 1.0, 2.0], [7.0, 7.0, 1.0]],
        [0.0, 0.1, 0.0],
        torch.tensor([1, 2, 3]),
        4,
    ),
    [[0.71630, -0.46212, -0.5]],
)
LATER = (
    ([[2.0, 0.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.5, 0.0]], [1.0, 2.0, 0.0], torch.tensor([0, 1, 2])),
    [[1.0, 2.0, 0.0], [2.0, 0.0, 1.0], [4.0, 0.5, 0.0]],
)
ECHO = (
    ([[0.0, -4.0], [1.0, 0.0]], [[1.0], [0.0]], [[1.0], [2.0]], 0.5, 0.25),
    [[0.19040, 0.0], [0.38381, 0.01189]],
)
CUT = (
    (
        [[1.0, 2.0], [0.0, 1.0]],
        [[0.5, 0.0], [0.0, 0.5], [0.6, 0.0], [0.0, 0.8]],
        [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
        2,
    ),
    [[0.32, 0.32], [0.696, 0.0]],
)
FORWARD = (
    ([[1.0, 2.0], [0.0, 1.0]], [[0.5, 0.0], [0.0, 0.5], [0.6, 0.0]], [[1.0, 2.0], [1.0, -1.0]]),
    [[[0.5, 0.0], [0.75, 0.0]], [[0.32, 0.32], [0.105, -0.5]]],
)
SCORES = ((torch.tensor([0, 0, 1]), ["ab", "A", "ba"], ["abbbb"], 2), [[-14.4089, -15.4860]])
RANKS = (
    (torch.tensor([0, 0, 0, 1]), ["abab", "ab", "A", "ba"], ["A", "aba", "bbbb"], 2, 4),
    [[7, 8], [8, 13], [16, 13]],
)

AUTOMATIC = ("autograd", "backward", "grad", "requires_grad", "requires_grad_", "vjp", "jacrev", "jacobian")
GRADIENTS = replace(gradients, points=3.0)
SHOWN = (
    Task("deep_step", "Stacked layers", asks="x, h, W, U, b", also=(keeps_type, GRADIENTS), example=(DEEP,)),
    Task(
        "clockwork_step",
        "A clock for each unit",
        asks="x, h, W, U, b, periods, t",
        also=(keeps_type, GRADIENTS),
        example=(CLOCKED,),
    ),
    Task("states_at", "Any state at once", asks="W, h0, times", example=(LATER,), checks=(AT_ONCE,)),
    Task("echo_states", "An echo state network", asks="W, V, x, radius, leak", example=(ECHO,)),
    Task(
        "cut_gradient",
        "Truncated backpropagation through time",
        asks="W, h, dh, length",
        forbids=AUTOMATIC,
        example=(CUT,),
    ),
    Task(
        "forward_gradients",
        "The gradient, forward in time",
        asks="W, h, dh",
        forbids=(*AUTOMATIC, "jvp", "jacfwd"),
        example=(FORWARD,),
    ),
    Task("language_scores", "The trigram baseline", asks="labels, names, new_names, num_languages", example=(SCORES,)),
    Task(
        "out_of_place",
        "Ranks of trigrams",
        asks="labels, names, new_names, num_languages, size",
        example=(RANKS,),
    ),
    Task(
        "train",
        "Which language is this?",
        asks="words, spoken",
        seconds=TRAINING_SECONDS,
        checks=(
            tells("Over 50 % of new words after four letters", 3, above=0.5, after=4),
            tells("Over 90 % of new words after all fifteen letters", 7, above=0.9, after=LENGTH),
            tells("Over 90 % of words that are twice as long", 5, above=0.9, after=2 * LENGTH, length=2 * LENGTH),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
