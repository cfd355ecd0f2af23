"""Assignment 07, BERT: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_07.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def pieces(draw: Draw, *, signs: bool = True, lengths: tuple[int, ...] = ()) -> tuple[Tensor, int]:
    """For some rows the number of the word that each piece belongs to, -1 at signs and padding; and the most words."""
    B, most = draw.sizes(2, 4, 9) if not lengths else (draw.sizes(1, 4, 9)[0], len(lengths))
    rows = []
    for _ in range(B):
        count = draw.integers(most - 2, most + 1, 1).item()
        sizes = lengths or [*draw.integers(1, 5, count - 1).tolist(), 1]
        row = [number for number, size in enumerate(sizes) for _ in range(size)]
        rows.append([-1, *row, -1] if signs else row)
    longest = max(map(len, rows)) + signs
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows]), most


def words_to_hide(draw: Draw, *, short: bool = False) -> tuple[Tensor, Tensor, float]:
    """Rows of words, a number for each word, and a rate at which no count ends in a half."""
    words, most = pieces(draw, lengths=(1, 2, 1) if short else ())
    rate = ((0.05, 0.07, 0.11) if short else (0.43, 0.57, 0.61))[draw.integers(0, 3, 1).item()]
    return words, torch.rand(len(words), most, generator=draw.generator), rate


WHOLE_WORDS = replace(
    SHOWN["whole_words"],
    cases=(
        Case("words are hidden whole, as many as fit", words_to_hide, points=12),
        Case("a short sentence has a gap, too", lambda draw: words_to_hide(draw, short=True), 3),
    ),
)


def tags_and_pieces(draw: Draw, *, signs: bool = True) -> tuple[Tensor, Tensor]:
    """Tags of words, and the word of each piece, between signs or from the first place on."""
    words, most = pieces(draw, signs=signs)
    return draw.integers(20, 50, len(words), most), words


ALIGN = replace(
    SHOWN["align_labels"],
    cases=(
        Case("a tag at the first piece of each word, -100 elsewhere", tags_and_pieces, points=9),
        Case("pieces that no sign stands before", lambda draw: tags_and_pieces(draw, signs=False), points=3),
    ),
)


def sentences(draw: Draw, *, signs: bool = False, large: float = 0.5) -> tuple[Tensor, Tensor, Tensor, int]:
    """Vectors of words, sentences, which places count (all, or not the first and the last), and the gap's number."""
    B, T, V, D = draw.sizes(4, 4, 9)
    scored = torch.ones(B, T, dtype=torch.bool)
    if signs:
        scored[:, [0, -1]] = False
    gap = draw.integers(0, V, 1).item()
    tokens = draw.integers(0, V - 1, B, T)
    return large * draw(V, D), tokens + (tokens >= gap), scored, gap


LIKELIHOOD = replace(
    SHOWN["pseudo_log_likelihood"],
    cases=(
        Case("each word is guessed from all others", sentences, points=12),
        Case("only scored places count", lambda draw: sentences(draw, signs=True), 4),
        Case("large scores do no harm", lambda draw: sentences(draw, large=5.0), 2),
    ),
)


def ratings(draw: Draw, *, kind: str = "all different") -> tuple[Tensor, Tensor]:
    """What some systems predict, and the truth: all different, in steps, labels of two classes, or one is blind."""
    B, N = (*draw.sizes(1, 4, 9), *draw.sizes(1, 10, 15))
    true = draw(N)
    predicted = 0.7 * true + draw(B, N)
    predicted[1] = -predicted[1]
    if kind == "all different" or kind == "a blind one":
        predicted[0] = 3.0 if kind == "a blind one" else predicted[0]
        return predicted, true
    if kind == "steps":
        return predicted.round() ** 3, true.round() ** 3
    predicted, true = (predicted > 0).float(), (true > 0).float()
    for labels in (predicted, true):
        labels[..., 0], labels[..., -1] = 0.0, 1.0
    return predicted, true


SPEARMAN = replace(
    SHOWN["spearman"],
    cases=(
        Case("the correlation of the ranks", ratings, points=7),
        Case("equal numbers share their ranks", lambda draw: ratings(draw, kind="steps"), 5),
        Case("two labels: Matthews's correlation", lambda draw: ratings(draw, kind="labels"), 4),
        Case("who cannot tell anything apart gets 0", lambda draw: ratings(draw, kind="a blind one"), 2),
    ),
)


ASSIGNMENT = Assignment(
    "07",
    notebook="bert",
    title="BERT",
    tasks=(WHOLE_WORDS, ALIGN, LIKELIHOOD, SPEARMAN, SHOWN["train"]),
    seconds={"train": 45},
)
