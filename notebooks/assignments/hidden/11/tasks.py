"""Assignment 11, Vision Transformer: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_11.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def windows(draw: Draw, *, left: bool = False, apart: bool = False) -> tuple[Tensor, int, int, int]:
    """Pictures, the side of a patch, how far it moves, and a frame; with `left`, pixels are left over at two edges."""
    B, C, rows, columns = draw.sizes(4, 2, 5)
    p = draw.integers(3, 6, 1).item()
    step, frame = (p, 0) if apart else (draw.integers(2, p, 1).item(), draw.integers(2, 4, 1).item())
    sides = [(count - 1) * step + p + left - 2 * frame for count in (rows + 1, columns + 1)]
    return draw(B, C, *sides), p, step, frame


OVERLAPPING = replace(
    SHOWN["overlapping_patches"],
    cases=(
        Case("patches that overlap, of a picture with a frame of zeros", windows, 7),
        Case("what is left over at an edge belongs to no patch", lambda draw: windows(draw, left=True), 4),
        Case("without overlap or frame they are the patches of the lesson", lambda draw: windows(draw, apart=True), 2),
    ),
)


def patches_of_a_grid(draw: Draw, *, row: bool = False, quarter: int | None = None) -> tuple[Tensor, int, int]:
    """Embedded patches of some pictures, and the height and width of their grid."""
    B, height, width, frequencies = draw.sizes(4, 2, 9)
    height = 1 if row else height
    return draw(B, height * width, 4 * (quarter or frequencies)), height, width


POSITIONS = replace(
    SHOWN["add_positions"],
    cases=(
        Case("the code of the column, then that of the row, patch by patch", patches_of_a_grid, 7, tolerance=1e-3),
        Case("a single row of patches", lambda draw: patches_of_a_grid(draw, row=True), 3, tolerance=1e-3),
        Case("a single frequency", lambda draw: patches_of_a_grid(draw, quarter=1), 2, tolerance=1e-3),
    ),
)


def attention_maps(draw: Draw, *, blocks: int | None = None, heads: int | None = None) -> tuple[Tensor, int, int]:
    """Attention of some blocks and heads, each row a distribution."""
    B, L, H, height, width = draw.sizes(5, 2, 6)
    T = height * width + 1
    return (2 * draw(B, blocks or L, heads or H, T, T)).softmax(-1), height, width


ROLLOUT = replace(
    SHOWN["rollout_map"],
    cases=(
        Case("what reached the class token through all blocks, as a map", attention_maps, 11, tolerance=1e-5),
        Case("a single block", lambda draw: attention_maps(draw, blocks=1), 4, tolerance=1e-5),
        Case("a single head", lambda draw: attention_maps(draw, heads=1), 3, tolerance=1e-5),
    ),
)


def looked_at(
    draw: Draw, *, heads: int | None = None, drops: int | None = None, keeps: int | None = None
) -> tuple[Tensor, Tensor, int]:
    """Tokens, how much the class token looks at each in each head, and how many patches stay."""
    B, H, D, N, more = draw.sizes(5, 2, 7)
    N = N + more
    return draw(B, N + 1, D), (2 * draw(B, heads or H, N + 1)).softmax(-1), keeps or N - (drops or more)


KEEP = replace(
    SHOWN["keep_tokens"],
    cases=(
        Case("the class token, the patches it looks at most, the others in one", looked_at, 8),
        Case("a single head", lambda draw: looked_at(draw, heads=1), 4),
        Case("a single patch stays", lambda draw: looked_at(draw, keeps=1), 3),
        Case("a single patch is left over", lambda draw: looked_at(draw, drops=1), 3),
    ),
)


ASSIGNMENT = Assignment(
    "11",
    notebook="vit",
    title="Vision Transformer",
    tasks=(OVERLAPPING, POSITIONS, ROLLOUT, KEEP, SHOWN["train"]),
    seconds={"train": 60},
)
