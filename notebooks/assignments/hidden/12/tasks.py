"""Assignment 12, Swin: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_12.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def blocks_and_place(draw: Draw, *, blocks: tuple[int, ...], far: bool = False) -> tuple:
    """A map of some windows, so many blocks, and a place in it; with `far`, a shift of more than half a window.

    There the place lies so in its window that a shift of the rest of the window gives another result.
    """
    rows, columns = draw.sizes(2, 4, 6)
    size = draw.integers(3, 6, 1).item()
    place = torch.cat([draw.integers(1, count * size, 1) for count in (rows, columns)])
    shift = draw.integers(1, (size + 1) // 2, 1).item()
    number = blocks[draw.integers(0, len(blocks), 1).item()]
    if far:
        place = place // size * size + shift + draw.integers(0, size - 2 * shift, 2)
    return place, rows * size, columns * size, size, size - shift if far else shift, number


def at_the_edge(draw: Draw) -> tuple:
    """A place in the last row, seen through an odd number of blocks or an even one."""
    place, height, *others = blocks_and_place(draw, blocks=(2, 3))
    return torch.tensor([height - 1, place[1]]), height, *others


REACH = replace(
    SHOWN["reach"],
    cases=(
        Case("through an odd number of blocks", lambda draw: blocks_and_place(draw, blocks=(3,)), 6),
        Case("through an even number of blocks", lambda draw: blocks_and_place(draw, blocks=(2, 4)), 5),
        Case("through a single block", lambda draw: blocks_and_place(draw, blocks=(1,)), 3),
        Case(
            "with a shift of more than half a window", lambda draw: blocks_and_place(draw, blocks=(2, 3), far=True), 3
        ),
        Case("from the edge of the map", at_the_edge, 3),
    ),
)


def size_and_network(draw: Draw, *, large: bool = False, bias: bool = True) -> tuple[Tensor, Tensor, Tensor, int]:
    """A network of drawn sizes, and the side of a window."""
    heads, hidden, M = draw.sizes(3, 3, 7)  # a side of 2 would not tell an offset from a logarithm of base 2
    return draw(hidden, 2), draw(hidden) * bias, draw(heads, hidden), M + 6 if large else M


BIAS = replace(
    SHOWN["continuous_bias"],
    cases=(
        Case("what the network says of each offset", size_and_network, 10),
        Case("a larger window", lambda draw: size_and_network(draw, large=True), 4),
        Case("a first map whose biases are all 0", lambda draw: size_and_network(draw, bias=False), 4),
    ),
)


def merged(draw: Draw, *, odd: str = "none") -> tuple[Tensor, Tensor, int, int]:
    """A merged map, a matrix, and the size that the map had before, of which no side is odd, both are, or one."""
    B, h, w, half = draw.sizes(4, 2, 6)
    row = draw.integers(0, 2, 1).item()
    height, width = {"none": (0, 0), "both": (1, 1), "one": (row, 1 - row)}[odd]
    return draw(B, h, w, 2 * half), draw(4 * half, 2 * half), 2 * h - height, 2 * w - width


UNMERGE = replace(
    SHOWN["unmerge"],
    cases=(
        Case("each patch becomes 2 x 2, of half the width", merged, 8),
        Case("what was added to an odd map is cut off", lambda draw: merged(draw, odd="both"), 4),
        Case("only one side is odd", lambda draw: merged(draw, odd="one"), 4),
    ),
)


ASSIGNMENT = Assignment(
    "12", notebook="swin", title="Swin", tasks=(REACH, BIAS, UNMERGE, SHOWN["train"]), seconds={"train": 60}
)
