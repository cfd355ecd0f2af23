"""Lesson 12, Swin: what the check cells of its assignment ask; the grader's tables are in hidden/12."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.tasks import TRAINING_SECONDS, Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d", "conv1d", "conv2d", "conv3d", "Unfold", "unfold")

# boards with lamps --------------------------------------------------------------------------------------------

WINDOW = 4  # of the networks that the findings have in mind
SIDE, LARGER = 12, 20
NEIGHBOURS = (1, 1, 1, 1)  # the distances of the notebook's boards


def make_boards(
    draw: Draw, count: int, side: int = SIDE, distances: tuple[int, ...] = NEIGHBOURS
) -> tuple[Tensor, Tensor]:
    """Boards, 1 for a lamp and 0 for none, and their labels, 1 for lit: both (count, side, side).

    A lamp lights the positions at these distances above it, below it, on its left and on its right.
    """
    boards = (torch.rand(count, side, side, generator=draw.generator) < 0.2).long()
    up, down, left, right = distances
    moved = (_moved(boards, *step) for step in ((-up, 0), (down, 0), (0, -left), (0, right)))
    return boards, (sum(moved) > 0).long()


def secret_distances(draw: Draw) -> tuple[int, ...]:
    """Two in one or two of the four directions, and one in the others."""
    far = draw(4).argsort()[: draw.integers(1, 3, 1).item()]
    return tuple(torch.ones(4, dtype=torch.long).index_fill(0, far, 2).tolist())


def _moved(boards: Tensor, down: int, across: int) -> Tensor:
    """The boards moved by so many positions; 0 comes in at the edges."""
    height, width = boards.shape[-2:]
    return F.pad(boards, (2, 2, 2, 2))[:, 2 - down : 2 - down + height, 2 - across : 2 - across + width]


NOT_LEARNED = Finding(
    "not learned",
    "The accuracy is too low even at positions that need only lamps of their own window.",
    "Does the loss fall until the end of the training? Does the bias differ from offset to offset?",
)
OWN_RULE = Finding(
    "another rule than that of the data",
    "The answers follow the rule of the notebook's boards. The boards of the training follow another rule.",
    "Train on the boards that your function gets, and put nothing about the rule into your code.",
)
NEVER_MEET = Finding(
    "windows never meet",
    "The answers are right inside the windows, and often wrong at a border between two windows.",
    "In a second block the borders must lie elsewhere: roll the feature map by half a window, attend, and roll back.",
)
EDGES_TOUCH = Finding(
    "opposite edges meet",
    "The answers are often wrong at the edge of the board, and right inside.",
    "After the cyclic shift opposite edges of the board lie in one window. A mask must forbid these pairs.",
)
ONE_SIZE = Finding(
    "one size of board only",
    "Boards of the size of the training are answered well, and larger boards are not.",
    "Take height and width from the input, and let the bias depend on offsets inside a window, not on the position.",
)


def correct(model: ModuleProbe, boards: Tensor, lit: Tensor) -> Tensor:
    """1.0 where the answer is correct, (B, H, W); a CheckFailed if the answers depend on chance."""
    model.tensor(boards[:1], shape=(1, *boards.shape[1:], 2))  # a board alone
    logits = model.tensor(boards, shape=(*boards.shape, 2))
    if not torch.allclose(logits, model.tensor(boards, shape=(*boards.shape, 2)), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    return (logits.argmax(dim=-1) == lit).float()


def regions(side: int, distances: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Which positions a lamp beyond the edge would light, which others one in another regular window, and the rest."""
    index = torch.arange(side)
    up, down, left, right = distances

    def along(back: int, ahead: int) -> tuple[Tensor, Tensor]:
        lamps = torch.stack([index - back, index + ahead])
        return ((lamps < 0) | (lamps >= side)).any(dim=0), (lamps // WINDOW != index // WINDOW).any(dim=0)

    (outside, border), (beside, seam) = along(down, up), along(right, left)
    edge, cut = outside[:, None] | beside, border[:, None] | seam
    return edge, cut & ~edge, ~cut & ~edge


def lights(name: str, points: float, *, above: float, side: int = SIDE) -> Check:
    """The accuracy over all positions of new boards is above this."""

    def trained(probe: Probe) -> tuple[ModuleProbe, tuple[int, ...]]:
        distances = secret_distances(probe.draw)
        model = probe.make("train", *make_boards(probe.draw, 500, distances=distances))
        shown = make_boards(probe.draw, 20, distances=distances)
        correct(model, *shown)
        in_parameters(model, shown[0], knows=lambda: correct(model, *shown).mean() > 0.75, at_least=200)
        return model, distances

    def run(probe: Probe) -> list[Finding]:
        model, distances = probe.once("trained", trained)
        small = correct(model, *make_boards(probe.draw, 200, distances=distances))
        try:
            found = small if side == SIDE else correct(model, *make_boards(probe.draw, 100, side, distances))
        except CheckFailed:
            return [ONE_SIZE]
        if found.mean() > above:
            return []
        if found is not small and small.mean() > above:
            return [ONE_SIZE]
        if correct(model, *make_boards(probe.draw, 50)).mean() > small.mean():
            return [OWN_RULE]
        edge, border, inside = (found[:, positions].mean().item() for positions in regions(side, distances))
        if found.mean() < 0.8 or inside < 0.98:  # for some rules no position is inside: the mean of none is NaN
            return [NOT_LEARNED]
        return [(NEVER_MEET if border < edge else EDGES_TOUCH)]

    told = (NOT_LEARNED, OWN_RULE, NEVER_MEET, EDGES_TOUCH, ONE_SIZE)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


# the examples -----------------------------------------------------------------------------------------------

UPPER_HALF = torch.zeros(8, 8, dtype=torch.bool)
UPPER_HALF[:4] = True
FIELD = ((torch.tensor([1, 3]), 8, 8, 4, 2, 2), UPPER_HALF.tolist())
SEEN = torch.zeros(8, 8, dtype=torch.bool)
SEEN[:7, 2:] = True
NEIGHBORHOODS = ((torch.tensor([1, 5]), 8, 8, 3, [1, 2]), SEEN.tolist())
BIAS = (
    ([[1.0, 0.0], [0.0, -1.0]], [0.0, 0.0], [[1.0, 2.0]], 2),
    [
        [
            [0.0, 2 * math.log(2), 0.0, 2 * math.log(2)],
            [0.0, 0.0, 0.0, 0.0],
            [math.log(2), 3 * math.log(2), 0.0, 2 * math.log(2)],
            [math.log(2), math.log(2), 0.0, 0.0],
        ]
    ],
)
DECOMPOSED = (
    (
        [[[[1.0, 2.0]] * 8]],
        [[1.0, 0.0], [0.0, 1.0]],
        [[20.0, 0.0], [10.0, 0.0], [0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]],
        2,
        4,
        2,
    ),
    [[[[1.0, 21], [2, 11], [3, 1], [4, 2], [2, 22], [3, 12], [4, 2], [5, 3]]]],
)
EXPANDED = (
    ([[[[1.0, 2.0]]]], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]], 2, 1),
    [[[[1.0]], [[2.0]]]],
)

PLAIN, LEFT, MIDDLE, RIGHT = ([math.log(10) * (place == at) for place in range(9)] for at in (9, 3, 4, 5))
REASSEMBLED = (
    (
        [[[[3.0], [6.0]]]],
        [[[[*PLAIN, *MIDDLE, *RIGHT, *LEFT], [*PLAIN, *PLAIN, *PLAIN, *MIDDLE]]]],
        3,
        2,
    ),
    [[[[1.0], [2], [1], [1]], [[3.5], [0.5], [1], [3.5]]]],
)

SHOWN = (
    Task(
        "receptive_field",
        "The receptive field of a position",
        asks="position, height, width, size, shift, blocks",
        example=(FIELD,),
    ),
    Task(
        "neighborhood_field",
        "The receptive field of neighborhoods",
        asks="position, height, width, kernel, dilations",
        example=(NEIGHBORHOODS,),
    ),
    Task(
        "continuous_bias",
        "A position bias for windows of any size",
        asks="W1, b1, W2, size",
        also=(keeps_type, gradients),
        example=(BIAS,),
    ),
    Task(
        "decomposed_bias",
        "A position bias from rows and columns",
        asks="q, R_rows, R_columns, height, width, stride",
        also=(keeps_type, gradients),
        example=(DECOMPOSED,),
    ),
    Task(
        "patch_expanding",
        "Patch expanding",
        asks="x, weight, height, width",
        also=(keeps_type, gradients),
        example=(EXPANDED,),
    ),
    Task(
        "reassemble",
        "Content-aware upsampling",
        asks="x, logits, kernel, factor",
        also=(keeps_type, gradients),
        example=(REASSEMBLED,),
    ),
    Task(
        "train",
        "Which positions are lit?",
        asks="boards, lit",
        seconds=TRAINING_SECONDS,
        forbids=CONVOLUTIONS,
        checks=(
            lights("Accuracy above 93 %, more than with windows that are never shifted", 7, above=0.93),
            lights("Accuracy above 98.5 %", 6, above=0.985),
            lights("Accuracy above 98.5 % on larger boards", 6, above=0.985, side=LARGER),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
