"""Assignment 07, BERT: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_07.assignment import ASSIGNMENT as SHOWN
from course_lib.lessons.lesson_07.assignment import guess
from course_lib.tasks import Case, Draw


def pieces(draw: Draw, *, signs: bool = True, lengths: tuple[int, ...] = ()) -> tuple[Tensor, int]:
    """For some rows the word of each sub-word, -1 at special tokens and padding; and the largest number of words."""
    B, most = draw.sizes(2, 4, 9) if not lengths else (draw.sizes(1, 4, 9)[0], len(lengths))
    rows = []
    for _ in range(B):
        count = draw.integers(most - 2, most + 1, 1).item()
        sizes = lengths or [*draw.integers(1, 5, count - 1).tolist(), 1]
        row = [number for number, size in enumerate(sizes) for _ in range(size)]
        rows.append([-1, *row, -1] if signs else row)
    longest = max(map(len, rows)) + signs
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows]), most


def words_to_mask(draw: Draw, *, short: bool = False) -> tuple[Tensor, Tensor, float]:
    """Rows of words, a number for each word, and a fraction at which no count ends in a half."""
    words, most = pieces(draw, lengths=(1, 2, 1) if short else ())
    fraction = ((0.05, 0.07, 0.11) if short else (0.43, 0.57, 0.61))[draw.integers(0, 3, 1).item()]
    return words, torch.rand(len(words), most, generator=draw.generator), fraction


WHOLE_WORDS = replace(
    SHOWN["whole_words"],
    cases=(
        Case("words are masked whole, as many as fit", words_to_mask, points=13),
        Case("a short sentence has a masked word, too", lambda draw: words_to_mask(draw, short=True), 3),
    ),
)


def spans(draw: Draw, *, short: bool = False) -> tuple[Tensor, Tensor, Tensor, float]:
    """Many spans for each row, which tokens are real, and a fraction at which no count ends in a half."""
    B, T = draw.sizes(1, 3, 5)[0], draw.sizes(1, 20, 26)[0]
    count = draw.integers(3, 5, B) if short else draw.integers(T - 6, T - 1, B)
    positions = torch.arange(T)
    real = (positions > 0) & (positions <= count[:, None])
    starts = 1 + draw(B, 4 if short else T - 3).argsort(dim=1)[:, :9]
    fraction = ((0.05, 0.07, 0.11) if short else (0.43, 0.47, 0.52))[draw.integers(0, 3, 1).item()]
    return starts, draw.integers(1, 5, *starts.shape), real, fraction


SPANS = replace(
    SHOWN["span_mask"],
    cases=(
        Case("spans are masked as far as they fit", spans, points=13),
        Case("a short sentence has a masked token, too", lambda draw: spans(draw, short=True), 3),
    ),
)


def proposals(draw: Draw, *, large: float = 2.0) -> tuple[Tensor, ...]:
    """Tokens, which of them a generator fills, its proposals, of which some are right, the logits, and what is real."""
    B, T = draw.sizes(2, 5, 10)
    lengths = draw.integers(3, T + 1, B)
    lengths[0], lengths[1] = T, 3
    valid = torch.arange(T) < lengths[:, None]
    tokens = draw.integers(0, 30, B, T)
    samples = torch.where(draw.mask(B, T), tokens, draw.integers(0, 30, B, T))
    chosen = draw.mask(B, T)
    chosen[:, 0], chosen[:, 1], chosen[:, 2] = True, True, False
    samples[:, 0] = tokens[:, 0]
    samples[:, 1:3] = tokens[:, 1:3] + 1
    return tokens, chosen & valid, samples, large * draw(B, T), valid


REPLACED = replace(
    SHOWN["replaced_loss"],
    cases=(
        Case("the mean loss of all real tokens", proposals, points=10),
        Case("logits of some hundreds do no harm", lambda draw: proposals(draw, large=200.0), 4),
    ),
)


def two_models(draw: Draw, *, large: float = 2.0) -> tuple[Tensor, Tensor, Tensor, float]:
    """Logits of two models, which tokens are real, and a temperature."""
    B, T, V = draw.sizes(3, 4, 9)
    lengths = draw.integers(2, T, B)
    lengths[0], lengths[1] = T, 2
    temperature = 1.5 + draw.integers(0, 4, 1).item() / 2
    return large * draw(B, T, V), large * draw(B, T, V), torch.arange(T) < lengths[:, None], temperature


DISTILLED = replace(
    SHOWN["distillation_loss"],
    cases=(
        Case("the mean loss of all real tokens", two_models, points=10),
        Case("logits of some hundreds do no harm", lambda draw: two_models(draw, large=300.0), 4),
    ),
)


def sentences(draw: Draw, *, signs: bool = False, large: float = 0.5) -> tuple[Tensor, Tensor, Tensor, int]:
    """Embeddings, sentences, which positions count (all, or not the first and the last), and the id of the mask."""
    B, T, V, D = draw.sizes(4, 4, 9)
    scored = torch.ones(B, T, dtype=torch.bool)
    if signs:
        scored[:, [0, -1]] = False
    mask_id = draw.integers(0, V, 1).item()
    tokens = draw.integers(0, V - 1, B, T)
    return large * draw(V, D), tokens + (tokens >= mask_id), scored, mask_id


LIKELIHOOD = replace(
    SHOWN["pseudo_log_likelihood"],
    cases=(
        Case("each token is predicted from all others", sentences, points=12),
        Case("only scored positions count", lambda draw: sentences(draw, signs=True), 4),
        Case("large logits do no harm", lambda draw: sentences(draw, large=5.0), 2),
    ),
)


def sentences_to_fill(draw: Draw, *, few: bool = False) -> tuple[Tensor, Tensor, Tensor, int, int]:
    """Embeddings, sentences, what is masked in them, how many proposals are kept, and the id of the mask.

    No two masked positions of a sentence have equal confidences, between which rounding would decide.
    """
    (B, V, D), T = draw.sizes(3, 5, 9), draw.integers(6, 9, 1).item()
    E, mask_id = draw(V, D) / D**0.5, draw.integers(0, V, 1).item()
    keep = 2 if few else draw.integers(2, T // 2, 1).item()
    rows = []
    while len(rows) < B:
        tokens, count = draw.integers(0, V - 1, 1, T), len(rows) % 3 if few else T // 2 + 1
        tokens, masked = tokens + (tokens >= mask_id), draw(1, T).argsort(dim=1) < count
        logits = guess(torch.where(masked, mask_id, tokens), E)
        logits[..., mask_id] = -torch.inf
        confidence = logits.softmax(dim=-1).amax(dim=-1)[masked].sort().values
        if (confidence.diff() > 1e-5).all():
            rows.append((tokens, masked))
    tokens, masked = map(torch.cat, zip(*rows, strict=True))
    return E, tokens, masked, keep, mask_id


FILLED = replace(
    SHOWN["mask_predict"],
    cases=(
        Case("the proposals of the largest confidence are kept", sentences_to_fill, points=15),
        Case("sentences with few masked positions, or none", lambda draw: sentences_to_fill(draw, few=True), 5),
    ),
)


ASSIGNMENT = Assignment(
    "07",
    notebook="bert",
    title="BERT",
    tasks=(WHOLE_WORDS, SPANS, REPLACED, DISTILLED, LIKELIHOOD, FILLED, SHOWN["train"]),
)
