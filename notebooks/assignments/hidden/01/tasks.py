"""Assignment 01, Transfer learning: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_01.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, mistakes


def receptive_field(
    layers: Tensor, *, jumps: str = "before", kernel: int = 1, first: int = 1, joined: str = "product"
) -> float:
    """1 + the sum of (kernel - 1) times the strides of all layers before."""
    side, jump = first, 1
    for size, stride in layers.tolist():
        after = jump * stride if joined == "product" else jump + stride - 1
        side += (size - kernel) * {"before": jump, "own": after, "none": 1}[jumps]
        jump = after
    return float(side)


def some_layers(draw: Draw, *, plain: bool = False) -> tuple[Tensor]:
    """Kernels and strides of some layers."""
    count = draw.sizes(1, 3, 7)[0]
    kernels = 2 * draw.integers(1, 4, count) + 1
    strides = torch.ones(count, dtype=torch.long) if plain else draw.integers(2, 4, count)
    return (torch.stack([kernels, strides], dim=1),)


FIELD = replace(
    SHOWN["receptive_field"],
    reference=receptive_field,
    cases=(
        Case("layers without a stride", lambda draw: some_layers(draw, plain=True), 5, ("kernel", "first"), 1e-6),
        Case("layers with strides", some_layers, 10, ("jumps", "joined"), 1e-6),
        Case("without a layer one pixel", lambda draw: (torch.ones(0, 2, dtype=torch.long),), 1, ("first",), 1e-6),
    ),
    mistakes=mistakes(r"""
strides forgotten: jumps='none'
    Strides make no difference.
    > Behind a stride of 2 one step is two pixels of the picture.
its own stride counted: jumps='own'
    A layer's own stride was applied to its own kernel.
    > A kernel reaches over its *input*: count the strides of the layers before it.
strides added: joined='sum'
    Two strides of 2 were taken for one of 3.
    > They multiply: a step of a step.
whole kernels added: kernel=0
    Each layer adds its whole kernel.
    > A kernel of 3 adds 2: its middle was there already.
first pixel forgotten: first=0
    The result is one too small.
    > Without any layer a place sees one pixel.
"""),
    wrong={"strides added": ("jump = jump * stride", "jump = jump + stride - 1")},
)


def batch_norm(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    gain: Tensor,
    shift: Tensor,
    training: bool,
    *,
    mode: str = "right",
    over: str = "batch and places",
    degrees: int = 0,
    root: bool = True,
    scaled: str = "both",
    centred: bool = True,
) -> Tensor:
    """gain (x - mean) / sqrt(variance + 1e-5) + shift, by the batch in training, else by what is remembered."""
    axes = {"batch and places": (0, 2, 3), "places": (2, 3), "batch": (0,)}[over]
    batch = {"right": training, "always batch": True, "never": False}[mode]
    if batch:
        variance, mean = torch.var_mean(x, dim=axes, correction=degrees, keepdim=True)
    else:
        variance, mean = (part[None, :, None, None] for part in (variance, mean))
    spread = (variance + 1e-5).sqrt() if root else variance + 1e-5
    x = (x - mean if centred else x) / spread
    gain, shift = (part[None, :, None, None] for part in (gain, shift))
    return {"both": x * gain + shift, "shift first": (x + shift) * gain, "gain": x * gain, "none": x}[scaled]


def maps_and_norm(draw: Draw, *, training: bool = True) -> tuple:
    """Maps, what a norm remembers, and its two learned numbers for each channel."""
    B, C, H, W = draw.sizes(4)
    return 2 + 3 * draw(B, C, H, W), 1 + draw(C), 1 + 3 * draw(C).abs(), draw(C), draw(C), training


NORM = replace(
    SHOWN["batch_norm"],
    reference=batch_norm,
    cases=(
        Case("in training: the batch's own mean and variance", maps_and_norm, 11),
        Case(
            "in use: what was remembered",
            lambda draw: maps_and_norm(draw, training=False),
            10,
            ("mode", "root", "scaled", "centred"),
        ),
    ),
    mistakes=mistakes(r"""
always by the batch: mode='always batch'
    In use a picture's result depends on the others of its batch.
    > Without `training` take `mean` and `variance` as they were given.
always by what is remembered: mode='never'
    In training the batch makes no difference.
    > With `training` measure mean and variance of x.
each picture by itself: over='places'
    Mean and variance were taken for each picture.
    > For each channel over the whole batch and all places: `dim=(0, 2, 3)`.
each place by itself: over='batch'
    Mean and variance were taken for each place.
    > For each channel over the whole batch and all places: `dim=(0, 2, 3)`.
divided by N - 1: degrees=1
    The variance of the batch was divided by the number less one.
    > By the number itself, when it normalises: `correction=0`.
root left out: root=False
    The maps were divided by the variance.
    > By its root.
mean left in: centred=False
    The mean was not taken away.
    > Subtract it first.
gain and shift wrong: scaled='shift first' | 'gain' | 'none'
    The two learned numbers are not used as they should be.
    > First times the gain, then plus the shift.
"""),
    wrong={
        "always by the batch": ("if training:", "if True:"),
        "divided by N - 1": ("correction=0", "correction=1"),
    },
)


def make_ready(
    pixels: Tensor,
    mean: Tensor,
    spread: Tensor,
    *,
    scaled: str = "255",
    axes: str = "moved",
    order: str = "mean first",
    centred: bool = True,
    divided: bool = True,
) -> Tensor:
    """(pixels / 255 - mean) / spread, channels in front."""
    x = pixels.to(mean.dtype) / {"255": 255, "none": 1, "256": 256}[scaled]
    if order == "spread first":
        x = x / spread - mean
    else:
        x = x - mean if centred else x
        x = x / spread if divided else x
    B, H, W, C = x.shape
    return {"moved": x.permute(0, 3, 1, 2), "reshaped": x.reshape(B, C, H, W), "left": x,
            "turned": x.permute(0, 3, 2, 1)}[axes]  # fmt: skip


def bytes_and_measures(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures of whole numbers, and a mean and a spread for each channel."""
    B, H, W, C = draw.sizes(4)
    return draw.integers(0, 256, B, H, W, C), draw(C), 0.5 + draw(C).abs()


READY = replace(
    SHOWN["make_ready"],
    reference=make_ready,
    cases=(Case("pictures as the checkpoint was trained on", bytes_and_measures, 14),),
    mistakes=mistakes(r"""
not divided by 255: scaled='none' | '256'
    The pixels do not run from 0 to 1 before the mean is taken away.
    > `pixels / 255`: 255 becomes 1.
channels left behind: axes='left'
    The channels are still the last axis.
    > `(B, H, W, C)` becomes `(B, C, H, W)`.
reshaped: axes='reshaped'
    A reshape has mixed up pixels and channels.
    > Axes change places: `permute(0, 3, 1, 2)`.
height and width exchanged: axes='turned'
    The pictures lie on their side.
    > `permute(0, 3, 1, 2)`: height stays before width.
mean not taken away: centred=False
    Only the spread was used.
    > First subtract the mean.
not divided by the spread: divided=False
    Only the mean was used.
    > Then divide by the spread.
in the wrong order: order='spread first'
    The pixels were divided first, and then the mean was taken away.
    > (x - mean) / spread.
"""),
    wrong={"not divided by 255": ("pixels / 255", "pixels / 1")},
)


def class_map(
    maps: Tensor,
    weight: Tensor,
    labels: Tensor,
    *,
    sums: str = "weighted",
    whose: str = "label",
    relu: bool = True,
    scale: str = "each",
) -> Tensor:
    """The class's weights times the maps, what is below zero cut off, each divided by its largest."""
    rows = {"label": weight[labels], "first": weight[:1].expand(len(labels), -1),
            "mean": weight.mean(0).expand(len(labels), -1)}[whose]  # fmt: skip
    found = {"weighted": torch.einsum("bc,bchw->bhw", rows, maps), "plain": maps.sum(1), "absolute":
             torch.einsum("bc,bchw->bhw", rows.abs(), maps)}[sums]  # fmt: skip
    found = found.relu() if relu else found
    largest = {"each": found.amax((1, 2), keepdim=True), "all": found.max(), "sum": found.sum((1, 2), keepdim=True)}
    if scale == "none":
        return found
    return found / largest[scale].clamp_min(1e-6)


def maps_and_head(draw: Draw, *, dark: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Maps of a trunk, the weights of a head, and the classes asked for; `dark`: nothing speaks for the first one."""
    B, C, H, W, K = draw.sizes(5, 2, 8)
    maps, weight, labels = draw(B, C, H, W).abs(), draw(K + 1, C), draw.integers(1, K, B)
    if dark:
        weight[K], labels[0] = -weight[K].abs(), K
    return maps, weight, labels


SEEN = replace(
    SHOWN["class_map"],
    reference=class_map,
    cases=(
        Case("where the maps speak for the class", maps_and_head, 14),
        Case("where nothing speaks for it the map is zero", lambda d: maps_and_head(d, dark=True), 5, ("relu",)),
    ),
    mistakes=mistakes(r"""
maps added without their weights: sums='plain'
    The class makes no difference.
    > Each map counts as much as its weight in the head's row for that class.
sign of the weights lost: sums='absolute'
    A channel that speaks against the class was taken as one that speaks for it.
    > Keep the sign.
another class: whose='first' | 'mean'
    The weights are not those of the class that was asked for.
    > Row `labels[i]` of `weight` for picture i: `weight[labels]`.
below zero left in: relu=False
    Places that speak against the class are below zero.
    > Cut them off: `relu()`, then divide.
not scaled: scale='none'
    The largest number of a map is not 1.
    > Divide each map by its largest number, at least 1e-6.
scaled together: scale='all' | 'sum'
    The maps were not divided by their own largest number.
    > `amax(dim=(1, 2), keepdim=True)`: one for each picture.
"""),
    wrong={"another class": ("weight[labels]", "weight[torch.zeros_like(labels)]")},
)

TRAIN = replace(
    SHOWN["train"],
    wrong={
        "answers depend on the other pictures": (
            "    learn(model, many",
            "    model.head = nn.Linear(96, 4)\n    return model\n    learn(model, many",
        ),
        "not learned": ("    learn(model, many", "    return Reader(4).eval()\n    learn(model, many"),
        "no gain from the known signs": (
            "    learn(model, many, many_labels, list(model.parameters()), steps=500, rate=0.003)\n",
            "",
        ),
        "stopped with an error": ("torch.manual_seed(0)", "torch.manual_seed(few)"),
        "not learned by its parameters": (
            "    learn(model, many",
            "    scores = lambda x: F.conv2d(x[:, None], few[:, None], padding=8).flatten(2).amax(2)\n"
            "    model.forward = lambda x: scores(x) @ F.one_hot(few_labels, 4).float()\n    return model\n"
            "    learn(model, many",
        ),
    },
)

ASSIGNMENT = Assignment(
    "01",
    notebook="transfer_learning",
    title="Transfer learning",
    tasks=(FIELD, NORM, READY, SEEN, TRAIN),
    seconds={"train": 90},  # for the training, and all questions
)
