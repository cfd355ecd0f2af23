"""Assignment 03, Recurrent networks: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_03.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def some_layers(draw: Draw, *, layers: int | None = None) -> tuple[Tensor, ...]:
    """An input, the states of some layers, and their weights."""
    B, H, L = draw.sizes(3, 2, 6)
    L = layers or L
    weights = (draw(L, H, H) / H**0.5 for _ in range(2))
    return draw(B, H), draw(L, B, H), *weights, draw(L, H)


DEEP = replace(
    SHOWN["deep_step"],
    cases=(
        Case("the new states of all layers", some_layers, 8),
        Case("a single layer", lambda draw: some_layers(draw, layers=1), 2),
    ),
)


def clocked(draw: Draw, *, period: int = 0) -> tuple[Tensor | int, ...]:
    """An input, states, weights, periods in any order, of all units the same if one is given, and a time."""
    B, D, H = draw.sizes(3, 2, 5)
    H += 4
    some = torch.tensor([1, 2, 4, 3, 8, 1, 2, 4, 3, 8])[:H] if not period else torch.full((H,), period)
    t = period * draw.integers(1, 4, 1).item() if period else (2, 4, 10)[draw.integers(0, 3, 1).item()]
    weights = draw(H, D) / D**0.5, 2 * draw(H, H) / H**0.5, draw(H)
    return draw(B, D), torch.tanh(draw(B, H)), *weights, some[draw(H).argsort()], t


CLOCKED = replace(
    SHOWN["clockwork_step"],
    cases=(
        Case("units of several periods", clocked, 8),
        Case("units of one period, which are all updated", lambda draw: clocked(draw, period=3), 2),
    ),
)


def symmetric(draw: Draw, *, late: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """A symmetric matrix with a spectral radius of 1 or a little more, a state, and some times."""
    H, T = draw.sizes(2, 3, 7)
    W = draw(H, H).double()
    W = W + W.T
    W = W / torch.linalg.eigvalsh(W).abs().max() * (1.0 if late else 1.1)
    return W, draw(H).double(), draw.integers(200, 2000, T) if late else draw.integers(0, 9, T)


def far(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """The largest eigenvalue is -1, and the times are around a thousand million, the first of them odd."""
    W, h0, _ = symmetric(draw)
    values = torch.linalg.eigvalsh(W)
    W = -W / values[values.abs().argmax()]
    return W, h0, 10**9 + 2 * draw.integers(0, 500_000, 4) + torch.tensor([1, 0, 0, 1])


POWERS = replace(
    SHOWN["states_at"],
    cases=(
        Case("the states at some times", symmetric, 7),
        Case("states after many steps", lambda draw: symmetric(draw, late=True), 3),
        Case("times around a thousand million, which no loop over the steps can reach", far, 4),
    ),
    checks=(),
)


def reservoir(draw: Draw, *, negative: bool = False) -> tuple[Tensor, Tensor, Tensor, float, float]:
    """A matrix, whose largest eigenvalues are complex or negative, input weights, inputs, a radius and a leak."""
    D, H, T = draw.sizes(3, 2, 5)
    while True:
        W = draw(H + 2, H + 2) - 2.0 * negative
        values = torch.linalg.eigvals(W)
        largest = values[values.abs().argmax()]
        if negative or largest.imag.abs() > 0.3 * largest.abs() and values.real.abs().max() < 0.85 * largest.abs():
            break
    radius, leak = 0.7 + draw.integers(0, 6, 1).item() / 10, 0.2 + draw.integers(0, 3, 1).item() / 10
    return W, draw(H + 2, D), draw(T + 3, D), radius, leak


ECHO = replace(
    SHOWN["echo_states"],
    cases=(
        Case("a matrix with complex eigenvalues", reservoir, 9),
        Case("the largest eigenvalue is negative", lambda draw: reservoir(draw, negative=True), 5),
    ),
)


def pieces(draw: Draw, *, whole: bool = False) -> tuple[Tensor, Tensor, Tensor, int]:
    """A matrix, its states, the direct gradients of the loss, and the steps of a piece."""
    H, length = draw.sizes(2, 4, 6)
    T = length * 3 + 2
    W, h = draw(H, H) / H**0.5, [torch.tanh(draw(H))]
    for _ in range(T):
        h.append(torch.tanh(W @ h[-1] + draw(H)))
    return W, torch.stack(h), draw(T, H), T + 2 if whole else length


CUT = replace(
    SHOWN["cut_gradient"],
    cases=(
        Case("the gradient, cut after each piece", pieces, 12),
        Case("a piece that is longer than all steps", lambda d: pieces(d, whole=True), 4),
    ),
)


def all_at_once(draw: Draw, *, single: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """A matrix, its states, and the gradient of each step's loss with respect to its state."""
    W, h, dh, _ = pieces(draw)
    return (W, h[:2], dh[:1]) if single else (W, h[:8], dh[:7])


FORWARD = replace(
    SHOWN["forward_gradients"],
    cases=(
        Case("the gradient of each step's loss", all_at_once, 12),
        Case("a single step", lambda draw: all_at_once(draw, single=True), 4),
    ),
)


def some_names(draw: Draw, *, letters: str = "abc", unseen: bool = False) -> tuple[Tensor, list[str], list[str], int]:
    """Names of a few letters in some languages, not equally many of each, and others."""

    def name(letters: str) -> str:
        length = draw.integers(3, 7, 1).item()
        return "".join(letters[i] for i in draw.integers(0, len(letters), length).tolist())

    C = draw.sizes(1, 2, 4)[0]
    labels = [*range(C), *[0] * 4, *draw.integers(0, C, 5).tolist()]
    names, count = [name(letters) for _ in labels], draw.integers(3, 7, 1).item()
    return torch.tensor(labels), names, [name("xyz" if unseen else letters) for _ in range(count)], C


SCORES = replace(
    SHOWN["language_scores"],
    cases=(
        Case("each new name and each language", some_names, 8),
        Case("capital letters and spaces count as they are", lambda draw: some_names(draw, letters="aA b"), 4),
        Case("names of which no trigram is known", lambda draw: some_names(draw, unseen=True), 4),
    ),
)


def profiled(draw: Draw, **how: str | bool) -> tuple[Tensor, list[str], list[str], int, int]:
    """The same, and the size of a profile: smaller than the number of trigrams, or larger where none is known."""
    low, high = (30, 40) if how.get("unseen") else (5, 9)
    return *some_names(draw, **how), draw.integers(low, high, 1).item()


RANKS = replace(
    SHOWN["out_of_place"],
    cases=(
        Case("each new name and each language", profiled, 8),
        Case("capital letters and spaces count as they are", lambda draw: profiled(draw, letters="aA b"), 4),
        Case("names of which no trigram is known", lambda draw: profiled(draw, unseen=True), 4),
    ),
)


ASSIGNMENT = Assignment(
    "03",
    notebook="recurrent_networks",
    title="Recurrent networks",
    tasks=(DEEP, CLOCKED, POWERS, ECHO, CUT, FORWARD, SCORES, RANKS, SHOWN["train"]),
)
