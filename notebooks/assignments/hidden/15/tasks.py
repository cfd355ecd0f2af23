"""Assignment 15, One model for text and sound: what the grader asks of each task; tasks.md lists the mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_15.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def uniform(draw: Draw, low: float, high: float) -> float:
    return low + (high - low) * torch.rand(1, generator=draw.generator).item()


def clear(x: float) -> bool:
    """Whether it is clear to which whole number this is rounded."""
    return not 0.4 < x % 1 < 0.6


def spans(draw: Draw, *, short: bool = False, most: bool = False) -> tuple[Tensor, Tensor, float, float]:
    """Random numbers for texts, a corruption rate and a mean length; short texts have one span, of one token."""
    (B,), T = draw.sizes(1, 2, 5), draw.integers(4, 7, 1).item() if short else draw.integers(24, 40, 1).item()
    while True:
        rate = uniform(draw, *((0.02, 0.4 / T) if short else (0.75, 0.85) if most else (0.2, 0.45)))
        mean_length = uniform(draw, 1.1, 1.7) if most else uniform(draw, 1.3, 3.6)
        n = round(rate * T)
        if clear(rate * T) and clear(max(n, 1) / mean_length) and (most or n < 1 or abs(round(n / mean_length) - 1)):
            break
    u, v = (draw(B, T).argsort(dim=1) / T for _ in range(2))
    return u, v, rate, mean_length


SPAN_MASK = replace(
    SHOWN["span_mask"],
    cases=(
        Case("the number of corrupted tokens, and their spans", spans, 9, tolerance=1e-6),
        Case("short texts with one corrupted token", lambda draw: spans(draw, short=True), 4, tolerance=1e-6),
        Case("most tokens corrupted", lambda draw: spans(draw, most=True), 3, tolerance=1e-6),
    ),
)


def poisson(mean: float, largest: int) -> Tensor:
    """The probabilities that a span has at most 0, 1, ... tokens."""
    return torch.distributions.Poisson(mean).log_prob(torch.arange(largest + 1.0)).exp().cumsum(dim=0)


def gaps(draw: Draw, *, empty: bool = False, most: bool = False) -> tuple:
    """A text, the random numbers that decide on its spans, a rate, a mean length and a mask token.

    Some spans have no token if `empty`, else none. The last span loses two tokens or more, and keeps as many.
    """
    T, mask_id = draw.integers(22, 34, 1).item(), draw.integers(60, 90, 1).item()
    while True:
        rate, mean = (
            uniform(draw, *(0.62, 0.7) if most else (0.3, 0.45)),
            uniform(draw, 1.3, 2.4) + (0 if empty else 0.7) + most,
        )
        u, v, ids = torch.rand(T, generator=draw.generator), draw(T + 1).argsort() / T, draw.integers(10, 60, T)
        sums, n = poisson(mean, T), round(rate * T)
        v[0] -= 2  # a span at the beginning, and at the end as well if `empty`
        v[T - n : T - n + 2] += torch.tensor([-2.0 if empty else 2.0, 2.0])
        lengths = torch.searchsorted(sums, u, right=True)
        k = (lengths.cumsum(dim=0) < n).sum().item() + 1
        used, near = lengths[:k], (u[:, None] - sums).abs().min()
        rounded = clear(rate * T) and (rate * T % 1 > 0.5) != empty and near > 1e-4
        several = 3 < k < T - n - 1 and len(used.unique()) > 2 and round(n / mean) != k
        cut = used[:-1].sum() < n - 1 and used.sum() > n + 1 and used[-2:].min() > 0
        if rounded and several and cut and (used.min() == 0) == empty:
            return ids, u, v, rate, mean, mask_id


TEXT_INFILLING = replace(
    SHOWN["text_infilling"],
    cases=(
        Case("spans of several lengths", gaps, 8),
        Case("spans without a token among them", lambda draw: gaps(draw, empty=True), 5),
        Case("most of the text removed", lambda draw: gaps(draw, most=True), 3),
    ),
)


def frames(draw: Draw, *, left: int | None = None, whole: bool = False) -> tuple[Tensor, int, int, int]:
    """How many frames of each recording are real, of how many, in chunks of which size, and how many are kept."""
    (B,), size, number = draw.sizes(1, 2, 5), draw.integers(2, 5, 1).item(), draw.integers(5, 8, 1).item()
    T = size * number - (0 if whole else draw.integers(1, size, 1).item())
    lengths = draw.integers(T // 3, T + 1, B)
    lengths[-1] = T if B > 1 else T - 2
    return lengths, T, size, draw.integers(1, 4, 1).item() if left is None else left


CHUNK_MASK = replace(
    SHOWN["chunk_mask"],
    cases=(
        Case("chunks of frames, some of them padding", lambda draw: frames(draw, whole=True), 7, tolerance=1e-6),
        Case("the last chunk has fewer frames", frames, 4, tolerance=1e-6),
        Case("no earlier chunk is kept", lambda draw: frames(draw, left=0), 3, tolerance=1e-6),
    ),
)


def copies(draw: Draw, *, left: int | None = None, whole: bool = False) -> tuple[Tensor, int, int, int, int]:
    """How many frames of each recording are real, of how many, in chunks of which size, and what a chunk may see."""
    lengths, T, size, _ = frames(draw, whole=whole)
    far = max(draw.integers(size - 1, size + 1, 1).item(), 2)  # reaches frames of which there are copies, too
    return lengths, T, size, far if left is None else left, draw.integers(2, 4, 1).item()


LOOK_AHEAD_MASK = replace(
    SHOWN["look_ahead_mask"],
    cases=(
        Case("chunks of frames, some of them padding", lambda draw: copies(draw, whole=True), 7, tolerance=1e-6),
        Case("the last chunk has fewer frames", copies, 4, tolerance=1e-6),
        Case("no earlier frame is kept", lambda draw: copies(draw, left=0), 3, tolerance=1e-6),
    ),
)


def texts(draw: Draw, *, equal: bool = False, few: bool = False, long: bool = False, S: int = 0) -> tuple:
    """Log-probabilities of recordings, and texts without equal neighbours, or with some; of as few frames as can be."""
    B, V, length = draw.sizes(3, 3, 6)
    S = S or length
    steps = 1 + draw.integers(0, V - 2, B, S)  # from a symbol to the next, round the circle of V - 1 symbols
    if equal:
        steps[:, 1::2] = 0
    targets = 1 + steps.cumsum(dim=1) % (V - 1)
    T = S if few else S + draw.integers(3, 8, 1).item() + equal * (S // 2)
    return (1.5 * draw(B, 100 if long else T, V)).log_softmax(dim=-1), targets


ALIGN = replace(
    SHOWN["align"],
    cases=(
        Case("texts without equal neighbours", texts, 8, tolerance=1e-6),
        Case("texts with equal neighbours", lambda draw: texts(draw, equal=True), 4, tolerance=1e-6),
        Case("texts of one symbol", lambda draw: texts(draw, S=1), 3, tolerance=1e-6),
        Case("as many symbols as frames", lambda draw: texts(draw, few=True), 2, tolerance=1e-6),
        Case("long recordings", lambda draw: texts(draw, long=True), 3, tolerance=1e-6),
    ),
)


def steps(draw: Draw, *, ragged: bool = False, U: int = 0, long: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Log-probabilities of a transducer, texts, how many frames and symbols are real; if ragged, a text is empty."""
    B, T, longest, V = draw.sizes(4, 3, 7)
    T, U = 100 if long else T, U or longest
    targets = draw.integers(1, V, B, U)
    frames, lengths = torch.full((B,), T), torch.full((B,), U)
    if ragged:
        frames, lengths = draw.integers(1, T, B), draw.integers(1, U, B)
        frames[0], lengths[-1] = T - 1, 0 if B > 1 else 1
        targets = targets * (torch.arange(U) < lengths[:, None])
    return (1.5 * draw(B, T, U + 1, V)).log_softmax(dim=-1), targets, frames, lengths


TRANSDUCER_LOSS = replace(
    SHOWN["transducer_loss"],
    cases=(
        Case("recordings of one length", steps, 8),
        Case("recordings and texts of several lengths", lambda draw: steps(draw, ragged=True), 5),
        Case("texts of one symbol", lambda draw: steps(draw, U=1), 3),
        Case("long recordings", lambda draw: steps(draw, long=True, U=3), 3, tolerance=1e-3),
    ),
)

OCCUPATION = replace(
    SHOWN["occupation"],
    cases=(
        Case("texts without equal neighbours", texts, 5),
        Case("texts with equal neighbours", lambda draw: texts(draw, equal=True), 3),
        Case("texts of one symbol", lambda draw: texts(draw, S=1), 2),
        Case("long recordings", lambda draw: texts(draw, long=True), 3, tolerance=1e-3),
    ),
)

ASSIGNMENT = Assignment(
    "15",
    notebook="text_and_sound",
    title="One model for text and sound",
    tasks=(SPAN_MASK, TEXT_INFILLING, CHUNK_MASK, LOOK_AHEAD_MASK, ALIGN, TRANSDUCER_LOSS, OCCUPATION, SHOWN["train"]),
)
