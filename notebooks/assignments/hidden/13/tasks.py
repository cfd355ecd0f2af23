"""Assignment 13, Masked autoencoders: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_13.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def grid_and_blocks(
    draw: Draw, *, share: float = 0.5, blocks: int = 8, within: bool = False
) -> tuple[Tensor, tuple[int, int], int]:
    """Blocks that begin in the grid, overlap and hang over its edges, and how many patches are to be hidden.

    With `within` none hangs over an edge.
    """
    rows, columns = draw.sizes(2, 6, 10)
    corners = torch.stack([draw.integers(0, side, blocks) for side in (rows, columns)], dim=1)
    sides = torch.stack([draw.integers(2, 5, blocks), draw.integers(2, 6, blocks)], dim=1)
    if within:
        corners = torch.minimum(corners, torch.tensor([rows, columns]) - sides)
    return torch.cat([corners, sides], dim=1), (rows, columns), int(share * rows * columns)


BLOCKS = replace(
    SHOWN["block_mask"],
    cases=(
        Case("block after block, until there are enough", grid_and_blocks, 8),
        Case("blocks that lie within the grid", lambda d: grid_and_blocks(d, within=True), 3),
        Case("where blocks are too few, the first places are hidden, too", lambda d: grid_and_blocks(d, blocks=2), 4),
        Case("nothing is hidden that should not be", lambda d: grid_and_blocks(d, share=0.2), 3),
    ),
)


def torn(draw: Draw, *, channels: int | None = None, strip: bool = False) -> tuple[Tensor, Tensor, Tensor, int]:
    """Pictures, what was painted, where patches are hidden, and the side of a patch; a strip is one patch high."""
    B, columns, C, rows = draw.sizes(4, 2, 5)
    p, C, rows = draw.integers(2, 4, 1).item(), channels or C, 1 if strip else rows
    image = 1 + 2 * draw(B, C, rows * p, columns * p)
    return image, draw(B, rows * columns, p * p * C), ~draw.mask(B, rows * columns), p


TORN = replace(
    SHOWN["reconstruct"],
    cases=(
        Case("hidden patches are painted, visible ones are as they were", torn, 14),
        Case("pictures in grey", lambda draw: torn(draw, channels=1), 5),
        Case("pictures that are one patch high", lambda draw: torn(draw, strip=True), 4),
    ),
)


def features_and_labels(draw: Draw, *, few: bool = False, dead: bool = False) -> tuple:
    """Features of labelled pictures, their labels, features of others, the number of classes, and a penalty."""
    M, C, D, more = draw.sizes(4, 3, 7)
    N = D - 1 if few else 2 * D + more
    scale, shift = draw(D).abs() + 0.5, draw(D)
    features, asked = shift + scale * draw(N, D), shift + 0.5 + 2 * scale * draw(M, D)
    if dead:
        features[:, 0], asked[:, 0] = 0.5, 0.5
    return features, draw.integers(0, C, N), asked, C, 1.5 + draw(1).abs().item()


PROBE = replace(
    SHOWN["probe_scores"],
    cases=(
        Case("the scores of ridge regression on standardised features", features_and_labels, 12),
        Case("fewer pictures than features", lambda d: features_and_labels(d, few=True), 5),
        Case("a feature that never changes does no harm", lambda d: features_and_labels(d, dead=True), 4),
    ),
)


ASSIGNMENT = Assignment(
    "13",
    notebook="mae",
    title="Masked autoencoders",
    tasks=(BLOCKS, TORN, PROBE, SHOWN["train"]),
    seconds={"train": 60},
)
