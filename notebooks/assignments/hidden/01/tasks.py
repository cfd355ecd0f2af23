"""Assignment 01, Transfer learning: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_01.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def some_layers(draw: Draw, *, plain: bool = False) -> tuple[Tensor]:
    """Kernel sizes and strides of some layers."""
    count = draw.sizes(1, 3, 7)[0]
    kernels = 2 * draw.integers(1, 4, count) + 1
    strides = torch.ones(count, dtype=torch.long) if plain else draw.integers(2, 4, count)
    return (torch.stack([kernels, strides], dim=1),)


FIELD = replace(
    SHOWN["receptive_field"],
    cases=(
        Case("layers without a stride", lambda draw: some_layers(draw, plain=True), 4, 1e-6),
        Case("layers with strides", some_layers, 9, 1e-6),
        Case("without a layer one pixel", lambda draw: (torch.ones(0, 2, dtype=torch.long),), 1, 1e-6),
    ),
)


def feature_maps_and_norm(draw: Draw, *, training: bool = True, size: float = 3.0) -> tuple:
    """Feature maps, running statistics of each channel, its scale and its shift."""
    B, C, H, W = draw.sizes(4)
    x, running_mean = size * draw(B, C, H, W) + size, 1 + draw(C)
    return x, running_mean, 1 + 3 * draw(C).abs(), draw(C), draw(C), training


NORM = replace(
    SHOWN["batch_norm"],
    cases=(
        Case("training mode: mean and variance of the batch", feature_maps_and_norm, 9),
        Case("evaluation mode: the running statistics", lambda draw: feature_maps_and_norm(draw, training=False), 9),
        Case("training mode: channels that hardly vary", lambda draw: feature_maps_and_norm(draw, size=3e-3), 3, 1e-3),
    ),
)


def pixels_and_statistics(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Images of whole numbers, and a mean and a standard deviation for each channel."""
    B, H, W, C = draw.sizes(4)
    return draw.integers(0, 256, B, H, W, C), draw(C), 0.5 + draw(C).abs()


READY = replace(SHOWN["preprocess"], cases=(Case("images as the network was trained on", pixels_and_statistics, 12),))


def feature_maps_and_head(draw: Draw, *, dark: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Feature maps of a backbone, the weights of a head, and labels; `dark`: all sums of the first are negative."""
    B, C, H, W, K = draw.sizes(5, 2, 8)
    feature_maps, weight, labels = draw(B, C, H, W).abs(), draw(K + 1, C), draw.integers(1, K, B)
    if dark:
        weight[K], labels[0] = -weight[K].abs(), K
    return feature_maps, weight, labels


MAPPED = replace(
    SHOWN["class_activation_map"],
    cases=(
        Case("where the evidence for the class is", feature_maps_and_head, 13),
        Case("without any evidence the map is zero", lambda draw: feature_maps_and_head(draw, dark=True), 5),
    ),
)


ASSIGNMENT = Assignment(
    "01",
    notebook="transfer_learning",
    title="Transfer learning",
    tasks=(FIELD, NORM, READY, MAPPED, SHOWN["train"]),
    seconds={"train": 90},
)
