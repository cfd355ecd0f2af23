"""Assignment 06, The Transformer: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_06.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, TaskInput


def rows(draw: Draw, *, size: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Vectors of all positions, the gain, and the gradient with respect to the result."""
    B, T, D = draw.sizes(3, 4, 9)
    return size * draw(B, T, D) + draw(B, T, 1), 1 + draw(D), draw(B, T, D)


GRADIENT = replace(
    SHOWN["norm_gradient"],
    cases=(
        Case("each position by itself", rows, points=10, tolerance=1e-3),
        Case("numbers that hardly differ", lambda draw: rows(draw, size=3e-3), 3, tolerance=3e-3),
    ),
)


def attended(draw: Draw, *, size: float = 1.5) -> tuple[Tensor, ...]:
    """Queries, keys, values, and the gradient with respect to the output."""
    B, T, d = draw.sizes(3, 3, 8)
    return size * draw(B, T, d), draw(B, T, d), draw(B, T, d), draw(B, T, d)


ATTENTION_GRADIENT = replace(
    SHOWN["attention_gradient"],
    cases=(
        Case("the gradients of queries, keys and values", attended, points=10, tolerance=1e-3),
        Case("large scores do no harm", lambda draw: attended(draw, size=100.0), 3, tolerance=3e-3),
    ),
)


def steps(draw: Draw, *, lengths: str) -> TaskInput:
    """Vectors, and the lengths of the pieces in which they are read."""
    B, d, H = draw.sizes(3, high=6)
    pieces = {"all": [6], "one by one": [1] * 5, "pieces": [1 + draw.integers(0, 3, 1).item(), 3, 2]}[lengths]
    return TaskInput((draw(B, sum(pieces), d * H), pieces), build=(d * H, H))


IN_PIECES = (
    Case("all positions at once", lambda draw: steps(draw, lengths="all"), 6),
    Case("one position after the other", lambda draw: steps(draw, lengths="one by one"), 5),
    Case("in pieces of several positions", lambda draw: steps(draw, lengths="pieces"), 5),
)
CACHED = replace(SHOWN["CachedAttention"], cases=IN_PIECES)
LINEAR = replace(SHOWN["LinearAttention"], cases=IN_PIECES)


def tokens(draw: Draw, *, experts: int | None = None) -> TaskInput:
    """Vectors, and the sizes of a layer of experts."""
    B, T, D, inner, E = draw.sizes(5, 3, 8)
    return TaskInput((2 * draw(B, T + 8, D),), build=(D, inner + 8, experts or E))


SWITCH = replace(
    SHOWN["SwitchMLP"],
    cases=(
        Case("each position has one expert", tokens, 13),
        Case("with two experts", lambda draw: tokens(draw, experts=2), 4),
    ),
)


def positions_to_choose(draw: Draw, *, experts: int | None = None, all_of_them: bool = False) -> TaskInput:
    """Vectors, the sizes of a layer of experts, and how many positions each takes: some, or all."""
    B, T, D, inner, E = draw.sizes(5, 3, 8)
    capacity = T if all_of_them else 2 + draw.integers(0, T - 2, 1).item()
    return TaskInput((2 * draw(B, T, D),), build=(D, inner + 8, experts or E, capacity))


CHOICE = replace(
    SHOWN["ExpertChoiceMLP"],
    cases=(
        Case("each expert takes its positions", positions_to_choose, 12),
        Case("with two experts", lambda draw: positions_to_choose(draw, experts=2), 3),
        Case("each expert takes all positions", lambda draw: positions_to_choose(draw, all_of_them=True), 2),
    ),
)


def best_text(
    tables: Tensor, start: int, end: int, beams: int, penalty: float, *, narrow=False, whole=True
) -> list[int]:
    """What the search finds with a table for each step; `narrow` and not `whole` are two mistakes that look alike."""
    running, finished = [([start], 0.0)], []
    for table in tables.tolist():
        found = [([*words, word], total + p) for words, total in running for word, p in enumerate(table[words[-1]])]
        found = sorted(found, key=lambda pair: pair[1], reverse=True)[:beams]
        finished += [pair for pair in found if pair[0][-1] == end]
        running = [pair for pair in found if pair[0][-1] != end]
        beams -= (len(found) - len(running)) * narrow
    texts = finished + running if whole or not finished else finished
    return max(texts, key=lambda pair: pair[1] / (len(pair[0]) - 1) ** penalty)[0]


def chances(draw: Draw, *, penalty: bool = True, ends: float = 0.0) -> tuple[Tensor, int, int, int, float, int]:
    """How likely each word is behind each other one, and what is asked of the search; its result has no equal.

    The same transitions in another order have the same probability: where such texts tie, rounding decides. What is
    drawn tells the mistakes of `best_text` from each other and from a greedy search.
    """
    (V,) = draw.sizes(1, 6, 9)
    while True:
        table, *asked, longest = _chances(draw, V, penalty=penalty, ends=ends)
        tables = table.expand(longest, V, V)
        words = best_text(tables, *asked)
        tied = any(best_text(tables + 1e-5 * draw(longest, V, V), *asked) != words for _ in range(10))
        narrow, lost = best_text(tables, *asked, narrow=True), best_text(tables, *asked, whole=False)
        greedy = best_text(tables, *asked[:2], 1, asked[3])
        told_apart = narrow not in (lost, greedy) if narrow != words else ends <= 0
        if not tied and told_apart and (lost != words or ends >= 0):
            return table, *asked, longest


def _chances(draw: Draw, V: int, *, penalty: bool, ends: float) -> tuple[Tensor, int, int, int, float, int]:
    start, end = draw(V).argsort()[:2].tolist()
    scores = 1.5 * draw(V, V)
    scores[:, end] += ends
    scores[start, end] -= 4
    power = (2 + draw.integers(0, 8, 1).item()) / 5 if penalty else 0.0
    num_beams, longest = 3 + draw.integers(0, 2, 1).item(), 5 + draw.integers(0, 4, 1).item()
    return scores.log_softmax(dim=-1), start, end, num_beams, power, longest


BEAMS = replace(
    SHOWN["beam_search"],
    cases=(
        Case("without a penalty the likeliest of what the beam finds", lambda draw: chances(draw, penalty=False), 4),
        Case("with a penalty the best score by length", chances, 6),
        Case("what is not finished in the end counts, too", lambda draw: chances(draw, ends=-1.5), 2),
        Case("much is finished early", lambda draw: chances(draw, ends=1.5), 2),
    ),
)


def diverse_texts(
    tables: Tensor, start: int, end: int, groups: int, beams: int, strength: float, *, whole: bool = True
) -> list[list[int]]:
    """What the groups find with a table for each step; not `whole` is a mistake: unfinished sequences are lost."""
    running, finished = [[([start], 0.0)] for _ in range(groups)], [[] for _ in range(groups)]
    for table in tables.tolist():
        used = [0] * len(table)
        for group, texts in enumerate(running):
            found = [([*words, word], total + p) for words, total in texts for word, p in enumerate(table[words[-1]])]
            found = sorted(found, key=lambda pair: strength * used[pair[0][-1]] - pair[1])[:beams]
            for words, _ in found:
                used[words[-1]] += 1
            finished[group] += [pair for pair in found if pair[0][-1] == end]
            running[group] = [pair for pair in found if pair[0][-1] != end]
    texts = [ended + more if whole or not ended else ended for ended, more in zip(finished, running, strict=True)]
    return [max(every, key=lambda pair: pair[1])[0] for every in texts]


def diverse(draw: Draw, *, beams: int | None = None, ends: float = 0.0) -> tuple:
    """How likely each word is behind each other one, and what is asked of the search; its result has no equal."""
    (V,) = draw.sizes(1, 7, 10)
    while True:
        start, end = draw(V).argsort()[:2].tolist()
        scores = 0.8 * draw(V, V)
        scores[:, end] += ends
        scores[start, end] -= 4
        table, longest = scores.log_softmax(dim=-1), 5 + draw.integers(0, 4, 1).item()
        strength = 0.3 + 0.9 * torch.rand(1, generator=draw.generator).item()
        groups, many = 3 + draw.integers(0, 2, 1).item(), beams or 2 + draw.integers(0, 2, 1).item()
        asked, tables = (start, end, groups, many, strength), table.expand(longest, V, V)
        found = diverse_texts(tables, *asked)
        if ends < 0 and found == diverse_texts(tables, *asked, whole=False):
            continue
        if all(diverse_texts(tables + 1e-5 * draw(longest, V, V), *asked) == found for _ in range(6)):
            return table, *asked, longest


DIVERSE = replace(
    SHOWN["diverse_beam_search"],
    cases=(
        Case("the best sequence of each group", diverse, 7),
        Case("groups of one sequence", lambda draw: diverse(draw, beams=1), 3),
        Case("what is not finished in the end counts, too", lambda draw: diverse(draw, ends=-0.3), 2),
        Case("much is finished early", lambda draw: diverse(draw, ends=1.5), 2),
    ),
)


ASSIGNMENT = Assignment(
    "06",
    notebook="transformer",
    title="The Transformer",
    tasks=(GRADIENT, ATTENTION_GRADIENT, CACHED, LINEAR, SWITCH, CHOICE, BEAMS, DIVERSE, SHOWN["train"]),
)
