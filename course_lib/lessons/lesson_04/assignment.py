"""Lesson 04, LSTM and GRU: what the check cells of its assignment ask; the grader's tables are in hidden/04."""

import torch
from torch import Tensor

from course_lib.tasks import Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# letters behind a marker, asked for at the end -------------------------------------------------------------

LETTERS, MARKER = 8, 8
LENGTH = 30


def messages(draw: Draw, count: int, length: int = LENGTH) -> tuple[Tensor, Tensor]:
    """Rows of letters with one marker in the first half, and the letter behind each marker."""
    rows, position = draw.integers(0, LETTERS, count, length), draw.integers(0, length // 2, count)
    number = torch.arange(count)
    rows[number, position] = MARKER
    return rows, rows[number, position + 1]


NOT_LEARNED = Finding(
    "not learned",
    "On new rows the accuracy is hardly above that of a guess.",
    "Does the loss fall? With the initial biases of PyTorch the letter is lost on the way: how open is a forget gate?",
)
BY_HEART = Finding(
    "learned by heart",
    "The training rows are classified correctly, new ones are not.",
    "Use all of the rows: other ones in each step.",
)
ONE_LENGTH = Finding(
    "only the length of the training",
    "Rows of the training length are classified correctly, longer ones are not.",
    "Use the state after the *last* letter, whatever the length.",
)


def right(model: ModuleProbe, rows: Tensor, answers: Tensor) -> float:
    """The fraction of rows that are classified correctly; a CheckFailed if the answer depends on chance."""
    shape = (len(rows), LETTERS)
    found = model.tensor(rows, shape=shape)
    if not torch.allclose(found, model.tensor(rows, shape=shape), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    return (found.argmax(dim=1) == answers).float().mean().item()


def recalls(name: str, points: float, *, above: float, length: int = LENGTH) -> Check:
    """The accuracy on new rows of this length is above this; that of a guess is one in eight."""

    def trained(probe: Probe) -> tuple[ModuleProbe, tuple[Tensor, Tensor]]:
        seen, new = messages(probe.draw, 4_000), messages(probe.draw, 200)
        model = probe.make("train", *seen, seconds=45)
        in_parameters(model, new[0], knows=lambda: right(model, *new) > 0.3)
        return model, seen

    def run(probe: Probe) -> list[Finding]:
        model, seen = probe.once("trained", trained)
        if right(model, *messages(probe.draw, 500, length)) > above:
            return []
        if right(model, *messages(probe.draw, 500)) > 0.9:
            return [ONE_LENGTH]
        by_heart = max(right(model, *(part[some] for part in seen)) for some in (slice(8), slice(-8, None)))
        return [(BY_HEART if by_heart == 1 else NOT_LEARNED)]

    told = (NOT_LEARNED, BY_HEART, ONE_LENGTH)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


# the examples -----------------------------------------------------------------------------------------------

COUPLED = (
    ([[2.0]], [[0.0]], [[4.0]], [[0.0], [0.0], [0.5]], [[0.0], [0.0], [0.0]], [0.0, 0.0, -1.0]),
    [[[0.48201]], [[2.0]]],
)
HIGHWAY = (([[[0.5], [0.8], [0.5], [1.0]]],), [[[0.4], [0.5], [1.0], [1.0]]])
BOTH_WAYS = (
    (
        [[[1.0], [1.0], [5.0]]],
        torch.tensor([2]),
        [[1.0]],
        [[0.0]],
        [[-1.0]],
        [[1.0]],
    ),
    [[[0.76159, -0.94268], [0.76159, -0.76159], [0.0, 0.0]]],
)

SHOWN = (
    Task(
        "coupled_step",
        "One gate for two",
        asks="x, h, c, W_ih, W_hh, b",
        also=(keeps_type, gradients),
        example=(COUPLED,),
    ),
    Task("highway", "What reaches an early cell", asks="f", also=(keeps_type, gradients), example=(HIGHWAY,)),
    Task(
        "both_ways",
        "Read from both ends",
        asks="x, lengths, W_f, U_f, W_b, U_b",
        also=(keeps_type, gradients),
        example=(BOTH_WAYS,),
    ),
    Task(
        "train",
        "A message behind a marker",
        asks="rows, answers",
        seconds=45.0,
        checks=(
            recalls("New rows: better than twice a guess", 6, above=0.3),
            recalls("New rows: nearly always right", 10, above=0.95),
            recalls("Rows that are twice as long", 6, above=0.7, length=2 * LENGTH),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
