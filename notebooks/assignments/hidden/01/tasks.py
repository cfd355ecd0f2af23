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


def layers_and_side(draw: Draw, *, plain: bool = False) -> tuple[Tensor, int]:
    """Kernel sizes, strides, paddings and dilations of some layers, and the side of a large image."""
    count = draw.sizes(1, 3, 5)[0]
    kernels, padding = 2 * draw.integers(1, 3, count) + 1, draw.integers(1, 4, count)
    strides, dilations = (
        torch.ones(count, dtype=torch.long) if plain else draw.integers(1, 3, count) for _ in range(2)
    )
    strides[0] = dilations[-1] = 1 if plain else 2
    return torch.stack([kernels, strides, padding, dilations], dim=1), draw.integers(400, 500, 1).item()


SIZE = replace(
    SHOWN["feature_map_size"],
    cases=(
        Case("layers without a stride", lambda draw: layers_and_side(draw, plain=True), 4, 1e-6),
        Case("layers with strides", layers_and_side, 9, 1e-6),
        Case(
            "without a layer the width of the image",
            lambda draw: (torch.ones(0, 4, dtype=torch.long), draw.integers(9, 99, 1).item()),
            1,
            1e-6,
        ),
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


def feature_maps_in_groups(
    draw: Draw, *, groups: int | None = None, each: int | None = None, size: float = 3.0
) -> tuple:
    """Feature maps whose channels have unlike means, a scale and a shift of each, and two or three groups of 4 or 5."""
    B, H, W = draw.sizes(3)
    groups = draw.integers(2, 4, 1).item() if groups is None else groups
    C = groups * (draw.integers(4, 6, 1).item() if each is None else each)
    return size * (draw(B, C, H, W) + draw(B, C, 1, 1)), draw(C), draw(C), groups


GROUPS = replace(
    SHOWN["grouped_norm"],
    cases=(
        Case("mean and variance of each group", feature_maps_in_groups, 9),
        Case("one group of all channels", lambda draw: feature_maps_in_groups(draw, groups=1), 5),
        Case("as many groups as channels", lambda draw: feature_maps_in_groups(draw, groups=5, each=1), 4),
        Case("groups that hardly vary", lambda draw: feature_maps_in_groups(draw, size=3e-3), 3, 1e-3),
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


def feature_maps_and_gradients(draw: Draw, *, dark: bool = False) -> tuple[Tensor, Tensor, int]:
    """Feature maps, gradients and a factor of 2 or 3; `dark`: all sums of the first image are negative."""
    B, C, H, W = draw.sizes(4, 2, 8)
    gradients = draw(B, C, 1, 1) + draw(B, C, H, W)
    if dark:
        gradients[0] = -gradients[0].abs()
    return draw(B, C, H, W).abs(), gradients, draw.integers(2, 4, 1).item()


EVIDENCE = replace(
    SHOWN["grad_cam"],
    cases=(
        Case("where the evidence for the class is", feature_maps_and_gradients, 13),
        Case("without any evidence the map is zero", lambda draw: feature_maps_and_gradients(draw, dark=True), 5),
    ),
)


ASSIGNMENT = Assignment(
    "01",
    notebook="transfer_learning",
    title="Transfer learning",
    tasks=(FIELD, SIZE, NORM, GROUPS, READY, MAPPED, EVIDENCE, SHOWN["train"]),
)
