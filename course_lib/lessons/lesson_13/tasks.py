"""Lesson 13, Masked autoencoders: what its exercises are tried with; their text and their mistakes are in tasks.md."""

from pathlib import Path

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw
from course_lib.tasks.markdown import read_tasks


def noise_and_ratio(draw: Draw) -> tuple[Tensor, float]:
    """A number for each patch, and a ratio that leaves no whole number of them."""
    B, rows, columns = draw.sizes(3, 3, 5)
    keep = draw.integers(2, rows * columns // 2 - 1, 1).item()
    return draw(B, rows * columns), 1 - (keep + 0.6) / (rows * columns)


def seen_and_places(draw: Draw, *, hidden: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Features of visible patches, the mask token, and a permutation for each picture."""
    B, K, D, more = draw.sizes(4, 2, 6)
    more = more if hidden is None else hidden
    return draw(B, K, D), draw(1, 1, D), draw(B, K + more).argsort(dim=1)


def painting(draw: Draw, *, wild: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """What was painted, what was asked for, and where; `wild` makes what is painted at visible places large."""
    B, N, P = draw.sizes(3, 3, 7)
    masked = ~draw.mask(B, N)
    painted = draw(B, N, P)
    return torch.where(masked[..., None], painted, wild * painted), draw(B, N, P), masked


def flat_patches(draw: Draw) -> tuple[Tensor]:
    """Patches of one grey, and others that are nearly so."""
    B, N, P = draw.sizes(3, 3, 7)
    patches = 1e-3 * draw(B, N, P)
    patches[:, ::2] = 0.5
    return (patches,)


def sizes_and_ratio(draw: Draw, *, ratio: float | None = None) -> tuple[int, float, int, int, int]:
    """The sizes of an encoder, and a share of hidden patches."""
    rows, columns, width, depth, wider = draw.sizes(5, 3, 9)
    N = rows * columns
    drawn = 1 - (draw.integers(2, N // 2, 1).item() + 0.5) / N
    return N, drawn if ratio is None else ratio, 4 * width, depth, 4 * (width + wider)


CASES = {
    "random_mask": (
        Case("the smallest noise stays, and the way back is known", noise_and_ratio),
        Case("three quarters hidden", lambda draw: (noise_and_ratio(draw)[0], 0.75)),
        Case("a ratio of 0 hides nothing", lambda draw: (noise_and_ratio(draw)[0], 0.0)),
    ),
    "restore_order": (
        Case("each place gets what was seen there, or the mask token", seen_and_places),
        Case("without hidden patches only the order changes", lambda draw: seen_and_places(draw, hidden=0)),
    ),
    "hidden_loss": (
        Case("the mean squared error over all hidden patches", painting),
        Case("what is painted at visible places does not matter", lambda draw: painting(draw, wild=100.0)),
    ),
    "normalised_target": (
        Case("mean 0 and spread 1 in each patch", lambda draw: (2 + 3 * draw(*draw.sizes(3, 3, 7)),)),
        Case("a patch of one grey gives zeros", flat_patches),
    ),
    "encoder_cost": (
        Case("matrix products of the visible patches, in all blocks", sizes_and_ratio),
        Case("with nothing hidden the cost of a plain ViT", lambda draw: sizes_and_ratio(draw, ratio=0.0)),
    ),
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES)
