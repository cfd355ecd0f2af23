"""Lesson 05, Attention: what its exercises are tried with; what they say and how they go wrong stands in tasks.md."""

from pathlib import Path

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw
from course_lib.tasks.markdown import read_tasks


def rows_apart(draw: Draw) -> tuple[Tensor]:
    """In each row about -1000, 0 and 1000, in some order; and one row far above, another far below the rest."""
    rows = torch.stack([torch.tensor([-1000.0, 0.0, 1000.0])[draw(3).argsort()] for _ in range(6)]).view(2, 3, 3)
    return (rows + torch.tensor([-1e4, 0.0, 1e4])[draw(2, 3).argsort()][..., None] + draw(2, 3, 3),)


def qkv(draw: Draw, *, blind: bool | None = None) -> tuple[Tensor, ...]:
    """Queries, keys and values of drawn sizes; unless `blind` is None a mask, under which one query may see nothing."""
    T_q, T_k, d, d_v = draw.sizes(4)
    B = draw.integers(1, 4, 1).item()
    given = draw(B, T_q, d), draw(B, T_k, d), draw(B, T_k, d_v)
    return given if blind is None else (*given, draw.mask(B, T_q, T_k, blind=blind))


def words_and_heads(draw: Draw) -> tuple[Tensor, int]:
    """Words whose width is a multiple of the number of heads."""
    B, T, H, d = draw.sizes(4)
    return draw(B, T, H * d), H


def length_and_width(draw: Draw) -> tuple[int, int]:
    """A length, and an even width."""
    length, pairs = draw.sizes(2, 4, 9)
    return length, 2 * pairs


CASES = {
    "softmax": (
        Case("shares sum to one along the last axis", lambda draw: (draw(*draw.sizes(3)),)),
        Case("large numbers do no harm", lambda draw: (1000 + draw(*draw.sizes(3)),)),
        Case("numbers far apart do no harm", rows_apart),
    ),
    "attention": (
        Case("the values' average, weighted by how well each key fits", qkv),
        Case("hidden keys get no weight", lambda draw: qkv(draw, blind=False)),
        Case("a query that sees nothing gets zeros", lambda draw: qkv(draw, blind=True)),
        Case("more axes in front", lambda draw: (draw(2, 3, 4, 5), draw(2, 3, 6, 5), draw(2, 3, 6, 2))),
    ),
    "split_heads": (Case("head h holds features h d to (h+1) d", words_and_heads),),
    "positions": (Case("PE(pos, 2i) and PE(pos, 2i+1)", length_and_width, tolerance=1e-3),),
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES)
