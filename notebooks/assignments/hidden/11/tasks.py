"""Assignment 11, Vision Transformer: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

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


ASSIGNMENT = Assignment(
    "11",
    notebook="vit",
    title="Vision Transformer",
    tasks=(OVERLAPPING, POSITIONS, ROLLOUT, KEEP, SHOWN["train"]),
    seconds={"train": 90},
)
