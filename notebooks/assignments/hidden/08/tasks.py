"""Assignment 08, GPT: what the grader asks of each task; tasks.md lists the known mistakes."""

import itertools
import math
from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_08.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def choices(
    draw: Draw, *, size: float = 2.0, penalty: float | None = None, min_p: float | None = None, longer: int = 0
) -> tuple:
    """Logits of a vocabulary, tokens of which some were written twice, a penalty and a fraction of the largest."""
    B, T, V = draw.sizes(3, 2, 6)
    T, V = T + longer, V + 8 + 2 * longer
    written = torch.cat([draw.integers(0, V, B, T + 2)] + [draw.integers(0, V, B, 1)] * 2, dim=1)
    noise = torch.rand(2, generator=draw.generator).tolist()
    penalty = 1.2 + noise[0] if penalty is None else penalty
    return size * draw(B, V), written, penalty, 0.05 + 0.25 * noise[1] if min_p is None else min_p


def most_probable_alone(draw: Draw) -> tuple:
    """The same with a `min_p` of 1; in the first row one token is certain."""
    logits, *others, _ = choices(draw)
    logits[0, draw.integers(0, logits.shape[1], 1)] += 60.0
    return logits, *others, 1.0


SAMPLING = replace(
    SHOWN["sampling_odds"],
    cases=(
        Case("what was written is less likely, and what is too unlikely is left out", choices, 8),
        Case("a penalty alone", lambda draw: choices(draw, min_p=0.0), 2),
        Case(
            "a penalty for all that was written, however long ago",
            lambda draw: choices(draw, min_p=0.0, longer=90 + draw.integers(0, 30, 1).item()),
            2,
        ),
        Case("a filter alone", lambda draw: choices(draw, penalty=1.0), 2),
        Case("with a min_p of 1 the most probable token alone", most_probable_alone, 1),
        Case("large logits do no harm", lambda draw: choices(draw, size=1e3), 2, tolerance=1e-2),
    ),
)


def phrases(
    draw: Draw, *, size: float = 1.5, n: int | None = None, mass: float | None = None, longer: int = 0
) -> tuple:
    """Logits, tokens of a few kinds that end as they begin, the length of a phrase, and a mass.

    The token that stood behind the phrase, and one that is written elsewhere, are likely.
    """
    B, T, V = draw.sizes(3, 3, 7)
    V += 9
    kinds = draw(B, V).argsort(dim=1)[:, :5]
    n = draw.integers(2, 4, 1).item() if n is None else n
    begin, others = draw.integers(0, 4, B, 3), draw.integers(0, 4, B, T + 2)
    if longer:  # the phrase comes at the beginning, and once more near the end, where another token is behind it
        others = torch.cat([draw.integers(0, 2, B, T + longer), torch.tensor([[2, 3, 0]]).expand(B, 3)], dim=1)
        begin[:, :2], begin[:, 2] = torch.tensor([2, 3]), 4
    written = kinds.gather(1, torch.cat([begin, others, begin[:, :2]], dim=1))
    logits = size * draw(B, V)
    logits = logits.scatter_add(1, written[:, 2:4], torch.full((B, 2), size))
    mass = 0.25 + 0.5 * torch.rand(1, generator=draw.generator).item() if mass is None else mass
    return logits, written, n, mass


TYPICAL = replace(
    SHOWN["typical_odds"],
    cases=(
        Case("no phrase comes twice, and the typical tokens are kept", phrases, 7),
        Case("a filter alone, where the phrases are longer than the text", lambda draw: phrases(draw, n=40), 3),
        Case("a rule against phrases alone, with a mass of 1", lambda draw: phrases(draw, mass=1.0), 2),
        Case(
            "a phrase that was written long ago",
            lambda draw: phrases(draw, n=3, longer=90 + draw.integers(0, 30, 1).item()),
            2,
        ),
        Case("with phrases of one token nothing that was written", lambda draw: phrases(draw, n=1), 1),
        Case("large logits do no harm", lambda draw: phrases(draw, size=1e3), 2, tolerance=1e-2),
    ),
)


def joined(tokens: list[int], pair: tuple[int, int], token: int) -> list[int]:
    """The tokens with each such pair, from the left, as one token."""
    found: list[int] = []
    for each in tokens:
        if found and (found[-1], each) == pair:
            found[-1] = token
        else:
            found.append(each)
    return found


def text_and_merges(draw: Draw, letters: str = "aabnéü ") -> tuple[str, list]:
    """A text, and the merges that a text like it has taught: of the commonest pairs, some bytes of one letter."""

    def text(size: int) -> str:
        return "".join(letters[place] for place in draw.integers(0, len(letters), size).tolist())

    tokens, merges = list(text(200).encode()), []
    for _ in range(draw.integers(12, 17, 1).item()):
        pairs = list(zip(tokens, tokens[1:], strict=False))
        merges.append(max(pairs, key=pairs.count))
        tokens = joined(tokens, merges[-1], 255 + len(merges))
    return text(draw.integers(60, 120, 1).item()), merges


ENCODE = replace(
    SHOWN["encode"],
    cases=(
        Case("bytes are joined, the merge learned first before all others", text_and_merges, 10),
        Case("any letters, of two bytes and more", lambda draw: text_and_merges(draw, "aéü→λ "), 4),
        Case("a run of one letter", lambda draw: text_and_merges(draw, "aaaaab"), 2),
        Case("without merges the bytes themselves", lambda draw: (text_and_merges(draw)[0], []), 2),
    ),
)


def best_cut(text: str, scores: dict[tuple[int, int], float]) -> list[tuple[int, int]]:
    """The pieces, from and to, whose scores have the largest sum; all letters of the text have to be covered."""
    best: list[tuple[float, list]] = [(0.0, [])]
    for end in range(1, len(text) + 1):
        found = [
            (best[start][0] + scores[start, end], [*best[start][1], (start, end)])
            for start in range(end)
            if (start, end) in scores
        ]
        best.append(max(found))
    return best[-1][1]


def text_and_pieces(draw: Draw, letters: str = "abdéü ", *, empty: bool = False, cheap: bool = False) -> tuple:
    """A text, pieces of a text like it with their log-probabilities, and that of a byte; no other cut is as good."""

    def text(size: int) -> str:
        return "".join(letters[place] for place in draw.integers(0, len(letters), size).tolist())

    while True:
        source, size = text(400), draw.integers(30, 50, 1).item()
        places = zip(draw.integers(0, 390, 150).tolist(), draw.integers(1, 6, 150).tolist(), strict=True)
        pieces = list(dict.fromkeys(source[place : place + length] for place, length in places))
        noise = torch.rand(len(pieces) + 1, generator=draw.generator).tolist()
        listed = [(piece, -0.6 * len(piece) - 3 * more) for piece, more in zip(pieces, noise, strict=False)]
        asked, byte_score = text(size), (-1.0 if cheap else -2.0) - noise[-1]
        if empty or _alone(draw, asked, dict(listed), byte_score):
            return asked, [] if empty else listed, byte_score


def _alone(draw: Draw, text: str, pieces: dict[str, float], byte_score: float) -> bool:
    """Whether the best cut stays the same with scores that differ a little: pieces in another order sum to the same."""
    scores = {(i, i + 1): byte_score * len(letter.encode()) for i, letter in enumerate(text)}
    for start, end in itertools.combinations(range(len(text) + 1), 2):
        if (piece := text[start:end]) in pieces:
            scores[start, end] = max(pieces[piece], scores.get((start, end), -math.inf))
    wanted = best_cut(text, scores)
    for _ in range(6):
        moved = zip(scores, (1e-4 * draw(len(scores))).tolist(), strict=True)
        if best_cut(text, {place: scores[place] + more for place, more in moved}) != wanted:
            return False
    return True


UNIGRAM = replace(
    SHOWN["encode_unigram"],
    cases=(
        Case("the pieces with the largest sum of log-probabilities", text_and_pieces, 10),
        Case("any letters, of two bytes and more", lambda draw: text_and_pieces(draw, "aéü→λ "), 4),
        Case("where bytes cost little", lambda draw: text_and_pieces(draw, cheap=True), 2),
        Case("without pieces the bytes alone", lambda draw: text_and_pieces(draw, empty=True), 2),
    ),
)


def scored_windows(draw: Draw, *, step: str = "drawn", count: int = 5) -> tuple[Tensor, list, str]:
    """Losses in windows, the last of which ends with the text; where each begins; and a text."""
    L = draw.integers(7, 11, 1).item()
    stride = L if step == "none shared" else draw.integers(2, L // 2, 1).item()
    starts = [stride * number for number in range(count)]
    starts += [starts[-1] + draw.integers(1, stride, 1).item()] if step == "drawn" else []
    letters = "".join("aeé ü→n"[place] for place in draw.integers(0, 7, 30 + 2 * L).tolist())
    return draw(len(starts), L).abs(), starts, letters


BITS = replace(
    SHOWN["bits_per_byte"],
    cases=(
        Case("each token counts once, with as much before it as any window has", scored_windows, 9),
        Case("windows that share nothing", lambda draw: scored_windows(draw, step="none shared"), 3),
        Case("a single window", lambda draw: scored_windows(draw, step="even", count=1), 2),
    ),
)


def documents(draw: Draw, *, count: int | None = None, size: float = 1.5) -> tuple[Tensor, Tensor, list, list]:
    """Logits for documents with padding, the longest without any; their tokens, lengths and texts."""
    N, T, V = draw.sizes(3, 3, 8)
    N, T = count or N, T + 4
    lengths = draw.integers(3, T - 1, N).tolist()
    lengths[draw.integers(0, N, 1).item()] = T
    letters, texts = "aeé ü→n", []
    for length in lengths:
        texts.append("é" + "".join(letters[place] for place in draw.integers(0, 7, 2 * length).tolist()))
    tokens = draw.integers(1, V, N, T)
    tokens[:, 0] = 0
    return size * draw(N, T, V), tokens, lengths, texts


CORPUS = replace(
    SHOWN["corpus_bits_per_byte"],
    cases=(
        Case("each token but the separator counts once, padding never", documents, 9),
        Case("a single document", lambda draw: documents(draw, count=1), 2),
        Case("large logits do no harm", lambda draw: documents(draw, size=1e3), 3),
    ),
)


ASSIGNMENT = Assignment(
    "08",
    notebook="gpt",
    title="GPT",
    tasks=(SAMPLING, TYPICAL, ENCODE, UNIGRAM, BITS, CORPUS, SHOWN["train"]),
)
