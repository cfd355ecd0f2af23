"""Assignment 14, Image to image: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_14.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def maps_and_factor(draw: Draw, *, odd: bool) -> tuple[Tensor, int]:
    """Maps of drawn sizes, and by how much they grow."""
    return draw(*draw.sizes(4, high=6)), 2 * draw.integers(1, 3, 1).item() + odd


UPSAMPLE = replace(
    SHOWN["upsample"],
    cases=(
        Case("maps grow twice or four times, and bilinearly", lambda draw: maps_and_factor(draw, odd=False), 8),
        Case("an odd number of times", lambda draw: maps_and_factor(draw, odd=True), 3),
        Case("once: nothing changes", lambda draw: (draw(*draw.sizes(4, high=6)), 1), 2),
    ),
)


def skip_and_map(draw: Draw, *, over: tuple[int, ...] = (2, 4)) -> tuple[Tensor, Tensor]:
    """A map, and a skip that has so many rows and columns more, in either order."""
    B, C, c, h, w = draw.sizes(5, high=7)
    more = [over[place] for place in draw(2).argsort().tolist()]
    return draw(B, C, h + more[0], w + more[1]), draw(B, c, h, w)


JOIN = replace(
    SHOWN["crop_and_join"],
    cases=(
        Case("the middle of the skip beside the map", skip_and_map, 6),
        Case("an odd number is left over", lambda draw: skip_and_map(draw, over=(1, 3)), 2),
        Case("nothing to cut", lambda draw: skip_and_map(draw, over=(0, 0)), 2),
    ),
)


def rectangles(draw: Draw, *, counts: tuple[int, ...] = (3, 4)) -> tuple[Tensor, float, float]:
    """Pictures with so many things, which have any numbers, w0 and sigma."""
    things = torch.zeros(len(counts), *draw.integers(11, 15, 2).tolist(), dtype=torch.int64)
    for picture, count in zip(things, counts, strict=True):
        numbers, corners = 1 + draw(9).argsort(), torch.tensor([(0, 0), (0, 6), (6, 0), (6, 6)])[draw(4).argsort()]
        for number, (row, column) in zip(numbers, corners[:count].tolist(), strict=False):
            top, left, height, width = (*draw.integers(0, 2, 2).tolist(), *draw.integers(2, 5, 2).tolist())
            picture[row + top : row + top + height, column + left : column + left + width] = number
    return things, 5 + draw.integers(0, 50, 1).item() / 10, 2 + draw.integers(0, 20, 1).item() / 10


WEIGHTS = replace(
    SHOWN["border_weights"],
    cases=(
        Case("ground between two things weighs more", rectangles, 9),
        Case("a picture alone", lambda draw: rectangles(draw, counts=(3,)), 4),
        Case("a thing alone has no neighbour", lambda draw: rectangles(draw, counts=(3, 1)), 3),
        Case("a picture without things", lambda draw: rectangles(draw, counts=(0, 2)), 2),
    ),
)


def strips(count: int, first: int, end: int | Tensor) -> Tensor:
    """Masks of a row of pixels, in the i-th of which those from 16 i + first to 16 i + end are True."""
    place, begin = torch.arange(16 * count + 8), 16 * torch.arange(count)[:, None]
    return (place >= begin + first) & (place < begin + end)


def guesses(draw: Draw, *, kinds: str = "all") -> tuple[Tensor, Tensor, Tensor, float]:
    """Guesses at things in a row: good ones, doubles, ones that are too large, and ones at nothing; with scores.

    Those in `wider` have an IoU between 0.4 and 0.8 each, so that the threshold decides how many of them are right.
    """
    M = draw.integers(5, 8, 1).item()
    threshold = draw.integers(42, 62, 1).item() / 100 + 0.003  # which no IoU is exactly
    close, near, far, large, wide = (strips(M, *ends) for ends in ((0, 8), (1, 9), (3, 11), (0, 11), (-8, 17)))
    wider = strips(M, 0, 8 + draw.integers(2, 12, M, 1))
    true = torch.cat([close, strips(M, 3, 10)[:1]])  # the last is a second choice beside the first
    some = [near[:-1], far[1:-1], close[:2], wide, large[:2], wider]
    masks = torch.cat(some if kinds == "all" else [near, close, large, wider])
    masks = masks[draw(len(masks)).argsort()]
    scores = 0.05 + 0.9 * draw(len(masks)).argsort() / len(masks)
    return masks[:, None], scores, true[:, None], threshold


def one_for_each(draw: Draw) -> tuple[Tensor, Tensor, Tensor, float]:
    """A guess at nothing, and then one for each thing, whose IoU is exactly the threshold."""
    M, quarters = draw.integers(2, 8, 1).item(), draw.integers(1, 4, 1).item()
    masks = torch.cat([strips(M, 9, 12)[:1], strips(M, 0, 2 * quarters)])
    return masks[:, None], 0.9 - torch.arange(M + 1) / 10, strips(M, 0, 8)[:, None], quarters / 4


def a_guess(draw: Draw) -> tuple[Tensor, Tensor, Tensor, float]:
    """A single guess, at one of some things."""
    M, threshold = draw.integers(2, 5, 1).item(), draw.integers(3, 7, 1).item() / 10
    which = draw.integers(0, M, 1)
    return strips(M, 1, 9)[which][:, None], torch.rand(1, generator=draw.generator), strips(M, 0, 8)[:, None], threshold


PRECISION = replace(
    SHOWN["average_precision"],
    cases=(
        Case("the surest guesses choose first, and what they find counts", guesses, 9),
        Case("of two guesses at one thing one is right", lambda draw: guesses(draw, kinds="doubles"), 3),
        Case("an IoU that is exactly the threshold is enough", one_for_each, 4),
        Case("a single guess", a_guess, 4),
    ),
)


ASSIGNMENT = Assignment(
    "14",
    notebook="segmentation",
    title="Image to image",
    tasks=(UPSAMPLE, JOIN, WEIGHTS, PRECISION, SHOWN["train"]),
    seconds={"train": 90},
)
