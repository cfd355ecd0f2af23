"""Lesson 12, Swin Transformer: what its exercises are tried with; their text and their mistakes are in tasks.md."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.layers import windows
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.tasks import Case, Draw, TaskInput
from course_lib.tasks.markdown import read_tasks

# What a learner's classes take if she has no function or class of her own ------------------------------------------


def in_windows(x: Tensor, size: int, work: Callable[[Tensor], Tensor]) -> Tensor:
    """Windows of all images at once through `work`, and back."""
    height, width = x.shape[1:3]
    cut = windows.window_partition(x, size)
    return windows.window_merge(work(cut.flatten(0, 1)).unflatten(0, cut.shape[:2]), height, width)


class WindowAttention(MultiHeadAttention):
    """Attention inside windows that are cut already, with the learned bias of their offsets."""

    def __init__(self, dim: int, num_heads: int, size: int):
        super().__init__(dim, num_heads)
        self.bias_table = nn.Parameter(0.02 * torch.randn((2 * size - 1) ** 2, num_heads))
        self.index = windows.relative_position_index(size)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        bias = self.bias_table[self.index].permute(2, 0, 1)[None]
        if mask is not None:
            hidden = ~mask.repeat(len(x) // len(mask), 1, 1)[:, None]
            bias = bias.masked_fill(hidden, float("-inf"))
        return super().forward(x, score_bias=bias)


class SwinBlock(nn.Module):
    """The library's attention with its shift, between norms; its MLP has the names of the exercise."""

    def __init__(self, dim: int, num_heads: int, size: int, shift: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = windows.WindowAttention(dim, num_heads, size, shift=shift)
        self.ffn = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.ffn(self.norm2(x))


PARTS = {
    "in_windows": in_windows,
    "shift_mask": windows.shifted_window_mask,
    "position_index": windows.relative_position_index,
    "WindowAttention": WindowAttention,
    "SwinBlock": SwinBlock,
    "PatchMerging": windows.PatchMerging,
}

# Inputs -------------------------------------------------------------------------------------------------------------


def stir(cut: Tensor) -> Tensor:
    """Work that differs from window to window and from position to position.

    Raises ValueError unless it gets windows with their positions.
    """
    if cut.dim() != 3:
        raise ValueError(f"work takes windows of shape (B nW, M2, C), but got one of shape {tuple(cut.shape)}")
    number = torch.arange(1, len(cut) + 1)[:, None, None]
    return number * cut.cumsum(dim=1)


def map_and_size(draw: Draw) -> tuple[Tensor, int, Callable]:
    """A feature map that is some windows high and others wide."""
    B, rows, columns, C = draw.sizes(4, 2, 5)
    size = draw.integers(2, 4, 1).item() if draw.same is None else 2
    return draw(B, rows * size, columns * size, C), size, stir


def sizes_and_shift(draw: Draw, *, shift: int | None = None) -> tuple[int, int, int, int]:
    """A feature map of some windows, and a shift that is not half a window."""
    rows, columns, size = draw.sizes(3, 2, 5)
    size = max(size, 3) if draw.same is None else 4
    return rows * size, columns * size, size, 1 + (size > 4 and draw(1).item() > 0) if shift is None else shift


def one_window_high(draw: Draw) -> tuple[int, int, int, int]:
    """Sizes with which the rows that came around share their window with all others."""
    _, width, size, shift = sizes_and_shift(draw)
    return size, width, size, shift


def cut_windows(draw: Draw, *, masked: bool) -> TaskInput:
    """Windows of two or more images, and which pairs may attend, different from window to window."""
    B, count, d = draw.sizes(3, 2, 4)
    heads, size = draw.integers(2, 4, 1).item(), draw.integers(2, 4, 1).item()
    mask = (draw(count, size**2, size**2) > -0.3) | torch.eye(size**2, dtype=torch.bool)
    x = 2 * draw(B * count, size**2, heads * d)
    return TaskInput((x, mask) if masked else (x,), build=(heads * d, heads, size))


def block_and_map(draw: Draw, *, shift: bool = True, whole: bool = True) -> TaskInput:
    """A block, and a feature map of some windows, or of one."""
    B, rows, columns, d = draw.sizes(4, 2, 5)
    heads, size = draw.integers(2, 4, 1).item(), draw.integers(3, 5, 1).item()
    if not whole:
        rows = 1
    return TaskInput(
        (2 * draw(B, rows * size, columns * size, heads * d),),
        build=(heads * d, heads, size, int(shift)),
    )


def some_map(draw: Draw, *, odd: tuple[int, int] = (0, 0)) -> TaskInput:
    """A feature map of which rows and columns are even or odd."""
    B, rows, columns, C = draw.sizes(4, 2, 5)
    return TaskInput((draw(B, 2 * rows - odd[0], 2 * columns - odd[1], C),), build=(C,))


def images_for(draw: Draw, *, positions: bool) -> TaskInput:
    """The sizes of a Swin of two stages, and images for it: 2 x 2 windows in the first stage, one in the second."""
    B, channels, classes = draw.sizes(3, 2, 4)
    size, patch, d = 4, draw.integers(2, 4, 1).item(), draw.integers(2, 4, 1).item()
    side = 2 * size * patch
    build = (channels, classes + 2, patch, 2 * d, (2, 1), (1, 2), size)
    return TaskInput((draw(B, channels, side, side),), build=(*build, 2 * size) if positions else build)


def sizes_of_map(draw: Draw, *, whole: bool = True) -> tuple[int, int, int, int]:
    """The sides of a feature map, its channels, and the side of a window."""
    rows, columns, size, dim = draw.sizes(4, 2, 7)
    ragged = 0 if whole else draw.integers(1, size, 1).item()
    return rows * size - ragged, columns * size, 8 * dim, size


CASES = {
    "in_windows": (
        Case("windows are cut, processed all at once, and put back", map_and_size),
        Case("a feature map of one window", lambda draw: (draw(3, 2, 2, 4), 2, stir)),
    ),
    "shift_mask": (
        Case("positions of a window attend to each other where they were neighbours before", sizes_and_shift),
        Case("without a shift all pairs of a window may attend", lambda draw: sizes_and_shift(draw, shift=0)),
        Case("a feature map that is one window high", one_window_high),
    ),
    "position_index": (Case("a row of the table for each offset", lambda draw: tuple(draw.sizes(1, 3, 7))),),
    "window_attention": (
        Case("attention in each window, with the bias of its offsets", lambda draw: cut_windows(draw, masked=False)),
        Case("a mask for each window of an image", lambda draw: cut_windows(draw, masked=True)),
    ),
    "block": (
        Case("a block that shifts its windows", block_and_map),
        Case("a block that does not", lambda draw: block_and_map(draw, shift=False)),
        Case("a feature map that is one window high is not shifted", lambda draw: block_and_map(draw, whole=False)),
    ),
    "patch_merging": (
        Case("four neighbours are concatenated, normalised and projected", some_map),
        Case("an odd feature map is padded at its end", lambda draw: some_map(draw, odd=(1, 1))),
        Case("an odd number of rows, an even one of columns", lambda draw: some_map(draw, odd=(1, 0))),
        Case("an even number of rows, an odd one of columns", lambda draw: some_map(draw, odd=(0, 1))),
    ),
    "swin": (
        Case(
            "patches, stages with a merging between them, norm, mean and head", lambda d: images_for(d, positions=False)
        ),
        Case("with absolute positions", lambda draw: images_for(draw, positions=True)),
    ),
    "attention_cost": (
        Case("with windows, equation (2) of the paper", sizes_of_map),
        Case("without windows, equation (1)", lambda draw: sizes_of_map(draw)[:3]),
        Case("sides that are no multiple of the window are padded", lambda draw: sizes_of_map(draw, whole=False)),
    ),
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES, PARTS)
