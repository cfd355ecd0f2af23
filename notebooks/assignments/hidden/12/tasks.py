"""Assignment 12, Swin Transformer: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_12.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def blocks_and_position(draw: Draw, *, blocks: tuple[int, ...], far: bool = False) -> tuple:
    """A feature map of some windows, a number of blocks, and a position.

    With `far` the shift is more than half a window, and a shift of `size - shift` would give another result.
    """
    rows, columns = draw.sizes(2, 4, 6)
    size = draw.integers(3, 6, 1).item()
    position = torch.cat([draw.integers(1, count * size, 1) for count in (rows, columns)])
    shift = draw.integers(1, (size + 1) // 2, 1).item()
    number = blocks[draw.integers(0, len(blocks), 1).item()]
    if far:
        position = position // size * size + shift + draw.integers(0, size - 2 * shift, 2)
    return position, rows * size, columns * size, size, size - shift if far else shift, number


def at_the_edge(draw: Draw) -> tuple:
    """A position in the last row, after an odd number of blocks or an even one."""
    position, height, *others = blocks_and_position(draw, blocks=(2, 3))
    return torch.tensor([height - 1, position[1]]), height, *others


FIELD = replace(
    SHOWN["receptive_field"],
    cases=(
        Case("after an odd number of blocks", lambda draw: blocks_and_position(draw, blocks=(3,)), 6),
        Case("after an even number of blocks", lambda draw: blocks_and_position(draw, blocks=(2, 4)), 5),
        Case("after a single block", lambda draw: blocks_and_position(draw, blocks=(1,)), 3),
        Case(
            "with a shift of more than half a window",
            lambda draw: blocks_and_position(draw, blocks=(2, 3), far=True),
            3,
        ),
        Case("at the edge of the feature map", at_the_edge, 3),
    ),
)


def neighborhoods(draw: Draw, *dilations: int, nearest: int | None = None, kernel: int = 3) -> tuple:
    """A position of a feature map, a kernel, and the dilation of each block.

    The position lies inside, or in rows and columns that are at most `nearest` away from two of the edges.
    """
    height, width = (kernel * (draw(7).argsort()[:2] + 22) // 3).tolist()
    if nearest is None:
        row, column = (draw.integers(5, side - 5, 1).item() for side in (height, width))
    else:
        row, back = draw.integers(0, nearest + 1, 2).tolist()
        column = width - 1 - back
    return torch.tensor([row, column]), height, width, kernel, list(dilations)


def either(draw: Draw, *choices: tuple[int, ...], **more: int) -> tuple:
    """As `neighborhoods`, with dilations that are drawn."""
    return neighborhoods(draw, *choices[draw.integers(0, len(choices), 1).item()], **more)


NEIGHBORHOODS = replace(
    SHOWN["neighborhood_field"],
    cases=(
        Case("blocks of several dilations", lambda draw: either(draw, (3, 1, 4), (4, 1, 3)), 6),
        Case("near the edges", lambda draw: either(draw, (3, 2, 4), (4, 3, 2), nearest=2), 5),
        Case("a single block with gaps, near the edges", lambda draw: either(draw, (3,), (4,), nearest=2), 3),
        Case("two blocks without gaps, in a corner", lambda draw: neighborhoods(draw, 1, 1, nearest=0), 3),
        Case("a larger kernel", lambda draw: neighborhoods(draw, 1, 3, kernel=5), 3),
    ),
)


def size_and_layers(draw: Draw, *, large: bool = False, bias: bool = True) -> tuple[Tensor, Tensor, Tensor, int]:
    """Two layers of drawn sizes, and the side of a window."""
    heads, hidden, M = draw.sizes(3, 3, 7)  # a side of 2 would not tell an offset from a logarithm of base 2
    return draw(hidden, 2), draw(hidden) * bias, draw(heads, hidden), M + 6 if large else M


BIAS = replace(
    SHOWN["continuous_bias"],
    cases=(
        Case("the bias of each offset", size_and_layers, 10),
        Case("a larger window", lambda draw: size_and_layers(draw, large=True), 4),
        Case("a first layer whose biases are all 0", lambda draw: size_and_layers(draw, bias=False), 4),
    ),
)


def queries_and_tables(draw: Draw, stride: int, *, flat: bool = False) -> tuple:
    """Queries of a grid, the vectors of its offsets, and the stride of the keys; a `flat` grid has one row of keys."""
    B, heads, d, down, across = draw.sizes(5, 2, 6)
    height, width = stride * (1 if flat else down), stride * across
    tables = draw(2 * height - stride, d), draw(2 * width - stride, d)
    return draw(B, heads, height * width, d), *tables, height, width, stride


DECOMPOSED = replace(
    SHOWN["decomposed_bias"],
    cases=(
        Case("pooled keys", lambda draw: queries_and_tables(draw, draw.integers(2, 4, 1).item()), 9),
        Case("keys that are not pooled", lambda draw: queries_and_tables(draw, 1), 6),
        Case("a single row of pooled keys", lambda draw: queries_and_tables(draw, 2, flat=True), 3),
    ),
)


def merged(draw: Draw, *, odd: str = "none") -> tuple[Tensor, Tensor, int, int]:
    """A merged feature map, a matrix, and the size before merging, of which no side is odd, both are, or one is."""
    B, h, w, half = draw.sizes(4, 2, 6)
    row = draw.integers(0, 2, 1).item()
    height, width = {"none": (0, 0), "both": (1, 1), "one": (row, 1 - row)}[odd]
    return draw(B, h, w, 2 * half), draw(4 * half, 2 * half), 2 * h - height, 2 * w - width


EXPANDING = replace(
    SHOWN["patch_expanding"],
    cases=(
        Case("each position becomes 2 x 2", merged, 7),
        Case("both sides were padded", lambda draw: merged(draw, odd="both"), 3),
        Case("one side was padded", lambda draw: merged(draw, odd="one"), 4),
    ),
)


def map_and_logits(draw: Draw, kernel: int, factor: int) -> tuple[Tensor, Tensor, int, int]:
    """A feature map of low resolution, and logits for each of its new positions."""
    B, h, w, C = draw.sizes(4, 2, 6)
    return draw(B, h, w, C), 2 * draw(B, h, w, factor**2 * kernel**2), kernel, factor


REASSEMBLE = replace(
    SHOWN["reassemble"],
    cases=(
        Case("new positions from their neighbourhoods", lambda draw: map_and_logits(draw, 3, 2), 7),
        Case("a larger kernel, and three times the size", lambda draw: map_and_logits(draw, 5, 3), 4),
        Case("a factor of one", lambda draw: map_and_logits(draw, 3, 1), 3),
    ),
)


ASSIGNMENT = Assignment(
    "12",
    notebook="swin",
    title="Swin Transformer",
    tasks=(FIELD, NEIGHBORHOODS, BIAS, DECOMPOSED, EXPANDING, REASSEMBLE, SHOWN["train"]),
)
