"""Lesson 14, Image to image: what its exercises are tried with; their text and their mistakes are in tasks.md."""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.tasks import Case, Draw
from course_lib.tasks.markdown import read_tasks


def weight_of_a_map(draw: Draw) -> tuple[Tensor, int, int]:
    """The weight of a layer that sees a map of drawn height and width, flattened."""
    D_out, C, height, width = draw.sizes(4)
    return draw(D_out, C * height * width), height, width


def pooled(draw: Draw, *, overlapping: bool = True) -> tuple[Tensor, Tensor, int, int]:
    """Values in place of the maxima of a drawn image, where these stood, and the image's size."""
    B, C, height, width = draw.sizes(4, 4, 9)
    height = height + (draw.same is not None)  # where all sizes are one, this one differs
    image = draw(B, C, height, width)
    if draw.same is not None:  # no maximum where an index read with the height would leave the image
        number = torch.arange(height * width).view(height, width)
        image = image.masked_fill(number % height >= width, -9.0)
    _, positions = F.max_pool2d(image, 2, stride=1 if overlapping else 2, return_indices=True)
    return draw(*positions.shape), positions, height, width


def image_and_stamp(draw: Draw, *, overlapping: bool = True) -> tuple[Tensor, Tensor, int]:
    """An image, a kernel that is larger than the stride or not, and the stride."""
    B, C_in, C_out, height, width = draw.sizes(5, high=7)
    rows, columns = draw.sizes(2, 3, 5) if overlapping else (2, 2)
    stride = draw.integers(1, 3, 1).item() if overlapping else draw.integers(2, 4, 1).item()
    return draw(B, C_in, height, width), draw(C_in, C_out, rows, columns), stride


def label_maps(draw: Draw, *, absent: bool = False) -> tuple[Tensor, Tensor, int]:
    """A predicted and a true map of some images; of two more classes one is only predicted, one nowhere."""
    B, K, H, W = draw.sizes(4, 3, 8)
    true = draw.integers(0, K, B, H, W)
    true.flatten()[:K] = torch.arange(K)
    predicted = torch.where(draw(B, H, W) > 0.3 * draw(B, 1, 1), true, draw.integers(0, K, B, H, W))
    predicted[0, 0, 0] = K if absent else 0
    return predicted, true, K + 2 * absent


def speckled(draw: Draw, *, empty: bool = False) -> tuple[Tensor, int]:
    """A mask with things that touch at corners, some of them small."""
    height, width = draw.sizes(2, 9, 13)
    smallest = draw.integers(2, 4, 1).item()
    mask = draw(height, width) > 0.3
    mask[:5, :5] = False
    mask[0, 0] = mask[2, 1 : 1 + smallest] = mask[3, 1 + smallest : 3 + smallest] = not empty  # corner to corner
    return (mask & False if empty else mask), smallest


CASES = {
    "fc_as_convolution": (
        Case("on a map of the layer's own size the convolution says what the layer says", weight_of_a_map),
    ),
    "unpool": (
        Case("every value returns to its place", lambda draw: pooled(draw, overlapping=False)),
        Case("where windows overlap, values add", pooled),
    ),
    "transposed_convolution": (
        Case("stamps that do not overlap", lambda draw: image_and_stamp(draw, overlapping=False)),
        Case("where stamps overlap they add", image_and_stamp),
    ),
    "overlap": (
        Case("each class, over all pixels", label_maps),
        Case("a class that is nowhere is undefined", lambda draw: label_maps(draw, absent=True)),
    ),
    "boxes": (
        Case("a box for each connected thing", speckled),
        Case("no thing, no box", lambda draw: speckled(draw, empty=True)),
    ),
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES)
