"""Lesson 01, Transfer learning: the tables of its exercises; each formula has a knob for what learners get wrong."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.tasks import Case, Check, Draw, Finding, Task, mistakes
from course_lib.tasks.core import Probe

# conv_size --------------------------------------------------------------------------------------------------


def conv_size(
    size: int,
    kernel: int,
    stride: int,
    padding: int,
    *,
    sides: int = 2,
    first: int = 1,
    rounds: str = "down",
    reach: int = 0,
    walks: str = "kernel inside",
) -> float:
    """floor((size + 2 padding - kernel) / stride) + 1."""
    way = size + sides * padding - (kernel if walks == "kernel inside" else 0) + reach
    steps = {"down": way // stride, "up": -(-way // stride), "not": way / stride}[rounds]
    return float(steps + first)


def with_stride(draw: Draw) -> tuple[int, int, int, int]:
    """A way of some threes and one more; padding and kernel are so wide that neither can be missed."""
    kernel, padding = 2 * int(draw.integers(4, 7, 1)) + 1, int(draw.integers(7, 10, 1))
    return 3 * int(draw.integers(12, 20, 1)) + 1 + kernel - 2 * padding, kernel, 3, padding


def one_by_one(draw: Draw) -> tuple[int, int, int, int]:
    """Stride 1."""
    kernel, padding = 2 * int(draw.integers(1, 4, 1)) + 1, int(draw.integers(3, 6, 1))
    return int(draw.integers(20, 40, 1)), kernel, 1, padding


CONV_SIZE = Task(
    name="conv_size",
    title="How large is the map?",
    asks="size, kernel, stride, padding",
    reference=conv_size,
    cases=(Case("with padding, and a stride that leaves a rest", with_stride), Case("with stride 1", one_by_one)),
    mistakes=mistakes(r"""
padding on one side only: sides=1 | 0
    The padding was counted once, or not at all.
    > It is put on *both* sides: the kernel walks over `size + 2 * padding` pixels.
first place forgotten: first=0
    The steps were counted, and not the places.
    > A kernel that makes no step stands at one place already: add 1.
not rounded: rounds='not'
    The result is no whole number: a part of a step was counted.
    > `//` divides and rounds down; `/` does not.
rounded up: rounds='up'
    The last step was counted although the kernel would hang over the border.
    > Only whole steps count: `//` rounds down.
kernel not subtracted: walks='to the border'; first=0 | 1
    The kernel's own width was not taken off: its far end would leave the border.
    > From the first place to the last it walks `size + 2 * padding - kernel` pixels.
kernel one too small: reach=1
    The kernel's way was taken one pixel too long.
    > From the first place to the last it walks `size + 2 * padding - kernel` pixels.
"""),
    example=(((5, 3, 1, 0), 3.0), ((32, 3, 2, 1), 16.0)),
    minutes=4,
    text="A kernel of `kernel` pixels a side walks over a picture of `size` pixels a side, with `padding` pixels of "
    "zeros added on each side, `stride` pixels at a time. It never hangs over the border. At how many places a side "
    "does it stop? Return a whole number.",
    hints=(
        "How many pixels can the kernel walk, from its first place to its last?",
        "`size + 2 * padding - kernel` pixels. How many whole steps of `stride` are in it?",
        "The steps are `way // stride`. And the place where it began?",
    ),
    solution="""
def my_conv_size(size, kernel, stride, padding):
    way = size + 2 * padding - kernel
    return way // stride + 1
""",
)

# residual_block ---------------------------------------------------------------------------------------------


def residual_block(
    x: Tensor,
    branch: Callable[[Tensor], Tensor],
    shortcut: Callable[[Tensor], Tensor],
    *,
    adds: str = "shortcut",
    relu: str = "sum",
) -> Tensor:
    """relu(branch(x) + shortcut(x)), He et al. 2016, eq. (1)."""
    y = branch(x)
    y = y.relu() if relu == "branch" else y
    around = {"shortcut": shortcut(x), "x": x, "branch": shortcut(y), "nothing": torch.zeros_like(y)}[adds]
    return (y + around).relu() if relu == "sum" else y + around


def block(draw: Draw) -> tuple[Tensor, Callable, Callable]:
    """Maps, a branch and a shortcut that is not the identity."""
    B, C, H, W = draw.sizes(4)
    return draw(B, C, H, W), lambda x: 0.8 * x.roll(1, dims=-1) - 0.1, lambda x: 0.5 * x.flip(-2)


RESIDUAL_BLOCK = Task(
    name="residual_block",
    title="A residual block",
    asks="x, branch, shortcut",
    reference=residual_block,
    cases=(Case("ReLU of branch plus shortcut", block),),
    mistakes=mistakes(r"""
no way around: adds='nothing'
    That is a plain block: nothing is added to the branch.
    > The idea of the lesson is the sum: `branch(x) + shortcut(x)`.
x added in place of the shortcut: adds='x'
    `x` itself was added.
    > Where the shape changes, `shortcut` makes `x` fit: call it.
shortcut of the branch: adds='branch'
    The shortcut got what the branch returned.
    > It leads *around* the branch: both get `x`.
activation before the sum: relu='branch'
    The ReLU stands before the sum, so that a block can only ever add.
    > Add first, then the ReLU (He et al. 2016, figure 2).
no activation: relu='none'
    There is no ReLU behind the sum.
    > The block ends with one.
"""),
    minutes=4,
    text="`branch` and `shortcut` are functions that take `x`, maps of shape `(B, C, H, W)`, and return maps of one "
    "shape. Return what the block makes of `x`: the sum of both, and the ReLU of that sum.",
    hints=(
        "Two functions get the same `x`.",
        "Their results have one shape: add them.",
        "`branch(x)` and `shortcut(x)` have one shape; `.relu()` comes last, on their sum.",
    ),
    solution="""
def my_residual_block(x, branch, shortcut):
    return (branch(x) + shortcut(x)).relu()
""",
)

# freeze -----------------------------------------------------------------------------------------------------


def freeze(trunk: nn.Module) -> nn.Module:
    """Neither weights nor statistics move."""
    return trunk.requires_grad_(False).eval()


LEARNS = Finding(
    "weights still learn",
    "After your function some parameters of the trunk still ask for gradients.",
    "`trunk.parameters()` goes through all of them, also in parts of parts: set `requires_grad` of each to False.",
)
NOT_GIVEN_BACK = Finding(
    "trunk not given back", "The trunk holds still, but your function does not return it.", "End with `return trunk`."
)
GOES_ON = Finding(
    "statistics go on",
    "No weight moves, but a BatchNorm is still in training mode: each batch moves its mean and variance.",
    "`trunk.eval()` puts the trunk and all its parts into evaluation mode.",
)
BY_BATCH = Finding(
    "normalised by the batch",
    "Nothing moves, but a BatchNorm still normalises by each batch's own mean and variance, not by its statistics: an "
    "image's features depend on its batch.",
    "In evaluation mode it uses the statistics that it has: `trunk.eval()`.",
)
MOVES = (LEARNS, GOES_ON, BY_BATCH, NOT_GIVEN_BACK)


def holds_still(probe: Probe) -> list[Finding]:
    """Whether a trunk with parts within parts holds still: it is asked, its modes are not looked at."""
    trunk = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Sequential(nn.ReLU(), nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3))
    ).train()
    images = 3 + probe.random(4, 1, 6, 6)
    features = deepcopy(trunk).eval()(images)
    result = probe.call(trunk)
    found = [LEARNS] if any(parameter.requires_grad for parameter in trunk.parameters()) else []
    before = deepcopy(trunk.state_dict())
    by_batch = not torch.allclose(trunk(images), features, atol=1e-4)
    names = [name for name in before if name.endswith(("running_mean", "running_var"))]
    if any(not torch.equal(before[name], trunk.state_dict()[name]) for name in names):
        found.append(GOES_ON)
    elif by_batch:
        found.append(BY_BATCH)
    return found or ([] if result is trunk else [NOT_GIVEN_BACK])


FREEZE = Task(
    name="freeze",
    title="Freeze a trunk so that nothing in it moves",
    asks="trunk",
    reference=freeze,
    checks=(Check(name="weights and statistics", detects=tuple(f.misconception for f in MOVES), run=holds_still),),
    wrong={
        LEARNS.misconception: ("parameter.requires_grad = False", "parameter.requires_grad = True"),
        GOES_ON.misconception: ("return trunk.eval()", "return trunk"),
        BY_BATCH.misconception: ("trunk.eval()", "trunk.apply(lambda part: setattr(part, 'momentum', 0.0))"),
        NOT_GIVEN_BACK.misconception: ("return trunk.eval()", "trunk.eval()"),
    },
    minutes=4,
    text="`trunk` is a module with convolutions and BatchNorms in it, in training mode. Change it in place so that "
    "training a head on top of it moves nothing in it: no weight, and no statistics of a BatchNorm. Each BatchNorm "
    "normalises by these statistics, whatever else is in the batch. Return the trunk.",
    hints=(
        "Two things move: parameters, by their gradients, and the BatchNorms' statistics, by each batch.",
        "A parameter with `requires_grad = False` gets no gradient. And in which mode does a BatchNorm stand still?",
        "`trunk.eval()`, and `requires_grad = False` for each of `trunk.parameters()`.",
    ),
    solution="""
def my_freeze(trunk):
    for parameter in trunk.parameters():
        parameter.requires_grad = False
    return trunk.eval()
""",
)

# parameter_groups -------------------------------------------------------------------------------------------


def parameter_groups(parts: list[nn.Module], rate: float, decay: float) -> list[dict[str, Any]]:
    """Head first, each part `decay` times as fast as the one above."""
    return [{"params": list(part.parameters()), "lr": rate * decay**number} for number, part in enumerate(parts)]


NO_GROUPS = Finding(
    "no groups",
    "What came back is no list with a dictionary of `params` and `lr` for each part.",
    'One dictionary for each part: `{"params": list(part.parameters()), "lr": ...}`.',
)
OTHERS = Finding(
    "parameters of another part", "A group does not hold exactly its part's parameters.", "`list(part.parameters())`."
)
ONE_RATE = Finding("one rate for all", "All groups have the same rate.", "Each part learns `decay` times as fast.")
LINEAR = Finding(
    "rates fall by steps", "The rates do not fall by a factor.", "The rate of part number i is `rate * decay**i`."
)
RISING = Finding(
    "lower parts faster",
    "Each part is faster than the one above it.",
    "Multiply by `decay` for each part further down.",
)
REVERSED = Finding("head slowest", "The head has the lowest rate.", "The head comes first, and has `rate` itself.")
EARLY = Finding("head slowed, too", "The head's rate is `rate * decay`.", "Part 0, the head, has `rate` itself.")
GROUPED = (NO_GROUPS, OTHERS, ONE_RATE, LINEAR, RISING, REVERSED, EARLY)


def groups_by_layer(probe: Probe) -> list[Finding]:
    """Whether each part has its parameters and its rate."""
    parts, rate, decay = [nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 3), nn.ReLU()), nn.Conv2d(1, 2, 3)], 0.2, 0.5
    groups = probe.call(parts, rate, decay)
    try:
        held = [[id(parameter) for parameter in group["params"]] for group in groups]
        rates = torch.tensor([float(group["lr"]) for group in groups])
    except (TypeError, KeyError, ValueError, IndexError):
        return [NO_GROUPS]
    if len(held) != len(parts):
        return [NO_GROUPS]
    if any(mine != [id(parameter) for parameter in part.parameters()] for mine, part in zip(held, parts, strict=True)):
        return [OTHERS]
    right = rate * decay ** torch.arange(len(parts))
    named = ((right.flip(0), REVERSED), (right * decay, EARLY), (torch.full((3,), rate), ONE_RATE),
             (rate**2 / right, RISING))  # fmt: skip
    if torch.allclose(rates, right):
        return []
    return [next((finding for wrong, finding in named if torch.allclose(rates, wrong)), LINEAR)]


PARAMETER_GROUPS = Task(
    name="parameter_groups",
    title="A rate for each layer",
    asks="parts, rate, decay",
    reference=parameter_groups,
    checks=(
        Check(
            name="each part's parameters and rate",
            detects=tuple(finding.misconception for finding in GROUPED),
            run=groups_by_layer,
        ),
    ),
    wrong={
        NO_GROUPS.misconception: ("return groups", "return groups[:1]"),
        OTHERS.misconception: ("part.parameters()", "parts[0].parameters()"),
        ONE_RATE.misconception: ("rate * decay**i", "rate"),
        LINEAR.misconception: ("decay**i", "decay * i"),
        RISING.misconception: ("rate * decay**i", "rate / decay**i"),
        REVERSED.misconception: ("decay**i", "decay ** (len(parts) - 1 - i)"),
        EARLY.misconception: ("decay**i", "decay ** (i + 1)"),
    },
    minutes=5,
    text="`parts` is a list of modules, the head first, the stem last. Return a list of dictionaries, one for each "
    'part, with the keys `"params"` (a list of the part\'s parameters) and `"lr"`: the head learns at `rate`, the part '
    "below it `decay` times as fast, the next `decay` times as fast as that.",
    hints=(
        "`enumerate(parts)` gives each part with its number, 0 for the head.",
        "The head has not been slowed, the part below it once. How often has part number i?",
        'Slowed i times is a factor of `decay**i`; a group is `{"params": list(part.parameters()), "lr": ...}`.',
    ),
    solution="""
def my_parameter_groups(parts, rate, decay):
    groups = []
    for i, part in enumerate(parts):
        params = list(part.parameters())
        groups.append({"params": params, "lr": rate * decay**i})
    return groups
""",
)

# bottleneck_params ------------------------------------------------------------------------------------------


def bottleneck_params(
    channels: int, width: int, *, norms: str = "two", middle: int = 9, last: str = "back", bias: bool = False
) -> float:
    """Weights of 1 x 1, 3 x 3, 1 x 1, and two numbers of BatchNorm for each output channel of the three."""
    weights = channels * width + middle * width * width + width * (channels if last == "back" else width)
    outputs = 2 * width + channels
    return float(weights + {"two": 2, "one": 1, "none": 0}[norms] * outputs + bias * outputs)


BOTTLENECK_PARAMS = Task(
    name="bottleneck_params",
    title="What a bottleneck costs",
    asks="channels, width",
    reference=bottleneck_params,
    cases=(Case("its parameters", lambda draw: tuple(int(n) for n in draw.sizes(2, 5, 60))),),
    mistakes=mistakes(r"""
norms forgotten: norms='none'
    Only the convolutions were counted.
    > Each convolution has a BatchNorm behind it: a scale and a shift for each output channel.
one number a norm: norms='one'
    BatchNorm was counted with one number for each channel.
    > It has two that are learned: a scale and a shift. Mean and variance are no parameters.
middle counted as 1 x 1: middle=1 | 3
    The kernel of the middle convolution was not counted with 3 x 3 places.
    > Each of its outputs looks at 9 places of all `width` channels.
does not widen again: last='width'
    The last convolution does not lead back to `channels`.
    > It turns `width` channels into `channels`.
biases counted: bias=True
    The convolutions were given a bias.
    > They have none: the shift of the BatchNorm behind them does its work.
"""),
    example=(((4, 1), 8 + 9 + 12.0),),
    minutes=8,
    stretch=True,
    text="A bottleneck block turns `channels` into `width` by a 1 x 1 convolution, keeps `width` in a 3 x 3, and "
    "returns to `channels` by a 1 x 1; each without a bias, each with a BatchNorm behind it (a scale and a shift for "
    "each output channel). The shortcut has no parameters. How many has the block?",
    hints=(
        "A convolution has kernel places times input channels times output channels.",
        "The weights: `channels * width + 9 * width**2 + width * channels`.",
        "The norms stand behind `width`, `width` and `channels` outputs: two numbers for each.",
    ),
    solution="""
def my_bottleneck_params(channels, width):
    convs = 2 * channels * width + 9 * width**2
    norms = 2 * (width + width + channels)
    return convs + norms
""",
)

TASKS = {task.name: task for task in (CONV_SIZE, RESIDUAL_BLOCK, FREEZE, PARAMETER_GROUPS, BOTTLENECK_PARAMS)}
