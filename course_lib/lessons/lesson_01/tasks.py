"""Lesson 01, Transfer learning: what its exercises are tried with; tasks.md has their text and mistakes."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.tasks import Case, Check, Draw, Finding
from course_lib.tasks.core import Probe
from course_lib.tasks.markdown import read_tasks


def with_stride(draw: Draw) -> tuple[int, int, int, int]:
    """A way of some threes and one more; padding and kernel are so wide that neither can be missed."""
    kernel, padding = 2 * int(draw.integers(4, 7, 1)) + 1, int(draw.integers(7, 10, 1))
    return 3 * int(draw.integers(12, 20, 1)) + 1 + kernel - 2 * padding, kernel, 3, padding


def one_by_one(draw: Draw) -> tuple[int, int, int, int]:
    """Stride 1."""
    kernel, padding = 2 * int(draw.integers(1, 4, 1)) + 1, int(draw.integers(3, 6, 1))
    return int(draw.integers(20, 40, 1)), kernel, 1, padding


def block(draw: Draw) -> tuple[Tensor, Callable, Callable]:
    """Maps, a branch and a shortcut that is not the identity."""
    B, C, H, W = draw.sizes(4)
    return draw(B, C, H, W), lambda x: 0.8 * x.roll(1, dims=-1) - 0.1, lambda x: 0.5 * x.flip(-2)


def holds_still(probe: Probe) -> list[Finding]:
    """Whether a trunk with parts within parts holds still: it is asked, its modes are not looked at."""
    said = TASKS["freeze"].finding
    trunk = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Sequential(nn.ReLU(), nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3))
    ).train()
    images = 3 + probe.random(4, 1, 6, 6)
    features = deepcopy(trunk).eval()(images)
    result = probe.call(trunk)
    found = [said("weights still learn")] if any(parameter.requires_grad for parameter in trunk.parameters()) else []
    before = deepcopy(trunk.state_dict())
    by_batch = not torch.allclose(trunk(images), features, atol=1e-4)
    names = [name for name in before if name.endswith(("running_mean", "running_var"))]
    if any(not torch.equal(before[name], trunk.state_dict()[name]) for name in names):
        found.append(said("statistics go on"))
    elif by_batch:
        found.append(said("normalised by the batch"))
    return found or ([] if result is trunk else [said("trunk not given back")])


def groups_by_layer(probe: Probe) -> list[Finding]:
    """Whether each part has its parameters and its rate."""
    said = TASKS["parameter_groups"].finding
    parts, rate, decay = [nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 3), nn.ReLU()), nn.Conv2d(1, 2, 3)], 0.2, 0.5
    groups = probe.call(parts, rate, decay)
    try:
        held = [[id(parameter) for parameter in group["params"]] for group in groups]
        rates = torch.tensor([float(group["lr"]) for group in groups])
    except (TypeError, KeyError, ValueError, IndexError):
        return [said("no groups")]
    if len(held) != len(parts):
        return [said("no groups")]
    if any(mine != [id(parameter) for parameter in part.parameters()] for mine, part in zip(held, parts, strict=True)):
        return [said("parameters of another part")]
    right = rate * decay ** torch.arange(len(parts))
    named = (
        (right.flip(0), "head slowest"),
        (right * decay, "head slowed, too"),
        (torch.full((3,), rate), "one rate for all"),
        (rate**2 / right, "lower parts faster"),
    )
    if torch.allclose(rates, right):
        return []
    return [said(next((name for wrong, name in named if torch.allclose(rates, wrong)), "rates fall by steps"))]


HOLDS_STILL = Check(
    name="weights and statistics",
    detects=("weights still learn", "statistics go on", "normalised by the batch", "trunk not given back"),
    run=holds_still,
)
GROUPED = Check(
    name="each part's parameters and rate",
    detects=(
        "no groups",
        "parameters of another part",
        "one rate for all",
        "rates fall by steps",
        "lower parts faster",
        "head slowest",
        "head slowed, too",
    ),
    run=groups_by_layer,
)
CASES = {
    "conv_size": (
        Case("with padding, and a stride that leaves a rest", with_stride),
        Case("with stride 1", one_by_one),
    ),
    "residual_block": (Case("ReLU of branch plus shortcut", block),),
    "freeze": (),
    "parameter_groups": (),
    "bottleneck_params": (Case("its parameters", lambda draw: tuple(int(n) for n in draw.sizes(2, 5, 60))),),
}
TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"),
    CASES,
    conv_size={"example": (((5, 3, 1, 0), 3.0), ((32, 3, 2, 1), 16.0))},
    freeze={"checks": (HOLDS_STILL,)},
    parameter_groups={"checks": (GROUPED,)},
    bottleneck_params={"example": (((4, 1), 8 + 9 + 12.0),)},
)
