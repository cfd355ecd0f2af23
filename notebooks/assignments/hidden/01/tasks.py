"""Assignment 01, Transfer learning: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_01.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def some_layers(draw: Draw, *, plain: bool = False) -> tuple[Tensor]:
    """Kernels and strides of some layers."""
    count = draw.sizes(1, 3, 7)[0]
    kernels = 2 * draw.integers(1, 4, count) + 1
    strides = torch.ones(count, dtype=torch.long) if plain else draw.integers(2, 4, count)
    return (torch.stack([kernels, strides], dim=1),)


FIELD = replace(
    SHOWN["receptive_field"],
    cases=(
        Case("layers without a stride", lambda draw: some_layers(draw, plain=True), 5, 1e-6),
        Case("layers with strides", some_layers, 10, 1e-6),
        Case("without a layer one pixel", lambda draw: (torch.ones(0, 2, dtype=torch.long),), 1, 1e-6),
    ),
)


def maps_and_norm(draw: Draw, *, training: bool = True) -> tuple:
    """Maps, what a norm remembers, and its two learned numbers for each channel."""
    B, C, H, W = draw.sizes(4)
    return 2 + 3 * draw(B, C, H, W), 1 + draw(C), 1 + 3 * draw(C).abs(), draw(C), draw(C), training


NORM = replace(
    SHOWN["batch_norm"],
    cases=(
        Case("in training: the batch's own mean and variance", maps_and_norm, 11),
        Case("in use: what was remembered", lambda draw: maps_and_norm(draw, training=False), 10),
    ),
)


def bytes_and_measures(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures of whole numbers, and a mean and a spread for each channel."""
    B, H, W, C = draw.sizes(4)
    return draw.integers(0, 256, B, H, W, C), draw(C), 0.5 + draw(C).abs()


READY = replace(SHOWN["make_ready"], cases=(Case("pictures as the checkpoint was trained on", bytes_and_measures, 14),))


def maps_and_head(draw: Draw, *, dark: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Maps of a trunk, the weights of a head, and the classes asked for; `dark`: nothing speaks for the first one."""
    B, C, H, W, K = draw.sizes(5, 2, 8)
    maps, weight, labels = draw(B, C, H, W).abs(), draw(K + 1, C), draw.integers(1, K, B)
    if dark:
        weight[K], labels[0] = -weight[K].abs(), K
    return maps, weight, labels


SEEN = replace(
    SHOWN["class_map"],
    cases=(
        Case("where the maps speak for the class", maps_and_head, 14),
        Case("where nothing speaks for it the map is zero", lambda d: maps_and_head(d, dark=True), 5),
    ),
)


ASSIGNMENT = Assignment(
    "01",
    notebook="transfer_learning",
    title="Transfer learning",
    tasks=(FIELD, NORM, READY, SEEN, SHOWN["train"]),
    seconds={"train": 90},
)
