"""Lesson 04, LSTM and GRU: what the check cells of its assignment ask; the grader's tables are in hidden/04."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from course_lib.tasks import TRAINING_SECONDS, Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import CUT_OFF, RANDOM, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# letters behind a marker, asked for at the end -------------------------------------------------------------

SYMBOLS = 9  # one of them is the marker, the same in all rows
LENGTH = 30


def messages(draw: Draw, count: int, length: int = LENGTH, *, marker: int) -> tuple[Tensor, Tensor]:
    """Rows of letters with one marker in the first half, and the letter behind each marker."""
    rows, position = draw.integers(0, SYMBOLS - 1, count, length), draw.integers(0, length // 2, count)
    rows += rows >= marker
    number = torch.arange(count)
    rows[number, position] = marker
    return rows, rows[number, position + 1]


NOT_LEARNED = Finding(
    "not learned",
    "On new rows the accuracy is too low; that of a guess is 12.5 %.",
    "Does the loss fall? An LSTM with the initial biases of PyTorch loses the letter on its way: how open is a forget "
    "gate? And another data set has another marker: does your code look for a certain symbol?",
)
MEMORISED = Finding(
    "memorised",
    "Training rows are classified correctly, too many new ones are not.",
    "Use all of the rows: other ones in each step.",
)
ONE_LENGTH = Finding(
    "only the length of the training",
    "Rows of the training length are classified correctly, longer ones are not.",
    "Use the state after the *last* letter, whatever the length. Are the forget gates open enough for 60 symbols?",
)


def right(model: ModuleProbe, rows: Tensor, answers: Tensor) -> float:
    """The fraction of rows that are classified correctly; a CheckFailed if the answer depends on chance."""
    shape = (len(rows), SYMBOLS)
    found = model.tensor(rows, shape=shape)
    if not torch.allclose(found, model.tensor(rows, shape=shape), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    return (found.argmax(dim=1) == answers).float().mean().item()


def recalls(name: str, points: float, *, above: float, length: int = LENGTH) -> Check:
    """The accuracy on new rows of this length is above this; that of a guess is one in eight."""

    def trained(probe: Probe) -> tuple[ModuleProbe, tuple[Tensor, Tensor], int]:
        marker = int(probe.draw.integers(0, SYMBOLS - 1, 1))  # never that of the notebook's rows
        seen, new = messages(probe.draw, 4_000, marker=marker), messages(probe.draw, 200, marker=marker)
        model = probe.make("train", *seen)
        in_parameters(model, new[0], knows=lambda: right(model, *new) > 0.3)
        return model, seen, marker

    def run(probe: Probe) -> list[Finding]:
        model, seen, marker = probe.once("trained", trained)
        if right(model, *messages(probe.draw, 500, length, marker=marker)) > above:
            return []
        if right(model, *messages(probe.draw, 500, marker=marker)) > 0.9:
            return [ONE_LENGTH]
        memorised = max(right(model, *(part[some] for part in seen)) for some in (slice(8), slice(-8, None)))
        return [(MEMORISED if memorised == 1 else NOT_LEARNED)]

    told = (NOT_LEARNED, MEMORISED, ONE_LENGTH)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


# gradients where a gate is closed ---------------------------------------------------------------------------

CLOSED = Finding(
    "wrong gradient at a closed gate",
    "Where a gate is exactly 0, the gradients that flow back are not right.",
    "A logarithm of 0 is infinite, and `clamp` passes no gradient on: multiply the gates themselves.",
)


def _closed_gates(probe: Probe) -> list[Finding]:
    B, T, H = 2, 5, 3
    f = probe.draw(B, T, H).sigmoid()
    f[0, 2], f[1, 1:4, 0] = 0.0, 0.0
    found = probe.gradients(f, output_gradient=torch.ones(B, T, H)).inputs[0]
    if found is None:
        raise CheckFailed(general(CUT_OFF))
    for s in range(T):  # gate s is in the products of all steps before it
        others = (torch.cat([f[:, t + 1 : s], f[:, s + 1 :]], dim=1).prod(dim=1) for t in range(s))
        if not torch.allclose(found[:, s].float(), sum(others, torch.zeros(B, H)), atol=1e-4):
            return [CLOSED]
    return []


AT_CLOSED_GATES = Check(
    name="gradients are right where a gate is closed",
    points=3.0,
    detects=(CLOSED.misconception, CUT_OFF),
    run=_closed_gates,
)

# the examples -----------------------------------------------------------------------------------------------

COUPLED = (
    (
        [[1.0]],
        [[1.0, 2.0]],
        [[2.0, 1.0]],
        [[math.log(3)], [0.0], [0.0], [0.0], [0.0], [-math.log(3)]],
        [[0.0, 0.0], [-math.log(3), 0.0], [0.0, 0.0], [math.log(3), 0.0], [0.0, 0.0], [0.0, 0.0]],
        [0.0, 0.0, 0.0, 0.0, math.log(2), 0.0],
    ),
    [[[0.46453, -0.25228]], [[1.65, -0.35]]],
)
MINIMAL = (
    (
        [[1.0]],
        [[1.0, 2.0]],
        [[math.log(3)], [0.0], [0.0], [0.0]],
        [[0.0, 0.0], [-math.log(3), 0.0], [0.0, 2 * math.log(2)], [0.0, -2 * math.log(3)]],
        [0.0, 0.0, 0.0, 0.0],
    ),
    [[0.7, 1.3]],
)
HIGHWAY = (
    ([[[0.5, 0.9], [0.8, 0.0], [0.5, 0.5], [1.0, 0.2]]],),
    [[[0.4, 0.0], [0.5, 0.1], [1.0, 0.2], [1.0, 1.0]]],
)
POOLED = (
    (
        [[[8.0, 1.0], [2.0, 0.0], [5.0, 4.0]]],
        [[[0.5, 0.0], [0.5, 0.75], [0.0, 0.5]]],
        [[[1.0, 0.5], [0.5, 1.0], [0.2, 0.5]]],
    ),
    [[[4.0, 0.5], [1.5, 0.75], [1.0, 1.1875]]],
)
BOTH_WAYS = (
    (
        [[[1.0], [-1.0], [5.0]]],
        torch.tensor([2]),
        [[1.0], [0.0]],
        [[0.0, 0.0], [1.0, 0.0]],
        [[0.0], [-1.0]],
        [[0.0, 1.0], [0.0, 0.0]],
    ),
    [[[0.76159, 0.0, 0.64202, -0.76159], [-0.76159, 0.64202, 0.0, 0.76159], [0.0, 0.0, 0.0, 0.0]]],
)
PYRAMID = (
    (
        [[[1.0], [-1.0], [1.0], [5.0], [-5.0]]],
        torch.tensor([3]),
        [[1.0], [0.0]],
        [[0.0, 0.0], [1.0, 0.0]],
        [[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]],
        [[0.0, 1.0], [2.0, 0.0]],
    ),
    [[[0.88613, -0.64201], [0.11901, 0.94386], [0.0, 0.0]]],
)

GRADIENTS = replace(gradients, points=3.0)
SHOWN = (
    Task(
        "coupled_step",
        "One gate for two",
        asks="x, h, c, W_ih, W_hh, b",
        also=(keeps_type, GRADIENTS),
        example=(COUPLED,),
    ),
    Task(
        "minimal_step",
        "A cell with a single gate",
        asks="x, h, W_ih, W_hh, b",
        also=(keeps_type, GRADIENTS),
        example=(MINIMAL,),
    ),
    Task(
        "highway",
        "What reaches an early cell",
        asks="f",
        also=(keeps_type, gradients),
        example=(HIGHWAY,),
        checks=(AT_CLOSED_GATES,),
    ),
    Task(
        "fo_pool",
        "Gates without a recurrent matrix",
        asks="z, f, o",
        also=(keeps_type, replace(gradients, points=4.0)),
        example=(POOLED,),
    ),
    Task(
        "both_ways",
        "Read from both ends",
        asks="x, lengths, W_f, U_f, W_b, U_b",
        also=(keeps_type, GRADIENTS),
        example=(BOTH_WAYS,),
    ),
    Task(
        "pyramid",
        "Read in two storeys",
        asks="x, lengths, W_1, U_1, W_2, U_2",
        also=(keeps_type, GRADIENTS),
        example=(PYRAMID,),
    ),
    Task(
        "train",
        "A message behind a marker",
        asks="rows, answers",
        seconds=TRAINING_SECONDS,
        checks=(
            recalls("New rows: better than twice a guess", 6, above=0.3),
            recalls("New rows: nearly always right", 10, above=0.95),
            recalls("Rows that are twice as long", 6, above=0.7, length=2 * LENGTH),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
