"""Assignment 11, Vision Transformer: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_11.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def windows(draw: Draw, *, left: bool = False, apart: bool = False) -> tuple[Tensor, int, int, int]:
    """Images, patch size, stride and padding; with `left`, pixels are left over at two edges; `apart`: no overlap."""
    B, C, rows, columns = draw.sizes(4, 2, 5)
    p = draw.integers(3, 6, 1).item()
    stride, padding = (p, 0) if apart else (draw.integers(2, p, 1).item(), draw.integers(2, 4, 1).item())
    sides = [(count - 1) * stride + p + left - 2 * padding for count in (rows + 1, columns + 1)]
    return draw(B, C, *sides), p, stride, padding


OVERLAPPING = replace(
    SHOWN["overlapping_patches"],
    cases=(
        Case("overlapping patches of a zero-padded image", windows, 5),
        Case("pixels left over at an edge belong to no patch", lambda draw: windows(draw, left=True), 3),
        Case("without overlap and padding, the patches of the lesson", lambda draw: windows(draw, apart=True), 2),
    ),
)


def images_and_shift(draw: Draw, shifted: str) -> tuple[Tensor, int, int]:
    """Images of some patches, the patch size, and a shift: half a patch, a whole one, or any other."""
    B, C, rows, columns = draw.sizes(4, 2, 5)
    p = draw.integers(3, 6, 1).item()
    others = [shift for shift in range(1, p) if shift != p // 2]
    other = others[draw.integers(0, len(others), 1).item()]
    return draw(B, C, rows * p, columns * p), p, {"half": p // 2, "whole": p, "other": other}[shifted]


SHIFTED = replace(
    SHOWN["shifted_patches"],
    cases=(
        Case("patches of the image and its four shifted copies", lambda draw: images_and_shift(draw, "other"), 5),
        Case("a shift of half a patch", lambda draw: images_and_shift(draw, "half"), 3),
        Case("a shift of a whole patch", lambda draw: images_and_shift(draw, "whole"), 2),
    ),
)


def patches_of_a_grid(draw: Draw, *, row: bool = False, quarter: int | None = None) -> tuple[Tensor, int, int]:
    """Embedded patches of some images, and the height and width of their grid."""
    B, height, width, frequencies = draw.sizes(4, 2, 9)
    height = 1 if row else height
    return draw(B, height * width, 4 * (quarter or frequencies)), height, width


POSITIONS = replace(
    SHOWN["add_positions"],
    cases=(
        Case("the code of the column, then that of the row", patches_of_a_grid, 7, tolerance=1e-3),
        Case("a single row of patches", lambda draw: patches_of_a_grid(draw, row=True), 3, tolerance=1e-3),
        Case("a single frequency", lambda draw: patches_of_a_grid(draw, quarter=1), 2, tolerance=1e-3),
    ),
)


def queries_of_a_grid(draw: Draw, *, row: bool = False, quarter: int | None = None) -> tuple[Tensor, int, int]:
    """Queries of some heads for the patches of a grid, and its height and width."""
    B, H, height, width, angles = draw.sizes(5, 2, 7)
    height = 1 if row else height
    return draw(B, H, height * width, 4 * (quarter or angles)), height, width


ROTATED = replace(
    SHOWN["rotate_by_position"],
    cases=(
        Case("one half rotated by the column, the other by the row", queries_of_a_grid, 7, tolerance=1e-3),
        Case("a single row of patches", lambda draw: queries_of_a_grid(draw, row=True), 3, tolerance=1e-3),
        Case("a single angle", lambda draw: queries_of_a_grid(draw, quarter=1), 2, tolerance=1e-3),
    ),
)


def maps_and_gradients(
    draw: Draw, *, blocks: int | None = None, heads: int | None = None
) -> tuple[Tensor, Tensor, int, int]:
    """Attention weights of some blocks and heads, whose rows sum to one, and gradients for them.

    In each block a patch has a positive product with the class token's row, so that no sum is zero.
    """
    B, L, H, height, width = draw.sizes(5, 2, 6)
    T, L, H = height * width + 1, blocks or L, heads or H
    weights, gradients = (2 * draw(B, L, H, T, T)).softmax(-1), draw(B, L, H, T, T)
    gradients[:, :, 0, 0, 1] = gradients[:, :, 0, 0, 1].abs() + 0.1
    return weights, gradients, height, width


ROLLOUT = replace(
    SHOWN["rollout_map"],
    cases=(
        Case("relevance of the patches through all blocks", maps_and_gradients, 9, tolerance=1e-5),
        Case("a single block", lambda draw: maps_and_gradients(draw, blocks=1), 3, tolerance=1e-5),
        Case("a single head", lambda draw: maps_and_gradients(draw, heads=1), 3, tolerance=1e-5),
    ),
)


def maps_and_vectors(draw: Draw, *, blocks: int | None = None, heads: int | None = None) -> tuple:
    """Attention weights of some blocks and heads, the projected values of each head, and the inputs of each block."""
    (B, L, H, height, width), D = draw.sizes(5, 2, 6), draw.integers(2, 5, 1).item()
    T, L, H = height * width + 1, blocks or L, heads or H
    return (2 * draw(B, L, H, T, T)).softmax(-1), 3 * draw(B, L, H, T, D), draw(B, L, T, D), height, width


CONTRIBUTION = replace(
    SHOWN["contribution_map"],
    cases=(
        Case("contributions of the patches through all blocks", maps_and_vectors, 9, tolerance=1e-5),
        Case("a single block", lambda draw: maps_and_vectors(draw, blocks=1), 3, tolerance=1e-5),
        Case("a single head", lambda draw: maps_and_vectors(draw, heads=1), 3, tolerance=1e-5),
    ),
)


def tokens_and_attention(
    draw: Draw, *, heads: int | None = None, drops: int | None = None, keeps: int | None = None
) -> tuple[Tensor, Tensor, int]:
    """Tokens, the class token's attention weights in each head, and how many patches are kept."""
    B, H, D, N, more = draw.sizes(5, 2, 7)
    N = N + more
    return draw(B, N + 1, D), (2 * draw(B, heads or H, N + 1)).softmax(-1), keeps or N - (drops or more)


KEEP = replace(
    SHOWN["keep_tokens"],
    cases=(
        Case("class token, kept patches, and the others fused", tokens_and_attention, 7),
        Case("a single head", lambda draw: tokens_and_attention(draw, heads=1), 3),
        Case("a single patch is kept", lambda draw: tokens_and_attention(draw, keeps=1), 3),
        Case("a single patch is fused", lambda draw: tokens_and_attention(draw, drops=1), 2),
    ),
)


def tokens_and_keys(draw: Draw, *, like: str = "", heads: int | None = None, equal: bool = False) -> tuple:
    """Tokens, keys, sizes, and how many patches join another one.

    The class token may be `like` the last odd patch; with "one" that patch is the partner of all even ones.
    """
    B, H, D, d, N = draw.sizes(5, 2, 6)
    N, H = N + 4, heads or H
    keys, sizes = draw(B, H, N + 1, d) + 0.5, draw.integers(1, 5, B, N + 1).to(torch.float32)
    last = N - (N + 1) % 2
    if like == "one":
        keys[:, :, 2::2] = keys[:, :, 2::2] / 4 + 3 * keys[:, :, last, None]
    elif like == "class":
        keys[:, :, 0] = 2 * keys[:, :, last] + 0.01 * keys[:, :, 0]
    return draw(B, N + 1, D), keys, sizes / sizes if equal else sizes, N // 2 - draw.integers(0, 2, 1).item()


MERGE = replace(
    SHOWN["merge_tokens"],
    cases=(
        Case("the most similar patches merged", tokens_and_keys, 6),
        Case("several patches with one partner", lambda draw: tokens_and_keys(draw, like="one"), 4),
        Case("a class token that is similar to a patch", lambda draw: tokens_and_keys(draw, like="class"), 2),
        Case("all tokens of one size", lambda draw: tokens_and_keys(draw, equal=True), 2),
        Case("a single head", lambda draw: tokens_and_keys(draw, heads=1), 2),
    ),
)


ASSIGNMENT = Assignment(
    "11",
    notebook="vit",
    title="Vision Transformer",
    tasks=(
        OVERLAPPING,
        SHIFTED,
        POSITIONS,
        ROTATED,
        ROLLOUT,
        CONTRIBUTION,
        KEEP,
        MERGE,
        SHOWN["train"],
    ),
)
