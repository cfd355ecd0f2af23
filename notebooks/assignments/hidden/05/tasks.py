"""Assignment 05, Attention: what the grader asks of each task; tasks.md lists the known mistakes."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_05.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, TaskInput


def queries_and_keys(draw: Draw, *, radius: float | None = None, blank: bool = False) -> tuple:
    """q, k, v, W, w of drawn sizes, and a radius; with `blank` all keys are 0, so that only the distance counts."""
    T_q, T_k, d, d_v, A = draw.sizes(5, 3, 8)
    B = draw.integers(1, 4, 1).item()
    k = draw(B, T_k, d)
    radius = 1.0 + draw.integers(1, 6, 1).item() / 2 if radius is None else radius
    return draw(B, T_q, d), 0 * k if blank else k, draw(B, T_k, d_v), draw(A, d), draw(A), radius


PREDICTIVE = replace(
    SHOWN["predictive_attention"],
    cases=(
        Case("the values, weighted by fit and by distance", queries_and_keys, points=6),
        Case("where all keys fit alike, the distance decides", lambda draw: queries_and_keys(draw, blank=True), 3),
        Case("a small radius", lambda draw: queries_and_keys(draw, radius=0.8), 2),
    ),
)


def words_at_distances(draw: Draw, *, clip: int | None = None, blank: bool = False) -> tuple:
    """q, k, v, R_k, R_v of drawn sizes, and a clip of 2 or 3; with `blank` all keys are 0: only the distance counts."""
    B, T, d, d_v = draw.sizes(1, 1, 3) + draw.sizes(3, 5, 9)
    clip = draw.integers(2, 4, 1).item() if clip is None else clip
    k, rows = draw(B, T, d), 2 * clip + 1
    return draw(B, T, d), 0 * k if blank else k, draw(B, T, d_v), draw(rows, d), draw(rows, d_v), clip


RELATIVE = replace(
    SHOWN["relative_attention"],
    cases=(
        Case("the values, weighted by fit and by distance", words_at_distances, points=6),
        Case("where all keys fit alike, the distance decides", lambda draw: words_at_distances(draw, blank=True), 3),
        Case("words far apart share their vectors", lambda draw: words_at_distances(draw, clip=1), 2),
    ),
)


def sentence(draw: Draw, *, large: float = 1.0, axes: int = 1, low: float = 0.0) -> tuple[Tensor, Tensor, Tensor, int]:
    """q, k and v of words of drawn widths, with so many axes in front, and a window of 3 to 5.

    With `low` all scores lie far below 0, by about a third of its square.
    """
    front, (T, d, d_v) = draw.sizes(2, 1, 3)[:axes], draw.sizes(3, 7, 11)
    window = draw.integers(3, 6, 1).item()
    q, k = large * draw(*front, T, d), draw(*front, T, d)
    if low:
        q[..., 0], k[..., 0] = low, -low
    return q, k, draw(*front, T, d_v), window


def stream(draw: Draw, **more) -> tuple[Tensor, Tensor, Tensor, int, int]:
    """As `sentence`, with two or three sinks and a window of 3 or 4."""
    return *sentence(draw, **more)[:3], draw.integers(2, 4, 1).item(), draw.integers(3, 5, 1).item()


def cases_of_a_part(seen: str, inputs: Callable[..., tuple], *smallest: int) -> tuple[Case, ...]:
    """The cases of attention to a part of a text; `seen` names what a word should see, `smallest` is the least."""
    return (
        Case("what a word sees counts by the softmax of the scaled scores", inputs, 4),
        Case(seen, inputs, 4),
        Case("large scores do no harm", lambda draw: inputs(draw, large=1e3), 2, tolerance=1e-2),
        Case("scores far below 0 do no harm", lambda draw: inputs(draw, low=256), 2, tolerance=3e-2),
        Case(
            "with the smallest window each word sees itself alone",
            lambda draw: (*inputs(draw, low=500)[:3], *smallest),
            1,
        ),
        Case("heads in front of the words", lambda draw: inputs(draw, axes=2), 2),
        Case("nothing in front of the words", lambda draw: inputs(draw, axes=0), 1),
    )


LOCAL = replace(
    SHOWN["local_attention"], cases=cases_of_a_part("each word sees its neighbours, and all of them", sentence, 0)
)
STREAMING = replace(
    SHOWN["streaming_attention"],
    cases=cases_of_a_part("each word sees the sinks and its window, and all of them", stream, 0, 1),
)


def alignments(draw: Draw, *, sentences: int | None = None) -> tuple[list, list, list]:
    """Links of some sentences: predicted, sure, and possible ones that are not listed as sure."""
    found = [], [], []
    for _ in range(sentences or draw.integers(2, 6, 1).item()):
        kind = draw.integers(0, 8, 4, 5)  # of all links: 0 to 2 sure, 3 and 4 possible, and half of all predicted
        guess = (draw(4, 5) > 0) | (torch.arange(20).view(4, 5) < 2)
        kind[0, :2] = torch.tensor([0, 3])
        for links, held in zip(found, (guess, kind < 3, (kind == 3) | (kind == 4)), strict=True):
            links.append([tuple(link) for link in held.nonzero().tolist()])
    return found


RATE = replace(
    SHOWN["alignment_error_rate"],
    cases=(
        Case("links are counted over all sentences", alignments, points=10),
        Case("one sentence alone", lambda draw: alignments(draw, sentences=1), 5),
    ),
)


F_MEASURE = replace(
    SHOWN["alignment_f_measure"],
    cases=tuple(
        replace(case, inputs=lambda draw, links=case.inputs: (*links(draw), draw.integers(1, 4, 1).item() / 5))
        for case in RATE.cases
    ),
)


def words(draw: Draw, *, blind: bool | None = None, group: int | None = None, own: bool = False) -> TaskInput:
    """Words whose width is a multiple of the number of heads, and a mask, for each head its own if so wanted."""
    B, T, d = draw.sizes(3, high=6)
    G, group = draw.integers(2, 4, 1).item(), group or draw.integers(2, 4, 1).item()
    H = G * group
    x = (draw(B, T, d * H),)
    mask = () if blind is None else (draw.mask(B, H, T, T) if own else draw.mask(T, T, blind=blind),)
    return TaskInput(x + mask, build=(d * H, H, G))


GROUPED = replace(
    SHOWN["GroupedQueryAttention"],
    cases=(
        Case("each head uses the keys and values of its group", words, points=10),
        Case("hidden words get no weight, in any head", lambda draw: words(draw, blind=False), 4),
        Case("who sees nothing gets zeros", lambda draw: words(draw, blind=True), 2),
        Case("with one key-value head for each head", lambda draw: words(draw, group=1), 3),
        Case("each sentence, each head has a mask of its own", lambda draw: words(draw, blind=False, own=True), 3),
    ),
)


ASSIGNMENT = Assignment(
    "05",
    notebook="attention",
    title="Attention",
    tasks=(PREDICTIVE, RELATIVE, LOCAL, STREAMING, RATE, F_MEASURE, GROUPED, SHOWN["train"]),
)
