"""Lesson 12, Swin: what the check cells of its assignment ask; the grader's tables are in hidden/12."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.tasks import Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general

WINDOW = 4
CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d", "conv1d", "conv2d", "conv3d", "Unfold", "unfold")


def lamps(draw: Draw, count: int, side: int = 12, reach: tuple[int, ...] = (1, 1, 1, 1)) -> tuple[Tensor, Tensor]:
    """Boards with lamps, 1 on 0, and which places are lit: those `reach` above, below, on the left, right of a lamp."""
    boards = (torch.rand(count, side, side, generator=draw.generator) < 0.2).long()
    near = sum(_moved(boards, *step) for step in _steps(reach))
    return boards, (near > 0).long()


def secret_reach(draw: Draw) -> tuple[int, ...]:
    """How far a lamp lights: to the next place in some directions, to the one behind it in one or two others."""
    far = draw(4).argsort()[: draw.integers(1, 3, 1).item()]
    return tuple(torch.ones(4, dtype=torch.long).index_fill(0, far, 2).tolist())


def _steps(reach: tuple[int, ...]) -> list[tuple[int, int]]:
    up, down, left, right = reach
    return [(-up, 0), (down, 0), (0, -left), (0, right)]


def _moved(boards: Tensor, down: int, across: int) -> Tensor:
    """The boards moved by so many places; what comes in at the edges is 0."""
    height, width = boards.shape[-2:]
    return F.pad(boards, (2, 2, 2, 2))[:, 2 - down : 2 - down + height, 2 - across : 2 - across + width]


NOT_LEARNED = Finding(
    "not learned",
    "Even inside the windows, lit and dark places of new boards are told apart worse than asked for.",
    "Does the loss fall from step to step? Does the bias differ from offset to offset?",
)
OWN_RULE = Finding(
    "a rule of one's own",
    "The answers follow the rule of the notebook's boards. The boards of the training follow another one.",
    "Nothing of the rule belongs into your code: the training is to find out which places a lamp lights.",
)
NEVER_MEET = Finding(
    "windows never meet",
    "Places inside the windows are right, and those at a border between two windows are often wrong.",
    "The second block has to cut its windows elsewhere: shift the map by half a window, and back again.",
)
EDGES_TOUCH = Finding(
    "the edges touch",
    "Places at the edge of the board are often wrong, and those inside are right.",
    "After the cyclic shift the far ends of the board lie in one window. A mask must keep them apart.",
)
ONE_SIZE = Finding(
    "only one size of board",
    "Boards of the training's size are answered well, larger ones are not.",
    "Take height and width from the input; the bias belongs to offsets within a window, not to places on the board.",
)


def right(model: ModuleProbe, boards: Tensor, lit: Tensor) -> Tensor:
    """1.0 where a place is answered right, (B, H, W); a CheckFailed if the answers depend on chance."""
    model.tensor(boards[:1], shape=(1, *boards.shape[1:], 2))  # a board alone
    found = model.tensor(boards, shape=(*boards.shape, 2))
    if not torch.allclose(found, model.tensor(boards, shape=(*boards.shape, 2)), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    return (found.argmax(dim=-1) == lit).float()


def regions(side: int, reach: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Places that a lamp beyond the board would light, others that one in another unshifted window lights, the rest."""
    position = torch.arange(side)
    up, down, left, right = reach

    def along(back: int, ahead: int) -> tuple[Tensor, Tensor]:
        lamps = torch.stack([position - back, position + ahead])
        return ((lamps < 0) | (lamps >= side)).any(dim=0), (lamps // WINDOW != position // WINDOW).any(dim=0)

    (outside, border), (beside, seam) = along(down, up), along(right, left)
    edge, cut = outside[:, None] | beside, border[:, None] | seam
    return edge, cut & ~edge, ~cut & ~edge


def tells(name: str, points: float, *, level: float, side: int = 12) -> Check:
    """At least this share of places of new boards is answered right."""

    def trained(probe: Probe) -> tuple[ModuleProbe, tuple[int, ...]]:
        reach = secret_reach(probe.draw)
        return probe.make("train", *lamps(probe.draw, 500, reach=reach), seconds=45), reach

    def run(probe: Probe) -> list[Finding]:
        model, reach = probe.once("trained", trained)
        small = right(model, *lamps(probe.draw, 200, reach=reach))
        try:
            found = small if side == 12 else right(model, *lamps(probe.draw, 100, side, reach))
        except CheckFailed:
            return [ONE_SIZE]
        if found.mean() >= level:
            return []
        if found is not small and small.mean() >= level:
            return [ONE_SIZE]
        if right(model, *lamps(probe.draw, 50)).mean() > small.mean():
            return [OWN_RULE]
        edge, border, inside = (found[:, position].mean().item() for position in regions(side, reach))
        if inside < 0.98:
            return [NOT_LEARNED]
        return [(NEVER_MEET if border < edge else EDGES_TOUCH)]

    told = (NOT_LEARNED, OWN_RULE, NEVER_MEET, EDGES_TOUCH, ONE_SIZE)
    return Check(name=name, points=points, run=run, detects=tuple(one.misconception for one in told))


# the examples -----------------------------------------------------------------------------------------------

SEEN = torch.zeros(8, 8, dtype=torch.bool)
SEEN[:4] = True
REACH = ((torch.tensor([1, 3]), 8, 8, 4, 2, 2), SEEN.tolist())
SLOPES = (
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
SPREAD = (
    ([[[[1.0, 2.0]]]], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]], 2, 1),
    [[[[1.0]], [[2.0]]]],
)

SHOWN = (
    Task("reach", "How far does a patch see?", asks="place, height, width, size, shift, blocks", example=(REACH,)),
    Task(
        "continuous_bias",
        "A bias for offsets never seen",
        asks="W1, b1, W2, size",
        also=(keeps_type, gradients),
        example=(SLOPES,),
    ),
    Task(
        "unmerge",
        "One patch becomes four",
        asks="x, weight, height, width",
        also=(keeps_type, gradients),
        example=(SPREAD,),
    ),
    Task(
        "train",
        "Who stands in the light?",
        asks="boards, lit",
        seconds=45.0,
        forbids=CONVOLUTIONS,
        checks=(
            tells("Better than windows that never meet", 8, level=0.94),
            tells("At least 99 % of all places of new boards", 10, level=0.99),
            tells("At least 99 % on larger boards, too", 10, level=0.99, side=20),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
