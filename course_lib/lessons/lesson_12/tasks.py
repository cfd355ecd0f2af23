"""Lesson 12, Swin Transformer: what its exercises are tried with; their text and their mistakes are in tasks.md."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw
from course_lib.tasks.markdown import read_tasks


def stir(windows: Tensor) -> Tensor:
    """Work that differs from window to window and from place to place.

    Raises ValueError unless it gets windows with their places.
    """
    if windows.dim() != 3:
        raise ValueError(f"work takes windows of shape (B nW, M2, D), but got one of shape {tuple(windows.shape)}")
    number = torch.arange(1, len(windows) + 1)[:, None, None]
    return number * windows.cumsum(dim=1)


def map_and_size(draw: Draw) -> tuple[Tensor, int, Callable]:
    """A map that is some windows high and others wide."""
    B, rows, columns, D = draw.sizes(4, 2, 5)
    size = draw.integers(2, 4, 1).item() if draw.same is None else 2
    return draw(B, rows * size, columns * size, D), size, stir


def sizes_and_shift(draw: Draw, *, shift: int | None = None) -> tuple[int, int, int, int]:
    """A map of some windows, and a shift that is not half a window."""
    rows, columns, size = draw.sizes(3, 2, 5)
    size = max(size, 3) if draw.same is None else 4
    return rows * size, columns * size, size, 1 + (size > 4 and draw(1).item() > 0) if shift is None else shift


def one_window_high(draw: Draw) -> tuple[int, int, int, int]:
    """Sizes with which the rows that came around share their window with all others."""
    _, width, size, shift = sizes_and_shift(draw)
    return size, width, size, shift


def some_map(draw: Draw, *, odd: tuple[int, int] = (0, 0)) -> tuple[Tensor]:
    """A map of which rows and columns are even or odd."""
    B, rows, columns, D = draw.sizes(4, 2, 5)
    return (draw(B, 2 * rows - odd[0], 2 * columns - odd[1], D),)


def sizes_of_map(draw: Draw, *, whole: bool = True) -> tuple[int, int, int, int]:
    """The sides of a map, its width, and the side of a window."""
    rows, columns, size, dim = draw.sizes(4, 2, 7)
    ragged = 0 if whole else draw.integers(1, size, 1).item()
    return rows * size - ragged, columns * size, 8 * dim, size


CASES = {
    "in_windows": (
        Case("the work is done window by window, and each place comes back to where it was", map_and_size),
        Case("a map that is one window", lambda draw: (draw(3, 2, 2, 4), 2, stir)),
    ),
    "shift_mask": (
        Case("places of a window attend to each other where they were neighbours before", sizes_and_shift),
        Case("without a shift everyone in a window may attend", lambda draw: sizes_and_shift(draw, shift=0)),
        Case("a map that is one window high", one_window_high),
    ),
    "position_index": (Case("a row of the table for each offset", lambda draw: tuple(draw.sizes(1, 3, 7))),),
    "patch_merging": (
        Case("four neighbours side by side, column by column", some_map),
        Case("an odd map gets zeros at its end", lambda draw: some_map(draw, odd=(1, 1))),
        Case("an odd number of rows, an even one of columns", lambda draw: some_map(draw, odd=(1, 0))),
        Case("an even number of rows, an odd one of columns", lambda draw: some_map(draw, odd=(0, 1))),
    ),
    "attention_cost": (
        Case("with windows, equation (2) of the paper", sizes_of_map),
        Case("without windows, equation (1)", lambda draw: sizes_of_map(draw)[:3]),
        Case("a map that is no whole number of windows is padded", lambda draw: sizes_of_map(draw, whole=False)),
    ),
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES)
patch_merging = TASKS["patch_merging"].reference
