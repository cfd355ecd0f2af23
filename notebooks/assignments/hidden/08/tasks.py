"""Assignment 08, GPT: what the grader asks of each task; tasks.md lists the known mistakes."""

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


ASSIGNMENT = Assignment(
    "08", notebook="gpt", title="GPT", tasks=(SAMPLING, ENCODE, BITS, SHOWN["train"]), seconds={"train": 90}
)
