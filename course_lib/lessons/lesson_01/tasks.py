"""Lesson 01, Transfer learning: what its exercises are tried with; tasks.md has their text and mistakes."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.tasks import Case, Check, Draw, Finding, TaskInput
from course_lib.tasks.core import Probe
from course_lib.tasks.findings import UNWRITTEN, CheckFailed, general
from course_lib.tasks.markdown import read_tasks


def block_and_maps(draw: Draw, *, change: str = "") -> TaskInput:
    """Feature maps, and the sizes of a block that keeps their shape, or changes it in one way or in both."""
    B, C, wider, H, W = draw.sizes(5, 3, 9)
    out = wider if "channels" in change else C
    return TaskInput((2 * draw(B, C, 2 * H + 1, 2 * W),), build=(C, out, 2 if "stride" in change else 1))


def small_images(draw: Draw, *, first_stride: int = 2) -> TaskInput:
    """Images, and the sizes of a ResNet with several blocks in a stage."""
    B, H, W, classes, first, second = draw.sizes(6, 4, 9)
    return TaskInput((2 * draw(B, 3, 4 * H, 4 * W),), build=(classes, (first, second), (1, 2), first_stride))


def icons_and_draws(draw: Draw, *, moved: bool = True) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images with an opacity that is 0, 1 or between, and the random numbers of their views."""
    B, H, W = draw.sizes(3, 9, 14)
    rgba = torch.rand(B, 4, H, W, generator=draw.generator)
    rgba[:, 3] = (2 * rgba[:, 3] - 0.5).clamp(0, 1)
    flip = torch.rand(B, generator=draw.generator) < 0.5
    flip[0], flip[1] = True, False
    shift = draw.integers(0, 9, B, 2) if moved else torch.full((B, 2), 4)
    if moved:
        shift[0], shift[1] = torch.tensor([0, 7]), torch.tensor([8, 1])
    return rgba, flip & moved, shift, torch.rand(B, 3, generator=draw.generator)


class Small(nn.Module):
    """A network with batch norms in it and the parts of a ResNet: what a fine-tuning loop is tried on."""

    def __init__(self, draw: Draw, width: int, num_classes: int):
        super().__init__()
        self.stem, *stages = (_layer(width) for _ in range(3))
        self.stages = nn.ModuleList(stages)
        self.head = nn.Linear(width, num_classes)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(1 + 0.2 * draw(*parameter.shape) if parameter.ndim == 1 else draw(*parameter.shape))
            for part in (self.stem, *stages):
                part[1].running_mean.copy_(draw(width))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return self.head(x)


def _layer(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.Tanh())


def model_and_batches(draw: Draw, *, frozen: bool = False) -> tuple:
    """A network, batches of inputs with labels, the head's learning rate, the factor from part to part."""
    B, width, classes = draw.sizes(3, 4, 8)
    batches = [(3 * draw(B, width) + 1, draw.integers(0, classes, B)) for _ in range(22)]
    return Small(draw, width, classes), batches, 0.05, 0.6, frozen


def a_copy_with_a_head(probe: Probe) -> list[Finding]:
    """Whether the result is a copy with a new head, and the right parameters are frozen."""
    said, found = TASKS["new_head"].finding, []
    for frozen in (True, False):
        model = Small(probe.draw, 5, 7)
        before = copy.deepcopy(model.state_dict())
        made = _called(probe, model, 3, frozen)
        if made is None:
            raise CheckFailed(general(UNWRITTEN))
        now = model.state_dict()
        if (
            made is model
            or now.keys() != before.keys()
            or any(not torch.equal(now[name], before[name]) for name in before)
            or not all(parameter.requires_grad for parameter in model.parameters())
        ):
            return [said("no copy")]
        head = getattr(made, "head", None)
        if not isinstance(head, nn.Linear) or (head.in_features, head.out_features) != (5, 3):
            return [said("old head kept")]
        rest = {name: value for name, value in made.named_parameters() if not name.startswith("head.")}
        if any(not torch.equal(value, before[name]) for name, value in rest.items()):
            found.append(said("weights lost"))
        learns = {value.requires_grad for value in rest.values()}
        if frozen and learns == {False} and not head.weight.requires_grad:
            found.append(said("head frozen"))
        elif frozen and True in learns:
            found.append(said("nothing frozen"))
        elif not frozen and False in learns:
            found.append(said("always frozen"))
    names = {finding.misconception for finding in found}
    if {"nothing frozen", "always frozen"} <= names:
        return [said("frozen the other way round")]
    return list(dict.fromkeys(found))


def _called(probe: Probe, model: nn.Module, num_classes: int, frozen: bool):
    """What a function returns that may change its argument: asked without the safety net for changed inputs."""
    inside = {}

    def asked(_: Mapping) -> None:
        inside["made"] = probe._function(model, num_classes, frozen)

    Probe(asked, asks=probe.asks).call({})
    return inside["made"]


def pools(probe: Probe) -> list[Finding]:
    """Whether `features` returns one vector for each image."""
    made = probe.call(5, (4, 6), (1, 1))
    if not isinstance(getattr(made, "features", None), type(made.forward)):
        return [TASKS["resnet"].finding("features not pooled")]
    images = probe.random(2, 3, 16, 16)
    vectors = Probe(made.features, asks="images").call(images)
    fits = isinstance(vectors, Tensor) and tuple(vectors.shape) == (2, 6)
    return [] if fits else [TASKS["resnet"].finding("features not pooled")]


def mode_after(probe: Probe) -> list[Finding]:
    """Whether the model is in evaluation mode afterwards."""
    given, seen = model_and_batches(probe.draw), []

    def asked(*args: Any) -> Tensor:
        seen.append(args[0])
        return probe._function(*args)

    Probe(asked, asks=probe.asks).call(*given)
    return [TASKS["fine_tune"].finding("left in training mode")] if seen[-1].training else []


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
        (right * decay, "head slowed down, too"),
        (torch.full((3,), rate), "one learning rate for all"),
        (rate**2 / right, "earlier layers faster"),
    )
    if torch.allclose(rates, right):
        return []
    return [said(next((name for wrong, name in named if torch.allclose(rates, wrong)), "linear decay"))]


A_COPY = Check(
    name="a copy with a new head, and what is frozen in it",
    detects=(
        "no copy",
        "weights lost",
        "old head kept",
        "head frozen",
        "nothing frozen",
        "always frozen",
        "frozen the other way round",
    ),
    run=a_copy_with_a_head,
)
POOLED = Check(name="features: one vector for each image", detects=("features not pooled",), run=pools)
MODE = Check(name="evaluation mode afterwards", detects=("left in training mode",), run=mode_after)
GROUPED = Check(
    name="each part's parameters and learning rate",
    detects=(
        "no groups",
        "parameters of another part",
        "one learning rate for all",
        "linear decay",
        "earlier layers faster",
        "head slowest",
        "head slowed down, too",
    ),
    run=groups_by_layer,
)
CASES = {
    "block": (
        Case("a block that keeps the shape", block_and_maps),
        Case("more channels", lambda draw: block_and_maps(draw, change="channels")),
        Case("half the resolution", lambda draw: block_and_maps(draw, change="stride")),
        Case("both", lambda draw: block_and_maps(draw, change="stride, channels")),
    ),
    "resnet": (
        Case("logits with a stride in every stage", small_images, tolerance=1e-3),
        Case("the first stage at full resolution", lambda draw: small_images(draw, first_stride=1), tolerance=1e-3),
    ),
    "augment": (
        Case("shifted, mirrored, on a background", icons_and_draws),
        Case("nothing moves", lambda draw: icons_and_draws(draw, moved=False)),
    ),
    "new_head": (),
    "parameter_groups": (),
    "fine_tune": (
        Case("all parts learn", model_and_batches),
        Case("frozen: the head alone learns", lambda draw: model_and_batches(draw, frozen=True)),
    ),
    "conv_size": (
        Case("with padding, and a stride that leaves a rest", lambda draw: with_stride(draw)),
        Case("with stride 1", lambda draw: one_by_one(draw)),
    ),
    "bottleneck_params": (Case("its parameters", lambda draw: tuple(int(n) for n in draw.sizes(2, 5, 60))),),
}


def with_stride(draw: Draw) -> tuple[int, int, int, int]:
    """A way of some threes and one more; padding and kernel are so wide that neither can be missed."""
    kernel, padding = 2 * int(draw.integers(4, 7, 1)) + 1, int(draw.integers(7, 10, 1))
    return 3 * int(draw.integers(12, 20, 1)) + 1 + kernel - 2 * padding, kernel, 3, padding


def one_by_one(draw: Draw) -> tuple[int, int, int, int]:
    """Stride 1."""
    kernel, padding = 2 * int(draw.integers(1, 4, 1)) + 1, int(draw.integers(3, 6, 1))
    return int(draw.integers(20, 40, 1)), kernel, 1, padding


def basic_block(in_channels: int, out_channels: int, stride: int = 1) -> nn.Module:
    """What a learner's ResNet takes if she has no block of her own: that of the solution."""
    return TASKS["block"].module(in_channels, out_channels, stride)


def parameter_groups(*given: object) -> list[dict]:
    """What a learner's loop takes if she has no function of her own."""
    return TASKS["parameter_groups"].reference(*given)


PARTS = {"copy": copy, "BasicBlock": basic_block, "parameter_groups": parameter_groups}
TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"),
    CASES,
    PARTS,
    resnet={"checks": (POOLED,)},
    new_head={"checks": (A_COPY,)},
    parameter_groups={"checks": (GROUPED,)},
    fine_tune={"checks": (MODE,)},
    conv_size={"example": (((5, 3, 1, 0), 3.0), ((32, 3, 2, 1), 16.0))},
    bottleneck_params={"example": (((4, 1), 8 + 9 + 12.0),)},
)
